"""The value of a counter after a program whose statements mostly do nothing (Golovneva et al., 2024, §4.2).

@article{golovneva2024contextual, title={Contextual Position Encoding: Learning to Count What's Important},
  author={Golovneva, Olga and Wang, Tianlu and Weston, Jason and Sukhbaatar, Sainbayar}, journal={arXiv:2405.18719},
  year={2024}}
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from posenc.lab.tasks.draw import FLOAT, INT, compact, gather, total, uniforms
from posenc.lab.tasks.layout import prompted
from posenc.lab.tasks.task import Layout, Sizes, Task

MOST = 10
SETS, INCREMENTS = 1, 7  # weights, relative to `passes` for statements that do nothing


class CountingCope(Task, name="counting_cope"):
    """Run a program of counters and print one of them (Golovneva et al., 2024, §4.2).

    a = 0 ; pass; a ++; pass; a ++; print a SEP  ->  2 EOS         n statements; `a = 0 ;` is four tokens, `a ++;` two

    Statements set a variable to 0 (weight 1), do nothing (`passes`) or increment a variable that was set (7).
    Impossible statements are drawn again: an increment where nothing is set, or beyond 10. So are programs that set
    nothing. The printed variable is uniform over those set. The cap makes 10 the commonest answer of long programs.

    The numbers 0 to 10 are the first tokens, then the variables, `=`, `;`, `++;`, `pass;`, `print`. The released code
    drops the left of programs above 512 tokens, sometimes including the printed variable; here nothing is cut, but a
    statement that would make a program longer than `tokens` counts as impossible. That limit is ten standard
    deviations above the mean, so hardly any program reaches it.
    """

    layout = Layout.LM
    ability = "counting"
    suites = ("state",)
    choices = MOST + 1
    sizes = Sizes(1, (3, 512), (640, 768, 1024))
    least = {"variables": 1, "passes": 1}
    samples = ({"variables": 5, "passes": 2},)

    variables: int = 3
    passes: int = 50

    alphabet = property(lambda task: MOST + 1 + task.variables + 5)

    @property
    def vocabulary(self):
        letters = [chr(97 + i) if i < 26 else f"v{i}" for i in range(self.variables)]
        return dict(enumerate([*letters, "=", ";", "++;", "pass;", "print"], MOST + 1))

    def tokens(self, n):
        return n + self._room(n) + 2 + 4

    def _room(self, n):
        """By how many tokens n statements may exceed n. Mean and variance per statement are largest at an end."""
        total, fewer = SETS + INCREMENTS + self.passes, SETS + self.passes
        mean = max((3 * SETS + INCREMENTS) / total, 3 * SETS / fewer)
        square = max((9 * SETS + INCREMENTS) / total, 9 * SETS / fewer)
        return min(3 * n, math.ceil(mean * n + 10 * math.sqrt(square * n)) + 9)

    def make(self, key, n, n_max):
        kind, who, begin, which = jax.random.split(key, 4)
        rows = n.shape[0]
        room = jnp.asarray([self._room(m) for m in range(n_max + 1)], INT)[n]
        draws = jnp.arange(n_max, dtype=INT), uniforms(kind, rows, n_max).T, uniforms(who, rows, n_max).T
        first = self._first(uniforms(begin, rows, 1)[:, 0], n)
        start = jnp.full((rows, self.variables), -1, INT), room
        run = jax.lax.scan(lambda state, now: self._statement(state, now, n, first), start, draws)
        (value, _), (length, variable) = run
        shown = _rank(value >= 0, uniforms(which, rows, 1)[:, 0])
        text, kept = self._text(length.T, variable.T, shown, n)
        answer = gather(value, shown[:, None])
        p, m = total(kept), jnp.ones_like(n)
        longest = self.tokens(n_max)
        return prompted(self, n, longest, compact(text, kept)[:, :longest], p, answer, m, {"value": answer[:, 0]})

    def _first(self, u, n):
        """The first statement that sets a variable, in programs that have one: a truncated geometric law."""
        fall = math.log(self.passes / (SETS + self.passes))
        within = -jnp.expm1(fall * n.astype(FLOAT))  # the probability that there is one
        return jnp.minimum(jnp.floor(jnp.log1p(-u * within) / fall).astype(INT), n - 1)

    def _statement(self, state, now, n, first):
        """One statement: its number of tokens, the variable it names, and the state after it."""
        (value, room), (t, u, v) = state, now
        may = (value >= 0) & (value < MOST)
        part = jnp.sum(may, axis=1, dtype=INT) / jnp.maximum(jnp.sum(value >= 0, axis=1, dtype=INT), 1)
        increment = jnp.where(room >= 1, INCREMENTS * part.astype(FLOAT), 0.0)
        setting = jnp.where(room >= 3, float(SETS), 0.0)
        u = u * (self.passes + setting + increment)
        length = jnp.where(u < self.passes, 1, jnp.where(u < self.passes + setting, 4, 2))
        length = jnp.where(t < first, 1, jnp.where(t == first, 4, length))
        length = jnp.where(t < n, length, 1).astype(INT)
        all_variables = jnp.ones_like(may)
        variable = _rank(jnp.where((length == 2)[:, None], may, all_variables), v)
        here = jnp.arange(self.variables, dtype=INT)[None, :] == variable[:, None]
        after = jnp.where(length[:, None] == 4, 0, value + 1)
        value = jnp.where(here & (length[:, None] > 1), after, value)
        return (value, room - (length - 1)), (length, variable)

    def _text(self, length, variable, shown, n):
        """Four columns for each statement and two for the question, and which of them are tokens."""
        base = MOST + 1 + self.variables
        names = MOST + 1 + variable
        first = jnp.where(length == 1, base + 3, names)
        second = jnp.where(length == 2, base + 2, base)
        columns = jnp.stack([first, second, jnp.zeros_like(first), jnp.full_like(first, base + 1)], axis=2)
        real = jnp.arange(4, dtype=INT)[None, None, :] < length[:, :, None]
        real &= (jnp.arange(length.shape[1], dtype=INT)[None, :] < n[:, None])[:, :, None]
        question = jnp.stack([jnp.full_like(shown, base + 4), MOST + 1 + shown], axis=1)
        text = jnp.concatenate([columns.reshape(len(n), -1), question], axis=1).astype(INT)
        return text, jnp.concatenate([real.reshape(len(n), -1), jnp.ones(question.shape, bool)], axis=1)

    def answer(self, prompt):
        base, value, text = MOST + 1 + self.variables, {}, prompt[1:-1]
        for name, after in zip(text, text[1:], strict=False):
            if after == base:
                value[name] = 0
            elif after == base + 2:
                value[name] += 1
        return [value[text[-1]], self.special("EOS")]


def _rank(among, u):
    """One column per row, uniform over the marked ones, from one uniform number."""
    count = jnp.sum(among, axis=1, dtype=INT)
    k = jnp.minimum(jnp.floor(u * count.astype(FLOAT)).astype(INT), count - 1)
    return jnp.argmax(jnp.cumsum(among, axis=1, dtype=INT) > k[:, None], axis=1).astype(INT)
