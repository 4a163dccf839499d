"""Any task, further back: the same examples behind fillers, so that only where they stand is new (ours).

What depends on distances alone does not notice; what depends on the index meets indices that it was not trained on.
"""

from __future__ import annotations

import jax.numpy as jnp

from posenc.lab.tasks.draw import INT, gather
from posenc.lab.tasks.measure import full
from posenc.lab.tasks.task import Layout, Sizes, Task


class Shifted(Task, name="shifted"):
    """Another task behind n fillers (ours): separates schemes that ignore a translation from those that count places.

    FILL FILL c a b  ->  – – – c a           token_k_back behind two fillers; n ≥ 0

    The size is the number of fillers, so that a curve over sizes is one over offsets: train on 1 to 8, evaluate on
    offsets never seen. The task within keeps the size `size`. It is written as a text, `shifted(task='copy', size=20)`,
    with all its settings, whatever was given. FILL is the token after the task's own, seen in training; a language
    model's fillers stand before its BOS. What is scored, its classes and its metric are those of the task.
    """

    samples = (
        {"task": "copy(symbols=5)", "size": 6},
        {"task": "token_at_index(indices=4, symbols=5)", "size": 9},
        {"task": "bucket_sort", "size": 5},
    )

    task: str = "token_k_back(k=1, symbols=16)"
    size: int = 32

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "task", full(self.inner))

    def validate(self):
        super().validate()
        if isinstance(self.inner, Shifted):
            raise ValueError("A shifted task is not shifted again; give the offset as the size.")
        if self.inner.layout is Layout.SEQ2SEQ:
            raise ValueError(f"{self.inner.name!r} has a source apart from its text, so no fillers stand before both.")
        self.inner.check_size(self.size)

    @property
    def inner(self) -> Task:
        """The task that its text names."""
        from posenc.lab.tasks import parse

        return parse(self.task)

    layout = property(lambda self: self.inner.layout)
    directions = property(lambda self: self.inner.directions)
    metric = property(lambda self: self.inner.metric)
    ability = property(lambda self: self.inner.ability)
    revision = property(lambda self: self.inner.revision)  # with one of its own, were these data ever to change
    alphabet = property(lambda self: self.inner.alphabet + 1)
    vocabulary = property(lambda self: self.inner.vocabulary | {self.inner.alphabet: "FILL"})
    classes = property(lambda self: self.vocab if self.layout is Layout.LM else self.inner.classes)
    choices = property(lambda self: self.inner.choices)
    cue = property(lambda self: self.inner.cue)
    sizes = Sizes(0, (1, 8), (12, 16, 32, 64, 128, 256))

    def tokens(self, n):
        return n + self.inner.tokens(self.size)

    def make(self, key, n, n_max):
        inner = self.inner
        batch = inner.make(key, jnp.full_like(n, self.size), self.size)
        i = jnp.arange(self.tokens(n_max), dtype=INT)[None, :] - n[:, None]
        before, inside = i < 0, (i >= 0) & (i < batch.tokens.shape[1])

        def moved(leaf, empty=0):
            return jnp.where(inside, gather(leaf, i), jnp.asarray(empty, leaf.dtype))

        pad = self.special("PAD")
        tokens = jnp.where(before, inner.alphabet, moved(_renamed(batch.tokens, inner.alphabet), pad))
        targets = moved(batch.targets)
        if inner.layout is Layout.LM:
            targets = jnp.pad(tokens[:, 1:], ((0, 0), (0, 1)), constant_values=pad)
        return batch._replace(
            tokens=tokens,
            targets=targets,
            score=moved(batch.score),
            weight=moved(batch.weight),
            valid=before | moved(batch.valid),
            size=n,
            prompt=before | moved(batch.prompt),
            coords={name: moved(leaf) for name, leaf in batch.coords.items()},
        )

    def answer(self, prompt):
        fill, text = self.alphabet - 1, self.layout is Layout.LM
        own = [token - (token > fill) for token in prompt if token != fill]
        return [token + (text and token >= fill) for token in self.inner.answer(own)]


def _renamed(tokens, alphabet):
    """The same tokens where FILL comes after the task's own: the specials move up by one."""
    return jnp.where(tokens >= alphabet, tokens + 1, tokens)
