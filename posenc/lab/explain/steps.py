"""A computation by hand as a list of steps: each has a name, a sentence, and labelled matrices of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

DIGITS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
HUGE = 1e6
"""Numbers from here on are written with an exponent."""


@dataclass(frozen=True)
class Matrix:
    """Numbers under a label. NaN marks a number that is not computed, minus infinity one that the mask hides."""

    label: str
    values: np.ndarray
    rows: tuple[str, ...] = ()
    """A name for each row; empty for rows without names."""
    columns: tuple[str, ...] = ()
    marked: tuple[int, ...] = ()
    """The rows that the sheet follows."""
    without: np.ndarray | None = None
    """The numbers without the scheme; None if the sheet has no scheme."""
    printed: bool = False
    """True if a worksheet prints the numbers instead of boxes."""

    @property
    def changed(self) -> np.ndarray:
        """Return a mask of the numbers that the scheme changed."""
        if self.without is None:
            return np.zeros(self.values.shape, bool)
        return ~np.isclose(self.values, self.without, rtol=1e-9, atol=1e-9, equal_nan=True)

    @property
    def before(self) -> Matrix | None:
        """The numbers without the scheme, where it made a difference."""
        if self.without is None or not self.changed.any():
            return None
        return Matrix("without", self.without, self.rows, self.columns)

    def cells(self) -> list[list[str]]:
        """Every number as text."""
        return numbers(self.values)


@dataclass(frozen=True)
class Step:
    """One step: its name, what is done, and what comes out."""

    name: str
    title: str
    matrices: tuple[Matrix, ...]
    note: str = ""
    """A sentence that holds for any numbers."""
    working: tuple[str, ...] = ()
    """Some of the numbers worked out; a worksheet leaves them to the reader."""
    by: str = ""
    """The schemes that act here."""


@dataclass(frozen=True)
class Sheet:
    """All steps, under a title."""

    title: str
    about: str
    steps: tuple[Step, ...]
    path: str = ""
    """A drawing in text of where a scheme enters."""
    blank: bool = field(default=False, kw_only=True)
    """True if the numbers to find are boxes."""

    @property
    def changes(self) -> bool:
        """Tell whether it shows numbers that a scheme changed."""
        return not self.blank and any(m.changed.any() for step in self.steps for m in step.matrices)


def numbers(values: np.ndarray) -> list[list[str]]:
    """A matrix as texts in one format: whole numbers, or four decimals."""
    finite = values[np.isfinite(values)]
    integral = bool(np.all(np.abs(finite - np.round(finite)) < 1e-9))
    return [[number(float(value), integral) for value in row] for row in values]


def number(value: float, integral: bool = False) -> str:
    """One number as a text."""
    if np.isnan(value):
        return "·"
    if np.isinf(value):
        return "−∞" if value < 0 else "∞"
    shown = f"{value:.0f}" if integral else f"{value:.4f}" if abs(value) < HUGE else f"{value:.3e}"
    return shown.removeprefix("-") if not float(shown) else shown


def indexed(letter: str, count: int) -> tuple[str, ...]:
    """Names for rows: x₁, x₂, x₃."""
    return tuple(letter + str(n + 1).translate(DIGITS) for n in range(count))


def dotted(left: Sequence[float], right: Sequence[float]) -> str:
    """A dot product written out: "1·0 + 0·1 + 2·1"."""
    integral = all(abs(v - round(v)) < 1e-9 for v in (*left, *right))
    pairs = ((number(a, integral), number(b, integral)) for a, b in zip(left, right, strict=True))
    return " + ".join("·".join(f"({n})" if n.startswith("-") else n for n in pair) for pair in pairs)
