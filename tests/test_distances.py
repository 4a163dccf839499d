"""Random distances: a number for each gap between tokens, in the place of positions (Ruoss et al., 2023, §3)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
import posenc.equinox
from posenc.core.compose import axes
from posenc.core.distances import Distances
from posenc.core.masks import Window
from posenc.core.scheme import SCHEMES
from tests.golden.through import scores
from tests.test_coordinates import KEY, given

NONE = {"layer": {}, "heads": {}}
DRAWN = "random_sorted(64, over='distances')"


def draw(text, size=8, length=None, key=KEY, **how):
    return posenc.place(posenc.parse(f"alibi @ {text}"), key, given(size, length), **how)


def tokens(*shape, seeds=3):
    return (np.random.default_rng(s).standard_normal(shape) for s in range(seeds))


def test_distances_rise_with_the_gap_from_zero_and_the_future_mirrors_the_past():
    drawn = draw(DRAWN)
    assert drawn.past[0] == 0 and (np.diff(drawn.past) > 0).all() and drawn.past.max() < 64
    np.testing.assert_array_equal(drawn.future, -drawn.past)


def test_both_sides_are_drawn_apart_if_asked():
    drawn = draw("random_sorted(64, over='distances', both_sides=True)")
    assert drawn.future[0] == 0 and (np.diff(drawn.future) < 0).all() and (drawn.future != -drawn.past).any()


def test_distances_follow_the_law_of_order_statistics():
    """The r-th smallest of 7 from 1..63 has the mean r 64 / 8."""
    each = jax.jit(jax.vmap(lambda key: draw(DRAWN, key=key).past))(jax.random.split(KEY, 600))
    np.testing.assert_allclose(each.mean(0), np.arange(8) * 8, atol=1.5)


def test_padding_changes_no_distance():
    np.testing.assert_array_equal(draw(DRAWN, 20, 8).past[:8], draw(DRAWN, 8).past)


def test_as_released_the_token_itself_and_all_later_keys_share_one_distance():
    """The authors' table of N rows is read at key - query + N, and clamped."""
    drawn = draw("random_sorted(64, over='distances', version='as_released')")
    described = draw(DRAWN)
    np.testing.assert_array_equal(drawn.past[1:], described.past[1:] - 64)
    assert drawn.past[0] == 1 - 64 and (drawn.future == 1 - 64).all()
    index = jnp.arange(8)
    between = np.asarray(drawn.between(index, index))
    assert len(np.unique(between[np.triu_indices(8)])) == 1 and len(np.unique(between)) >= 7


def test_granularity_is_one_draw_for_each_layer_or_pass_and_for_each_batch_or_example():
    """Their attention draws for each layer, their input once."""
    per_layer = "random_sorted(64, 'layer', over='distances')"
    assert (draw(per_layer, layer=0).past != draw(per_layer, layer=1).past).any()
    np.testing.assert_array_equal(draw(DRAWN, layer=0).past, draw(DRAWN, layer=1).past)
    lengths = np.array([8, 8, 5])
    own = draw("random_sorted(64, each='example', over='distances')", 8, lengths).past
    shared = draw(DRAWN, 8, lengths).past
    assert own.shape == shared.shape == (3, 8)
    assert (own[0] != own[1]).any() and (shared[0] == shared[1]).all()


def score(scheme, params, q, k, d):
    """The score of one query and one key that are d apart, for each head."""
    where = {"positions": np.array([d], np.int32), "key_positions": np.array([0], np.int32)}
    return np.asarray(scores(scheme, params, q[None], k[None], **where))[:, 0, 0]


@pytest.mark.parametrize("text", ["alibi(form='half')", "t5", "kerple", "transformer_xl(form='scored')"])
def test_attention_is_told_the_drawn_distance_of_each_pair(text, x64):
    """As pair by pair, where query and key stand at two positions that are as far apart."""
    dims = posenc.Dims(8, 2, 4, 5, causal=False)
    scheme = posenc.bind(posenc.parse(text), dims)
    params = posenc.init(scheme, KEY, dims)
    q, k, v = tokens(5, 2, 4)
    drawn = draw("random_sorted(20, over='distances', both_sides=True)", 5)
    ours = jax.jit(lambda: posenc.attend(scheme, params, q, k, v, mask="full", positions=drawn))()
    apart = lambda gap: int(drawn.past[gap] if gap >= 0 else drawn.future[-gap])  # noqa: E731
    for i in range(5):
        odds = np.exp([score(scheme, params, q[i], k[j], apart(i - j)) for j in range(5)])
        expected = np.einsum("jh,jhd->hd", odds / odds.sum(0), v)
        np.testing.assert_allclose(ours[i], expected, atol=1e-10)


def test_scored_and_wide_transformer_xl_are_one_function(x64):
    dims = posenc.Dims(8, 2, 4, 6)
    wide, scored = (posenc.parse(f"transformer_xl(form={form!r})") for form in ("wide", "scored"))
    params = jax.tree.map(lambda a: a * 30, posenc.init(wide, KEY, dims))
    q, k, v = tokens(6, 2, 4)
    one, other = (jax.jit(lambda s=s: posenc.attend(s, params, q, k, v))() for s in (wide, scored))
    np.testing.assert_allclose(one, other, atol=1e-12)


def test_distances_that_are_gaps_are_the_positions_that_are_indices(x64):
    q, k, v = tokens(6, 2, 4)
    index = jnp.arange(6)
    alibi = lambda **how: jax.jit(lambda: posenc.attend(posenc.parse("alibi"), NONE, q, k, v, **how))()  # noqa: E731
    for how in ({"mask": "full"}, {"segments": np.array([1, 1, 1, 2, 2, 0])}, {"mask": Window(2, 1)}):
        np.testing.assert_array_equal(alibi(positions=Distances(index, -index), **how), alibi(positions=index, **how))


def test_each_sequence_may_have_distances_of_its_own_and_a_part_of_a_sum_too(x64):
    q, k, v = tokens(3, 6, 2, 4)
    scheme = posenc.parse("rope + alibi @ random_sorted(64, each='example', over='distances')")
    placed = posenc.place(scheme, KEY, given(6, np.array([6, 6, 6])))
    ours = jax.jit(lambda: posenc.attend(scheme, (NONE, NONE), q, k, v, positions=(np.arange(6), placed[1])))()
    alone = jax.jit(lambda q, k, v, own: posenc.attend(scheme, (NONE, NONE), q, k, v, positions=(np.arange(6), own)))
    for n in range(3):
        own = jax.tree.map(lambda a, n=n: a[n], placed[1])
        np.testing.assert_allclose(ours[n], alone(q[n], k[n], v[n], own), atol=1e-12)


SERVED = (
    "alibi bam canon convit cope dape dape_v2 deberta dual_triangle entmax fox grape_a kerple key_offset kv_shift"
    " log_cpb music_transformer nope path sandwich shaw stick_breaking t5 tapa transformer_xl wall"
).split()
APART = [
    *(("kerple", {"kernel": kernel, "weight": True}) for kernel in ("power", "none")),
    ("bam", SCHEMES.find("bam").samples[1]),  # its scale is of the position
    *(("transformer_xl", own) for own in ({}, {"base": 100.0})),
]
EVERY = [(name, own) for name in posenc.names() for own in ({}, *SCHEMES.find(name).samples)]


@pytest.mark.parametrize(("name", "own"), EVERY)
def test_every_scheme_is_served_or_stopped_by_name(name, own):
    """Nothing is said of a scheme that its hooks belie: one served never asks more of distances than how far."""
    dims = posenc.Dims(width=32, heads=4, head=8, trained=16)
    scheme = posenc.bind(SCHEMES.find(name)(**own), dims)
    if axes(scheme) > 1:
        return  # distances are numbers, and these have two or three
    q, x, positions = jnp.ones((6, 4, 8)), jnp.ones((6, 32)), Distances(jnp.arange(6), -jnp.arange(6))

    def serve():
        return posenc.attend(scheme, posenc.init(scheme, KEY, dims), q, q, q, x=x, positions=positions)

    if name in SERVED and (name, own) not in APART:
        assert jax.eval_shape(serve).shape == q.shape
    else:
        refusal = f"'{name}' reads the place of each token, and sampled distances hold only how"
        with pytest.raises(ValueError, match=refusal):
            jax.eval_shape(serve)


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("rope", lambda at, q: posenc.attend(posenc.parse("nope + rope"), (NONE, NONE), q, q, q, positions=at)),
        ("sinusoidal", lambda at, q: posenc.embed(posenc.parse("sinusoidal"), NONE, q.reshape(6, 8), positions=at)),
        ("rope", lambda at, q: posenc.equinox.process_heads(posenc.parse("rope"), NONE, positions=at)(q, q, q)),
    ],
    ids=["a sum", "the input", "heads processed for another library"],
)
def test_whatever_uses_positions_is_refused_distances_by_the_same_sentence(name, use):
    q = np.ones((6, 2, 4), np.float32)
    refusal = f"'{name}' reads the place of each token, .* use positions, or a scheme of dist"
    with pytest.raises(ValueError, match=refusal):
        use(draw(DRAWN, 6), q)


def test_drawn_distances_serve_neither_a_cache_nor_two_sequences():
    alibi, dims = posenc.parse("alibi"), posenc.Dims(8, 2, 4, 6)
    q, k, v = (a.astype(np.float32) for a in tokens(1, 3, 2, 4))
    cache = posenc.Cache.empty(alibi, NONE, dims, batch=1, capacity=6, dtype=jnp.float32)
    for queries, more in ((3, {"cache": cache}), (2, {"key_positions": draw(DRAWN, 3)}), (3, {"query_start": 0})):
        with pytest.raises(ValueError, match="sequence"):
            posenc.attend(alibi, NONE, q[:, :queries], k, v, positions=draw(DRAWN, queries), **more)


@pytest.mark.parametrize("setting", ["both_sides=True", "version='as_released'"])
def test_what_is_said_of_distances_is_refused_of_positions(setting):
    with pytest.raises(ValueError, match="over='distances'"):
        posenc.parse(f"alibi @ random_sorted({setting})")


def test_of_the_wrong_length_they_are_refused():
    q, k, v = (a.astype(np.float32) for a in tokens(6, 2, 4))
    with pytest.raises(ValueError, match=r"\(5,\).*\(6,\)"):
        posenc.attend(posenc.parse("alibi"), NONE, q, k, v, positions=draw(DRAWN, 5))
