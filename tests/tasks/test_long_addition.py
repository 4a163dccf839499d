"""How many digits the operands have, against the released lists of pairs."""

from itertools import product

import pytest

from posenc.lab import tasks
from tests.tasks.law import even
from tests.tasks.task_checks import drawn, p_value

ROWS = 20_000


def pairs(text, n):
    batch = drawn(tasks.parse(text), n, rows=ROWS, seed=3)
    return list(zip(batch.strata["digits_a"].tolist(), batch.strata["digits_b"].tolist(), strict=True)), batch


def released(low, n):
    """Pairs of the test set whose longer number has n digits."""
    return even(p for p in product(range(low, n + 1), repeat=2) if max(p) == n)


@pytest.mark.ci
@pytest.mark.parametrize("law", ["longest", "as_released"])
def test_beyond_training_the_longer_operand_has_n_digits(law):
    found, _ = pairs(f"addition_kazemnejad(law='{law}')", 9)
    assert p_value(found, released(4, 9)) > 1e-3
    for wrong in (released(3, 9), released(5, 9), released(4, 10), even(product(range(4, 10), repeat=2))):
        assert p_value(found, wrong) < 1e-9


@pytest.mark.ci
def test_in_training_as_released_both_are_independent():
    found, _ = pairs("addition_kazemnejad(law='as_released')", 8)
    assert p_value(found, even(product(range(4, 9), repeat=2))) > 1e-3
    assert p_value(found, released(4, 8)) < 1e-9
    assert p_value(found, even(product(range(4, 10), repeat=2))) < 1e-9


@pytest.mark.ci
def test_strata_count_the_digits_and_only_a_lone_zero_stands_in_front():
    found, batch = pairs("addition_kazemnejad(shortest=1)", 3)
    leads = set()
    for (a, b), tokens in zip(found[:2000], batch.tokens[:2000].tolist(), strict=True):
        assert tokens[1 + a] == 10 and tokens[2 + a + b] == 12 and 10 not in tokens[2 + a : 2 + a + b]
        leads |= {(a, tokens[1]), (b, tokens[2 + a])}
    assert leads == {(count, d) for count in (1, 2, 3) for d in range(10) if count == 1 or d > 0}
