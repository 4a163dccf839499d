"""One answer from a whole prompt, as a language model gives it (Kazemnejad et al., 2023, §4): sums, values, signs.

Their data pass natural-language prompts through the tokenizer of T5; here each task's symbols are the vocabulary.

@inproceedings{kazemnejad2023impact, title={The Impact of Positional Encoding on Length Generalization in Transformers},
  author={Kazemnejad, Amirhossein and Padhi, Inkit and others}, booktitle={NeurIPS}, year={2023}}
@misc{zhang2022unveiling, title={Unveiling Transformers with {LEGO}: a synthetic reasoning task},
  author={Zhang, Yi and Backurs, Arturs and others}, year={2022}, eprint={2206.04301}}
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from posenc.lab.tasks.draw import (
    FLOAT,
    INT,
    between,
    compact,
    distinct,
    distinct_positions,
    gather,
    inside,
    integers,
    pick,
    put,
    total,
)
from posenc.lab.tasks.layout import prompted
from posenc.lab.tasks.task import Layout, Sizes, Task

BEYOND = tuple(range(9, 17))
MINUS, TIMES, POWER, PLUS, X, EQUALS, COMMA = range(10, 17)
"""The tokens of a polynomial, after the digits."""


class SumMod(Task, name="sum_mod"):
    """Add up digits, mod 10 (Kazemnejad et al., 2023, table 1: summation).

    9 4 2 8 SEP  ->  3 EOS             summands uniform on 1..modulus-1
    """

    layout = Layout.LM
    ability = "arithmetic"
    suites = ("kazemnejad",)
    sizes = Sizes(1, (4, 8), BEYOND)
    least = {"modulus": 2}
    samples = ({"modulus": 3},)

    modulus: int = 10

    alphabet = property(lambda task: task.modulus)

    def tokens(self, n):
        return n + 4

    def make(self, key, n, n_max):
        x = 1 + integers(key, n.shape[0], n_max, self.modulus - 1)
        rest = _rest(inside(x, n), self.modulus)
        return prompted(self, n, self.tokens(n_max), x, n, rest[:, None], jnp.ones_like(n))

    def answer(self, prompt):
        return [sum(prompt[1:-1]) % self.modulus, self.special("EOS")]


class ParityLM(Task, name="parity_lm"):
    """Decide whether the number of ones is even (Kazemnejad et al., 2023, table 1: parity).

    1 0 1 0 SEP  ->  yes EOS           no and yes are the tokens 2 and 3
    """

    layout = Layout.LM
    ability = "counting"
    suites = ("kazemnejad",)
    alphabet, choices = 4, 2
    vocabulary = {2: "no", 3: "yes"}
    sizes = Sizes(1, (3, 8), BEYOND)

    def tokens(self, n):
        return n + 4

    def make(self, key, n, n_max):
        x = integers(key, n.shape[0], n_max, 2)
        target = 3 - _rest(inside(x, n), 2)
        return prompted(self, n, self.tokens(n_max), x, n, target[:, None], jnp.ones_like(n))

    def answer(self, prompt):
        even = True
        for bit in prompt[1:-1]:
            even = even != (bit == 1)
        return [3 if even else 2, self.special("EOS")]


class Polynomial(Task, name="polynomial"):
    """The value of a polynomial, mod 10 (Kazemnejad et al., 2023, table 1: polynomial evaluation).

    x = 2 , 3 * x ^ 1 + - 1 * x ^ 2 SEP  ->  2 EOS          x in -2..2, factors in -3..3, powers in 0..3

    n is the number of terms. A negative number takes one more token, its sign, so texts of one size differ in length.
    The remainder is Python's: never negative.
    """

    layout = Layout.LM
    ability = "arithmetic"
    suites = ("kazemnejad",)
    alphabet, choices = COMMA + 1, 10
    vocabulary = {MINUS: "-", TIMES: "*", POWER: "^", PLUS: "+", X: "x", EQUALS: "=", COMMA: ","}
    sizes = Sizes(1, (4, 8), BEYOND)

    def tokens(self, n):
        return 7 * n + 8

    def make(self, key, n, n_max):
        at, factor, power = jax.random.split(key, 3)
        x = integers(at, n.shape[0], 1, 5) - 2
        c = integers(factor, n.shape[0], n_max, 7) - 3
        d = integers(power, n.shape[0], n_max, 4)
        place = jnp.arange(n_max, dtype=INT)[None, :]
        live = place < n[:, None]
        head = _beside(x, (X, True), (EQUALS, True), (MINUS, x < 0), (jnp.abs(x), True), (COMMA, True))
        letters = [(PLUS, live & (place > 0)), (MINUS, live & (c < 0)), (jnp.abs(c), live)]
        terms = _beside(c, *letters, (TIMES, live), (X, live), (POWER, live), (d, live))
        text, keep = (jnp.concatenate(pair, axis=1) for pair in zip(head, terms, strict=True))
        risen = jnp.where(d > 0, x, 1) * jnp.where(d > 1, x, 1) * jnp.where(d > 2, x, 1)
        rest = _rest(jnp.where(live, c * risen, 0), 10)
        m = jnp.ones_like(n)
        return prompted(self, n, self.tokens(n_max), compact(text, keep), total(keep), rest[:, None], m)

    def answer(self, prompt):
        point, terms = "".join("0123456789-*^+x=,"[t] for t in prompt[1:-1]).split(",")
        pairs = [map(int, term.split("*x^")) for term in terms.split("+")]
        return [sum(c * int(point[2:]) ** d for c, d in pairs) % 10, self.special("EOS")]


class Lego(Task, name="lego"):
    """Follow a chain of signs to one variable (Kazemnejad et al., 2023, table 1, LEGO; Zhang et al., 2022).

    a = - 1 ; b = - a ; b SEP  ->  + EOS

    n variables are distinct letters; each is 1 or the one before with a fair sign. The query is a variable of the
    second half, uniform from the ⌈n/2⌉th on, counted from 0. `permute` writes the clauses in random order. The released
    data query all of these for each list of clauses; here every row has its own clauses.
    """

    layout = Layout.LM
    ability = "state"
    suites = ("kazemnejad", "state")
    choices = 2
    least = {"letters": 2}
    samples = ({"permute": True},)

    permute: bool = False
    letters: int = 26

    @property
    def alphabet(self):
        return self.letters + 5  # = + - 1 ;

    @property
    def vocabulary(self):
        names = {i: chr(97 + i) if i < 26 else f"v{i}" for i in range(self.letters)}
        return names | dict(enumerate("=+-1;", self.letters))

    @property
    def sizes(self):
        beyond = tuple(n for n in BEYOND if n <= self.letters)
        return Sizes(2, (min(4, self.letters), min(8, self.letters)), beyond, self.letters)

    def tokens(self, n):
        return 5 * n + 5

    def make(self, key, n, n_max):
        letters_key, signs_key, query, shuffle = jax.random.split(key, 4)
        batch, (equals, plus, _, unit, end) = n.shape[0], range(self.letters, self.letters + 5)
        v = distinct(letters_key, jnp.zeros((batch, self.letters), FLOAT), n_max)
        minus = integers(signs_key, batch, n_max, 2)
        j = between(query, (n + 1) // 2, n - 1)
        before = jnp.concatenate([jnp.full_like(v[:, :1], unit), v[:, :-1]], axis=1)
        clauses = [v, jnp.full_like(v, equals), plus + minus, before, jnp.full_like(v, end)]
        if self.permute:
            order = distinct_positions(shuffle, n, n_max, n_max)
            clauses = [gather(column, order) for column in clauses]
        text = jnp.pad(jnp.stack(clauses, axis=2).reshape(batch, 5 * n_max), ((0, 0), (0, 1)))
        prompt = put(text, 5 * n, pick(v, j))
        target = plus + _turns(minus, j) % 2
        return prompted(self, n, self.tokens(n_max), prompt, 5 * n + 1, target[:, None], jnp.ones_like(n), {"query": j})

    def answer(self, prompt):
        *text, query = prompt[1:-1]
        equals, plus, minus, unit, end = range(self.letters, self.letters + 5)
        clauses = {text[at]: (text[at + 2], text[at + 3]) for at in range(0, len(text), 5)}
        positive = True
        while query != unit:
            sign, query = clauses[query]
            positive = positive == (sign == plus)
        return [plus if positive else minus, self.special("EOS")]


def _rest(x, modulus):
    """The sum of each row mod `modulus`, never negative."""
    return total(x) % modulus


def _turns(minus, j):
    """How many of the signs up to and including the jth are minus."""
    return pick(jnp.cumsum(minus, axis=1, dtype=INT), j)


def _beside(like, *pieces):
    """Columns side by side, item by item: each is a token, or one for each item, and where it is shown."""
    spread = [(jnp.broadcast_to(jnp.asarray(a, INT), like.shape), jnp.broadcast_to(b, like.shape)) for a, b in pieces]
    return tuple(jnp.stack(column, axis=2).reshape(like.shape[0], -1) for column in zip(*spread, strict=True))
