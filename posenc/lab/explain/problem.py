"""The problems solved by hand: the three inputs that introductions use, or small numbers from a seed."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace

import numpy as np

FORMS = ("single", "multi-head", "masked", "cross", "additive")
X = [[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]]
QUERY = [[[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]], [[0, 1, 0], [1, 0, 1], [1, 0, 0], [0, 0, 1]]]
KEY = [[[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]], [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0]]]
VALUE = [[[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]], [[1, 0, 0], [0, 0, 1], [0, 2, 0], [1, 0, 1]]]
OUTPUT = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1]]
STATES = [[0, 1, 0, 1], [1, 0, 2, 0]]
VECTOR = [1, 2, -1]
TOKENS, FEATURES, HEAD = 4, 6, 3
TOP = 0.9
"""The largest weight that a worksheet's softmax gives, so that one token never decides a row."""
EVEN = 1.2
"""The largest weight of a row is at least this many times an even share."""


@dataclass(frozen=True)
class Problem:
    """Tokens and matrices. `memory` is the sequence of the keys and values, if it is not that of the queries."""

    form: str
    x: np.ndarray
    query: np.ndarray  # [H, width, d], as the next two
    key: np.ndarray
    value: np.ndarray
    memory: np.ndarray | None = None
    output: np.ndarray | None = None  # [H · d, width], with several heads
    vector: np.ndarray | None = None  # additive attention's weights of the hidden features
    causal: bool = False
    seed: int | None = None
    trained: int | None = None  # the length to bind a scheme to, if half of the tokens is too short

    @property
    def sources(self) -> np.ndarray:
        """The tokens of the keys and values."""
        return self.x if self.memory is None else self.memory

    def wide(self, head: int) -> Problem:
        """Return the problem with wider heads; the added features are zero, so q·k and the values stay the same."""
        more = head - self.query.shape[-1]
        if not more:
            return self
        wider = {n: np.pad(getattr(self, n), ((0, 0), (0, 0), (0, more))) for n in ("query", "key", "value")}
        if self.output is not None:
            heads = self.output.reshape(len(self.query), -1, self.output.shape[-1])
            wider["output"] = np.pad(heads, ((0, 0), (0, more), (0, 0))).reshape(-1, self.output.shape[-1])
        if self.vector is not None:
            wider |= {"vector": np.pad(self.vector, (0, more)), "value": self.value}
        return replace(self, **wider)


def check_form(form: str, causal: bool, seed: int | None) -> None:
    """Refuse an unknown form, a causal form over two sequences, and a seed out of range."""
    if form not in FORMS:
        raise ValueError(f"{form!r} is not a form of attention; use {', '.join(FORMS)}.")
    if causal and form in ("cross", "additive"):
        raise ValueError(f"--causal needs a single sequence, but the form {form!r} has two; leave out --causal.")
    if seed is not None and not 0 <= seed < 2**32:
        raise ValueError(f"--seed is {seed}; use a whole number from 0 to {2**32 - 1}.")


def introduced(form: str = "single", causal: bool = False) -> Problem:
    """The numbers of introductions; a second head, a second sequence and W_o are ours."""
    check_form(form, causal, None)
    heads = 2 if form == "multi-head" else 1
    query, key, value = (_array(w)[:heads] for w in (QUERY, KEY, VALUE))
    return _shaped(form, _array(X), _array(STATES), query, key, value, _array(OUTPUT), _array(VECTOR), causal)


def random_problem(form: str = "single", causal: bool = False, seed: int = 0) -> Problem:
    """4 tokens of 6 features and heads of 3, in whole numbers small enough for pencil and paper.

    Drawn again until no token decides a row of the softmax alone and no two tokens are equal.
    """
    check_form(form, causal, seed)
    draw = random.Random(seed).random  # the one draw whose numbers Python promises to keep
    heads = 2 if form == "multi-head" else 1

    def random_array(values: tuple[int, ...], *shape: int) -> np.ndarray:
        return _array([values[int(draw() * len(values))] for _ in range(math.prod(shape))]).reshape(shape)

    while True:
        x, states = random_array((0, 0, 1, 1, 2), TOKENS, FEATURES), random_array((0, 1, 2), 2, FEATURES)
        query, key = (random_array((0, 0, 0, 1, 1, -1), heads, FEATURES, HEAD) for _ in range(2))
        value = random_array((0, 0, 1, 2), heads, FEATURES, HEAD)
        output, vector = random_array((0, 0, 1, -1), heads * HEAD, FEATURES), random_array((1, 2, -1), HEAD)
        problem = _shaped(form, x, states, query, key, value, output, vector, causal)
        if _easy(problem):
            return replace(problem, seed=seed)


def _shaped(form, x, states, query, key, value, output, vector, causal) -> Problem:
    two = form in ("cross", "additive")
    made = Problem(form, states if two else x, query, key, value, x if two else None, causal=causal or form == "masked")
    if form == "multi-head":
        made = replace(made, output=output)
    if form == "additive":  # the values are the tokens themselves, as in 2014
        made = replace(made, vector=vector, value=np.eye(x.shape[1])[None])
    return made


def _easy(problem: Problem) -> bool:
    """Tell whether the numbers suit a pencil: tokens differ, and every query divides its attention."""
    if len(np.unique(problem.sources, axis=0)) < len(problem.sources):
        return False
    q, k = problem.x @ problem.query, problem.sources @ problem.key
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if problem.vector is not None:
        s = np.tanh(q[:, :, None] + k[:, None]) @ problem.vector
    if problem.causal:
        s = np.where(np.tri(s.shape[-1], dtype=bool), s, -np.inf)[:, 1:]  # the first token sees itself alone
    a = np.exp(s - s.max(-1, keepdims=True))
    top = (a / a.sum(-1, keepdims=True)).max(-1)
    return bool(np.all(top <= TOP) and np.all(top >= EVEN / s.shape[-1]))


def _array(numbers) -> np.ndarray:
    return np.array(numbers, float)
