"""Minesweeper."""

from itertools import product

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


LAWS = {"minesweeper(shortest=1)": (2, boards, 2)}

VARIED = ["minesweeper"]

PLANTED = [
    ("minesweeper", "minesweeper:_around", "rows[:, :, :-2] + rows", "rows", "oracle"),
    ("minesweeper", "minesweeper:_around", "(1, 1), (1, 1))", "(2, 0), (1, 1))", "oracle"),
]  # fmt: skip
