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
    """Count the mines around each cell of a board (Cho et al., 2024).

    E M E ; E E M SEP 1 M 2 1 2 M EOS        a board of three columns and two rows; M is 9, E 10, ; 11

    Row by row; a mine stays a mine, and the other cells count the mines among their up to eight neighbours. Each cell
    is a mine with the same probability, which is drawn for each board, uniform on 0.1 … 0.25. SEP is their =. The
    answer and EOS are scored. The paper writes no `;` (`as_released`), so six rows of five cells and five of six are
    the same text: only coordinates distinguish them, and models that do not use them have to guess. The oracle then
    reads squares only.

    n is the longer side; the other is drawn so that all sides from `shortest` up are equally likely, width and height
    independent; both are strata. `other` fixes it: n columns and as many rows ("same") or that number. The paper trains
    on sides of 5 … 9 (6 … 10 in the released configuration, which the released script overrides) and evaluates on
    squares. Provides "row" and "col", for `axes("row", "col")`: the same in prompt and answer, from 2 up; signs have 1.
    """

    layout = Layout.LM
    ability = "offset"
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
        """The number of tokens that end a line."""
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
        mines = _mines(board, width, height, n_max, largest(n_max, self.other))
        solved = jnp.where(mines, MINE, _around(mines.astype(INT))).reshape(n.shape[0], -1)
        cells, length = width * height, self.tokens(n_max)
        p = cells + self._ends * (height - 1)

        i = jnp.arange(length, dtype=INT)[None, :] - 1
        w, in_prompt = width[:, None], i < p[:, None]
        stride = w + self._ends * in_prompt
        j = jnp.where(in_prompt, i, i - p[:, None] - 1)
        r, c = j // stride, j % stride
        line, index = in_prompt & (c == w), r * w + c
        at = gather(solved, r * n_max + c)
        shown = jnp.where(line, LINE, jnp.where(at == MINE, MINE, FREE))
        j = jnp.arange(solved.shape[1], dtype=INT)[None, :]
        answer = gather(solved, j // w * n_max + j % w)
        strata = {"width": width, "height": height}
        batch = prompted(self, n, length, shown[:, 1:], p, answer, cells, strata)

        middle = cells[:, None]
        equals = line | (i == p[:, None])
        index = jnp.where(equals, middle, jnp.where(in_prompt, index, index + middle + 1))
        col, row = coupling.board(index, w, height[:, None])
        inside = (i >= 0) & (i <= (p + cells)[:, None])
        return batch._replace(
            coords=batch.coords | {"row": jnp.where(inside, row, 0), "col": jnp.where(inside, col, 0)}
        )

    def answer(self, prompt):
        cells = [token for token in prompt[1:-1] if token != LINE]
        rows = prompt[1:-1].count(LINE) + 1 if self._ends else math.isqrt(len(cells))
        width = len(cells) // rows if self._ends else rows
        if rows * width != len(cells):
            raise ValueError(
                f"A text of {len(cells)} cells does not show how wide its board is; take other='same', or text='lines'."
            )
        counts = [0] * len(cells)
        for r, c in (divmod(at, width) for at, cell in enumerate(cells) if cell == MINE):
            for y in range(max(r - 1, 0), min(r + 2, rows)):
                for x in range(max(c - 1, 0), min(c + 2, width)):
                    counts[y * width + x] += 1
        counts = [MINE if cell == MINE else count for cell, count in zip(cells, counts, strict=True)]
        return [*counts, self.special("EOS")]


def _mines(key, width, height, columns, rows):
    """Boards in the upper left corner of an array of `rows` and `columns`."""
    share, words = jax.random.split(key)
    keys = jax.vmap(jax.random.fold_in, (None, 0))(words, jnp.arange(rows))  # independent of the number of rows
    u = jax.vmap(lambda k: uniforms(k, width.shape[0], columns))(keys).swapaxes(0, 1)
    r, c = jnp.arange(rows, dtype=INT)[None, :, None], jnp.arange(columns, dtype=INT)[None, None, :]
    inside = (r < height[:, None, None]) & (c < width[:, None, None])
    p = jax.random.uniform(share, width.shape, jnp.float32, LOW, HIGH)
    return inside & (u < p[:, None, None])


def _around(board):
    """The number of mines in the eight cells around each."""
    wide = jnp.pad(board, ((0, 0), (1, 1), (1, 1)))
    rows = wide[:, :-2] + wide[:, 1:-1] + wide[:, 2:]
    return rows[:, :, :-2] + rows[:, :, 1:-1] + rows[:, :, 2:] - board
