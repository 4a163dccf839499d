"""What trained heads look at where the answer stands so many places back: the diagonal that each scheme found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from posenc.lab.explain.patterns import of_trial
from posenc.lab.figures import style
from posenc.lab.store import folder as store
from posenc.lab.store import parameters

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ACROSS = 6
TASK = "token_k_back"


@dataclass(frozen=True)
class Diagonal:
    """The head of a trained model that looks most at the token so many places back."""

    scheme: str
    layer: int
    head: int
    back: int
    length: int
    """The longest size trained on."""
    weights: Float[np.ndarray, "T T"]
    """Query by key, the mean over test sequences."""

    @property
    def share(self) -> float:
        """The mean weight on that token, over the queries that have one."""
        return float(np.diagonal(self.weights, -self.back).mean())


def diagonals(run: str, size: int) -> list[Diagonal]:
    """One for each scheme of which a run kept a model of the token some places back, from its first trial."""
    folder = store.find(run)
    kept, found = set(parameters.kept(folder)), {}
    for line in store.read_plan(folder):
        if line.id in kept and line.label not in found and line.task.startswith(TASK):
            resolved, layers = of_trial(run, folder, line, size)
            found[line.label] = steepest(line.label, layers, resolved.task.k, resolved.run.length)
    if not found:
        raise ValueError(
            f"{run!r} kept no model of {TASK!r}, whose answer stands a known number of places back; train one with"
            " --keep."
        )
    return list(found.values())


def steepest(scheme: str, layers: Sequence[Float[np.ndarray, "H T T"]], back: int, length: int) -> Diagonal:
    """The head with the most weight `back` places before the query."""
    if layers[0].shape[-1] <= back:
        raise ValueError(f"--len is {layers[0].shape[-1]}; take more than the {back} places that the answer is back.")
    heads = [
        Diagonal(scheme, layer + 1, head + 1, back, length, weights)
        for layer, of in enumerate(layers)
        for head, weights in enumerate(of)
    ]
    return max(heads, key=lambda head: head.share)


def draw(found: Sequence[Diagonal]) -> Figure:
    """A panel for each scheme, from light for no weight to dark for all; lines show where training ended."""
    style.need_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure

    across = min(ACROSS, len(found))
    down = -(-len(found) // across)
    with matplotlib.rc_context(style.RC):
        figure = Figure(figsize=(1.55 * across + 0.5, 1.95 * down + 0.2), layout="constrained")
        grid = list(figure.subplots(down, across, squeeze=False).flat)
        for axes, one in zip(grid, found, strict=False):
            axes.imshow(one.weights, cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
            axes.set_title(f"{style.plain(one.scheme)}\n", size=8.5)
            how = {"xytext": (0, 3), "textcoords": "offset points", "va": "bottom", "size": 6.5, "color": style.SOFT}
            axes.annotate(
                f"layer {one.layer}, head {one.head}: {one.share:.2f}", (0, 1), xycoords="axes fraction", **how
            )
            size = len(one.weights)
            ticks = range(0, size, max(1, -(-size // 4)))
            axes.set_xticks(ticks)
            axes.set_yticks(ticks)
            axes.set_xlabel("key")
            if size > one.length:
                edge = {"color": style.SOFT, "linewidth": 0.6, "linestyle": (0, (3, 2))}
                axes.axvline(one.length - 0.5, **edge)
                axes.axhline(one.length - 0.5, **edge)
        for axes in grid[len(found) :]:
            axes.remove()
        figure.axes[0].set_ylabel("query")
    return figure


def about(found: Sequence[Diagonal]) -> str:
    """What the figure shows, in a sentence."""
    one = found[0]
    return (
        f"For each scheme the head that looks most at the token {one.back} places back: its mean weight there, and its"
        f" mean weights on sequences of {len(one.weights)} tokens, where up to {one.length} were trained."
    )
