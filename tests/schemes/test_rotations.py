"""Rotations in more dimensions and by matrices: RoPE-2D, M-RoPE, LieRE and algebraic positions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc import Dims
from tests.oracles import mrope as mrope_oracle
from tests.schemes.helpers import hook
from tests.test_orthogonal import entries

D = 8
DIMS = Dims(width=16, heads=2, head=D, trained=16)


def made(text, dims=DIMS, seed=0):
    """A scheme, and the parameters of its first head."""
    scheme = posenc.bind(posenc.parse(text), dims)
    p = jax.jit(lambda key: posenc.init(scheme, key, dims))(jax.random.key(seed))
    return scheme, p["layer"] | {name: a[0] for name, a in p["heads"].items()}


def rotated_query(scheme, p, x, positions):
    return np.asarray(hook(scheme, "query", p, x, np.asarray(positions)))


def rotated_key(scheme, p, x, positions):
    return np.asarray(hook(scheme, "key", p, x, np.asarray(positions)))


def scores(text, positions, seed=0):
    """q·k of every pair of tokens after the hooks, of one head."""
    scheme, p = made(text)
    q, k = np.random.default_rng(seed).normal(size=(2, len(positions), D)).astype(np.float32)
    return rotated_query(scheme, p, q, positions) @ rotated_key(scheme, p, k, positions).T


def test_mixed_frequencies_start_as_lengths_in_two_directions_at_right_angles_drawn_for_each_head():
    scheme = posenc.bind(posenc.parse("rope_2d(frequencies='mixed')"), DIMS)
    f = posenc.init(scheme, jax.random.key(0), DIMS)["heads"]["frequency"]
    assert f.shape == (2, 2, 4)
    np.testing.assert_allclose(np.hypot(f[:, 0], f[:, 1]), np.tile([1, 10**-0.5] * 2, (2, 1)), atol=1e-6)
    np.testing.assert_allclose((f[..., :2] * f[..., 2:]).sum(1), 0, atol=1e-6)
    assert abs(float(f[0, 0, 0] - f[1, 0, 0])) > 1e-3


@pytest.mark.parametrize("text", ["rope_2d", "rope_2d(layout='half')", "mrope"])
def test_far_places_are_as_exact_as_near_ones(text):
    """No angle is rounded with its position."""
    near = np.stack([np.arange(5), np.arange(5)[::-1], np.arange(5) * 2][: posenc.parse(text).axes], -1)
    np.testing.assert_allclose(scores(text, near + 2**20), scores(text, near), atol=5e-6)


@pytest.mark.parametrize("order", ["chunked", "interleaved"])
@pytest.mark.parametrize("sections", [(24, 20, 20), (64, 0, 0), (30, 20, 14)])
def test_every_pair_reads_the_axis_of_its_section(order, sections):
    scheme = posenc.bind(posenc.parse(f"mrope(sections={sections}, order={order!r})"), Dims(128, 1, 128, 16))
    unit = np.concatenate([np.ones(64), np.zeros(64)])[None].astype(np.float32)
    owners = [mrope_oracle.axis(scheme, pair) for pair in range(64)]
    assert [owners.count(a) for a in range(3)] == list(sections)
    for axis in range(3):
        turned = rotated_query(scheme, {}, unit, jnp.asarray([np.eye(3)[axis] * 2000000.0]))[0, 64:]
        np.testing.assert_array_equal(np.abs(turned) > 1e-5, np.array(owners) == axis)


def tree(nodes, branching=2, seed=0):
    """Scores of the same query and key at every pair of nodes, under steps of which no two are alike."""
    scheme, p = made(f"algebraic(structure='tree', branching={branching})", seed=seed)
    p = {"step": p["step"] + jnp.stack([entries(D, n, 0.3).astype(jnp.float32) for n in range(branching)])}
    q, k = (np.tile(x, (len(nodes), 1)) for x in np.random.default_rng(1).normal(size=(2, D)).astype(np.float32))
    nodes = jnp.asarray(nodes)
    return np.asarray(rotated_query(scheme, p, q, nodes) @ rotated_key(scheme, p, k, nodes).T)


def test_the_last_node_of_32_bits_has_its_place():
    last = 2**31 - 1
    assert np.isfinite(tree(np.array([0, last, last - 1], np.int32))).all()
    s = tree(np.array([1, 2, (last - 1) // 2, last, last - 1], np.int32))
    assert abs(s[2, 3] - s[3, 4]) > 1e-4


@pytest.mark.ci
def test_nodes_are_whole_numbers_from_0_on():
    scheme, _ = made("algebraic(structure='tree')")
    p = posenc.init(scheme, jax.random.key(0), DIMS)
    q = np.random.default_rng(0).normal(size=(3, 2, D)).astype(np.float32)
    with pytest.raises(
        TypeError, match="'algebraic' was given positions of type float32; nodes of a tree must be integers"
    ):
        posenc.attend(scheme, p, q, q, q, positions=np.arange(3, dtype=np.float32))
    with pytest.raises(ValueError, match="'algebraic' was given the node -1; nodes are numbered from the root, 0"):
        posenc.attend(scheme, p, q, q, q, positions=np.array([0, -1, 2]))
    counted = posenc.parse("algebraic(structure='tree', decay=0.5)")  # a path from nowhere has an end too
    for one in (scheme, counted):
        inside = jax.jit(lambda at, one=one: posenc.attend(one, p, q, q, q, positions=at))(np.array([0, -1, 2]))
        assert np.isfinite(inside[0]).all() and np.isnan(inside[1]).all()


@pytest.mark.parametrize(
    ("text", "made"), [("liere", 1), ("liere(axes=1)", 1), ("algebraic", 1), ("algebraic(structure='grid')", 1)]
)
def test_query_and_key_share_their_matrices(text, made):
    """Each is an exponential, the dearest of all that is done."""
    scheme = posenc.bind(posenc.parse(text), DIMS)
    p = posenc.init(scheme, jax.random.key(0), DIMS)
    q = jnp.ones((3, 2, D))
    found = str(jax.make_jaxpr(lambda p, q: posenc.attend(scheme, p, q, q, q))(p, q))
    assert found.count("eigh[") == 2 * made, "one for a CPU, and one for other devices in its place"


@pytest.mark.parametrize(
    ("text", "head", "why"),
    [
        ("rope_2d(base=10.0)", 6, "has 6"),
        ("mrope(sections=(1, 1, 2))", 6, "6 features.* 3"),
        ("liere(size=4, extent=1.0)", 6, "6 features.*size=2, 3, 6"),
        ("algebraic(structure='grid')", 7, "7 features.* 6"),
    ],
)
@pytest.mark.parametrize("side", ["query", "key"])
def test_a_head_that_does_not_fit_is_refused_without_bind_too(text, head, why, side):
    scheme, p = made(text)
    x, place = np.ones((3, head), np.float32), np.zeros((3, scheme.axes), np.int32)
    with pytest.raises(ValueError, match=why):
        (rotated_query if side == "query" else rotated_key)(scheme, p, x, place)
