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
