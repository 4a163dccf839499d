"""Dates in several formats to one format: a classic first exercise for attention between two sequences.

@inproceedings{bahdanau2015neural, title={Neural Machine Translation by Jointly Learning to Align and Translate},
  author={Bahdanau, Dzmitry and Cho, Kyunghyun and Bengio, Yoshua}, booktitle={ICLR}, year={2015}}
"""

from __future__ import annotations

import calendar
import datetime
import itertools

import jax
import jax.numpy as jnp
import numpy as np

from posenc.lab.tasks.draw import INT, between, gather
from posenc.lab.tasks.layout import translated
from posenc.lab.tasks.task import Layout, Sizes, Task

FIRST, YEARS = 1900, 200
CHARACTERS = "0123456789 -/,.abcdefgjlmnoprstuvy"
MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
POOL = "YyXxmMdDabc ,/.-"
"""The parts of a date: four digits of the year, two of the month and of the day, the month's name, and marks."""
FORMS = ("dD abc YyXx", "abc dD, YyXx", "dD/mM/YyXx", "YyXx.mM.dD")
WRITTEN = "YyXx-mM-dD"
WIDTH = 12


def _plans() -> tuple[np.ndarray, np.ndarray]:
    """For each form, with short and long days and months: the index into `POOL` of each character, and the length."""
    plan, many = np.zeros((len(FORMS), 2, 2, WIDTH), np.int32), np.zeros((len(FORMS), 2, 2), np.int32)
    for f, day, month in itertools.product(range(len(FORMS)), range(2), range(2)):
        text = FORMS[f]
        if f < 3:  # in the last form alone numbers are padded with zeros
            text = text.replace("d", "d" * day).replace("m", "m" * month)
        plan[f, day, month, : len(text)] = [POOL.index(c) for c in text]
        many[f, day, month] = len(text)
    return plan, many


DAYS = [calendar.monthrange(FIRST + year, month)[1] for year in range(YEARS) for month in range(1, 13)]
START = np.cumsum([0, *DAYS]).astype(np.int32)
"""The number of days before each month, and in all months."""
PLAN, LENGTH = _plans()
ANSWER = np.array([POOL.index(c) for c in WRITTEN], np.int32)
NAMES = np.array([[CHARACTERS.index(c) for c in name] for name in MONTHS], np.int32)
MARKS = np.array([CHARACTERS.index(c) for c in " ,/.-"], np.int32)


class DateFormat(Task, name="date_format"):
    """Write a date in the format of ISO 8601, from one of four formats (ours, after Bahdanau et al., 2015).

    3 feb 1997  or  feb 3, 1997  or  3/2/1997  or  1997.02.03;  BOS  ->  1997-02-03 EOS        day/month/year

    Tokens are characters; day and form are uniform. The size is the number of years from 1900 on, 200 at most: a run
    with length=40 trains on days to the end of 1939, and larger sizes contain years that it never saw.
    """

    layout = Layout.SEQ2SEQ
    ability = "copying"
    suites = ("translation",)
    alphabet = len(CHARACTERS)
    vocabulary = dict(enumerate(CHARACTERS.replace(" ", "␣")))
    choices = 11
    sizes = Sizes(1, (YEARS, YEARS), (), YEARS)

    def tokens(self, n):
        return WIDTH

    def make(self, key, n, n_max):
        date_key, form_key = jax.random.split(key)
        form = between(form_key, 0, jnp.full_like(n, len(FORMS) - 1))
        year, month, day = _date(between(date_key, 0, jnp.asarray(START)[12 * n] - 1))
        digits = [year // 1000, year // 100 % 10, year // 10 % 10, year % 10]
        digits += [month // 10, month % 10, day // 10, day % 10]
        marks = jnp.broadcast_to(jnp.asarray(MARKS)[None, :], (n.shape[0], len(MARKS)))
        pool = jnp.concatenate([jnp.stack(digits, 1), jnp.asarray(NAMES)[month - 1], marks], 1).astype(INT)
        long = form, (day > 9).astype(INT), (month > 9).astype(INT)
        source, s = gather(pool, jnp.asarray(PLAN)[long]), jnp.asarray(LENGTH)[long]
        answer = gather(pool, jnp.broadcast_to(jnp.asarray(ANSWER)[None, :], (n.shape[0], len(ANSWER))))
        m = jnp.full_like(n, len(ANSWER))
        return translated(self, n, self.tokens(n_max), source, s, answer, m, {"form": form})

    def answer(self, prompt):
        text = "".join(CHARACTERS[c] for c in prompt)
        form = "%d/%m/%Y" if "/" in text else "%Y.%m.%d" if "." in text else "%b %d, %Y" if "," in text else "%d %b %Y"
        written = datetime.datetime.strptime(text, form).strftime("%Y-%m-%d")
        return [*map(CHARACTERS.index, written), self.special("EOS")]


def _date(day):
    """Year, month (from 1) and day of the month (from 1) of a number of days since the first."""
    month = jnp.searchsorted(jnp.asarray(START), day, side="right").astype(INT) - 1
    return FIRST + month // 12, month % 12 + 1, day - jnp.asarray(START)[month] + 1
