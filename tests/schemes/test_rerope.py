"""ReRoPE, SelfExtend and TAPA: two products for each pair of tokens, and which of them counts where."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc.schemes import rerope as module
from tests.golden.through import scores
from tests.oracles import rerope as rerope_oracle
from tests.oracles import self_extend as self_extend_oracle
from tests.schemes.helpers import attend, made, tokens

NONE = {"layer": {}, "heads": {}}
TWO = ("rerope(window=3", "self_extend(group=2, window=4")
INDEX = np.arange(12, dtype=np.int32)


def scores_of(text, positions=INDEX, alike=False):
    """The scores of four heads of 4 features, `[H, Q, K]`; with `alike`, of keys of equal content."""
    q, k, _, _ = tokens(len(positions))
    scheme, params = made(text)
    k = np.broadcast_to(k[:1], k.shape) if alike else k
    return np.asarray(scores(scheme, params, q, k, positions=positions, key_positions=positions))


PAST = np.tri(12, dtype=bool)


@pytest.mark.parametrize("text", ["rerope(window=3, leak=1.0)", "rerope(window=99)", "self_extend(window=99)"])
@pytest.mark.parametrize("both", [True, False])
def test_where_nothing_is_rectified_it_is_rope(text, both):
    ours = scores_of(f"{text[:-1]}, bidirectional={both})")
    np.testing.assert_allclose(ours, scores_of("rope"), atol=2e-5)


def test_groups_of_one_are_rope():
    np.testing.assert_allclose(scores_of("self_extend(group=1, window=3)"), scores_of("rope"), atol=2e-5)


def test_from_the_window_on_all_keys_are_equally_far():
    s = scores_of("rerope(window=4)", alike=True)
    for i in range(4, 12):
        np.testing.assert_allclose(s[:, i, : i - 3], s[:, i, :1].repeat(i - 3, 1), atol=1e-6)
        assert (np.abs(s[:, i, i - 3] - s[:, i, i - 4]) > 1e-5).any()


def test_a_leak_bends_distances_at_the_window_and_a_real_distance_is_what_rope_says_of_it():
    q, k, _, _ = tokens(12)
    far = 4 + (INDEX[11] - INDEX[:8] - 4) / 4
    ours = scores_of("rerope(window=4, leak=0.25)")[:, 11, :8]
    rope, params = made("rope")
    theirs = scores(rope, params, q[11:], k[:8], positions=np.float32([20]), key_positions=np.float32(20 - far))
    np.testing.assert_allclose(ours, theirs[:, 0], atol=2e-5)


def test_self_extend_shifts_by_a_true_quotient():
    """Trap 17: with groups of 3 and a window of 4, a key 4 behind is 1 + 4 - 4/3 away, not 1 + 4 - 1."""
    q, k, _, _ = tokens(12)
    ours = scores_of("self_extend(group=3, window=4)")[:, 4, 0]
    rope, params = made("rope")
    for away, same in ((5 - 4 / 3, True), (4.0, False)):
        where = {"positions": np.float32([away]), "key_positions": np.float32([0])}
        theirs = scores(rope, params, q[4:5], k[:1], **where)[:, 0, 0]
        assert np.allclose(ours, theirs, atol=2e-5) == same


def test_where_the_group_divides_the_window_near_and_far_meet_at_it():
    s, rope = scores_of("self_extend(group=2, window=4)"), scores_of("rope")
    for i in (4, 6, 8):  # a key at the start of its group
        np.testing.assert_allclose(s[:, i, i - 4], rope[:, i, i - 4], atol=2e-5)


@pytest.mark.parametrize("shift", [1, 17, 1000, 100000])
def test_shifting_all_positions_changes_nothing_of_rerope(shift):
    for leak in ("", ", leak=0.25"):
        text = f"rerope(window=3{leak})"
        np.testing.assert_allclose(scores_of(text, INDEX + shift)[:, PAST], scores_of(text)[:, PAST], atol=5e-6)


def test_shifting_all_positions_leaves_groups_alone_only_by_whole_groups():
    text = "self_extend(group=4, window=4)"
    np.testing.assert_allclose(scores_of(text, INDEX + 400)[:, PAST], scores_of(text)[:, PAST], atol=5e-6)
    assert np.abs(scores_of(text, INDEX + 402) - scores_of(text))[:, PAST].max() > 1e-3


@pytest.mark.parametrize("text", [f"{t}, bidirectional=True)" for t in (*TWO, "rerope(window=3, leak=0.5")])
def test_both_ways_a_key_ahead_is_as_far_as_one_behind(text):
    """Scores with queries and keys exchanged are the scores with rows and columns exchanged."""
    q, k, _, _ = tokens(9)
    scheme, params = made(text)
    here = {"positions": INDEX[:9], "key_positions": INDEX[:9]}
    one, other = scores(scheme, params, q, k, **here), scores(scheme, params, k, q, **here)
    np.testing.assert_allclose(one, np.swapaxes(other, 1, 2), atol=1e-5)


def test_without_it_keys_ahead_are_where_rope_says_and_the_future_may_not_be_seen():
    for text in TWO:
        s, rope = scores_of(f"{text}, bidirectional=False)"), scores_of("rope")
        np.testing.assert_allclose(s[:, ~PAST], rope[:, ~PAST], atol=2e-5)
        q, k, v, _ = tokens(5)
        with pytest.raises(ValueError, match=r"is causal only: .* use mask='causal'"):
            posenc.attend(posenc.parse(f"{text}, bidirectional=False)"), NONE, q, k, v, mask="full")


def test_the_model_says_whether_both_ways_are_meant_and_how_wide_the_window_is():
    for causal in (True, False):
        dims = posenc.Dims(32, 4, 8, trained=4096, causal=causal)
        assert posenc.bind(posenc.parse("rerope"), dims) == posenc.parse(
            f"rerope(window=512, bidirectional={not causal})"
        )
        assert posenc.bind(posenc.parse("self_extend"), dims) == posenc.parse(
            f"self_extend(group=8, window=1024, bidirectional={not causal})"
        )
    assert posenc.bind(posenc.parse("rerope"), posenc.Dims(8, 1, 8, trained=3)).window == 1


@pytest.mark.parametrize("text", TWO)
def test_a_stored_key_is_never_turned_again(text):
    """R-12: what a cache keeps of a token is the same however many come after it."""
    scheme, _ = made(f"{text})")
    k = jnp.asarray(tokens(9)[1][:, 0])
    key = jax.jit(lambda k: scheme.key({}, k, jnp.arange(len(k))))
    long, short = key(k), key(k[:4])
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[:4], b), long, short)


@pytest.mark.parametrize("text", TWO)
def test_a_temperature_multiplies_near_and_far_and_stands_first(text):
    q, k, v, _ = tokens(12)
    both, params = made(f"log_n(trained=4) + {text})")
    hot = q * np.maximum(1, np.log(INDEX + 1) / np.log(4))[:, None, None].astype(np.float32)
    alone, own = made(f"{text})")
    np.testing.assert_allclose(attend(both, params, q, k, v), attend(alone, own, hot, k, v), atol=2e-6)
    with pytest.raises(ValueError, match="stands before what it scales|cannot change them after it"):
        posenc.parse(f"{text}) + log_n")


def mixed(s, v):
    """Values under the causal softmax of scores."""
    return np.einsum("hqk,khd->qhd", jax.nn.softmax(jnp.where(PAST, s, -jnp.inf), -1), v)


@pytest.mark.parametrize("text", [f"{t})" for t in TWO])
def test_what_others_add_is_kept_near_and_far_wherever_they_stand(text):
    q, k, v, _ = tokens(12)
    expected = mixed(scores_of(text) + scores_of("alibi") - scores_of("nope"), v)
    for both in (f"alibi + {text}", f"{text} + alibi"):
        np.testing.assert_allclose(attend(*made(both), q, k, v), expected, atol=2e-6)


@pytest.mark.parametrize("text", TWO)
def test_nobody_changes_queries_or_keys_after_the_second_rotation_was_made_of_them(text):
    with pytest.raises(ValueError, match="cannot change them after it; write .* last"):
        posenc.parse(f"{text}) + rope")


def agree(text, oracle):
    dims = posenc.Dims(8, 1, 8, 12)
    scheme = posenc.bind(posenc.parse(text), dims)
    rng = np.random.default_rng(4)
    q, k, v = (rng.normal(size=(10, 1, 8)).astype(np.float32) for _ in range(3))
    ours = jax.jit(lambda *a: posenc.attend(scheme, NONE, *a))(q, k, v)  # compiled anew, with what is planted
    theirs = oracle.attend(scheme, [{}], q, k, v, None, INDEX, np.tri(10) > 0)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


right = {name: getattr(module, name) for name in ("rotate", "angles", "frequencies", "_rectified")}
FAULTS = {
    "turned backwards": ("rotate", lambda x, a, layout: right["rotate"](x, -a, layout)),
    "half for interleaved": ("rotate", lambda x, a, layout: right["rotate"](x, a, "interleaved")),
    "positions in bfloat16": (
        "angles",
        lambda p, f, t: right["angles"]((p + 256).astype(jnp.bfloat16).astype(int), f, t),
    ),
    "base 10001": ("frequencies", lambda width, base: right["frequencies"](width, base * 1.1)),
    "a window too wide": ("_rectified", lambda s, tile, w: right["_rectified"](s, tile, w + 2)),
    "near everywhere": ("_rectified", lambda s, tile, w: s),
}


@pytest.mark.parametrize("fault", [None, *FAULTS])
def test_planted_faults_are_noticed(fault, monkeypatch):
    if fault:
        monkeypatch.setattr(module, *FAULTS[fault])
    for case in (
        ("rerope(window=3, leak=0.25)", rerope_oracle),
        ("self_extend(group=3, window=4)", self_extend_oracle),
    ):
        if fault is None:
            agree(*case)
        else:
            with pytest.raises(AssertionError):
                agree(*case)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("rerope(window=0)", "'rerope' has window=0; it must be a distance of at least 1"),
        ("self_extend(window=-1)", "'self_extend' has window=-1; it must be a distance of at least 1"),
        ("self_extend(group=0)", "'self_extend' has group=0; it must be at least 1 position"),
        ("rerope(leak=-0.1)", "leak of 'rerope' is -0.1; it must be a slope from 0, no leak, to 1"),
        ("rerope(leak=4.0)", "leak of 'rerope' is 4.0; it must be a slope from 0"),
        ("rerope(base=0.0)", "base of 'rerope'"),
        ("self_extend(base=1.0)", "base of 'self_extend'"),
    ],
)
def test_settings_without_a_meaning_are_refused(text, why):
    with pytest.raises(ValueError, match=why):
        posenc.parse(text)


@pytest.mark.parametrize("name", ["rerope", "self_extend"])
def test_an_odd_head_is_refused(name):
    with pytest.raises(ValueError, match=f"'{name}' turns pairs of features, and a head has 7"):
        posenc.bind(posenc.parse(name), posenc.Dims(7, 1, 7, 16))
    x, c = np.ones((3, 7), np.float32), np.arange(3)
    for side in ("query", "key"):
        with pytest.raises(ValueError, match=f"'{name}' turns pairs of features, and a head has 7"):
            getattr(posenc.parse(f"{name}(window=2, bidirectional=False)"), side)({}, x, c)


def tapa(q, k, distance, alpha=0.1, n=2):
    amplitude = np.einsum("qhd,khd->hqk", q[..., :n], k[..., :n]) / np.sqrt(n)
    phase = np.einsum("qhd,khd->hqk", q[..., n:], k[..., n:]) / np.sqrt(q.shape[-1] - n)
    return amplitude * np.cos(2 * np.pi * np.abs(distance) ** alpha * phase)


@pytest.mark.parametrize("text", ["tapa", "tapa(alpha=0.5)", "tapa(alpha=0.5, share=0.25)"])
def test_tapa_multiplies_one_product_by_the_cosine_of_another(text):
    q, k, _, _ = tokens(12)
    scheme, _ = made(text)
    distance = (INDEX[:, None] - INDEX).astype(float)
    n = round(4 * scheme.share)
    np.testing.assert_allclose(scores_of(text), tapa(q, k, distance, scheme.alpha, n), atol=5e-5)


def test_tapa_at_distance_0_or_with_no_phase_is_attention_without_positions():
    q, k, v, _ = tokens(6)
    scheme, _ = made("tapa")
    half = [np.where(np.arange(4) < 2, a, 0) for a in (q * 2**0.5, k)]
    plain = attend(posenc.parse("nope"), NONE, *half, v)
    np.testing.assert_allclose(attend(scheme, NONE, q, k, v, positions=np.full(6, 3)), plain, atol=1e-6)
    half_query = np.where(np.arange(4) < 2, q, 0)
    np.testing.assert_allclose(attend(scheme, NONE, half_query, k, v), plain, atol=1e-6)


@pytest.mark.parametrize("shift", [1, 17, 1000, 100000])
def test_tapa_knows_distance_whatever_its_sign(shift):
    np.testing.assert_array_equal(scores_of("tapa", INDEX + shift), scores_of("tapa"))
    np.testing.assert_array_equal(scores_of("tapa", -INDEX), scores_of("tapa"))


def test_the_slope_of_tapa_is_finite_at_distance_0():
    """R-30: that of d^0.1 is not."""
    q, k, v, _ = tokens(4)
    scheme, _ = made("tapa")
    f = lambda x: (posenc.attend(scheme, NONE, q, k, v, positions=x) ** 2).sum()  # noqa: E731
    back = jax.jit(jax.grad(f))(jnp.asarray([1.0, 1.0, 1.0, 4.0]))
    assert np.isfinite(back).all() and np.abs(back).max() > 0


@pytest.mark.parametrize("text", ["alibi + tapa", "rope + tapa", "tapa + rope", "log_n + tapa"])
def test_tapa_replaces_the_product_so_it_comes_first_and_alone(text):
    with pytest.raises(ValueError, match=r"'tapa' replaces q·k, so it comes first"):
        posenc.parse(text)


def test_penalties_after_tapa_are_added_to_what_it_makes():
    q, k, v, _ = tokens(12)
    expected = mixed(scores_of("tapa") + scores_of("alibi") - scores_of("nope"), v)
    np.testing.assert_allclose(attend(*made("tapa + alibi"), q, k, v), expected, atol=2e-6)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("tapa(alpha=0.0)", "'tapa' has alpha=0.0; this power of the distance must be above 0"),
        ("tapa(share=0.0)", "share of 'tapa' is 0.0; it must be above 0 and below 1"),
        ("tapa(share=1.0)", "share of 'tapa' is 1.0; it must be above 0 and below 1"),
    ],
)
def test_settings_of_tapa_without_a_meaning_are_refused(text, why):
    with pytest.raises(ValueError, match=why):
        posenc.parse(text)


@pytest.mark.parametrize(
    ("share", "head", "near"), [(0.3, 4, "0.25"), (0.1, 4, "0.25"), (0.9, 4, "0.75"), (0.5, 5, "0.4")]
)
def test_a_share_that_cuts_a_feature_is_refused_with_one_that_does_not(share, head, near):
    with pytest.raises(
        ValueError, match=rf"cannot split {head} features of a head at share={share}; take share={near}\."
    ):
        posenc.bind(posenc.parse(f"tapa(share={share})"), posenc.Dims(head, 1, head, 16))
    assert posenc.bind(posenc.parse(f"tapa(share={near})"), posenc.Dims(head, 1, head, 16))
    with pytest.raises(ValueError, match="take a head of at least 2"):
        posenc.bind(posenc.parse("tapa"), posenc.Dims(1, 1, 1, 16))
