"""Minesweeper."""

from itertools import product

import jax.numpy as jnp

from posenc.lab.tasks import minesweeper
from tests.tasks.law import words


def holds(mines, cells, high=0.25):
    """The chance of these mines in so many cells, over probabilities uniform on 0.1 … `high`, by the midpoint rule."""
    steps = 4000
    ps = [0.1 + (high - 0.1) * (step + 0.5) / steps for step in range(steps)]
    return sum(p**mines * (1 - p) ** (cells - mines) for p in ps) / steps


def boards(longest, high=0.25):
    law = {}
    shapes = [shape for shape in product(range(1, longest + 1), repeat=2) if max(shape) == longest]
    for width, height in shapes:
        chance = [holds(mines, width * height, high) / len(shapes) for mines in range(width * height + 1)]
        for cells in words(2, width * height):
            text = [9 if cell else 10 for cell in cells]
            rows = [text[width * r : width * (r + 1)] for r in range(height)]
            lines = [token for row in rows for token in (*row, 11)][:-1]
            law[(14, *lines, 13)] = chance[sum(cells)]
    return law


def empty(task, n):
    """A board without mines; the place of an answer tells the board's shape."""
    shapes = [(w, h) for w, h in product(range(5, n + 1), repeat=2) if max(w, h) == n]
    chance = [holds(0, w * h) / len(shapes) for w, h in shapes]
    return sum(chance), max(chance)


EXAMPLES = [
    ("minesweeper(shortest=1)", [14, 10, 9, 10, 11, 10, 10, 9, 13], [1, 9, 2, 1, 2, 9, 15]),
    (
        "minesweeper(other='same', shortest=1, text='as_released')",
        [13, 9, 10, 10, 10, 10, 10, 10, 10, 9, 12],
        [9, 1, 0, 1, 2, 1, 0, 1, 9, 14],
    ),
]

LAWS = {"minesweeper(shortest=1)": (2, boards, 2)}

FLOORS = {"minesweeper": empty}
FLOOR_SIZES = {"minesweeper": [5, 6, 9]}
VARIED = ["minesweeper"]

AROUND = minesweeper._around


def round_the_edge(board):
    return sum(jnp.roll(board, (y, x), (1, 2)) for y, x in product((-1, 0, 1), repeat=2) if y or x)


BROKEN = [
    ("minesweeper", 6, "minesweeper", "_around", lambda board: jnp.roll(AROUND(board), 1, axis=1)),
    ("minesweeper(other='same')", 6, "minesweeper", "_around", round_the_edge),
]
