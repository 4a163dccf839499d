"""CoPE and stick-breaking: what is made of whole rows of scores, and in which order of keys."""

import inspect
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc.schemes import cope, stick_breaking
from tests.oracles import cope as cope_oracle
from tests.oracles import stick_breaking as stick_oracle
from tests.schemes.helpers import DIMS, attend, made, tokens

NONE = {"layer": {}, "heads": {}}
INDEX = np.arange(6, dtype=np.int32)


def places(settings="", scores_in=None, visible=None, npos=9, length=6):
    """The position of each key for each query of one head: queries whose word on a whole position is its number."""
    scheme = posenc.parse(f"cope(npos={npos}, scaled=False{settings})")
    visible = np.tri(length, dtype=bool) if visible is None else visible
    logits = (
        np.random.default_rng(0).normal(size=(length, length)).astype(np.float32) if scores_in is None else scores_in
    )
    by_position = jnp.broadcast_to(jnp.arange(npos, dtype=jnp.float32), (length, npos))
    q, index = jnp.zeros((length, 4)), jnp.arange(length)
    tile = posenc.Tile(
        (by_position, q), (), index, jnp.asarray(logits), 0.5, jnp.asarray(visible), index, index, jnp.int32(0), 1
    )
    return np.asarray(scheme.score({}, tile.logits, tile) - tile.logits), logits


def shut(length=6):
    return np.full((length, length), -40.0, np.float32)


def test_the_position_of_a_token_for_itself_is_its_own_gate_and_earlier_keys_are_no_nearer():
    p, logits = places()
    np.testing.assert_allclose(np.diag(p), 1 / (1 + np.exp(-np.diag(logits))), atol=1e-6)
    for i in range(6):
        assert (np.diff(p[i, : i + 1]) < 0).all() and p[i, 0] <= i + 1


def test_with_all_gates_open_positions_are_distances_and_one_up_to_the_cap():
    p, _ = places(scores_in=-shut(), npos=4)
    np.testing.assert_allclose(p[INDEX[:, None] >= INDEX], np.minimum(INDEX[:, None] - INDEX + 1, 3)[np.tri(6) > 0])


def test_gates_count_what_the_query_cares_for_and_nothing_else():
    """Tokens 1 and 4 open the gates of every query: the distance between them does not matter, their number does."""
    scores_in = shut()
    scores_in[:, [1, 4]] = 40
    p, _ = places(scores_in=scores_in)
    np.testing.assert_allclose(p[5], [2, 2, 1, 1, 1, 0], atol=1e-6)
    np.testing.assert_allclose(p[3, :4], [1, 1, 0, 0], atol=1e-6)


def test_between_whole_positions_it_interpolates_and_at_them_it_is_exact():
    by_position, place = np.array([0.0, 10.0, -4.0, 7.0, 2.0]), np.array([0.0, 0.25, 1.0, 1.5, 3.9, 4.0, 11.0])
    left = np.clip(place[:, None] - np.arange(12)[::-1], 0, 1)  # the nearest gates open first, the last in part
    with np.errstate(divide="ignore"):
        logits = jnp.asarray(np.clip(np.log(left) - np.log(1 - left), -40, 40), jnp.float32)
    query_info = jnp.broadcast_to(jnp.asarray(by_position, jnp.float32), (7, 5)), jnp.zeros((7, 4))
    index = jnp.arange(12)
    tile = posenc.Tile(query_info, (), index[:7, None], logits, 0.5, logits < 50, index[:7], index, jnp.int32(0), 1)
    scores_in = posenc.parse("cope(npos=5, scaled=False)").score({}, logits, tile) - logits
    np.testing.assert_allclose(scores_in[:, 0], np.interp(place, np.arange(5), by_position), atol=2e-5)


def test_gates_of_tokens_that_are_not_seen_are_nothing():
    """Trap: a count that runs on behind a window, through padding or into the next document."""
    window = (INDEX[:, None] - INDEX < 2) & (np.tri(6) > 0)
    p, _ = places(scores_in=-shut(), visible=window)
    np.testing.assert_allclose(p[5], [2, 2, 2, 2, 2, 1], atol=1e-6)
    hole = np.tri(6, dtype=bool)
    hole[:, 2] = False
    p, _ = places(scores_in=-shut(), visible=hole)
    np.testing.assert_allclose(p[5], [5, 4, 3, 3, 2, 1], atol=1e-6)


def test_at_the_start_it_is_no_encoding():
    q, k, v, _ = tokens(7)
    np.testing.assert_allclose(attend(*made("cope"), q, k, v), attend(*made("nope"), q, k, v), atol=1e-6)


def embedded(text, seed=1):
    scheme, params = made(text)
    parts = params if isinstance(params, tuple) else (params,)
    one = next(p for p in parts if "embedding" in p["layer"])
    one["layer"]["embedding"] = jax.random.normal(jax.random.key(seed), one["layer"]["embedding"].shape)
    return scheme, params


def test_what_is_added_is_divided_as_the_products_are_or_not_at_all():
    """Trap 15: the authors' code divides position logits by the root of the width too, the paper's listing does not."""
    q, k, v, _ = tokens(6)
    scheme, params = embedded("cope")
    plain, params["layer"]["embedding"] = params["layer"]["embedding"], params["layer"]["embedding"] * 2
    double = attend(scheme, params, q, k, v)
    params["layer"]["embedding"] = plain
    undivided = attend(posenc.bind(posenc.parse("cope(scaled=False)"), DIMS), params, q, k, v)
    np.testing.assert_allclose(undivided, double, atol=1e-6)  # heads of 4 features, whose root is 2
    assert np.abs(undivided - attend(scheme, params, q, k, v)).max() > 1e-2


def test_the_listing_makes_gates_of_what_other_schemes_added_and_the_code_does_not():
    """Trap 15: alone the two are one scheme, in a sum they are not."""
    q, k, v, _ = tokens(6)
    alone = [attend(*embedded(f"cope(gates={g!r})"), q, k, v) for g in ("keys", "scores")]
    np.testing.assert_array_equal(*alone)
    keys, scores = (attend(*embedded(f"alibi + cope(gates={g!r})"), q, k, v) for g in ("keys", "scores"))
    assert np.abs(keys - scores).max() > 1e-3


def test_gates_of_keys_of_their_own_leave_products_alone():
    scheme, params = embedded("cope(gates='own')")
    assert {n: a.shape for n, a in params["heads"].items()} == {"gate": (4, 6, 4), "gate_bias": (4, 4)}
    assert max(np.abs(a).max() for a in params["heads"].values()) <= 6**-0.5
    q, k, v, x = tokens(6)
    changed = attend(scheme, params, q, k, v, x=x[::-1])
    assert np.abs(changed - attend(scheme, params, q, k, v, x=x)).max() > 1e-3
    params["layer"]["embedding"] *= 0
    np.testing.assert_allclose(attend(scheme, params, q, k, v, x=x), attend(*made("nope"), q, k, v), atol=1e-6)


def test_there_are_as_many_positions_as_were_trained_on_and_one_unless_told():
    assert made("cope")[0].npos == DIMS.trained + 1
    assert made("cope(npos=3)")[1]["layer"]["embedding"].shape == (3, DIMS.head)


COPE_FAULTS = {
    "counted from the start": ("jax.lax.cumsum(gate, 1, reverse=True)", "jax.lax.cumsum(gate, 1)"),
    "gates of all tokens": ("tile.visible, jax.nn", "True, jax.nn"),
    "no cap": ("bound_setting(self.npos) - 1)", "10 * bound_setting(self.npos))"),
    "rounded down": ("(jnp.floor, jnp.ceil)", "(jnp.floor, jnp.floor)"),
    "the token itself left out": ("jnp.minimum(jax.lax", "jnp.minimum(-gate + jax.lax"),
    "gates of unscaled products": ('"keys": tile.logits', '"keys": tile.logits / tile.scale'),
}
STICK_FAULTS = {
    "broken from the first key on": ("reverse=True", "reverse=False"),
    "its own share taken twice": ("leaves[:, 1:]", "leaves[:, :-1]"),
    "a token sees itself": ("self.current | ~itself", "True"),
    "unseen keys take": ("tile.visible & (self", "(self"),
    "the rest dropped": ("if self.remainder else a", "if False else a"),
}


def cope_agrees():
    dims = posenc.Dims(width=6, heads=1, head=4, trained=5)
    scheme = posenc.bind(posenc.parse("cope(npos=3)"), dims)
    q, k, v, x = (a[:, :1] if a.ndim == 3 else a for a in tokens(6))
    params = posenc.init(scheme, jax.random.key(0), dims)
    params["layer"]["embedding"] = jax.random.normal(jax.random.key(1), (3, 4))
    run = jax.jit(lambda *a: posenc.attend(scheme, params, *a, mask=posenc.Window(3, 0)))  # with what is planted
    ours = run(q, k, v)
    visible = (np.tri(6) > 0) & (INDEX[:, None] - INDEX <= 3)
    own = [{"embedding": np.asarray(params["layer"]["embedding"])}]
    np.testing.assert_allclose(ours, cope_oracle.attend(scheme, own, q, k, v, x, INDEX, visible), atol=1e-5)


def stick_agrees():
    scheme = posenc.parse("stick_breaking(remainder=True)")
    q, k, v, x = tokens(6)
    ours = jax.jit(lambda *a: posenc.attend(scheme, NONE, *a, mask=posenc.Window(3, 0)))(q, k, v)
    visible = (np.tri(6) > 0) & (INDEX[:, None] - INDEX <= 3)
    np.testing.assert_allclose(ours, stick_oracle.attend(scheme, [{}] * 4, q, k, v, x, INDEX, visible), atol=1e-5)


@pytest.mark.parametrize("fault", [None, *COPE_FAULTS])
def test_planted_faults_of_cope_are_noticed(fault, monkeypatch):
    noticed(fault and COPE_FAULTS[fault], cope, "CoPE", "score", cope_agrees, monkeypatch)


@pytest.mark.parametrize("fault", [None, *STICK_FAULTS])
def test_planted_faults_of_stick_breaking_are_noticed(fault, monkeypatch):
    noticed(fault and STICK_FAULTS[fault], stick_breaking, "StickBreaking", "normalize", stick_agrees, monkeypatch)


def noticed(fault, module, cls, hook, agree, monkeypatch):
    """That `agree` fails where a piece of a hook's source is replaced by another, and not where nothing is."""
    if fault is None:
        return agree()
    source = textwrap.dedent(inspect.getsource(getattr(getattr(module, cls), hook)))
    assert fault[0] in source, f"{fault[0]!r} is no longer in {hook}"
    names = dict(vars(module))
    exec(source.replace(*fault), names)
    monkeypatch.setattr(getattr(module, cls), hook, names[hook])
    with pytest.raises(AssertionError):
        agree()


def weights(settings, s, visible=None):
    """The weights of one head, for scores that are given."""
    scheme = posenc.parse(f"stick_breaking({settings})")
    s = jnp.asarray(s, jnp.float32)
    index = jnp.arange(len(s))
    visible = jnp.asarray(np.tri(len(s), dtype=bool) if visible is None else visible)
    tile = posenc.Tile((), (), index, s, 1.0, visible, index, index, jnp.int32(0), 1)
    return np.asarray(scheme.normalize({}, s, tile))


def test_a_token_does_not_see_itself_so_the_first_receives_nothing():
    a = weights("", np.zeros((5, 5)))
    assert (a[np.triu_indices(5)] == 0).all() and (a.sum(1) < 1).all()
    q, k, v, _ = tokens(5)
    assert (np.asarray(attend(posenc.parse("stick_breaking"), NONE, q, k, v))[0] == 0).all()


def test_the_rest_goes_to_the_token_itself_only_where_asked():
    """With it, the weights of a row add up to 1; the rest is what no key took."""
    s = np.random.default_rng(1).normal(size=(7, 7))
    for current in (False, True):
        plain, whole = (weights(f"current={current}, remainder={r}", s) for r in (False, True))
        np.testing.assert_allclose(whole.sum(1), 1, atol=1e-6)
        rest = np.diag(whole - plain)
        np.testing.assert_allclose(rest, 1 - plain.sum(1), atol=1e-6)
        assert (rest > 0).all() and (np.tril(whole - plain, -1) == 0).all()


def test_equal_shares_of_a_half_are_powers_of_a_half():
    a = weights("", np.zeros((6, 6)))
    np.testing.assert_allclose(a[5], [2.0**-5, 2.0**-4, 2.0**-3, 2.0**-2, 2.0**-1, 0], rtol=1e-6)
    np.testing.assert_allclose(weights("current=True", np.zeros((6, 6)))[5, ::-1], 0.5 ** np.arange(1, 7), rtol=1e-6)


def test_a_key_that_takes_nothing_is_as_if_it_were_not_there_and_one_that_takes_all_hides_what_is_before_it():
    s = np.random.default_rng(2).normal(size=(6, 6))
    s[:, 2] = -90
    a, others = weights("", s), [0, 1, 3, 4, 5]
    np.testing.assert_allclose(a[np.ix_(others, others)], weights("", s[np.ix_(others, others)]), atol=1e-7)
    s[:, 3] = 90
    assert weights("", s)[5, :3].max() < 1e-30


def test_a_long_row_neither_overflows_nor_loses_its_gradient():
    s = jnp.asarray(np.random.default_rng(3).normal(size=(1, 4096)) * 60, jnp.float32)
    scheme, index = posenc.parse("stick_breaking(remainder=True)"), jnp.arange(4096)

    def total(s):
        tile = posenc.Tile((), (), index, s, 1.0, jnp.ones(s.shape, bool), jnp.array([4095]), index, jnp.int32(0), 1)
        return (scheme.normalize({}, s, tile) * jnp.cos(index)[None, :]).sum()

    value, back = jax.jit(jax.value_and_grad(total))(s)
    assert np.isfinite(value) and np.isfinite(back).all() and np.abs(back).max() > 1e-6


def test_order_is_that_of_the_index_and_passed_positions_change_nothing():
    q, k, v, _ = tokens(6)
    for text in ("stick_breaking", "cope"):
        scheme, params = embedded(text) if text == "cope" else (posenc.parse(text), NONE)
        there = attend(scheme, params, q, k, v, positions=np.array([5, 3, 3, 0, 90, 1], np.int32))
        np.testing.assert_array_equal(there, attend(scheme, params, q, k, v))


def test_penalties_of_others_move_the_shares():
    q, k, v, _ = tokens(6)
    scheme, params = made("alibi + stick_breaking")
    assert np.abs(attend(scheme, params, q, k, v) - attend(posenc.parse("stick_breaking"), NONE, q, k, v)).max() > 1e-3


def test_of_two_that_make_weights_one_is_refused():
    with pytest.raises(ValueError, match="at most one may replace softmax"):
        posenc.parse("stick_breaking + stick_breaking(remainder=True)")


@pytest.mark.parametrize(("text", "why"), [("cope", "count from a key"), ("stick_breaking", "broken from the query")])
def test_they_are_refused_where_the_future_is_seen_and_between_two_sequences(text, why):
    scheme, params = made(text)
    q, k, v, _ = tokens(5)
    with pytest.raises(ValueError, match=f"'{text}' is causal only: .*{why}.*use mask='causal'"):
        posenc.attend(scheme, params, q, k, v, mask="full")
    with pytest.raises(ValueError, match=f"'{text}' is undefined between two sequences"):
        posenc.attend(scheme, params, q[:3], k, v)


def test_cope_is_refused_without_positions_and_its_own_gates_without_features():
    with pytest.raises(ValueError, match="'cope' has npos=0; it must be at least 1"):
        posenc.parse("cope(npos=0)")
    q, k, v, _ = tokens(5)
    with pytest.raises(ValueError, match="reads the features of tokens; pass x"):
        posenc.attend(*made("cope(gates='own')"), q, k, v)
