"""The floors are what can be computed by hand, and they see a target that stands one place off."""

import functools
import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom
from task_checks import every_text, some_sizes

from posenc import tasks
from posenc.tasks.floors import floors
from posenc.tasks.task import TASKS

ROWS = 4096


def most_frequent(symbols, n):
    """E[largest count] / n of n uniform symbols, from the exact law of the largest."""
    below = [1.0]
    for top in range(1, n + 1):
        # n! [z^n] (Σ_{c≤top} z^c / c!)^symbols / symbols^n is P(largest ≤ top); logs keep the factorials in range
        series = np.zeros(n + 1)
        series[0] = 1.0
        one = np.array([1 / math.factorial(c) if c <= top else 0.0 for c in range(n + 1)])
        for _ in range(symbols):
            series = np.convolve(series, one)[: n + 1]
        below.append(series[n] * math.factorial(n) / symbols**n)
    below[0] = 0.0
    return sum(1 - p for p in below[:n]) / n


def sorted_by_position(n):
    """Bucket sort: the best symbol at place i, where the sorted symbol is ≤ c if more than i of n draws are."""
    upto = binom.sf(np.arange(n)[:, None], n, np.arange(6)[None, :] / 5)
    return np.diff(upto, axis=1).max(axis=1).mean()


def arithmetic(n):
    length, values = n - 1 + n % 2, []
    signs = [range(5), ("+", "-", "*")]
    for text in itertools.product(*(signs[at % 2] for at in range(length))):
        values.append(eval("".join(map(str, text))) % 5)
    return max(map(values.count, range(5))) / len(values)


def walk(n):
    ends = [sum(steps) % 5 for steps in itertools.product((-1, 0, 1), repeat=n)]
    return max(map(ends.count, range(5))) / len(ends)


def copied(task, n):
    """One symbol throughout is right where one symbol is all there is; the whole answer, where it is one of few."""
    one = 1 / task.symbols
    if task.hints:
        return 0.0, one**n / (task.hints - n + 1)
    if task.variant == "random_twice":
        return 0.0, one if n == 1 else 0.0
    return (one, one) if n == 1 or task.variant != "random" else (0.0, 0.0)


# (task, n) -> prior, position, where they are not the uniform guess
KNOWN = {
    "token_at_index": lambda t, n: (most_frequent(t.symbols, n), 1 / t.symbols),
    "token_k_back": lambda t, n: (None, 1 / t.symbols),  # the row's last k are counted but never asked for
    "pointer_back": lambda t, n: (most_frequent(t.symbols, n), 1 / t.symbols),
    "associative_recall": lambda t, n: (most_frequent(t.values, n), 1 / t.values),
    "bucket_sort": lambda t, n: (0.2, sorted_by_position(n)),
    "even_pairs": lambda t, n: (1.0, 1.0) if n == 1 else (0.5, 0.5),
    "modular_arithmetic": lambda t, n: (arithmetic(n), arithmetic(n)) if n < 6 else None,
    "cycle_navigation": lambda t, n: (walk(n), walk(n)) if n < 9 else (0.2, 0.2),
    "copy": lambda t, n: copied(t, n),
}


def sizes_of(task):
    wanted = {"bucket_sort": [1, 2, 40], "modular_arithmetic": [1, 3, 5], "cycle_navigation": [1, 2, 40]}
    return wanted.get(task.name) or sorted({*some_sizes(task)[:2], min(40, task.sizes.train[1])})


MORE = [text for text in every_text() if text.startswith(("copy(", "fill_blank(", "flip_flop(noisy"))]


@pytest.mark.parametrize("blind", tasks.names() + MORE)
def test_floors_are_those_computed_by_hand(blind):
    task = tasks.parse(blind)
    sizes = sizes_of(task)
    for n, found in floors(task, sizes, rows=ROWS).items():
        prior, position = KNOWN.get(task.name, lambda t, n: (1 / t.choices,) * 2)(task, n)
        for name, expected in {"uniform": 1 / task.choices, "prior": prior, "position": position}.items():
            if expected is None or (name == "uniform" and task.metric == "exact"):
                continue
            if task.metric == "error":
                expected = 1 - expected
            spread = 4 * math.sqrt(expected * (1 - expected) / ROWS) + 1e-6
            assert abs(found[name] - expected) <= spread, (n, name, found[name], expected)
        assert list(found) == ["uniform", "prior", "position"] and all(type(v) is float for v in found.values())


def test_the_uniform_guess_of_an_exact_match_is_a_product():
    found = floors(tasks.parse("copy(symbols=3)"), [1, 4], rows=8)
    np.testing.assert_allclose([found[n]["uniform"] for n in (1, 4)], [1 / 3, 1 / 81], rtol=1e-6)


def test_position_alone_sorts_most_of_a_long_string():
    exact = [sorted_by_position(n) for n in (40, 100, 500)]
    np.testing.assert_allclose(exact, [0.7778, 0.8585, 0.9365], atol=1e-4)


def test_a_target_one_place_off_raises_the_floor(monkeypatch):
    cls = TASKS.find("bucket_sort")
    honest = floors(tasks.parse("bucket_sort"), [10], rows=ROWS)[10]
    make = cls.make

    def shifted(self, key, n, n_max):
        batch = make(self, key, n, n_max)
        return batch._replace(score=batch.valid, targets=batch.targets)  # the input is scored as well, as class 0

    monkeypatch.setattr(cls, "make", shifted)
    planted = floors(tasks.parse("bucket_sort"), [10], rows=ROWS)[10]
    assert planted["position"] > honest["position"] + 0.1 and planted["prior"] > honest["prior"] + 0.1


def test_floors_are_one_program(monkeypatch):
    cls, traced = TASKS.find("reverse_string"), []
    make = cls.make
    monkeypatch.setattr(cls, "make", functools.wraps(make)(lambda *a: traced.append(1) or make(*a)))
    floors(tasks.parse("reverse_string"), [3, 4, 5, 6], rows=16)
    assert len(traced) == 1


def test_floors_refuse_what_is_no_size():
    with pytest.raises(ValueError, match="has no size 2"):
        floors(tasks.parse("token_k_back(k=3)"), [2, 8])
    with pytest.raises(ValueError, match="at no size"):
        floors(tasks.parse("token_k_back(k=3)"), [])
