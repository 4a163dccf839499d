"""Rotations for longer contexts: p-RoPE and its neighbours, and positions divided by a factor."""

from collections.abc import Iterator

import jax
import numpy as np

import posenc
from posenc.rotation import frequencies
from tests.golden.case import Case, Check, NotCovered
from tests.golden.turned import pull, reach, turned

schemes = ("rope",)


def compare(case: Case) -> Iterator[Check]:
    kind = case.args["rope_type"].split(" ")[0].rstrip(":")
    if kind in ("proportional", "default"):
        yield from _p_rope(case)
    elif kind == "linear":
        yield from _linear(case)
    else:
        raise NotCovered(f"frequencies of the kind {kind!r}")


def _p_rope(case: Case) -> Iterator[Check]:
    args, a = case.args, case.arrays
    p = args["partial_rotary_factor"]
    scheme = posenc.parse(f"rope(base={args['rope_theta']!r}, layout={args['layout']!r}, p={p!r})")
    f = lambda q: turned(scheme, "query", q, a["positions"])  # noqa: E731
    yield Check("q_out", f(a["q"]), a["q_out"], 2e-5)
    yield Check("grad_q", pull(f, a["q"], a["cotangent"]), a["grad_q"], 2e-5)
    yield Check("inv_freq", _angles(scheme, 1.0, args["head_dim"]), a["inv_freq"], 2e-6)


def _linear(case: Case) -> Iterator[Check]:
    """The reference scales positions, and leaves the frequencies as they are."""
    args, a = case.args, case.arrays
    scheme = posenc.parse(f"rope(base={float(args['rope_theta'])!r}) @ scale({args['factor']!r})")
    yield Check("inv_freq", _angles(scheme.scheme, 1.0, args["head_dim"]), a["inv_freq"], 2e-6)
    true = frequencies(args["head_dim"], args["rope_theta"])
    yield Check("inv_freq, relative", a["inv_freq"] / true, np.ones_like(true), 2e-6)
    if "positions" in a:
        given = {"index": a["positions"], "length": len(a["positions"])}
        cos, sin = _circle(scheme.scheme, posenc.place(scheme, jax.random.key(0), given), args["head_dim"])
        for name, ours in (("cos", cos), ("sin", sin)):
            yield Check(name, ours, a[name], reach(a["positions"]))


def _circle(scheme, positions, head: int) -> list[np.ndarray]:
    """Cosines and sines: what becomes of pairs (1, 0)."""
    unit = np.concatenate([np.ones(head // 2), np.zeros(head // 2)])
    unit = np.broadcast_to(unit.astype(np.float32), (1, 1, len(positions), head))
    return np.split(np.asarray(turned(scheme, "query", unit, positions))[0, 0], 2, -1)


def _angles(scheme, position: float, head: int) -> np.ndarray:
    """The angle of each pair at one position."""
    cos, sin = _circle(scheme, np.full(1, position, np.float32), head)
    return np.arctan2(sin, cos)[0]
