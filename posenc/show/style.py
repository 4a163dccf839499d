"""How results look, everywhere the same: hue by family, marker and dash by variant, so that colour is never alone.

The hues are Okabe and Ito's (2008), which stay apart for all common kinds of colour blindness; their yellow, which
vanishes on paper, gives way to Tol's wine (2021).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

INK, SOFT, BAND = "#222222", "#767676", "#efefec"
HUES = {
    "none": "#000000",
    "absolute": "#0072B2",
    "rotary": "#D55E00",
    "linear": "#009E73",
    "table": "#CC79A7",
    "kernel": "#E69F00",
    "temperature": "#56B4E9",
    "context": "#882255",
}
"""Families with a hue of their own; others take the hues that a figure leaves free."""
MARKERS = "osD^vPX*<>"
DASHES = ("-", (0, (5, 1.5)), (0, (2, 1.2)), (0, (5, 1.5, 1, 1.5)), (0, (1, 1)))
RC: dict[str, Any] = {
    "font.size": 8.5,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.labelsize": 8.5,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "legend.handlelength": 2.8,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "savefig.dpi": 200,
    "text.parse_math": False,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "posenc",
}


@dataclass(frozen=True)
class Look:
    """How one scheme is drawn."""

    colour: str
    marker: str
    dash: Any


def looks(schemes: Iterable[tuple[str, str]]) -> dict[str, Look]:
    """Scheme to its look, for pairs of scheme and family; a family's shortest name comes first, in full line."""
    known = dict(schemes)
    hues = _hues(set(known.values()))
    counts: dict[str, int] = {}
    chosen = {}
    for scheme in sorted(known, key=lambda s: (known[s], len(s), s)):
        colour = hues[known[scheme]]
        k = counts.get(colour, 0)
        counts[colour] = k + 1
        chosen[scheme] = Look(colour, MARKERS[k % len(MARKERS)], DASHES[k % len(DASHES)])
    return chosen


def need_matplotlib() -> None:
    """Refuse to draw where matplotlib is not installed, before any work is done for it."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError("Figures need matplotlib; pip install 'posenc[plot]'.")


def plain(text: str) -> str:
    """A name as it may be shown: control characters, which could steer a terminal, become question marks."""
    return "".join(c if c.isprintable() else "?" for c in str(text))


def _hues(families: set[str]) -> dict[str, str]:
    used = {HUES[f] for f in families if f in HUES}
    free = [h for h in HUES.values() if h not in used and h != HUES["none"]] or list(HUES.values())[1:]
    strangers = sorted(f for f in families if f not in HUES)
    return {f: HUES[f] for f in families if f in HUES} | {f: free[k % len(free)] for k, f in enumerate(strangers)}
