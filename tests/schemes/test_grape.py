"""GRAPE's additive forms: ALiBi with slopes that tokens choose, and penalties gathered on the way."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from tests.golden.contextual import bias as on_the_way
from tests.golden.through import scores
from tests.planting import Fault
from tests.planting import plant as plant  # a fixture
from tests.schemes.helpers import attend, bias, made, tokens

PLACES = np.array([0, 1, 2, 4, 9, 30], np.int32)
PAST = np.tri(len(PLACES), dtype=bool)
AP = "grape_ap(source='value')"


def added(scheme, params, q, k):
    """What is added to the scores of these queries and keys."""
    return np.asarray(scores(scheme, params, q, k, positions=PLACES, key_positions=PLACES, scale=0.0))


def flat(text="grape_a(unit=False)"):
    """Gates that no token moves: softplus(0) = log 2."""
    scheme, params = made(text)
    return scheme, params | {"heads": {n: a * (n == "omega") for n, a in params["heads"].items()}}


@pytest.mark.parametrize(("gate", "many"), [("key", 1), ("query", 1), ("both", 2)])
def test_gates_that_no_token_moves_are_alibi_times_the_gates(gate, many):
    q, k, _, _ = tokens(6)
    ours = added(*flat(f"grape_a(gate={gate!r}, unit=False)"), q, k)
    theirs = bias(*made("alibi"), PLACES)
    np.testing.assert_allclose(ours[:, PAST], many * np.log(2) * theirs[:, PAST], rtol=1e-5)
    np.testing.assert_array_equal(ours[:, ~PAST], 0)


def test_a_key_that_opens_its_gate_is_forgotten_sooner_and_others_are_not():
    scheme, params = made("grape_a")
    q, k, _, _ = tokens(6)
    loud = np.copy(k)
    loud[2] = 9 * np.asarray(params["heads"]["u"])
    quiet, seen = (added(scheme, params, q, keys) for keys in (k, loud))
    assert (seen[:, 3:, 2] < quiet[:, 3:, 2] - 1e-3).all()
    np.testing.assert_allclose(np.delete(seen, 2, 2), np.delete(quiet, 2, 2), atol=1e-6)


def test_unit_directions_have_no_length_and_others_do():
    q, k, v, x = tokens(6)
    for unit, same in ((True, True), (False, False)):
        scheme, params = made(f"grape_a(gate='both', unit={unit})")
        longer = params | {"heads": {n: a * (1 if n == "omega" else 5) for n, a in params["heads"].items()}}
        out = [attend(scheme, p, q, k, v) for p in (params, longer)]
        assert (np.abs(out[0] - out[1]).max() < 1e-6) == same


def test_a_direction_of_nothing_has_a_finite_gradient():
    """R-30: a norm at 0."""
    scheme, params = made("grape_a(gate='both')")
    params["heads"] |= {n: jnp.zeros((4, 4)) for n in "uv"}
    q, k, v, _ = tokens(5)
    back = jax.jit(jax.grad(lambda p: posenc.attend(scheme, p, q, k, v).sum()))(params)
    assert all(np.isfinite(a).all() for a in jax.tree.leaves(back))


@pytest.mark.parametrize("shift", [1, 1000, 100000])
def test_scores_do_not_change_when_all_positions_shift(shift):
    scheme, params = made("grape_a(gate='both')")
    q, k, v, _ = tokens(6)
    out = [attend(scheme, params, q, k, v, positions=PLACES + more) for more in (0, shift)]
    np.testing.assert_allclose(out[1], out[0], atol=1e-6)


def test_in_a_sum_the_gates_see_what_the_schemes_before_leave():
    dims = posenc.Dims(width=6, heads=4, head=4, trained=16)
    q, k, v, _ = tokens(6)
    first, last = (made(text, dims) for text in ("grape_a + rope", "rope + grape_a"))
    params = first[1]
    assert np.abs(attend(first[0], params, q, k, v) - attend(last[0], params[::-1], q, k, v)).max() > 1e-4


def test_grape_a_starts_at_the_slopes_of_alibi_with_directions_of_no_favour():
    _, params = made("grape_a(gate='both')", posenc.Dims(width=6, heads=512, head=16, trained=16))
    np.testing.assert_allclose(jax.nn.softplus(params["heads"]["omega"]), 1, rtol=1e-6)
    u, v = (np.asarray(params["heads"][n]) for n in "uv")
    assert u.shape == (512, 16) and abs(u.std() * 4 - 1) < 0.05 and abs((u * v).mean()) < 1e-2


def gathered(params, x, features=4):
    scheme = posenc.parse(f"grape_ap(features={features})")
    return np.asarray(on_the_way(scheme, params, jnp.asarray(x)[None]))[0]


def test_a_query_that_makes_nothing_of_what_it_meets_has_alibi():
    """log σ(0) is -log 2 for each token on the way, so it is FoX with a constant gate."""
    scheme, params = made("grape_ap")
    params["heads"]["w"] = jnp.zeros_like(params["heads"]["w"])
    index = np.arange(6, dtype=np.int32)
    ours, past = gathered(params, tokens(6)[3], 8), np.tri(6, dtype=bool)
    np.testing.assert_allclose(ours[:, past], np.log(2) * bias(*made("alibi"), index)[:, past], rtol=1e-5)


def test_penalties_only_grow_on_the_way_back_and_a_token_sees_itself_free():
    _, params = made("grape_ap(features=4)")
    b = gathered(jax.tree.map(lambda a: 5 * a, params), tokens(8)[3])
    np.testing.assert_array_equal(np.diagonal(b, 0, 1, 2), 0)
    for i in range(8):
        assert (np.diff(b[:, i, : i + 1], axis=1) >= 0).all()
    assert (b[:, 7, 0] < -0.01).all()


def test_the_token_of_the_key_has_no_say_and_those_after_it_up_to_the_query_have():
    _, params = made("grape_ap(features=4)")
    x = tokens(6)[3]
    changed = np.copy(x)
    changed[2] += 3
    moved = np.abs(gathered(params, x) - gathered(params, changed)).max(0) > 1e-6
    expected = np.zeros((6, 6), bool)
    expected[3:, :2] = True  # every query after it pays another penalty for it, seen from the keys before it
    expected[2, :2] = True  # as the query it judges all it meets
    np.testing.assert_array_equal(moved, expected)


def test_where_tokens_stand_matters_and_not_only_how_far_apart():
    """Only one side is turned, as released."""
    scheme, params = made("grape_ap")
    params = jax.tree.map(lambda a: 5 * a, params)
    q, k, v, x = tokens(6)
    out = [attend(scheme, params, q, k, v, x, positions=np.arange(6) + more) for more in (0, 1)]
    assert np.abs(out[0] - out[1]).max() > 1e-3


def test_a_window_leaves_the_penalties_within_it():
    scheme, params = made("grape_ap")
    params = jax.tree.map(lambda a: 5 * a, params)
    q, k, v, x = tokens(7)
    narrow = attend(scheme, params, q, k, v, x, mask=posenc.Window(2, 0))
    where = {"query_start": 2, "positions": np.arange(6, 7), "key_positions": np.arange(4, 7)}
    three = attend(scheme, params, q[-1:], k[4:], v[4:], x[-1:], key_x=x[4:], **where)
    np.testing.assert_allclose(narrow[-1:], three, atol=1e-6)


@pytest.mark.parametrize("source", ["key", "value"])
def test_features_of_keys_or_values_are_those_of_the_input_by_their_weights(source):
    """Three query heads of each key head; the weights of a key head are those of its query heads."""
    x = np.asarray(tokens(7)[3])
    weights = 2 * jax.random.normal(jax.random.key(3), (2, 2, x.shape[1], 4)) / 6**0.5
    k, v = np.einsum("lw,ngwd->nlgd", x, weights)
    q = tokens(7, dims=posenc.Dims(6, 6, 4, 16))[0]
    w = np.repeat(weights["key value".split().index(source)].swapaxes(1, 2), 3, 0)
    run = jax.jit(lambda *args: posenc.attend(*args[:5], x=x), static_argnums=0)  # compiled anew: faults are planted
    none = {"layer": {}, "heads": {}}
    ours = run(posenc.parse(f"grape_ap(source={source!r})"), none, q, k, v)
    theirs = run(posenc.parse("grape_ap(features=4)"), {"layer": {}, "heads": {"w": w}}, q, k, v)
    np.testing.assert_allclose(ours, theirs, atol=2e-6)
    assert np.abs(ours - run(posenc.parse("nope"), none, q, k, v)).max() > 1e-2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self._features(v, info) if", "self._features(k, info) if"),
        ('if self.source == "value" else passed', "if True else passed"),
    ],
)
def test_features_of_the_wrong_array_would_be_noticed(plant, old, new):
    plant(Fault("posenc.schemes.grape:GRAPEAP.pair", old, new, "grape_ap", ""))
    with pytest.raises(AssertionError):
        for source in ("key", "value"):
            test_features_of_keys_or_values_are_those_of_the_input_by_their_weights(source)


def test_in_a_sum_features_are_of_the_values_that_the_schemes_before_leave():
    (first, _), (last, _) = (made(f"{a} + {b}") for a, b in (("vo_rope", AP), (AP, "vo_rope")))
    q, k, v, _ = tokens(7)
    params = ({"layer": {}, "heads": {}},) * 2
    assert np.abs(attend(first, params, q, k, 3 * v) - attend(last, params, q, k, 3 * v)).max() > 1e-3


def test_features_of_keys_take_even_heads_and_no_number_of_their_own():
    with pytest.raises(ValueError, match="has the features of a head, and features=4 was given; leave features out"):
        posenc.parse("grape_ap(features=4, source='key')")
    scheme, odd = posenc.parse(AP), posenc.Dims(6, 2, 3, 16)
    with pytest.raises(ValueError, match="turns pairs of features, and a head has 3; make head even"):
        posenc.bind(scheme, odd)
    with pytest.raises(ValueError, match="a head has 3; make head even"):
        posenc.attend(scheme, {"layer": {}, "heads": {}}, *tokens(4, dims=odd)[:3])


@pytest.mark.parametrize("features", [0, 3, -2])
def test_features_that_make_no_pairs_are_refused(features):
    with pytest.raises(ValueError, match=f"features={features}; it must be even and at least 2"):
        posenc.parse(f"grape_ap(features={features})")


@pytest.mark.parametrize(("text", "why"), [("grape_a", "for what came before"), ("grape_ap", "from a key to a later")])
def test_they_are_refused_where_the_future_is_seen(text, why):
    scheme, params = made(text)
    q, k, v, x = tokens(4)
    with pytest.raises(ValueError, match=f"causal only.*{why}"):
        posenc.attend(scheme, params, q, k, v, x=x, mask="full")
    with pytest.raises(ValueError, match="takes 'key' or 'query' or 'both', not 'value'"):
        posenc.parse("grape_a(gate='value')")
