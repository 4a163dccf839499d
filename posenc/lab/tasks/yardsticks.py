"""Losses of models that only count: the law of one symbol, of two, and of up to six. No jax.

    p_k(x | c) = (n(c x) + u(c) p_{k-1}(x | c')) / (n(c) + u(c))        p_{-1} = 1 / symbols

n(c x) is how often x followed the last k symbols c in training, and n(c) the sum of these. u(c) is how many different
symbols followed; c' is c without its first symbol. That is the method C of prediction by partial matching, interpolated
(Moffat, 1990; Witten and Bell, 1991). In a row the model sees only the symbols of the row before.

@article{moffat1990implementing, title={Implementing the PPM Data Compression Scheme}, author={Moffat, Alistair},
  journal={IEEE Transactions on Communications}, year={1990}}
@article{witten1991zero, title={The Zero-Frequency Problem: Estimating the Probabilities of Novel Events in Adaptive
  Text Compression}, author={Witten, Ian H. and Bell, Timothy C.}, journal={IEEE Transactions on Information Theory},
  year={1991}}
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

ORDERS = {"unigram": 0, "bigram": 1, "order 5": 5}
"""The name of a yardstick to how many symbols it reads."""


class Grams(NamedTuple):
    """The different strings of k + 1 symbols of a text, each as its beginning of k times the symbols, and its last."""

    keys: Int[np.ndarray, " grams"]
    """In ascending order; the number of a gram is its place here."""
    count: Int[np.ndarray, " grams"]
    """How often each occurs."""
    total: Int[np.ndarray, " contexts"]
    """How often each beginning of k symbols is followed by any."""
    different: Int[np.ndarray, " contexts"]
    """By how many different ones."""


def count_grams(text: Int[np.ndarray, " length"], symbols: int, order: int) -> list[Grams]:
    """The grams of 1 to order + 1 symbols of a text."""
    levels, before, contexts = [], np.zeros(len(text), np.int64), 1
    for k in range(order + 1):
        if len(text) <= k:
            break
        keys, before, count = np.unique(before * symbols + text[k:], return_inverse=True, return_counts=True)
        first = keys // symbols
        total, different = np.bincount(first, count, contexts), np.bincount(first, minlength=contexts)
        levels.append(Grams(keys, count, total, different))
        before, contexts = before[:-1], len(keys)
    return levels


def counting_losses(
    levels: list[Grams], rows: Int[np.ndarray, "rows T+1"], symbols: int
) -> Float[np.ndarray, "rows T"]:
    """Return -log p of each symbol of rows but the first, in nats, by a model of at most as many symbols as levels
    count."""
    chance = np.full((rows.shape[0], rows.shape[1] - 1), 1 / symbols)
    numbers = np.zeros(rows.shape, np.int64)  # of the gram of k symbols that ends before each place; -1 is none
    for level in levels:
        keys = np.where(numbers < 0, -1, numbers * symbols + rows)
        at = np.minimum(np.searchsorted(level.keys, keys), len(level.keys) - 1)
        here = level.keys[at] == keys
        seen = (numbers >= 0)[:, 1:]
        total, different, count = (
            np.where(seen, facts, 0)
            for facts in (
                level.total[numbers[:, 1:]],
                level.different[numbers[:, 1:]],
                np.where(here, level.count[at], 0)[:, 1:],
            )
        )
        denominator = total + different
        chance = np.where(denominator > 0, (count + different * chance) / np.maximum(denominator, 1), chance)
        numbers = np.pad(np.where(here, at, -1)[:, :-1], ((0, 0), (1, 0)), constant_values=-1)
    return -np.log(chance)


def yardsticks(
    text: Int[np.ndarray, " length"], rows: Int[np.ndarray, "rows T+1"], symbols: int
) -> dict[str, Float[np.ndarray, " T"]]:
    """The mean loss at each place of rows, in nats, of each reader of `ORDERS` that counted in a text."""
    levels = count_grams(text, symbols, max(ORDERS.values()))
    return {name: counting_losses(levels[: k + 1], rows, symbols).mean(0) for name, k in ORDERS.items()}
