"""Rotations of images and video: a slice of the head for each axis, in three layouts; Mochi's frequencies are learned
and every axis turns every pair."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from tests.golden.adapters.rotary_nd import turned
from tests.golden.case import Case, Check
from tests.golden.through import run
from tests.golden.turned import reach

schemes = ("rope_axes", "liere")
LAYOUTS = {"half_per_slice": "half_per_axis"}


def compare(case: Case) -> Iterator[Check]:
    yield from _learned(case) if "frequencies" in case.arrays else _fixed(case)


def _fixed(case: Case) -> Iterator[Check]:
    args, a = case.args, case.arrays
    about = tuple(args["slices"]), tuple(args["bases"]), LAYOUTS.get(args["layout"], args["layout"])
    scheme = posenc.parse("rope_axes({!r}, {!r}, {!r})".format(*about))
    yield Check(
        "inv_freq, relative",
        np.concatenate(scheme._frequencies(args["head_dim"])) / a["inv_freq"],
        1 + 0 * a["inv_freq"],
        1e-12,
    )
    yield from _both_sides(case, scheme, lambda heads: {}, reach(a["positions"]))
    yield from _waves(case, scheme)


def _both_sides(case: Case, scheme, params, tolerance) -> Iterator[Check]:
    a = case.arrays
    for side, x in (("query", "q"), ("key", "k")):
        heads = a[x].shape[1]
        with jax.enable_x64(True):
            exact = _turned(scheme, side, params(heads), a[x].astype(float), a["positions"])
            yield Check(f"{x}_out_f64", exact, a[f"{x}_out_f64"], 1e-10)
        ours = _turned(scheme, side, params(heads), a[x], a["positions"])
        yield Check(f"{x}_out in float32 against float64", ours, a[f"{x}_out_f64"], 2e-6)
        yield Check(f"{x}_out", ours, a[f"{x}_out"], tolerance)
    _, (grad,) = run(lambda q: _turned(scheme, "query", params(q.shape[1]), q, a["positions"]), a["cotangent"], a["q"])
    yield Check("grad_q", grad, a["grad_q"], tolerance)


def _turned(scheme, side, heads, x, positions):
    places = jnp.broadcast_to(jnp.asarray(positions), (x.shape[0], *positions.shape))
    return turned(scheme, side, heads or jnp.zeros(x.shape[1]), jnp.asarray(x), places)


def _waves(case: Case, scheme) -> Iterator[Check]:
    """Cosines and sines are what becomes of pairs (1, 0)."""
    args, a, d = case.args, case.arrays, case.args["head_dim"]
    first = {"interleaved": np.arange(0, d, 2), "half": np.arange(d // 2)}.get(args["layout"])
    second = {"interleaved": np.arange(1, d, 2), "half": np.arange(d // 2, d)}.get(args["layout"])
    if first is None:
        starts = np.cumsum([0, *args["slices"]])[:-1]
        first = np.concatenate([s + np.arange(w // 2) for s, w in zip(starts, args["slices"], strict=True)])
        second = np.concatenate([s + w // 2 + np.arange(w // 2) for s, w in zip(starts, args["slices"], strict=True)])
    unit = np.zeros((1, 1, len(a["positions"]), d), np.float32)
    unit[..., first] = 1
    out = np.asarray(_turned(scheme, "query", {}, unit, a["positions"]))[0, 0]
    yield Check("cos", out[:, first], a["cos"], reach(a["positions"]))
    yield Check("sin", out[:, second], a["sin"], reach(a["positions"]))


def _learned(case: Case) -> Iterator[Check]:
    """Rotations of one plane commute, so that the angles of a generator of size 2 add up over the axes."""
    a, scheme = case.arrays, posenc.parse("liere(axes=3, size=2, extent=1.0)")
    ours = lambda f: {"generator": -jnp.moveaxis(jnp.asarray(f), 1, 0)[..., None]}  # noqa: E731
    yield from _both_sides(case, scheme, lambda heads: ours(a["frequencies"]), 2e-5)
    f = lambda f: _turned(scheme, "query", ours(f), jnp.asarray(a["q"]), a["positions"])  # noqa: E731
    _, (grad,) = run(f, a["cotangent"], a["frequencies"])
    yield Check("grad_frequencies", grad, a["grad_frequencies"], 5e-5)
