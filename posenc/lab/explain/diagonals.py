"""Diagonals of trained heads: for each scheme the head that looks most at the answer, a fixed number of positions back.

A scheme may find the answer by several heads, each with a little more weight there. So the sum over all heads of all
layers is shown beside the head with the most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from posenc.lab.explain.patterns import of_trial
from posenc.lab.figures import style
from posenc.lab.store import checkpoints
from posenc.lab.store import folder as store

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACROSS = 6
TASK = "token_k_back"


@dataclass(frozen=True)
class Diagonal:
    """The head of a trained model that looks most at the token a fixed number of positions back."""

    scheme: str
    layer: int
    head: int
    back: int
    length: int
    """The longest size trained on."""
    weights: Float[np.ndarray, "T T"]
    """Query by key, the mean over test sequences."""
    total: Float[np.ndarray, "T T"]
    """The sum of weights over all heads of all layers."""

    @property
    def share(self) -> float:
        """The mean weight on that token, over the queries that have one."""
        return float(np.diagonal(self.weights, -self.back).mean())

    @property
    def sum(self) -> float:
        """The weight on the diagonal in the sum over all heads."""
        return float(np.diagonal(self.total, -self.back).mean())


def diagonals(run: str, size: int) -> list[Diagonal]:
    """Return one for each scheme for which a run kept a model of `token_k_back`, from its first trial."""
    folder = store.find(run)
    kept, by_label = set(checkpoints.kept(folder)), {}
    for line in store.read_plan(folder):
        if line.id in kept and line.label not in by_label and line.task.startswith(TASK):
            resolved, layers = of_trial(run, folder, line, size)
            by_label[line.label] = steepest(line.label, layers, resolved.task.k, resolved.run.length)
    if not by_label:
        raise ValueError(
            f"{run!r} kept no model of {TASK!r}, whose answer stands a known number of positions back; train one with"
            " --keep."
        )
    return list(by_label.values())


def steepest(scheme: str, layers: Sequence[Float[np.ndarray, "H T T"]], back: int, length: int) -> Diagonal:
    """The head with the most weight `back` places before the query."""
    if layers[0].shape[-1] <= back:
        raise ValueError(
            f"--len is {layers[0].shape[-1]}; take more than the {back} positions that the answer is back."
        )
    total = sum(of.sum(0) for of in layers)
    heads = [
        Diagonal(scheme, layer + 1, head + 1, back, length, weights, total)
        for layer, of in enumerate(layers)
        for head, weights in enumerate(of)
    ]
    return max(heads, key=lambda head: head.share)


def draw(diagonals: Sequence[Diagonal]) -> Figure:
    """Draw two panels for each scheme, its head above and the sum over all heads below. Colours go from white for no
    weight to dark for the largest in the panel; lines show where training ended."""
    across = min(ACROSS, len(diagonals))
    down = -(-len(diagonals) // across)
    with style.canvas(style.PAGE_WIDTH * across / ACROSS, 3.1 * down) as figure:
        grid = figure.subplots(2 * down, across, squeeze=False)
        for k, diagonal in enumerate(diagonals):
            row, column = divmod(k, across)
            head, total = grid[2 * row, column], grid[2 * row + 1, column]
            title = f"layer {diagonal.layer}, head {diagonal.head}: {diagonal.share:.2f}"
            _map(head, diagonal.weights, title, diagonal.length)
            _map(total, diagonal.total, f"all heads: {diagonal.sum:.2f}", diagonal.length)
            head.set_title(f"{style.plain(diagonal.scheme)}\n\n", size=7.5)
            total.set_title("\n", size=7.5)
            total.set_xlabel("key")
            for axes in (head, total):
                axes.tick_params(labelbottom=axes is total, labelleft=column == 0)
                axes.set_ylabel("" if column else "query")
        for axes in grid.reshape(down, 2, across).swapaxes(1, 2).reshape(-1, 2)[len(diagonals) :].flat:
            axes.remove()
    return figure


def _map(axes: Axes, weights: Float[np.ndarray, "T T"], title: str, length: int) -> None:
    """Weights as a map, with a text above it and lines where training ended."""
    size, most = len(weights), float(weights.max())
    axes.imshow(weights, cmap="Blues", vmin=0, vmax=most, interpolation="nearest")
    place = {"xytext": (0, 3), "textcoords": "offset points", "va": "bottom", "size": 6, "color": style.SOFT}
    text = axes.annotate(f"{title}\ndarkest {most:.2f}", (0, 1), xycoords="axes fraction", **place)
    text.set_in_layout(False)  # it may be wider than its panel
    ticks = range(0, size, max(1, -(-size // 4)))
    axes.set_xticks(ticks)
    axes.set_yticks(ticks)
    axes.tick_params(length=2.5)
    if size > length:
        edge = {"color": style.SOFT, "linewidth": 0.6, "linestyle": (0, (3, 2))}
        axes.axvline(length - 0.5, **edge)
        axes.axhline(length - 0.5, **edge)


def caption(diagonals: Sequence[Diagonal]) -> str:
    """Return a caption of two sentences."""
    diagonal = diagonals[0]
    return (
        f"For each scheme the head that looks most at the token {diagonal.back} positions back, with its mean weight"
        " there, and below it the sum over all heads of all layers, which shows what heads find together and none"
        f" alone. Both are means over sequences of {len(diagonal.weights)} tokens, where up to {diagonal.length} were"
        " trained, from white for no weight to dark blue for the largest of the panel."
    )
