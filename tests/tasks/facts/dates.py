"""Dates, by Python's own calendar."""

import datetime

from posenc.lab.tasks import dates
from tests.tasks.law import even


def spelled(text):
    return [dates.CHARACTERS.index(c) for c in text]


def written(years):
    """Every day of so many years, in the four ways to write it."""
    day, found = datetime.date(1900, 1, 1), []
    while day.year < 1900 + years:
        d, m, y, name = day.day, day.month, day.year, day.strftime("%b").lower()
        found += [f"{d} {name} {y}", f"{name} {d}, {y}", f"{d}/{m}/{y}", f"{y}.{m:02}.{d:02}"]
        day += datetime.timedelta(1)
    return even(tuple(spelled(text)) for text in found)


ANSWER = [*spelled("1997-02-03"), dates.DateFormat().special("EOS")]


LAWS = {"date_format": (3, written, 3)}

VARIED = ["date_format"]

PLANTED = [
    ("date_format", "dates:DateFormat.make",
     "jnp.asarray(ANSWER)", "jnp.asarray(ANSWER[[0, 1, 2, 3, 4, 8, 9, 7, 5, 6]])", "oracle"),
]  # fmt: skip
