"""ReRoPE, SelfExtend and TAPA: two products for each pair of tokens, and which of them counts where."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from tests.golden.through import scores
from tests.schemes.helpers import attend, made, tokens

TWO = ("rerope(window=3", "self_extend(group=2, window=4")
INDEX = np.arange(12, dtype=np.int32)


def scores_of(text, positions=INDEX, alike=False):
    """The scores of four heads of 4 features, `[H, Q, K]`; with `alike`, of keys of equal content."""
    q, k, _, _ = tokens(len(positions))
    scheme, params = made(text)
    k = np.broadcast_to(k[:1], k.shape) if alike else k
    return np.asarray(scores(scheme, params, q, k, positions=positions, key_positions=positions))


PAST = np.tri(12, dtype=bool)


@pytest.mark.parametrize("text", TWO)
def test_a_temperature_multiplies_near_and_far_and_stands_first(text):
    q, k, v, _ = tokens(12)
    both, params = made(f"log_n(trained=4) + {text})")
    hot = q * np.maximum(1, np.log(INDEX + 1) / np.log(4))[:, None, None].astype(np.float32)
    alone, own = made(f"{text})")
    np.testing.assert_allclose(attend(both, params, q, k, v), attend(alone, own, hot, k, v), atol=2e-6)


def mixed(s, v):
    """Values under the causal softmax of scores."""
    return np.einsum("hqk,khd->qhd", jax.nn.softmax(jnp.where(PAST, s, -jnp.inf), -1), v)


@pytest.mark.parametrize("text", [f"{t})" for t in TWO])
def test_what_others_add_is_kept_near_and_far_wherever_they_stand(text):
    q, k, v, _ = tokens(12)
    expected = mixed(scores_of(text) + scores_of("alibi") - scores_of("nope"), v)
    for both in (f"alibi + {text}", f"{text} + alibi"):
        np.testing.assert_allclose(attend(*made(both), q, k, v), expected, atol=2e-6)


def test_penalties_after_tapa_are_added_to_what_it_makes():
    q, k, v, _ = tokens(12)
    expected = mixed(scores_of("tapa") + scores_of("alibi") - scores_of("nope"), v)
    np.testing.assert_allclose(attend(*made("tapa + alibi"), q, k, v), expected, atol=2e-6)


@pytest.mark.parametrize(
    ("share", "head", "near"), [(0.3, 4, "0.25"), (0.1, 4, "0.25"), (0.9, 4, "0.75"), (0.5, 5, "0.4")]
)
def test_a_share_that_cuts_a_feature_is_refused_with_one_that_does_not(share, head, near):
    with pytest.raises(ValueError, match=rf"{head} features.*share={share}.*share={near}"):
        posenc.bind(posenc.parse(f"tapa(share={share})"), posenc.Dims(head, 1, head, 16))
    assert posenc.bind(posenc.parse(f"tapa(share={near})"), posenc.Dims(head, 1, head, 16))
    with pytest.raises(ValueError, match="at least"):
        posenc.bind(posenc.parse("tapa"), posenc.Dims(1, 1, 1, 16))
