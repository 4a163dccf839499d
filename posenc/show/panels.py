"""What figures of results share: panels in rows, and a line through medians with its spread and every run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from posenc.lab.stats import summary
from posenc.show.style import Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 3


def shape(panels: int) -> tuple[int, int]:
    """Rows and columns for so many panels."""
    columns = min(COLUMNS, panels)
    return -(-panels // columns), columns


def places(figure: Figure, panels: int, **how: Any) -> list[Axes]:
    """Axes for so many panels, and none where the last row has room left."""
    every = list(figure.subplots(*shape(panels), squeeze=False, **how).flat)
    for axes in every[panels:]:
        axes.remove()
    return every[:panels]


def line(axes: Axes, found: Mapping[Any, Sequence[float]], look: Look, name: str, **how: Any) -> None:
    """One value for each run at each place along x: a line through the medians, a band over the spread, points."""
    at = sorted(found)
    sums = [summary(found[x]) for x in at]
    every = [(x, value) for x in at for value in found[x]]
    axes.fill_between(at, [s.low for s in sums], [s.high for s in sums], color=look.colour, alpha=0.13, linewidth=0)
    axes.scatter(*zip(*every, strict=True), s=5, color=look.colour, marker=look.marker, alpha=0.35, linewidths=0)
    told = {"color": look.colour, "marker": look.marker, "linestyle": look.dash, "label": name, **how}
    axes.plot(at, [s.median for s in sums], **told, linewidth=1.4, markersize=3.6, markeredgewidth=0)
