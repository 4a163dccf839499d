"""The floors of a source whose exact losses are known, as a curve in text: what readers of ever more tokens lose."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from posenc.catalog.card import Fact
from posenc.lab.tasks import Task
from posenc.lab.tasks.examples import examples, texts_of

WINDOWS = (1, 4, 16, 64)
ROWS, PLACES = 128, 24
"""Examples, and places of each, on which the losses are computed."""
TIMES = 4
"""The size of the examples, in the longest size trained on."""
WIDE = 40
"""Letters of the longest bar."""
SEED = 20230526


def source_floors(task: Task, windows: tuple[int, ...] | None = None) -> dict[str, Any]:
    """Return the losses at positions beyond training, in nats: of the unigram model, of predictors that see the last
    tokens, by `windows`, and of the optimal one. Raises `ValueError` for a window longer than the texts."""
    first = task.tokens(task.sizes.train[1])
    size = max([n for n in task.sizes.evaluation if n <= TIMES * first], default=first)
    first = first if size > first else 0
    places = np.unique(np.linspace(first, size - 1, PLACES).astype(int))
    texts = texts_of(examples(task, ROWS, size, jax.random.key(SEED), jnp.int32(size)), size)
    losses = {"unigram": float(-np.log(task.unigram[texts[:, places + 1]]).mean())}
    usual = tuple(w for w in WINDOWS if w <= size)
    losses |= {str(w): float(task.losses(texts, w, places).mean()) for w in windows or usual}
    losses["all"] = float(task.losses(texts, None, places).mean())
    return {"metric": "nats", "rows": ROWS, "size": size, "places": [first, size - 1], "losses": losses}


def floors_fact(floors: dict[str, Any]) -> Fact:
    """They as lines: the loss, and a bar as long as what it is above the least."""
    losses, (first, last) = floors["losses"], floors["places"]
    most = max(max(losses.values()) - losses["all"], 1e-9)
    words = {"unigram": "law of one token", "all": "all tokens (Bayes)"}
    lines = []
    for name, loss in losses.items():
        bar = "█" * round(WIDE * (loss - losses["all"]) / most)
        lines.append(f"{words.get(name, f'last {name}'):<20}{loss:.2f}  {bar}".rstrip())
    label = (
        f"Least loss in nats by the tokens that a predictor sees, exact, at positions {first} to {last} of"
        f" {floors['rows']} examples of size {floors['size']}"
    )
    return Fact("floors", floors, "\n".join(lines), label, is_block=True)
