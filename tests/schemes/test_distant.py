"""Priors of distance that are learned or scale-invariant, by what they are known for."""

import jax.numpy as jnp
import numpy as np

import posenc
from tests.schemes.helpers import DIMS, bias, made


def test_bam_starts_as_alibi():
    places = np.arange(30)
    ours, alibi = (bias(*made(text), places) for text in ("bam", "alibi"))
    np.testing.assert_allclose(ours, alibi, atol=1e-4)  # 1e-5 is added to each distance
    np.testing.assert_allclose(bias(*made("bam(form='inference')"), places), ours, atol=1e-4)


def test_its_forms_are_two_functions_away_from_the_start():
    params = {"layer": {}, "heads": {"shape": jnp.full(4, 1.5), "scale": jnp.ones(4)}}
    ours, theirs = (bias(made(text)[0], params, np.arange(9)) for text in ("bam", "bam(form='inference')"))
    assert np.abs(ours - theirs).max() > 1


def test_bam_with_a_place_prefers_keys_there():
    params = {
        "layer": {},
        "heads": {"shape": jnp.ones(4), "scale": jnp.zeros(4), "place": jnp.full(4, -np.arcsinh(2.0))},
    }
    ours = bias(made("bam(learned_place=True)")[0], params, np.arange(12))
    assert (ours[:, 6:, :].argmax(-1) == np.arange(6, 12) - 4).all()


def test_each_octave_has_the_same_weight_under_normal_scores(x64):
    """The expected total weight of keys 40 to 79, 80 to 159 … back, by quadrature over scores."""
    scheme, octaves = posenc.bind("scale_invariant(tau=2.0)", DIMS), 2 ** np.arange(7) * 40
    far, s = jnp.arange(octaves[-1] * 2), jnp.linspace(-12, 24, 1201)
    square = jnp.broadcast_to(s[:, None], (s.size, far.size))
    zero = jnp.zeros(1, jnp.int32)
    distance = jnp.broadcast_to(far, square.shape)
    tile = posenc.Tile(zero, far, distance, square, 1.0, distance >= 0, zero, far, jnp.int32(0), 1)
    density = np.exp(-(np.asarray(s) ** 2) / 2)
    mean = lambda scores: density / density.sum() @ np.exp(np.asarray(scores, float))  # noqa: E731
    weight, plain = mean(scheme.score({}, square, tile)), mean(square)
    totals = np.array([weight[start : 2 * start].sum() for start in octaves])
    assert np.ptp(totals / totals.mean()) < 0.04
    assert plain[octaves[-1] : 2 * octaves[-1]].sum() > 60 * plain[40:80].sum()
