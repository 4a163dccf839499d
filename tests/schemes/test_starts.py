"""Where parameters start, and what a scheme leaves to the sizes of the model."""

import jax
import numpy as np
import pytest

import posenc
from posenc import Dims

GLOROT = (6 / (1001 + 4)) ** 0.5
NORMAL = [
    ("abacus(rows=4000)", Dims(8, 2, 4, 6), "layer table", 1),
    ("binary", Dims(256, 2, 4, 500), "layer digits", 0.25),
    ("fox", Dims(256, 16, 2, 8), "heads w", 0.02),
    ("fourier(features=8192, gamma=3.0)", Dims(6, 4, 4, 16), "layer frequency", 1 / 3),
    ("fourier(axes=2, features=8192, gamma=0.5)", Dims(6, 4, 4, 16), "layer frequency", 2),
    ("grape_a(gate='both')", Dims(6, 512, 16, 16), "heads u", 0.25),
    ("inkling", Dims(64, 8, 4, 16), "layer profiles", 0.02),
    ("inkling", Dims(64, 8, 4, 16), "heads w", 0.02),
    ("learned", Dims(256, 2, 4, 500), "layer table", 0.02),
    ("log_cpb(depth=2)", Dims(6, 4, 4, 16), "layer w2", 0.02),
    ("music_transformer(reach=2000)", Dims(6, 4, 4, 16), "heads key", 0.5),
    ("repo", Dims(512, 4, 4, 16), "layer gate", 0.02),
    ("t5(buckets=1024, reach=2000)", Dims(64, 8, 8, 4), "heads table", 1 / 8),
    ("transformer_xl", Dims(64, 8, 8, 16), "heads w", 0.02),
]
UNIFORM = [
    ("alibi(slopes='log')", Dims(6, 4, 4, 16), "heads slope", 0, 0),
    ("bam(learned_place=True)", Dims(6, 4, 4, 16), "heads shape", 1, 1),
    ("bam(learned_place=True)", Dims(6, 4, 4, 16), "heads scale", 0, 0),
    ("bam(learned_place=True)", Dims(6, 4, 4, 16), "heads place", 0, 0),
    ("dape_v2(hidden=500)", Dims(6, 4, 4, 16), "layer w1", -(24**-0.5), 24**-0.5),
    ("dape_v2(hidden=500)", Dims(6, 4, 4, 16), "heads w2", -(1500**-0.5), 1500**-0.5),
    ("fire", Dims(4, 512, 2, 77), "heads w2", -(32**-0.5), 32**-0.5),
    ("fire", Dims(4, 512, 2, 77), "layer c", 0.1, 0.1),
    ("fire", Dims(4, 512, 2, 77), "layer m", 1, 1),
    ("cope", Dims(6, 4, 4, 16), "layer embedding", 0, 0),
    ("fox", Dims(6, 4, 4, 16), "heads b", 0, 0),
    ("kerple", Dims(4, 4096, 1, 4), "heads r1", 0, 2),
    ("kerple", Dims(4, 4096, 1, 4), "heads r2", 0, 1),
    ("kerple(kernel='power', weight=True)", Dims(4, 4096, 1, 4), "heads r1", 0, 1),
    ("kerple(kernel='power', weight=True)", Dims(4, 4096, 1, 4), "heads r2", 0, 2),
    ("kerple(kernel='power', weight=True)", Dims(4, 4096, 1, 4), "heads w1", 0, 1),
    ("kerple(kernel='power', weight=True)", Dims(4, 4096, 1, 4), "heads w2", 0, 2),
    ("liere", Dims(128, 8, 16, 16), "heads generator", 0, 2 * np.pi),
    ("log_cpb(depth=2)", Dims(6, 4, 4, 16), "layer b1", 0, 0),
    ("pope", Dims(256, 32, 64, 16), "heads delta", 0, 0),
    ("pope(start='uniform')", Dims(256, 32, 64, 16), "heads delta", -2 * np.pi, 0),
    ("shaw(reach=500)", Dims(6, 4, 4, 16), "heads key", -GLOROT, GLOROT),
    ("sinusoidal(learned_scale=True)", Dims(16, 2, 8, 10), "layer scale", 0.25, 0.25),
]
BOUND = [
    ("cope", Dims(6, 4, 4, 16), "cope(npos=17)"),
    ("dynamic_ntk", Dims(8, 1, 8, 32), "dynamic_ntk(original=32)"),
    ("fire", Dims(4, 4, 2, 77), "fire(threshold=77.0, bidirectional=False)"),
    ("fire(threshold=512)", Dims(4, 4, 2, 77), "fire(threshold=512.0, bidirectional=False)"),
    ("fourier", Dims(5, 1, 5, 8), "fourier(features=6)"),
    ("liere", Dims(8, 1, 8, 200), "liere(size=8, extent=13.0)"),
    ("liere(axes=3)", Dims(8, 1, 8, 8), "liere(axes=3, size=8, extent=1.0)"),
    ("liere", Dims(8, 1, 8, 1), "liere(size=8, extent=1.0)"),
    ("log_cpb", Dims(8, 2, 4, 16), "log_cpb(reach=15.0)"),
    ("log_cpb", Dims(8, 2, 4, 1), "log_cpb(reach=1.0)"),
    ("log_cpb(axes=2)", Dims(8, 2, 4, 49), "log_cpb(axes=2, reach=6.0)"),
    ("log_cpb(reach=4)", Dims(8, 2, 4, 16), "log_cpb(reach=4.0)"),
    ("log_n", Dims(8, 1, 8, 32), "log_n(trained=32)"),
    ("longrope(fraction=0.5)", Dims(8, 1, 8, 32),
     "longrope(long=(4.0, 4.0), short=(1.0, 1.0), original=32, fraction=0.5)"),
    ("mrope", Dims(128, 1, 128, 16), "mrope(sections=(16, 24, 24))"),
    ("mrope(order='interleaved')", Dims(128, 1, 128, 16), "mrope(sections=(24, 20, 20), order='interleaved')"),
    ("music_transformer", Dims(6, 4, 4, 16), "music_transformer(reach=16, bidirectional=False)"),
    ("rerope", Dims(32, 4, 8, 4096), "rerope(window=512, bidirectional=False)"),
    ("rerope", Dims(8, 1, 8, 3), "rerope(window=1, bidirectional=False)"),
    ("self_extend", Dims(32, 4, 8, 4096, causal=False), "self_extend(group=8, window=1024, bidirectional=True)"),
    ("t5", Dims(4, 1, 4, 8), "t5(bidirectional=False)"),
    ("t5", Dims(4, 1, 4, 8, causal=False), "t5(bidirectional=True)"),
    ("t5(bidirectional=True)", Dims(4, 1, 4, 8), "t5(bidirectional=True)"),
    ("xpos", Dims(8, 1, 8, 1024), "xpos(scale_base=512.0)"),
    *[(name, Dims(8, 1, 8, 32), f"{name}(original=32)") for name in ("by_parts", "yarn", "llama3")],
    *[(f"{name}(original=8)", Dims(8, 1, 8, 32), f"{name}(original=8)") for name in ("by_parts", "yarn", "llama3")],
]  # fmt: skip


def start(text, dims, where):
    scheme, (group, name) = posenc.bind(text, dims), where.split()
    return np.asarray(posenc.init(scheme, jax.random.key(0), dims)[group][name], float)


@pytest.mark.guard
@pytest.mark.parametrize(("text", "dims", "where", "spread"), NORMAL)
def test_a_parameter_starts_as_a_normal_of_its_authors(text, dims, where, spread):
    drawn = start(text, dims, where)
    assert abs(drawn.mean()) < 0.1 * spread and abs(drawn.std() / spread - 1) < 0.06


@pytest.mark.guard
@pytest.mark.parametrize(("text", "dims", "where", "low", "high"), UNIFORM)
def test_a_parameter_starts_between_the_bounds_of_its_authors(text, dims, where, low, high):
    drawn, rounded = start(text, dims, where), 1e-6 * max(abs(low), abs(high))
    assert low - rounded <= drawn.min() and drawn.max() <= high + rounded
    np.testing.assert_allclose(drawn.mean(), (low + high) / 2, atol=0.03 * (high - low) + rounded)
    np.testing.assert_allclose(drawn.std(), (high - low) / 12**0.5, atol=0.03 * (high - low) + rounded)


@pytest.mark.guard
@pytest.mark.parametrize(("text", "dims", "expected"), BOUND)
def test_what_is_left_open_follows_the_model(text, dims, expected):
    assert posenc.bind(text, dims) == posenc.parse(expected)
