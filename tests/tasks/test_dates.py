"""Days of two centuries, one by one: samples meet few leap days and no ends of centuries."""

import datetime

import jax.numpy as jnp
import numpy as np
import pytest

from posenc.lab.tasks import dates

FIRST = datetime.date(1900, 1, 1)


@pytest.mark.ci
def test_every_day_is_that_of_the_calendar():
    days = int(dates.START[-1])
    assert days == (datetime.date(2100, 1, 1) - FIRST).days
    found = np.stack(dates._date(jnp.arange(days, dtype=jnp.int32)), axis=1)
    every = [FIRST + datetime.timedelta(n) for n in range(days)]
    np.testing.assert_array_equal(found, [(day.year, day.month, day.day) for day in every])


def test_the_alphabet_holds_what_is_written_and_nothing_else():
    assert set(dates.CHARACTERS) == {*"0123456789 -/,.", *"".join(dates.MONTHS)}
    assert len(set(dates.CHARACTERS)) == len(dates.CHARACTERS)
    assert [datetime.date(2000, m + 1, 1).strftime("%b").lower() for m in range(12)] == dates.MONTHS
