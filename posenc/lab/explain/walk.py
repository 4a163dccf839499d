"""The steps of a solved problem in order: the matrices, their names, and where a scheme acts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from posenc.core.compose import normal_form, parts
from posenc.lab.explain.problem import Problem
from posenc.lab.explain.steps import DIGITS, Matrix, Step, dotted, indexed, number
from posenc.lab.explain.watched import AdditiveScore


@dataclass(frozen=True)
class Solved:
    """A problem, the scheme that it was solved under, and all intermediate numbers."""

    problem: Problem
    scheme: Any
    params: Any
    x: np.ndarray
    """The queries' tokens as they enter the projections; `sources` are those of the keys and values."""
    sources: np.ndarray
    arrays: dict[str, np.ndarray]

    def by(self, *hooks: str) -> str:
        """The schemes that have any of these hooks."""
        return ", ".join(s.name for s in parts(self.scheme) if not isinstance(s, AdditiveScore) and s.overrides(*hooks))


def walk(ours: Solved, usual: Solved | None, undivided: dict[str, np.ndarray] | None) -> list[Step]:
    """The steps of a solved problem; `usual` is the same without the scheme, `undivided` the same without √d_k."""
    walker = _Walk(ours, usual)
    steps = [*walker.inputs(), *walker.projected(), *walker.scores(), *walker.mixed(), *walker.joined()]
    return steps if undivided is None else [*steps, walker.undivided(undivided)]


class _Walk:
    def __init__(self, ours: Solved, usual: Solved | None):
        self.ours, self.usual, self.problem = ours, usual, ours.problem
        self.two = self.problem.memory is not None
        self.additive = self.problem.vector is not None
        self.heads, _, self.d = self.problem.query.shape
        self.row = len(ours.x) - 1 if self.problem.causal else 0
        """The query that the sheet follows: under a mask the last one, since the first sees only itself."""
        queried, attended = ("y", "x") if self.two else ("x", "x")
        self.queries, self.keys = indexed(queried, len(ours.x)), indexed(attended, len(ours.sources))
        self.n = str(self.row + 1).translate(DIGITS)

    def inputs(self) -> Iterator[Step]:
        """Embeddings, and position where it enters there."""
        problem = self.problem
        tokens = [Matrix("X", problem.x, self.queries, printed=True, marked=(self.row,))]
        if self.two:
            tokens = [
                Matrix("Y, the decoder's", problem.x, self.queries, printed=True, marked=(self.row,)),
                Matrix("X, the encoder's", problem.sources, self.keys, printed=True),
            ]
        yield Step("embeddings", "Embeddings: a row of numbers for each token", tuple(tokens))
        if by := self.ours.by("embed"):
            labels = [("Y", self.ours.x, problem.x)] * self.two + [("X", self.ours.sources, problem.sources)]
            after = tuple(
                Matrix(f"{label} with position", a, self.queries if label == "Y" else self.keys, without=b)
                for label, a, b in labels
            )
            yield Step(
                "input", "Position at the input", after, "The tokens themselves change, before any projection.", by=by
            )

    def projected(self) -> Iterator[Step]:
        """The learned matrices, and queries, keys and values."""
        names = {"query": "W_a", "key": "U_a"} if self.additive else {n: f"W_{n[0]}" for n in ("query", "key", "value")}
        weights = [
            Matrix(self.head(label, h), getattr(self.problem, name)[h], printed=True)
            for h in range(self.heads)
            for name, label in names.items()
        ]
        if self.problem.vector is not None:
            weights.append(Matrix("v", self.problem.vector[None], printed=True))
        yield Step("matrices", "Matrices that training would learn", tuple(weights))
        y = "Y" if self.two else "X"
        made = {"q": ("Q", f"Q = {y} W_q"), "k": ("K", "K = X W_k"), "v": ("V", "V = X W_v")}
        if self.additive:
            made = {"q": ("Q", "Q = Y W_a"), "k": ("K", "K = X U_a")}
        products = [self.tokens(n, label, h) for h in range(self.heads) for n, (label, _) in made.items()]
        x, q = self.ours.x[self.row], self.ours.arrays["q"][self.row, 0]
        columns = enumerate(self.problem.query[0].T[:3])
        working = [
            f"q{self.n}, feature {j + 1}: {dotted(x, w)} = {number(q[j], self.is_integral(q))}" for j, w in columns
        ]
        title = "Queries and keys" if self.additive else "Queries, keys and values"
        formula = ", ".join(f for _, f in made.values())
        yield Step("projections", f"{title}: {formula}", tuple(products), working=tuple(working))
        if by := self.ours.by("query", "key"):
            changed = [
                self.hooked(n, f"{n[0].upper()} with position", h) for h in range(self.heads) for n in ("query", "key")
            ]
            yield Step("query and key", "Position at the query and the key", tuple(changed), by=by)
        if by := self.ours.by("value"):
            changed = [self.hooked("value", "V with position", h) for h in range(self.heads)]
            yield Step("value", "Position at the value", tuple(changed), by=by)

    def scores(self) -> Iterator[Step]:
        """From products to weights."""
        yield from self.hidden() if self.additive else self.products()
        if by := self.ours.by("score"):
            yield Step("score", "Position at the score", self.pairs("score", "S"), by=by)
        seen = self.ours.arrays["visible"][0]
        if not seen.all():
            note = "The mask sets hidden scores to minus infinity, and e to that power is 0."
            masks = (
                Matrix(self.head("S", h), values, self.queries, self.keys, (self.row,))
                for h, values in enumerate(self.masked(self.ours))
            )
            yield Step("mask", "Mask", tuple(masks), note)
        if by := self.ours.by("normalize"):
            yield Step("weights", "The scheme's weights, in place of softmax", self.pairs("weights", "A"), by=by)
            return
        columns = (*self.keys, "sum")
        powers = tuple(
            Matrix(self.head("e^S", h), values, self.queries, columns, (self.row,))
            for h, values in enumerate(self.powers(self.ours))
        )
        matrices = [m for two in zip(powers, self.pairs("weights", "A"), strict=True) for m in two]
        e, a = self.powers(self.ours)[0][self.row], self.ours.arrays["weights"][0][self.row]
        pairs = zip(self.keys, e, a, strict=False)
        working = [f"weight of {name}: {number(x)} / {number(e[-1])} = {number(w)}" for name, x, w in pairs if x]
        note = "Each row of A adds up to 1: e to the power of each score, divided by the sum of its row."
        yield Step("softmax", "Softmax", tuple(matrices), note, tuple(working))

    def products(self) -> Iterator[Step]:
        arrays = self.ours.arrays
        q, k, dot = arrays["query"][0][self.row], arrays["key"][0], arrays["dot"][0][self.row]
        labels = zip(k, dot, indexed("k", len(k)), strict=True)
        working = [f"q{self.n}·{name} = {dotted(q, key)} = {number(s, self.is_integral(s))}" for key, s, name in labels]
        title = "Scores: every query times every key, Q Kᵀ"
        yield Step("scores", title, self.pairs("dot", "Q Kᵀ"), working=tuple(working))
        scale, root = normal_form(self.ours.scheme).scheme.scale(self.d), math.sqrt(self.d)
        if math.isclose(scale * root, 1):
            title, by = f"Scale: divide by √d_k = √{self.d} = {number(root, root.is_integer())}", ""
        else:
            title, by = f"Scale: multiply by {number(scale, scale.is_integer())}", self.ours.by("scale")
        note = "Products grow with the width of a head, and large scores make softmax choose one token."
        yield Step("scale", title, self.pairs("scaled", "S"), note, by=by)

    def hidden(self) -> Iterator[Step]:
        def features(solved: Solved) -> np.ndarray:
            return np.tanh(solved.arrays["query"][:, self.row, None] + solved.arrays["key"])

        def energies(solved: Solved) -> np.ndarray:
            q, k = (solved.arrays[n] for n in ("query", "key"))
            return np.tanh(q[:, :, None] + k[:, None]) @ self.problem.vector

        first = tuple(self.pairs(None, f"tanh(q{self.n} + k)", features, (), self.keys))
        yield Step("hidden", f"Hidden features: the first query with every key, tanh(q{self.n} + kⱼ)", first)
        yield Step(
            "scores", "Scores: v times the hidden features, S = v · tanh(qᵢ + kⱼ)", self.pairs(None, "S", energies)
        )

    def mixed(self) -> Iterator[Step]:
        """Values by their weights, and their sum."""

        def each(solved: Solved) -> np.ndarray:
            parts = solved.arrays["weights"][:, self.row, :, None] * solved.arrays["value"]
            return np.concatenate([parts, parts.sum(1, keepdims=True)], 1)

        symbol = "x" if self.additive else "v"
        rows = tuple(f"a·{name}" for name in indexed(symbol, len(self.keys)))
        parts = self.pairs(
            None, f"weights of {self.queries[self.row]} times values", each, (), (*rows, "sum"), (len(rows),)
        )
        yield Step("weighted values", f"Weighted values of the query of {self.queries[self.row]}", parts)
        formula = "A X, a context for each state" if self.additive else "A V"
        yield Step("output", f"Output: {formula}", self.pairs("mixed", "O", columns=()))
        if by := self.ours.by("value_bias"):
            summed = lambda s: s.arrays["mixed"] + s.arrays["value_bias"]  # noqa: E731
            yield Step("value_bias", "Position at the weighted values", self.pairs(None, "O", summed, ()), by=by)
        if by := self.ours.by("output"):
            yield Step("output hook", "Position at the output", self.pairs("out", "O", columns=()), by=by)

    def joined(self) -> Iterator[Step]:
        """Several heads side by side, and back to the width of a token."""
        if (w := self.problem.output) is None:
            return

        def beside(solved: Solved) -> np.ndarray:
            return np.concatenate(list(solved.arrays["out"]), -1)

        def matrix(label: str, of: Any) -> Matrix:
            without = None if self.usual is None else of(self.usual)
            return Matrix(label, of(self.ours), self.queries, marked=(self.row,), without=without)

        yield Step("heads", "Heads side by side", (matrix("[O₁ O₂]", beside),))
        made = (Matrix("W_o", w, printed=True), matrix("[O₁ O₂] W_o", lambda s: beside(s) @ w))
        yield Step("output projection", "Back to the width of a token: [O₁ O₂] W_o", made)

    def undivided(self, arrays: dict[str, np.ndarray]) -> Step:
        """Weights and output as introductions compute them, without √d_k."""
        made = [
            Matrix("A = softmax(Q Kᵀ)", arrays["weights"][0], self.queries, self.keys, (self.row,)),
            Matrix("A V", arrays["out"][0], self.queries, marked=(self.row,)),
        ]
        note = "Introductions leave √d_k out and may round the first row to 0, 0.5, 0.5, which gives 2, 7, 1.5."
        return Step("undivided", "The same without the division", tuple(made), note)

    def masked(self, solved: Solved) -> np.ndarray:
        return np.where(solved.arrays["visible"], solved.arrays["score"], -np.inf)

    def powers(self, solved: Solved) -> np.ndarray:
        e = np.exp(self.masked(solved))
        return np.concatenate([e, e.sum(-1, keepdims=True)], -1)

    def tokens(self, name: str, label: str, h: int) -> Matrix:
        """Queries, keys or values before any hook, a row for each token."""
        a, rows = self.ours.arrays[name][:, h], self.queries if name == "q" else self.keys
        without = None if self.usual is None else self.usual.arrays[name][:, h]
        marked = (self.row,) if name == "q" else ()
        return Matrix(self.head(label, h), a, indexed(name, len(rows)), marked=marked, without=without)

    def hooked(self, name: str, label: str, h: int) -> Matrix:
        """Return the numbers after the hooks; features that a scheme adds count as changed."""
        assert self.usual is not None, "hooks act only where there is a scheme to compare"
        a, b = self.ours.arrays[name][h], self.usual.arrays[name][h]
        without = np.pad(b, ((0, 0), (0, max(a.shape[1] - b.shape[1], 0))), constant_values=np.nan)[:, : a.shape[1]]
        marked = (self.row,) if name == "query" else ()
        return Matrix(self.head(label, h), a, indexed(name[0], len(a)), marked=marked, without=without)

    def pairs(self, name, label, of=None, columns=None, rows=None, marked=None) -> tuple[Matrix, ...]:
        """One matrix for each head, by name or by a function of the solution; rows are the queries by default."""
        get = of or (lambda solved: solved.arrays[name])
        rows, columns = rows or self.queries, self.keys if columns is None else columns
        marked = marked or ((self.row,) if rows is self.queries else ())
        values, without = get(self.ours), None if self.usual is None else get(self.usual)
        return tuple(
            Matrix(self.head(label, h), values[h], rows, columns, marked, None if without is None else without[h])
            for h in range(self.heads)
        )

    def head(self, label: str, h: int) -> str:
        return label if self.heads == 1 else f"{label}, head {h + 1}"

    @staticmethod
    def is_integral(values: np.ndarray) -> bool:
        return bool(np.all(np.abs(values - np.round(values)) < 1e-9))
