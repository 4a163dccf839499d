"""Any task at larger indices: the same examples after fillers, so that only their position is new (ours).

Schemes that depend on distances alone are not affected; those that depend on the index meet untrained indices.
"""

from __future__ import annotations

import jax.numpy as jnp

from posenc.lab.tasks.draw import INT, gather
from posenc.lab.tasks.measure import full
from posenc.lab.tasks.task import Layout, Sizes, Task


class Shifted(Task, name="shifted"):
    """Another task after n fillers (ours): separates translation-invariant schemes from those that use the index.

    FILL FILL c a b  ->  – – – c a           token_k_back after two fillers; n ≥ 0

    The size is the number of fillers, so a curve over sizes is one over offsets: train on 1 to 8, evaluate on unseen
    offsets. The inner task keeps the size `size`. It is written as a text, `shifted(task='copy', size=20)`, which is
    completed to all its settings. FILL is the token after those of the task, and occurs in training; a language model's
    fillers precede its BOS. Scored tokens, classes and metric are those of the inner task.
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
            raise ValueError("The task of 'shifted' cannot be shifted itself; set the whole offset as the size.")
        if self.inner.layout is Layout.SEQ2SEQ:
            raise ValueError(
                f"{self.inner.name!r} has a source besides its text, so fillers cannot precede both; take another."
            )
        if self.inner.next_token:
            raise ValueError(
                f"{self.inner.name!r} asks for the next token, so fillers would be asked for; take another."
            )
        self.inner.check_size(self.size)

    @property
    def inner(self) -> Task:
        """The inner task, which the setting `task` names."""
        from posenc.lab.tasks import parse

        return parse(self.task)

    layout = property(lambda self: self.inner.layout)
    directions = property(lambda self: self.inner.directions)
    metric = property(lambda self: self.inner.metric)
    ability = property(lambda self: self.inner.ability)
    revision = property(lambda self: self.inner.revision)  # to be combined with its own, should these data ever change
    alphabet = property(lambda self: self.inner.alphabet + 1)
    vocabulary = property(lambda self: self.inner.vocabulary | {self.inner.alphabet: "FILL"})
    classes = property(lambda self: self.vocab if self.layout is Layout.LM else self.inner.classes)
    choices = property(lambda self: self.inner.choices)
    cue = property(lambda self: self.inner.cue)
    sizes = Sizes(0, (1, 8), (12, 16, 32, 64, 128, 256))

    def tokens(self, n):
        return n + self.inner.tokens(self.size)

    def load_part(self, part):
        return self.inner.load_part(part)

    def make(self, key, n, n_max):
        return self._moved(self.inner.make(key, jnp.full_like(n, self.size), self.size), n, n_max)

    def take(self, data, key, n, n_max):
        return self._moved(self.inner.take(data, key, jnp.full_like(n, self.size), self.size), n, n_max)

    def _moved(self, batch, n, n_max):
        inner = self.inner
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
        inner_prompt = [token - (token > fill) for token in prompt if token != fill]
        return [token + (text and token >= fill) for token in self.inner.answer(inner_prompt)]


def _renamed(tokens, alphabet):
    """Return the tokens with FILL after those of the task: special tokens move up by one."""
    return jnp.where(tokens >= alphabet, tokens + 1, tokens)
