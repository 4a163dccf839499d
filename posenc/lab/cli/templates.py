"""The files that `posenc new` writes: a scheme or a task that works, and its test."""

SCHEME = '''\
"""{cls}: a penalty per head that grows with distance. Make it yours."""

from __future__ import annotations

import jax.numpy as jnp

from posenc import Scheme


class {cls}(Scheme, name="{name}"):
    """A learned penalty per head, linear in distance (whose idea, {year}, §1).

        s_ij - r_h |p_i - p_j|

    State what the settings do, how the parameters are initialized, and each difference from the authors' code.

    ```bibtex
    @misc{{{name}{year},
      title = {{What it is called}},
      author = {{Who had the idea}},
      year = {{{year}}},
    }}
    ```
    """

    start: float = 0.1
    """The initial value of r."""

    family = "linear"  # the family whose colour figures use
    reads = "distance"  # score adds what depends on tile.distance alone
    samples = ({{"start": 1.0}},)  # settings that `posenc check --samples` also checks

    def validate(self):
        if self.start < 0:
            raise ValueError(f"The setting 'start' of {name!r} must be at least 0, not {{self.start}}.")

    def init_head(self, key, dims):
        return {{"r": jnp.asarray(self.start, jnp.float32)}}

    def score(self, p, s, tile):
        return s - p["r"].astype(s.dtype) * jnp.abs(tile.distance).astype(s.dtype)
'''

SCHEME_TEST = '''\
"""{cls} passes the contract of schemes, with its defaults and its samples."""

import posenc
import pytest

from {name} import {cls}


@pytest.mark.parametrize("settings", [{{}}, *{cls}.samples], ids=str)
def test_it_passes_the_contract(settings):
    report = posenc.check({cls}(**settings))
    assert report.ok, str(report)
'''

TASK = '''\
"""{cls}: a string rotated by k places. Make it yours."""

from __future__ import annotations

import jax.numpy as jnp

from posenc.tasks import Layout, Sizes, Task, gather, index, integers, slots


class {cls}(Task, name="{name}"):
    """Rotate a string: write it from its k-th symbol on, then its first k symbols (whose idea, {year}).

    x₀ … x_{{n-1}} ? … ?  ->  x_k … x_{{n-1}} x₀ … x_{{k-1}}        x over `symbols`, n > k

    State what a size counts, how examples are drawn, and each difference from the paper.

    ```bibtex
    @misc{{{name}{year},
      title = {{What it is called}},
      author = {{Who had the idea}},
      year = {{{year}}},
    }}
    ```
    """

    layout = Layout.TAG  # the answer is written into empty slots after the input
    ability = "copying"  # what the task needs of positions; `posenc list tasks` has them
    least = {{"k": 1, "symbols": 2}}  # the smallest value of each setting
    samples = ({{"k": 3}},)  # settings that `posenc check --samples` also checks

    k: int = 1
    """How far the string is rotated."""
    symbols: int = 4
    """How many different symbols there are."""

    alphabet = classes = property(lambda task: task.symbols)
    sizes = property(lambda task: Sizes(task.k + 1, (task.k + 1, task.k + 20), (task.k + 30, task.k + 40)))

    def tokens(self, n):
        """The number of tokens of an example of size n: the string, and a slot for each symbol of the answer."""
        return 2 * n

    def make(self, key, n, n_max):
        """Examples on the device, one for each entry of n. It runs under jit, so it loops over nothing."""
        x = integers(key, n.shape[0], n_max, self.symbols)
        i = index(x) + self.k
        rotated = gather(x, jnp.where(i < n[:, None], i, i - n[:, None]))
        return slots(self, n, self.tokens(n_max), x, n, rotated, n)

    def answer(self, prompt):
        """The oracle: plain Python on one prompt, which shares no code with `make`."""
        return prompt[self.k :] + prompt[: self.k]
'''

TASK_TEST = '''\
"""{cls} passes the check of tasks, with its defaults and its samples, and answers an example by hand."""

import pytest

from posenc.tasks import check

from {name} import {cls}


@pytest.mark.parametrize("settings", [{{}}, *{cls}.samples], ids=str)
def test_it_passes_the_check(settings):
    report = check({cls}(**settings))
    assert report.ok, str(report)


def test_the_oracle_answers_an_example_by_hand():
    assert {cls}(k=1).answer([0, 1, 2]) == [1, 2, 0]
'''
