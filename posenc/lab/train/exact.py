"""Exact losses of the evaluated examples, for tasks that know them; a gain is counted from them.

Each size has the loss of the unigram model (`unigram`) and of the optimal predictor (`bayes`). `windows` has predictors
of a few tokens. All are by the bins of positions that losses of models have.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from posenc.lab.metrics import GAIN, PARTS
from posenc.lab.tasks import Batch, Task
from posenc.lab.tasks.examples import texts_of
from posenc.lab.tasks.measure import first_beyond, width
from posenc.lab.train.evaluation import examples_at

WINDOWS = (1, *(n * 2**k for k in range(9) for n in (2, 3)))[:-1]
"""The windows whose losses a record holds, if they are shorter than the texts: 1, 2, 3, 4, 6, 8 to 512."""
ROWS, PLACES = 32, 128
"""The number of examples, and about that of positions in each, at which the losses of windows are computed. A window
costs the square of its length at each. Its loss, as a share of the possible gain, hardly differs from text to text."""
FAR = "beyond_nats"
"""The count of a model's loss at places beyond training, in parts of a nat."""


class SizeLosses(NamedTuple):
    """The exact losses of the examples of one size, in parts of a nat."""

    bins: dict[str, Any]
    """"unigram" and "bayes" to a list of sums, one for each bin of places, and "windows" to a dict of such lists."""
    unigram: int
    """At places beyond training; at a size trained on at all."""
    bayes: int

    @property
    def gainable(self) -> int:
        """The possible gain: at least one part, should the optimal predictor be unlucky on a few examples."""
        return max(self.unigram - self.bayes, 1)

    def gained(self, counts: Mapping[str, int]) -> dict[str, int]:
        """The counts with what was gained of that, which is none where the loss is above that of the law of one
        token."""
        kept = {name: count for name, count in counts.items() if name != FAR}
        return kept | {"gained": int(np.clip(self.unigram - counts[FAR], 0, self.gainable)), "gainable": self.gainable}


@functools.lru_cache(maxsize=64)
def size_losses(
    task: Task, rows: int, sizes: tuple[int, ...], n: int, length: int, choosing: bool
) -> SizeLosses | None:
    """Return the exact losses of the examples on which models of a task trained up to `length` are evaluated at one of
    these sizes. A task that does not know them has None."""
    if task.metric != GAIN:
        return None
    texts, losses = _losses(task, examples_at(task, rows, sizes, n, choosing), n)
    first = first_beyond(task, n, length)
    bins: dict[str, Any] = {name: _binned(loss.sum(0)) for name, loss in losses.items()}
    if not choosing:
        gains = (losses["unigram"] - losses["bayes"]).mean(1)
        of_all, of_few = gains.mean(), gains[:ROWS].mean()
        parts = rows * (of_all / of_few if min(of_all, of_few) > 0 else 1)
        more = {w: _lost(task, texts[:ROWS], losses["bayes"][:ROWS], w) * parts for w in WINDOWS if w < n}
        bins["windows"] = {str(w): _binned(losses["bayes"].sum(0) + lost) for w, lost in more.items()}
    unigram, bayes = (round(PARTS * float(losses[name][:, first:].sum())) for name in losses)
    return SizeLosses(bins, unigram, bayes)


def with_gain(counts: Mapping[str, int], losses: SizeLosses | None) -> dict[str, int]:
    """The counts of a model at a size, with its gain where the exact losses are known."""
    return losses.gained(counts) if losses else {name: count for name, count in counts.items() if name != FAR}


def row_gains(
    task: Task, batch: Batch, n: int, length: int, counts: Mapping[str, Int[np.ndarray, " rows"]]
) -> dict[str, Int[np.ndarray, " rows"]]:
    """Return the counts of a model in each example, with its gain there. A gain may be below zero, since `clip_gain`
    cuts sums and not examples."""
    kept = {name: count for name, count in counts.items() if name != FAR}
    if task.metric != GAIN:
        return kept
    (_, losses), first = _losses(task, batch, n), first_beyond(task, n, length)
    unigram, bayes = (np.rint(PARTS * loss[:, first:].sum(1)).astype(int) for loss in losses.values())
    return kept | {"gained": unigram - counts[FAR], "gainable": unigram - bayes}


def clip_gain(counts: dict[str, int]) -> None:
    """Cut the gain in these sums, if there is one, to what there is to gain."""
    if "gained" in counts:
        counts["gainable"] = max(counts["gainable"], 1)
        counts["gained"] = min(max(counts["gained"], 0), counts["gainable"])


def _losses(task: Any, batch: Batch, n: int) -> tuple[Int[np.ndarray, "rows n"], dict[str, np.ndarray]]:
    """The texts of a batch, and in nats what the law of one token and the best reader lose at each place."""
    texts = texts_of(batch, n)
    return texts, {"unigram": -np.log(task.unigram)[texts[:, 1:]], "bayes": task.losses(texts)}


def _lost(
    task: Any, texts: Int[np.ndarray, "rows n"], best: Float[np.ndarray, "rows places"], window: int
) -> Float[np.ndarray, " places"]:
    """Return the loss of a window above the optimal predictor, a mean over texts. A position that is left out takes the
    value of the one before it."""
    places = best.shape[1]
    step = max(1, places // PLACES)
    at = list(range(0, places, step))
    return np.repeat((task.losses(texts, window, at) - best[:, at]).mean(0), step)[:places]


def _binned(loss: Float[np.ndarray, " places"]) -> list[int]:
    wide = width(len(loss))
    return [round(PARTS * float(loss[at : at + wide].sum())) for at in range(0, len(loss), wide)]
