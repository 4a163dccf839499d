"""A board, and how many mines each of its cells touches.

@inproceedings{cho2024position, title={Position Coupling: Improving Length Generalization of Arithmetic Transformers
  Using Task Structure}, author={Cho, Hanseul and Cha, Jaeyoung and others}, booktitle={NeurIPS}, year={2024},
  eprint={2405.20671}}
"""

from __future__ import annotations

import math
from typing import Literal

import jax
import jax.numpy as jnp

from posenc.lab.tasks import coupling
from posenc.lab.tasks.digits import Other, check_other, counts, largest, ways
from posenc.lab.tasks.draw import INT, gather, uniforms
from posenc.lab.tasks.layout import prompted
from posenc.lab.tasks.task import Layout, Sizes, Task

MINE, FREE, LINE = 9, 10, 11  # the tokens below are numbers of mines
LOW, HIGH = 0.1, 0.25


class Minesweeper(Task, name="minesweeper"):
    """Say how many mines each cell of a board touches (Cho et al., 2024).

    E M E ; E E M SEP 1 M 2 1 2 M EOS        a board of three columns and two rows; M is 9, E 10, ; 11

    Row by row; a mine stays a mine, and the other cells count the mines of their up to eight neighbours. Each cell is
    one with a probability that is uniform on 0.1 … 0.25, one for the board. SEP is their =. Scored are the answer and
    EOS. The paper writes no `;` (`as_released`), so that six rows of five cells and five of six are one text: only
    coordinates tell them apart, and who does not see them has to guess. The oracle reads squares there and no others.

    n is the longer side; the other is drawn so that all sides from `shortest` on are equally likely, width and height
    independent; both are strata. `other` fixes it: n columns, and as many rows, "same", or so many. The paper trains on
    sides of 5 … 9 (6 … 10 in the released configuration, which the released script overrides) and evaluates on
    squares. Offers "row" and "col", for `axes("row", "col")`: the same in prompt and answer, from 2 on; signs have 1.
    """

    layout = Layout.LM
    ability = ("relative", "alignment")
    suites = ("arithmetic",)
    least = {"shortest": 1}
    samples = ({"shortest": 1}, {"other": 2, "shortest": 2}, {"text": "as_released", "other": "same"})
    choices = MINE + 1

    text: Literal["lines", "as_released"] = "lines"
    shortest: int = 5
    other: Other = "any"

    alphabet = property(lambda task: FREE + 1 + task._ends)
    vocabulary = property(lambda task: dict(enumerate("ME;"[: task.alphabet - MINE], MINE)))

    def validate(self):
        super().validate()
        check_other(self, self.other, least=self.shortest, what="rows")

    @property
    def _ends(self):
        """How many tokens end a line."""
        return int(self.text == "lines")

    @property
    def sizes(self):
        low = self.shortest
        return Sizes(low, (low, max(9, low)), tuple(n for n in (10, 11, 12) if n > low))

    def ways(self, n):
        return ways(n, 2, self.other, least=self.shortest)

    def tokens(self, n):
        rows = self.other if isinstance(self.other, int) else n
        return 2 * n * rows + self._ends * (rows - 1) + 3

    def make(self, key, n, n_max):
        pair, board = jax.random.split(key)
        width, height = counts(pair, n, 2, self.other, least=self.shortest)
        mine = _mines(board, width, height, n_max, largest(n_max, self.other))
        seen = jnp.where(mine, MINE, _around(mine.astype(INT))).reshape(n.shape[0], -1)
        cells, length = width * height, self.tokens(n_max)
        p = cells + self._ends * (height - 1)

        i = jnp.arange(length, dtype=INT)[None, :] - 1
        w, told = width[:, None], i < p[:, None]
        stride = w + self._ends * told
        j = jnp.where(told, i, i - p[:, None] - 1)
        r, c = j // stride, j % stride
        line, index = told & (c == w), r * w + c
        at = gather(seen, r * n_max + c)
        shown = jnp.where(line, LINE, jnp.where(at == MINE, MINE, FREE))
        j = jnp.arange(seen.shape[1], dtype=INT)[None, :]
        said = gather(seen, j // w * n_max + j % w)
        strata = {"width": width, "height": height}
        batch = prompted(self, n, length, shown[:, 1:], p, said, cells, strata)

        middle = cells[:, None]
        equals = line | (i == p[:, None])
        index = jnp.where(equals, middle, jnp.where(told, index, index + middle + 1))
        col, row = coupling.board(index, w, height[:, None])
        known = (i >= 0) & (i <= (p + cells)[:, None])
        return batch._replace(coords=batch.coords | {"row": jnp.where(known, row, 0), "col": jnp.where(known, col, 0)})

    def answer(self, prompt):
        cells = [token for token in prompt[1:-1] if token != LINE]
        rows = prompt[1:-1].count(LINE) + 1 if self._ends else math.isqrt(len(cells))
        width = len(cells) // rows if self._ends else rows
        if rows * width != len(cells):
            raise ValueError(f"A text of {len(cells)} cells does not say how wide its board is; take other='same'.")
        said = [0] * len(cells)
        for r, c in (divmod(at, width) for at, cell in enumerate(cells) if cell == MINE):
            for y in range(max(r - 1, 0), min(r + 2, rows)):
                for x in range(max(c - 1, 0), min(c + 2, width)):
                    said[y * width + x] += 1
        said = [MINE if cell == MINE else mines for cell, mines in zip(cells, said, strict=True)]
        return [*said, self.special("EOS")]


def _mines(key, width, height, columns, rows):
    """Boards in the upper left of so many columns and rows."""
    share, words = jax.random.split(key)
    keys = jax.vmap(jax.random.fold_in, (None, 0))(words, jnp.arange(rows))  # a row must not depend on how many follow
    u = jax.vmap(lambda k: uniforms(k, width.shape[0], columns))(keys).swapaxes(0, 1)
    r, c = jnp.arange(rows, dtype=INT)[None, :, None], jnp.arange(columns, dtype=INT)[None, None, :]
    inside = (r < height[:, None, None]) & (c < width[:, None, None])
    p = jax.random.uniform(share, width.shape, jnp.float32, LOW, HIGH)
    return inside & (u < p[:, None, None])


def _around(board):
    """Mines in the eight cells around each."""
    wide = jnp.pad(board, ((0, 0), (1, 1), (1, 1)))
    rows = wide[:, :-2] + wide[:, 1:-1] + wide[:, 2:]
    return rows[:, :, :-2] + rows[:, :, 1:-1] + rows[:, :, 2:] - board
