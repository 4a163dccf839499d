"""The look of results, the same in all figures: a hue for each of up to eight lines, and never colour alone.

The first scheme of a family has the hue of its family. The others have hues that the figure does not use, and each has
a marker. Among more than eight lines those of a family share its hue, and differ in marker and dash.

The hues are Okabe and Ito's (2008), which all common kinds of colour blindness can distinguish. Tol's wine (2021)
replaces their yellow, which is too light for paper.
"""

from __future__ import annotations

import contextlib
import importlib.util
import math
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from html import escape
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE_WIDTH = 17.5 / 2.54
"""Inches across a figure: the text of a page, or two columns of it, at which its letters are read in their size."""


@dataclass(frozen=True)
class Page:
    """Page of a figure: inches of its width, points of its titles, and a font."""

    width: float = PAGE_WIDTH
    font: float = 8.0
    family: str | None = None


WHOLE = Page()
PAGE: ContextVar[Page] = ContextVar("page", default=WHOLE)
INK, SOFT, FAINT, BAND = "#222222", "#767676", "#d6d6d2", "#efefec"
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
"""Families with a fixed hue; others take the hues that a figure does not use."""
FURTHER = ("#999933", "#44AA99", "#DDCC77")
"""Hues for families where those are used up (Tol, 2021)."""
MARKERS = "osD^vPX*<>h"
DASHES = ("-", (0, (5, 1.5)), (0, (2, 1.2)), (0, (5, 1.5, 1, 1.5)), (0, (1, 1)))
WIDEST, THINNEST = 2.0, 0.9
RC: dict[str, Any] = {
    "font.size": 7,
    "axes.titlesize": 8,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.labelsize": 7,
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
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.frameon": False,
    "legend.fontsize": 7,
    "legend.handlelength": 2.2,
    "legend.columnspacing": 1.4,
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
    weight: float = 1.4
    """The width of the line: of lines that coincide the first is the widest, so that all are seen."""


def looks(schemes: Iterable[tuple[str, str]], most: int = len(HUES)) -> dict[str, Look]:
    """Scheme to its look, for pairs of scheme and family; a family's shortest name comes first, in full line.

    Up to `most` have a hue each, of which there are 11.
    """
    families = dict(schemes)
    order = sorted(families, key=lambda s: (families[s], len(s), s))
    hues = family_hues({*families.values()})
    if len(families) <= most:
        return _each_a_hue({scheme: hues[families[scheme]] for scheme in order})
    if len(hues) == 1:  # a colour of the family would part no two lines
        again = [(hue, dash) for dash in DASHES for hue in HUES.values()]  # every hue, then again in other dashes
        turns = ((scheme, k, *again[k % len(again)]) for k, scheme in enumerate(order))
        return {scheme: Look(hue, MARKERS[k % len(MARKERS)], dash) for scheme, k, hue, dash in turns}
    counts: dict[str, int] = {}
    by_scheme = {}
    for scheme in order:
        colour = hues[families[scheme]]
        k = counts.get(colour, 0)
        counts[colour] = k + 1
        by_scheme[scheme] = Look(colour, MARKERS[k % len(MARKERS)], DASHES[k % len(DASHES)])
    return by_scheme


def _each_a_hue(wanted: Mapping[str, str]) -> dict[str, Look]:
    """Give each scheme a hue of its own: the one wanted if it is the first to want it, else an unused one."""
    free = [hue for hue in (*[*HUES.values()][::-1], *FURTHER) if hue not in wanted.values()]
    by_scheme: dict[str, Look] = {}
    for k, (scheme, hue) in enumerate(wanted.items()):
        taken = {look.colour for look in by_scheme.values()}
        weight = WIDEST - (WIDEST - THINNEST) * k / max(len(wanted) - 1, 1)
        by_scheme[scheme] = Look(free.pop(0) if hue in taken else hue, MARKERS[k], DASHES[0], weight)
    return by_scheme


def legend(figure: Figure, shown: Mapping[str, Look], names: Mapping[str, str] | None = None) -> None:
    """Draw a legend below all panels of a figure, or of a part of one that is as wide. It keeps the order given and
    takes as few lines as its width allows; `names` are the labels."""
    from matplotlib.lines import Line2D

    def line(k: Look) -> Line2D:
        options = {"color": k.colour, "marker": k.marker, "linestyle": k.dash}
        return Line2D([], [], **options, linewidth=k.weight, markersize=2.4 + 1.2 * k.weight, markeredgewidth=0)

    called = [plain((names or {}).get(scheme, scheme)) for scheme in shown]
    across = math.ceil(len(shown) / lines(called, figure.figure.get_figwidth()))
    keys, order = [*map(line, shown.values())], by_columns(len(shown), across)
    figure.legend([keys[k] for k in order], [called[k] for k in order], loc="outside lower center", ncols=across)


def by_columns(count: int, across: int) -> list[int]:
    """Return the order in which matplotlib, which fills columns, writes `count` entries of a legend row by row."""
    return [k for column in range(across) for k in range(column, count, across)]


def lines(names: Collection[str], wide: float) -> int:
    """The number of lines that a legend of these needs in a figure of this width in inches."""
    widest = 0.45 + 0.057 * max(map(len, names))  # a line and gaps, then letters
    return math.ceil(len(names) / max(1, int(wide / widest)))


def title(text: str, letters: int = 36) -> str:
    """The name of a panel, in lines that fit above it on a whole page; it may break lines itself."""
    letters = max(10, int(letters * page_width() / PAGE_WIDTH))
    lines = (
        textwrap.wrap(plain(line), letters, break_long_words=False, break_on_hyphens=False) for line in text.split("\n")
    )
    return "\n".join("\n".join(line) for line in lines)


def need_matplotlib() -> None:
    """Raise an error if matplotlib is not installed, before any work is done for a figure."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError("Figures need matplotlib; pip install 'posenc[plot]'.")


@contextlib.contextmanager
def canvas(
    width: float, height: float, layout: str | None = "constrained", more: Mapping[str, Any] = MappingProxyType({})
) -> Iterator[Figure]:
    """Make an empty figure of this size in inches, to be filled in the look of results. `more` overrides settings.

    Raises `ValueError` where matplotlib is not installed.
    """
    need_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({**RC, **_fonts(PAGE.get()), **more}):
        yield Figure(figsize=(PAGE.get().width if PAGE.get().family else width, height), layout=layout)


def _fonts(page: Page) -> dict[str, Any]:
    """The font of a page, and its sizes in proportion to those of `RC`."""
    scale = page.font / RC["axes.titlesize"]
    sizes = {name: size * scale for name, size in RC.items() if name.endswith(("size", "fontsize")) and scale != 1}
    return sizes | ({"font.family": page.family} if page.family else {})


def page_width() -> float:
    """Inches across a figure that takes the whole page."""
    return PAGE.get().width


def short_share(share: float) -> str:
    """A share in two digits, as `.98` and `1.00`."""
    return f"{share:.2f}".removeprefix("0")


def aligned(rows: Sequence[Sequence[str]], side: Callable[[str, int], str] = str.rjust) -> list[str]:
    """Rows of texts as lines, in columns two spaces apart, to the right or by `str.ljust` to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(side, row, widths)).rstrip() for row in rows]


def plain(text: str) -> str:
    """A name as it may be shown: control characters, which could steer a terminal, become question marks."""
    text = str(text)
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def safe(text: object) -> str:
    """Any text as HTML shows it, without control characters."""
    return escape(plain(str(text)))


def family_hues(families: set[str]) -> dict[str, str]:
    """Family to its hue."""
    used = {HUES[f] for f in families if f in HUES}
    free = [h for h in HUES.values() if h not in used and h != HUES["none"]] or [*FURTHER]
    strangers = sorted(f for f in families if f not in HUES)
    return {f: HUES[f] for f in families if f in HUES} | {f: free[k % len(free)] for k, f in enumerate(strangers)}
