"""The winner leads, and by little."""

from collections import Counter

import numpy as np
import pytest

from posenc.lab import tasks
from tests.tasks.task_checks import drawn, rows


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_no_two_symbols_are_most_frequent(n):
    leads = []
    for prompt, said in rows(drawn(tasks.parse("mode"), n, rows=500)):
        (first, most), *rest = Counter(prompt[1:-1]).most_common(2)
        leads.append(most - (rest[0][1] if rest else 0))
        assert said[0] == first and leads[-1] >= 1
    assert n < 7 or np.mean(np.array(leads) == 1) > 0.5
