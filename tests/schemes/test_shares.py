"""Heads that belong to different schemes: each share is what its scheme is alone, in every kernel and in decoding."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
import posenc.nnx
from posenc.core.compose import normal_form, parts
from posenc.core.masks import Window
from tests.contract.test_decoding import decode, stepper
from tests.planting import Fault
from tests.planting import plant as plant  # a fixture

B, L, H, D = 2, 20, 8, 4
SEGMENTS = np.array([[1] * 7 + [2] * 13, [0] * 3 + [1] * 12 + [0] * 5], np.int32)
SHARES = {
    "{alibi, nope}": ("alibi", "nope"),
    "{rope + t5: 2, fox: 1, pope: 1}": ("rope + t5", "fox", "pope"),
    "{kerple: 3, vo_rope: 1}": ("kerple", "vo_rope"),
    "{stick_breaking: 1, cope: 1}": ("stick_breaking", "cope"),
    "{shaw: 1, dynamic_ntk: 3}": ("shaw", "dynamic_ntk"),
}


def sizes(groups=H, length=L):
    return posenc.Dims(H * D, H, D, trained=length, key_heads=groups)


class Problem:
    """A text with shares, and its heads one share after another under the scheme of each."""

    def __init__(self, text, groups=H, length=L):
        self.dims = sizes(groups, length)
        self.scheme = posenc.bind(text, self.dims)
        draw = np.random.default_rng(1).normal
        start = posenc.init(self.scheme, jax.random.key(0), self.dims)
        self.params = jax.tree.map(lambda a: a + 0.3 * draw(size=a.shape), start)
        self.q = draw(size=(B, length, H, D))
        self.k, self.v = draw(size=(2, B, length, groups, D))
        self.x = draw(size=(B, length, H * D))
        self.alone = SHARES[text]
        counts = normal_form(self.scheme).scheme.counts
        ends = np.cumsum([0, *counts]) * H // sum(counts)
        self.heads = list(zip(ends[:-1], ends[1:], strict=True))

    def together(self, params=None, **arguments):
        arguments = {"x": self.x, **arguments}
        params = self.params if params is None else params
        return posenc.attend(self.scheme, params, self.q, self.k, self.v, **arguments)

    def apart(self, params=None, **arguments):
        outs, left = [], list(self.params if params is None else params)
        k, v = (np.repeat(a, H // a.shape[2], 2) for a in (self.k, self.v))
        sinks = arguments.pop("sinks", None)
        for text, (a, b) in zip(self.alone, self.heads, strict=True):
            scheme = posenc.bind(text, dataclasses.replace(self.dims, heads=int(b - a), key_heads=None))
            own = tuple(left.pop(0) for _ in parts(scheme))
            own = own if len(own) > 1 else own[0]
            given = {"x": self.x, **arguments} | ({} if sinks is None else {"sinks": sinks[a:b]})
            outs.append(posenc.attend(scheme, own, self.q[:, :, a:b], k[:, :, a:b], v[:, :, a:b], **given))
        return jnp.concatenate(outs, 2)

    def agrees(self, tolerance=1e-11, **arguments):
        ours, theirs = (jax.jit(lambda p, f=f: f(p, **arguments))(self.params) for f in (self.together, self.apart))
        np.testing.assert_allclose(ours, theirs, atol=tolerance)


@pytest.mark.parametrize("groups", [H, 2, 1])
@pytest.mark.parametrize("text", SHARES)
def test_each_head_is_what_its_scheme_makes_alone(text, groups, x64):
    problem = Problem(text, groups)
    problem.agrees()
    problem.agrees(segments=SEGMENTS, mask=Window(5, 0), scale=0.3, cap=2.0)


@pytest.mark.parametrize("kernel", ["dense", "tiled", "rows"])
@pytest.mark.parametrize("text", ["{rope + t5: 2, fox: 1, pope: 1}", "{kerple: 3, vo_rope: 1}"])
def test_every_kernel_and_its_gradient(text, kernel, x64):
    problem = Problem(text, 4)
    sinks = np.arange(H) / 4.0
    problem.agrees(kernel=kernel, segments=SEGMENTS, sinks=sinks)
    weight = np.random.default_rng(2).normal(size=problem.q.shape)
    ours, theirs = (
        jax.jit(jax.grad(lambda p, f=f: (f(p, kernel=kernel) * weight).sum()))(problem.params)
        for f in (problem.together, problem.apart)
    )
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-10), ours, theirs)


def test_shares_of_one_key_head_are_taken_wherever_they_end(x64):
    """Five heads of eight end within the second of four key heads."""
    problem = Problem("{kerple: 3, vo_rope: 1}", 4)
    scheme = posenc.bind("{kerple: 5, vo_rope: 3}", problem.dims)
    params = posenc.init(scheme, jax.random.key(0), problem.dims)
    out = posenc.attend(scheme, params, problem.q, problem.k, problem.v)
    k, v = (np.repeat(a, 2, 2) for a in (problem.k, problem.v))
    np.testing.assert_allclose(out, posenc.attend(scheme, params, problem.q, k, v), atol=1e-12)


@pytest.mark.parametrize("text", [t for t in SHARES if "cache" not in posenc.bind(t, sizes()).limits])
def test_a_cache_decodes_what_the_whole_text_gives(text, x64):
    problem = Problem(text, 2)
    whole = problem.together(segments=SEGMENTS)
    cache = posenc.Cache.empty(problem.scheme, problem.params, problem.dims, batch=B, capacity=L, dtype=jnp.float64)
    tokens = problem.q, problem.k, problem.v, problem.x
    out, _ = decode(stepper(problem.scheme, problem.params), cache, tokens, (9, 1, 10), segments=SEGMENTS)
    since = 10 if "dynamic_ntk" in text else 0  # its keys turn by the length of the text so far
    np.testing.assert_allclose(out[:, since:], whole[:, since:], atol=1e-11)


def test_a_ring_of_slots_forgets_what_the_window_hides(x64):
    problem = Problem("{kerple: 3, vo_rope: 1}")
    scheme = posenc.bind("{kerple: 3, vo_rope: 1} + window(4)", problem.dims)
    whole = posenc.attend(scheme, problem.params, problem.q, problem.k, problem.v)
    cache = posenc.Cache.empty(scheme, problem.params, problem.dims, batch=B, capacity=4, dtype=jnp.float64, ring=True)
    step = jax.jit(lambda cache, *new: posenc.attend(scheme, problem.params, *new, cache=cache))
    for n in range(L):
        out, cache = step(cache, *(t[:, n : n + 1] for t in (problem.q, problem.k, problem.v)))
        np.testing.assert_allclose(out[:, 0], whole[:, n], atol=1e-11)


def test_a_cache_of_other_shares_is_refused():
    problem = Problem("{alibi, nope}")
    cache = posenc.Cache.empty(problem.scheme, None, problem.dims, batch=B, capacity=L)
    q, k, v = (jnp.asarray(t, jnp.float32) for t in (problem.q, problem.k, problem.v))
    for other in ("{alibi: 3, nope: 1}", "{nope, alibi}", "alibi"):
        with pytest.raises(ValueError, match="This cache"):
            posenc.attend(posenc.bind(other, problem.dims), None, q, k, v, cache=cache)


def test_dropped_weights_are_the_same_in_every_kernel_and_differ_between_shares():
    dims = posenc.Dims(H * D, H, D, trained=L)
    scheme = posenc.bind("{nope, nope}", dims)
    one = np.random.default_rng(0).normal(size=(B, L, 1, D)).astype(np.float32)
    q = np.broadcast_to(one, (B, L, H, D))
    given = {"dropout": 0.5, "dropout_key": jax.random.key(3)}
    outs = [posenc.attend(scheme, None, q, q, q, kernel=kernel, **given) for kernel in ("dense", "tiled", "rows")]
    for out in outs[1:]:
        np.testing.assert_allclose(out, outs[0], atol=1e-5)
    assert len({np.asarray(outs[0][:, :, h]).tobytes() for h in range(H)}) == H  # the same tokens, other weights


def test_coordinates_belong_to_a_share_or_to_all():
    """A share under coordinates gets what they draw, and the others the index."""
    dims = posenc.Dims(H * D, H, D, trained=L)
    given = {"index": jnp.arange(L), "length": jnp.int32(L)}
    scheme = posenc.bind("{rope @ random_sorted(64), alibi}", dims)
    drawn, index = posenc.place(scheme, jax.random.key(0), given)
    assert np.array_equal(index, np.arange(L)) and not np.array_equal(drawn, index)
    q = np.random.default_rng(0).normal(size=(B, L, H, D)).astype(np.float32)
    out = posenc.attend(scheme, None, q, q, q, positions=(drawn, index))
    rope = posenc.attend(posenc.parse("rope"), None, *[q[:, :, :4]] * 3, positions=drawn)
    np.testing.assert_allclose(out[:, :, :4], rope, atol=1e-5)
    both = posenc.place(posenc.bind("{rope, alibi} @ random_sorted(64)", dims), jax.random.key(0), given)
    assert np.array_equal(both, drawn) or not np.array_equal(both, np.arange(L))


@pytest.mark.parametrize("text", [
    "{alibi, nope}", "{rope: 3, nope: 1}", "{rope + alibi, rope} + window(9)", "{rope, nope} @ random_sorted(limit=64)",
    "{rope @ random_sorted(limit=64) + alibi, nope}", "[{alibi, nope}, rope]", "learned + [{alibi, nope}]",
    "{(rope + alibi) @ random_sorted(limit=64), alibi @ offset(limit=3)} + window(4, sinks=2)",
    "{alibi(slopes='harmonic'), nope}",
])  # fmt: skip
def test_a_text_names_shares_and_they_name_it(text):
    assert posenc.spec(posenc.parse(text)) == text


@pytest.mark.parametrize(("text", "says"), [
    ("{alibi}", "at least two"), ("{alibi: 0, nope: 1}", "at least 1"), ("{alibi: True, nope: 1}", "at least 1"),
    ("{**alibi, nope: 1}", "without stars"), ("{learned, nope}", "acts on the input"),
    ("rope + {alibi, nope}", "one scheme already"), ("{alibi, nope} + rope", "one scheme already"),
    ("{rope + window(3), nope}", "stand behind"), ("{{alibi, rope}, nope}", "no braces within"),
    ("{{alibi, rope} @ offset(3), nope}", "no braces within"),
])  # fmt: skip
def test_what_no_head_can_have_is_refused_in_one_sentence(text, says):
    with pytest.raises(ValueError, match=says) as refusal:
        posenc.parse(text)
    assert "\n" not in str(refusal.value)


def test_numbers_that_do_not_divide_the_heads_are_refused():
    with pytest.raises(ValueError, match="counts 3 heads, which do not divide 8"):
        posenc.bind("{rope: 2, nope: 1}", posenc.Dims(H * D, H, D, trained=L))
    q = np.zeros((B, L, H, D), np.float32)
    with pytest.raises(ValueError, match="counts 3 heads"):
        posenc.attend(posenc.parse("{rope: 2, nope: 1}"), None, q, q, q)


def test_a_layer_trains_the_parameters_of_every_share():
    from flax import nnx

    dims = posenc.Dims(width=32, heads=H, head=D, trained=L, key_heads=2)
    layer = posenc.nnx.Attention("{rope + t5: 3, kerple: 1}", dims, rngs=nnx.Rngs(0))
    x = jax.random.normal(jax.random.key(0), (B, L, 32))
    grad = nnx.grad(lambda layer: (layer(x) ** 2).sum())(layer)
    sizes = [np.shape(a)[0] for a in jax.tree.leaves(grad.position)]
    assert sizes == [6, 2, 2] or sorted(sizes) == [2, 2, 6]
    assert all(float(jnp.abs(a).max()) > 0 for a in jax.tree.leaves(grad.position))


def test_heads_of_different_scales_start_with_scores_of_one_size():
    """T5 does not divide by the root of the width, so that its query weights start smaller, and only its."""
    from flax import nnx

    dims = posenc.Dims(width=64, heads=H, head=16, trained=L)
    weights = [posenc.nnx.Attention(t, dims, rngs=nnx.Rngs(0)).query.get_value() for t in ("{t5, nope}", "t5", "nope")]
    ours, t5, nope = (np.asarray(w).reshape(64, H, 16) for w in weights)
    spread = lambda w: float(w.std())  # noqa: E731
    assert spread(ours[:, :4]) == pytest.approx(spread(t5), rel=0.1)
    assert spread(ours[:, 4:]) == pytest.approx(spread(nope), rel=0.1)


SHARE = "posenc.attention.shares:"
FAULTS = {
    "a share has the sinks of the first": Fault(
        SHARE + "_form", "form.sinks[cut.first : cut.stop]", "form.sinks[: cut.heads]", "{alibi, nope}", "heads"
    ),
    "every share drops the same weights": Fault(
        SHARE + "_tokens", "seed + jnp.uint32(n)", "seed", "{nope, nope}", "dropout"
    ),
    "a share has the queries of its neighbour": Fault(
        SHARE + "_tokens", "q=t.q[..., cut.first : cut.stop, :]", "q=t.q[..., : cut.heads, :]", "{alibi, nope}", "heads"
    ),
    "a share has the keys of the first group": Fault(
        SHARE + "of_heads", "keys[0] : keys[-1] + 1", ": len(keys)", "{alibi, nope}", "heads"
    ),
    "outputs are in another order": Fault(
        SHARE + "beside", "jnp.concatenate(outputs, 1)", "jnp.concatenate(outputs[::-1], 1)", "{alibi, nope}", "heads"
    ),
}  # fmt: skip


@pytest.mark.guard
@pytest.mark.parametrize("name", [n for n, fault in FAULTS.items() if fault.caught == "heads"])
def test_a_planted_fault_is_caught(name, plant, x64):
    problem = Problem(FAULTS[name].scheme, 2)
    problem.agrees(sinks=np.arange(H) / 4.0)
    plant(FAULTS[name])
    with pytest.raises(AssertionError):
        problem.agrees(sinks=np.arange(H) / 4.0)


@pytest.mark.guard
def test_weights_that_all_shares_drop_alike_are_noticed(plant):
    plant(FAULTS["every share drops the same weights"])
    with pytest.raises(AssertionError):
        test_dropped_weights_are_the_same_in_every_kernel_and_differ_between_shares()
