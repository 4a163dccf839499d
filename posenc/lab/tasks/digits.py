"""Numbers as rows of digits, the units first, so that none is too large; how many they have, and how they are written.

A pair of sizes is one size here: n is the larger of them. Papers draw both uniformly and independently; given that the
larger is n, `counts` draws the rest of that law exactly. The larger of an independent pair is large more often than
small, as `ways` counts; a run draws sizes so where its `uniform` is "numbers", and else all alike. `other` fixes the
rest, so that a grid of pairs can be evaluated.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from posenc.lab.tasks.draw import INT, between, integers, last_true, look
from posenc.lab.tasks.task import Task

TEN = 10
Other = Literal["any", "same"] | int
"""Sizes beside the first: drawn, the same as it, or a number."""

Rows = Int[Array, " B"]


def check_other(task: Task, other: Other, *, least: int = 1, what: str = "digits") -> None:
    """Refuse a number of digits that no number has."""
    if isinstance(other, int) and other < least:
        raise ValueError(
            f"The setting 'other' of {task.name!r} is 'any', 'same' or {least} {what} or more, not {other}."
        )


def largest(n: int, other: Other) -> int:
    """The larger size of a pair, on the host."""
    return max(n, other) if isinstance(other, int) else n


def ways(n: int, k: int, other: Other = "any", *, least: int = 1) -> int:
    """How many lists of k sizes from `least` on have the largest n; 1 where `other` fixes them."""
    return (n - least + 1) ** k - (n - least) ** k if other == "any" else 1


def counts(key: PRNGKeyArray, n: Rows, k: int, other: Other = "any", *, least: int = 1) -> list[Rows]:
    """k sizes. "any": each uniform on least … N and independent, given that the largest is n; else the first is n."""
    if other != "any":
        return [n] + [n if other == "same" else jnp.full_like(n, other)] * (k - 1)
    which, rest = jax.random.split(key)
    span = n - least + 1
    # The first of the largest is at place f with weight rᶠ: those before it are smaller, those after are not larger.
    weight = ((span - 1) / span).astype(jnp.float32)[None, :] ** jnp.arange(k, dtype=jnp.float32)[:, None]
    below = jnp.cumsum(weight, axis=0)
    u = jax.random.uniform(which, n.shape, jnp.float32) * below[-1]
    first = jnp.sum(u[None, :] >= below[:-1], axis=0, dtype=INT)
    keys = jax.random.split(rest, k)
    drawn = [between(keys[j], least, jnp.where(j < first, jnp.maximum(n - 1, least), n)) for j in range(k)]
    return [jnp.where(j == first, n, c) for j, c in enumerate(drawn)]


def number(key: PRNGKeyArray, count: Rows, length: int, *, zero: bool) -> Int[Array, "B L"]:
    """A uniform number of so many digits; of one digit, it is 0 only with `zero`. Digits above it are 0."""
    word, top = jax.random.split(key)
    place, count = jnp.arange(length, dtype=INT)[None, :], count[:, None]
    digits, lead = integers(word, count.shape[0], length, TEN), 1 + integers(top, count.shape[0], 1, TEN - 1)
    leads = (place == count - 1) & ((count > 1) | (not zero))
    return jnp.where(leads, lead, jnp.where(place < count, digits, 0))


def carried(columns: Int[Array, "B L"], most: int) -> Int[Array, "B L"]:
    """The digits of Σ columns · 10ʲ, no column above `most`; what is carried beyond the last column is lost."""
    while most > 2 * TEN - 2:  # each column is a number: add its digits where they belong
        width = len(str(most))
        parts = [columns // TEN**shift % TEN for shift in range(width)]
        columns = sum(jnp.pad(part, ((0, 0), (s, 0)))[:, : columns.shape[1]] for s, part in enumerate(parts))
        most = 9 * width
    # A column gets a carry if the last column below that does not just pass one on makes one.
    source = last_true(columns != TEN - 1)
    makes = (source >= 0) & (look(columns, source) >= TEN)
    return (columns + jnp.pad(makes, ((0, 0), (1, 0)))[:, :-1]) % TEN


def product(a: Int[Array, "B L"], b: Int[Array, "B M"]) -> Int[Array, "B N"]:
    """The columns of a · b, N = L + M: column j is Σᵢ aᵢ bⱼ₋ᵢ."""
    rows, length, width = a.shape[0], a.shape[1], a.shape[1] + b.shape[1]
    each = jnp.pad(a[:, :, None] * b[:, None, :], ((0, 0), (0, 0), (0, length)))
    skew = each.reshape(rows, length * width)[:, : length * (width - 1)]  # read with shorter rows, row i begins at i
    return jnp.pad(jnp.sum(skew.reshape(rows, length, width - 1), axis=1, dtype=INT), ((0, 0), (0, 1)))


def written(digits: Int[Array, "B L"]) -> Rows:
    """How many digits a number has, without zeros in front; 0 has one."""
    place = jnp.arange(digits.shape[1], dtype=INT)[None, :]
    return 1 + jnp.max(jnp.where(digits > 0, place, 0), axis=1)


def runs(i: Int[Array, "1 T"], lengths: Sequence[Rows]) -> tuple[Array, Array, Array]:
    """Where place i is in a text of runs, each followed by one sign: which run, how far into it, the run's length.

    At a sign, how far is the length; beyond the last run it is more.
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

    With `markers`, a token stands before every digit: this one before the units, the next one before the tens.
    """
    each = 1 if markers is None else 2
    run, within, length = runs(jnp.arange(width, dtype=INT)[None, :], [each * count for count in lengths])
    place = within // each
    weight = place if backwards else length // each - 1 - place
    text = look(digits.reshape(digits.shape[0], -1), run * digits.shape[2] + weight)
    if markers is not None:
        text = jnp.where(within % 2 == 0, markers[:, None] + weight, text)
    return jnp.where(within == length, sign, text)


def places(i: Int[Array, "1 T"], lengths: Sequence[Rows], each: int = 1) -> tuple[Array, Array]:
    """Of place i in a text of numbers with a sign after each: its index where a digit with its marker is one token,
    and "digit", how many digits its number has up to it (0 where no digit stands)."""
    run, within, length = runs(i, [each * count for count in lengths])
    place, known = within // each, (i >= 0) & (within < length)
    before = i - within - run  # what the runs before take, without their signs
    return before // each + run + place, jnp.where(known & (within % each == each - 1), place + 1, 0)
