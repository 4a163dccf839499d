"""What is asked of a chain, and how long a polynomial is."""

import pytest

from posenc.lab import tasks
from tests.tasks.task_checks import drawn


@pytest.mark.parametrize("n", [2, 5, 6])
def test_a_variable_of_the_second_half_is_asked_for(n):
    batch = drawn(tasks.parse("lego"), n, rows=200)
    assert set(batch.strata["query"].tolist()) == set(range(-(-n // 2), n))
    for tokens, j in zip(batch.tokens, batch.strata["query"], strict=True):
        assert tokens[1 + 5 * n] == tokens[1 + 5 * j]


@pytest.mark.ci
def test_shuffled_clauses_are_all_there():
    task = tasks.parse("lego(permute=True)")
    batch, moved = drawn(task, 6, rows=50), 0
    for tokens in batch.tokens:
        told = {tokens[at]: tokens[at + 3] for at in range(1, 31, 5)}
        chain = [u for u in told if told[u] == 29]
        while len(chain) < 6:
            chain += [u for u in told if told[u] == chain[-1]]
        assert set(chain) == set(told)
        moved += list(told) != chain
    assert moved > 45


def test_the_longest_polynomial_is_as_long_as_stated():
    lengths = drawn(tasks.parse("polynomial"), 2, rows=500).valid.sum(axis=1)
    assert lengths.max() == tasks.parse("polynomial").tokens(2) and lengths.min() == lengths.max() - 3
