"""The whole law of each task at a tiny size, enumerated here by hand, against 20,000 prompts.

Each law takes the bound it rests on. The stated bound must not be rejected; one more than stated, the off-by-one that
an inclusive end would plant, must be.
"""

import functools
from itertools import permutations, product

import numpy as np
import pytest
from task_checks import drawn, p_value, words

from posenc import tasks

ROWS = 20_000


def even(prompts):
    prompts = list(prompts)
    return {tuple(p): 1 / len(prompts) for p in prompts}


def strings(symbols):
    return lambda n: even(words(symbols, n))


def token_at_index(indices):
    return even((*x, 2 + k) for x in words(2, 4) for k in range(indices))


def index_of_token(indices):
    return even((*x[:j], 2, *x[j:]) for x in words(2, 3) for j in range(indices))


def pointer_back(reach):
    return even((*x, 2 + k - 1) for x in words(2, 3) for k in range(1, reach + 1))


def distance(reach):
    law = {}
    for d in range(1, reach + 1):
        for i in range(4 - d):
            for noise in words(2, 2):
                rest = iter(noise)
                x = tuple(2 if at in (i, i + d) else next(rest) for at in range(4))
                law[x] = 1 / (reach * (4 - d) * 4)
    return law


def before(n):
    return even(
        tuple(2 if at == a else 3 if at == b else next(rest) for at in range(n))
        for a, b in permutations(range(n), 2)
        for noise in words(2, n - 2)
        for rest in [iter(noise)]
    )


def same_order(symbols):
    law = {}
    allowed = [x for x in words(symbols, 3) if len(set(x)) > 1]
    for x in allowed:
        law[(*x, symbols, *x)] = law.get((*x, symbols, *x), 0) + 1 / (2 * len(allowed))
        for i in range(3):
            others = [j for j in range(3) if x[j] != x[i]]
            for j in others:
                y = list(x)
                y[i], y[j] = y[j], y[i]
                prompt = (*x, symbols, *y)
                law[prompt] = law.get(prompt, 0) + 1 / (2 * len(allowed) * 3 * len(others))
    return law


def count_symbol(most):
    law = {}
    for c in range(most + 1):
        found = [x for x in words(3, 3) if x.count(2) == c]
        law |= {x: 1 / ((most + 1) * len(found)) for x in found}
    return law


def fill_blank(apart):
    """Which of five places are hidden, blanks at least `apart` places from one another, each wish granted with 1/4."""
    law = {}
    for wishes in product((False, True), repeat=5):
        p, hidden, last = 1.0, [], -apart
        for at, wish in enumerate(wishes):
            p *= 0.25 if wish else 0.75
            hidden.append(wish and at - last >= apart)
            last = at if hidden[-1] else last
        law[tuple(hidden)] = law.get(tuple(hidden), 0) + p
    return law


def copy(symbols):
    return even((symbols + 2, *x, symbols + 1) for x in words(symbols, 3))


def hinted(hints):
    """A run of markers from anywhere: three of so many, each before a symbol of two."""
    sep, bos = 2 + 5 + 1, 2 + 5 + 2
    return even((bos, 2 + s, x[0], 3 + s, x[1], 4 + s, x[2], sep) for s in range(hints - 2) for x in words(2, 3))


def substitute(symbols):
    to, sep, bos = symbols, symbols + 2, symbols + 3
    return even((bos, a, b, to, a, a, sep) for a, b in permutations(range(symbols), 2))


def associative_recall(keys):
    sep, bos = keys + 3, keys + 4
    return even(
        (bos, j, keys + u, k, keys + v, asked, sep)
        for j, k in permutations(range(keys), 2)
        for u, v in words(2, 2)
        for asked in (j, k)
    )


def flip_flop(pairs):
    law = {}
    choices = product((2, 3, 4), (0, 1))
    for middle in product(choices, repeat=pairs - 2):
        for first, end in product((0, 1), repeat=2):
            p, memory, text = 0.5, first, [2, first]
            for what, bit in middle:
                p *= {4: 0.6, 2: 0.2, 3: 0.2}[what] * (float(bit == memory) if what == 3 else 0.5)
                memory = bit if what == 2 else memory
                text += [what, bit]
            if end == memory and p > 0:
                law[(*text, 3, end)] = law.get((*text, 3, end), 0) + p
    return law


def modular_arithmetic(signs):
    return even((a, 5 + s, b) for a, s, b in product(range(5), range(signs), range(5)))


def missing_duplicate(half):
    return even(
        (*(2 if at == hole else (x + x)[at] for at in range(2 * half)), 3)
        for x in words(2, half)
        for hole in range(2 * half)
    )


LAWS = {
    "token_at_index(indices=2, symbols=2)": (4, token_at_index, 2),
    "index_of_token(indices=3, symbols=2)": (4, index_of_token, 3),
    "token_k_back(symbols=3)": (4, strings(3), 4),
    "pointer_back(reach=2, symbols=2)": (3, pointer_back, 2),
    "distance(reach=2, symbols=2)": (4, distance, 2),
    "before(symbols=2)": (4, before, 4),
    "same_order(symbols=2)": (3, same_order, 2),
    "count_symbol(most=2, symbols=2)": (3, count_symbol, 2),
    "fill_blank(hide=0.25)": (5, fill_blank, 3),
    "copy(symbols=5)": (3, copy, 5),
    "copy(variant='substitute', symbols=5)": (2, substitute, 5),
    "copy(hints=5, symbols=2)": (3, hinted, 5),
    "associative_recall(keys=3, values=2)": (2, associative_recall, 3),
    "flip_flop(p=0.6)": (8, flip_flop, 4),
    "reverse_string": (5, strings(2), 5),
    "duplicate_string": (5, strings(2), 5),
    "odds_first": (5, strings(2), 5),
    "even_pairs": (5, strings(2), 5),
    "parity_check": (5, strings(2), 5),
    "cycle_navigation": (3, strings(3), 3),
    "bucket_sort": (2, strings(5), 2),
    "modular_arithmetic": (4, modular_arithmetic, 3),
    "missing_duplicate_string": (5, missing_duplicate, 2),
}


@functools.cache
def prompts(text):
    task, n = tasks.parse(text), LAWS[text][0]
    batch = drawn(task, n, rows=ROWS, seed=11)
    tokens, prompt = batch.tokens, batch.prompt[0]
    if text.startswith("fill_blank"):
        return list(map(tuple, (tokens == 31).tolist()))
    assert (batch.prompt == prompt).all()
    return list(map(tuple, tokens[:, prompt].tolist()))


@pytest.mark.parametrize("law", LAWS)
def test_prompts_follow_the_stated_law_and_not_one_off_by_one(law):
    _, stated, bound = LAWS[law]
    assert p_value(prompts(law), stated(bound)) > 1e-3
    assert p_value(prompts(law), stated(bound + 1)) < 1e-9
    if bound > 2:
        assert p_value(prompts(law), stated(bound - 1)) < 1e-9


def test_every_task_has_a_law(name):
    assert any(tasks.parse(law).name == name for law in LAWS)


def test_the_numbers_of_fill_blank_start_anywhere():
    batch = drawn(tasks.parse("fill_blank(hide=1e-09)"), 6, rows=ROWS)
    starts = list(map(tuple, batch.tokens[:, :2].tolist()))
    assert p_value(starts, even(words(31, 2))) > 1e-3


def test_a_narrow_window_shows_a_blank_its_two_neighbours_alone():
    batch = drawn(tasks.parse("fill_blank(window=1, hide=0.5)"), 40, rows=64)
    for tokens, score in zip(batch.tokens, batch.score, strict=True):
        for t in np.flatnonzero(score):
            around = [d for d in range(-3, 4) if 0 <= t + d < 40 and tokens[t + d] != 31]
            assert around == [-1, 1]
    assert batch.score.sum() > 64


def test_the_unordered_neighbours_of_a_blank_give_half():
    """51.6 % is what a bag of the two neighbours can know of the number between them."""
    bags = {}
    for a, b in product(range(31), repeat=2):
        c = (2 * b + 3 * a + 1) % 31
        bags.setdefault(tuple(sorted((a, c))), []).append(b)
    best = sum(max(map(found.count, found)) for found in bags.values())
    np.testing.assert_allclose(best / 31**2, 0.516, atol=5e-4)
