"""Numbers as rows of digits, units first, so that their size is unlimited: how many digits, and how they are written.

The size n of a pair is the larger of its two sizes. Papers draw both uniformly and independently; given that the larger
is n, `counts` draws the other from that law exactly. The larger of an independent pair is more often large than small,
in proportion to `ways`. A run whose `uniform` is "numbers" draws sizes with these weights; otherwise all sizes are
equally likely. `other` fixes the other size, so that a grid of pairs can be evaluated.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from posenc.lab.tasks.draw import INT, between, gather, integers, last_true
from posenc.lab.tasks.task import Task

TEN = 10
Other = Literal["any", "same"] | int
"""The other sizes: "any" draws them, "same" makes them equal to the first, a number fixes them."""

Rows = Int[Array, " B"]


def check_other(task: Task, other: Other, *, least: int = 1, what: str = "digits") -> None:
    """Raise `ValueError` where `other` is too small a number of digits."""
    if isinstance(other, int) and other < least:
        raise ValueError(
            f"The setting 'other' of {task.name!r} must be 'any', 'same' or a number of {what} from {least} up, not"
            f" {other}."
        )


def largest(n: int, other: Other) -> int:
    """The larger size of a pair, on the host."""
    return max(n, other) if isinstance(other, int) else n


def ways(n: int, k: int, other: Other = "any", *, least: int = 1) -> int:
    """How many lists of k sizes of `least` or more have n as their largest; 1 where `other` fixes the rest."""
    return (n - least + 1) ** k - (n - least) ** k if other == "any" else 1


def counts(key: PRNGKeyArray, n: Rows, k: int, other: Other = "any", *, least: int = 1) -> list[Rows]:
    """Draw k sizes. With "any" each is uniform on least … N and independent, given that the largest is n. Else the
    first is n."""
    if other != "any":
        return [n] + [n if other == "same" else jnp.full_like(n, other)] * (k - 1)
    which, rest = jax.random.split(key)
    span = n - least + 1
    # The first of the largest has index f with weight rᶠ: those before it are smaller, those after are not larger.
    weight = ((span - 1) / span).astype(jnp.float32)[None, :] ** jnp.arange(k, dtype=jnp.float32)[:, None]
    below = jnp.cumsum(weight, axis=0)
    u = jax.random.uniform(which, n.shape, jnp.float32) * below[-1]
    first = jnp.sum(u[None, :] >= below[:-1], axis=0, dtype=INT)
    keys = jax.random.split(rest, k)
    sizes = [between(keys[j], least, jnp.where(j < first, jnp.maximum(n - 1, least), n)) for j in range(k)]
    return [jnp.where(j == first, n, c) for j, c in enumerate(sizes)]


def number(key: PRNGKeyArray, count: Rows, length: int, *, zero: bool) -> Int[Array, "B L"]:
    """A uniform number of `count` digits; with one digit it is 0 only if `zero`. Entries beyond its digits are 0."""
    word, top = jax.random.split(key)
    place, count = jnp.arange(length, dtype=INT)[None, :], count[:, None]
    digits, lead = integers(word, count.shape[0], length, TEN), 1 + integers(top, count.shape[0], 1, TEN - 1)
    leads = (place == count - 1) & ((count > 1) | (not zero))
    return jnp.where(leads, lead, jnp.where(place < count, digits, 0))


def carried(columns: Int[Array, "B L"], most: int) -> Int[Array, "B L"]:
    """The digits of Σ columns · 10ʲ, where no column exceeds `most`; a carry beyond the last column is dropped."""
    while most > 2 * TEN - 2:  # a column of several digits: add each digit to its own column
        width = len(str(most))
        parts = [columns // TEN**shift % TEN for shift in range(width)]
        columns = sum(jnp.pad(part, ((0, 0), (s, 0)))[:, : columns.shape[1]] for s, part in enumerate(parts))
        most = 9 * width
    # A column gets a carry if the nearest lower column that is not 9 produces one; columns of 9 pass carries on.
    source = last_true(columns != TEN - 1)
    makes = (source >= 0) & (gather(columns, source) >= TEN)
    return (columns + jnp.pad(makes, ((0, 0), (1, 0)))[:, :-1]) % TEN


def product(a: Int[Array, "B L"], b: Int[Array, "B M"]) -> Int[Array, "B N"]:
    """The columns of a · b, N = L + M: column j is Σᵢ aᵢ bⱼ₋ᵢ."""
    rows, length, width = a.shape[0], a.shape[1], a.shape[1] + b.shape[1]
    each = jnp.pad(a[:, :, None] * b[:, None, :], ((0, 0), (0, 0), (0, length)))
    skew = each.reshape(rows, length * width)[:, : length * (width - 1)]  # read with shorter rows, row i begins at i
    return jnp.pad(jnp.sum(skew.reshape(rows, length, width - 1), axis=1, dtype=INT), ((0, 0), (0, 1)))


def written(digits: Int[Array, "B L"]) -> Rows:
    """How many digits a number has, without leading zeros; 0 has one."""
    place = jnp.arange(digits.shape[1], dtype=INT)[None, :]
    return 1 + jnp.max(jnp.where(digits > 0, place, 0), axis=1)


def runs(i: Int[Array, "1 T"], lengths: Sequence[Rows]) -> tuple[Array, Array, Array]:
    """For index i of a text of runs, each followed by one sign: the run, the offset within it, and the run's length.

    At a sign the offset equals the length; beyond the last run it is larger.
    """
    start = jnp.zeros_like(lengths[0][:, None])
    run, begin, length = 0 * i + start, start, lengths[0][:, None]
    for before, count in itertools.pairwise(lengths):
        start = start + before[:, None] + 1
        after = i >= start
        run = run + after.astype(INT)
        begin, length = jnp.where(after, start, begin), jnp.where(after, count[:, None], length)
    return run, i - begin, length


def spelled(
    digits: Int[Array, "B K L"],
    lengths: Sequence[Rows],
    width: int,
    *,
    sign: int,
    backwards: bool,
    markers: Rows | None = None,
) -> Int[Array, "B W"]:
    """The text of numbers with a sign after each: from the highest digit, or from the units if `backwards`.

    With `markers`, a marker token precedes every digit: `markers` the units, `markers + 1` the tens, and so on.
    """
    each = 1 if markers is None else 2
    run, within, length = runs(jnp.arange(width, dtype=INT)[None, :], [each * count for count in lengths])
    place = within // each
    weight = place if backwards else length // each - 1 - place
    text = gather(digits.reshape(digits.shape[0], -1), run * digits.shape[2] + weight)
    if markers is not None:
        text = jnp.where(within % 2 == 0, markers[:, None] + weight, text)
    return jnp.where(within == length, sign, text)


def digit_coordinates(i: Int[Array, "1 T"], lengths: Sequence[Rows], each: int = 1) -> tuple[Array, Array]:
    """Return two coordinates for index i of a text of numbers with a sign after each. The first is its index if a digit
    and its marker count as one token. The second, "digit", is the number of digits of its number up to and including it
    (0 at other tokens)."""
    run, within, length = runs(i, [each * count for count in lengths])
    place, inside = within // each, (i >= 0) & (within < length)
    before = i - within - run  # tokens of the runs before it, without their signs
    return before // each + run + place, jnp.where(inside & (within % each == each - 1), place + 1, 0)
