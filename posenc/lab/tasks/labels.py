"""Labels sorted by the numbers they stand for.

@inproceedings{mcleish2024transformers, title={Transformers Can Do Arithmetic with the Right Embeddings},
  author={McLeish, Sean and Bansal, Arpit and others}, booktitle={NeurIPS}, year={2024}, eprint={2405.17399}}
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from posenc.lab.tasks import coupling
from posenc.lab.tasks.digits import TEN, Other, check_other, counts, number, ways
from posenc.lab.tasks.draw import INT, between, gather
from posenc.lab.tasks.layout import prompted
from posenc.lab.tasks.task import Layout, Sizes, Task

COLON, COMMA, LABELS = TEN, TEN + 1, TEN + 2
CHUNK = 9  # so many digits fit in 31 bits together


class SortLabels(Task, name="sort_labels"):
    """Name the labels from the smallest number to the largest (McLeish et al., 2024).

    A : 7 3 , B : 5 , C : 0 2 1 SEP B , A , C EOS        the numbers are 37, 5 and 120

    Numbers are reversed and have a uniform number of digits of 1 … d, the highest not 0; equal numbers keep their
    order. Labels are consecutive ones of `labels` symbols, cyclically, from a random start. SEP is their =. The answer,
    with its commas, and EOS are scored. n is the larger of the list's length and d; the smaller is drawn as in the
    paper, where all pairs are equally likely; both are strata. `other` fixes it: the list has n entries, and d is n
    ("same") or that number. Provides "digit", a digit's place in its number. The released labels include the colon and
    the comma, and lists start with the first label twice as often as with others; here labels are separate tokens and
    all starts are equally likely.
    """

    layout = Layout.LM
    ability = "sorting"
    suites = ("arithmetic",)
    least = {"labels": 1}
    samples = ({"other": 2, "labels": 70}, {"other": "same"})

    labels: int = 102
    other: Other = "any"

    alphabet = property(lambda task: LABELS + task.labels)
    vocabulary = property(lambda task: {COLON: ":", COMMA: ","} | {LABELS + i: f"L{i}" for i in range(task.labels)})
    choices = property(lambda task: task.labels + 1)

    def validate(self):
        super().validate()
        check_other(self, self.other)

    @property
    def sizes(self):
        beyond = tuple(n for n in (11, 15, 20, 25, 30) if n <= self.labels)
        return Sizes(1, (1, min(10, self.labels)), beyond, self.labels)

    def ways(self, n):
        return ways(n, 2, self.other)

    def tokens(self, n):
        return n * (3 + self._digits(n)) - 1 + 2 * n - 1 + 3

    def _digits(self, n):
        return self.other if isinstance(self.other, int) else n

    def make(self, key, n, n_max):
        pair, start, counts_key, words = jax.random.split(key, 4)
        length, most = counts(pair, n, 2, self.other)
        keys = jax.vmap(jax.random.fold_in, (None, 0))(words, jnp.arange(n_max))
        entry = jnp.arange(n_max, dtype=INT)[None, :]
        count = jax.random.randint(counts_key, (n_max, n.shape[0]), 1, 1 + most[None, :], INT)
        top = self._digits(n_max)
        values = jax.vmap(lambda k, c: number(k, c, top, zero=False))(keys, count).swapaxes(0, 1)
        count = jnp.where(entry < length[:, None], count.T, 0)
        labels = LABELS + (between(start, 0, jnp.full_like(n, self.labels - 1))[:, None] + entry) % self.labels

        total = self.tokens(n_max)
        prompt, p = _listed(labels, count, values, length, total)
        j = jnp.arange(2 * n_max, dtype=INT)[None, :]
        answer = jnp.where(j % 2 == 1, COMMA, gather(gather(labels, _order(values, entry < length[:, None])), j // 2))
        batch = prompted(self, n, total, prompt, p, answer, 2 * length - 1, {"length": length, "digits": most})
        return batch._replace(coords=batch.coords | {"digit": coupling.digits(batch.prompt & (batch.tokens < TEN))})

    def answer(self, prompt):
        items, item = [], []
        for token in [*prompt[1:-1], COMMA]:
            if token == COMMA:
                label, _, *word = item
                items.append((int("".join(map(str, reversed(word)))), label))
                item = []
            else:
                item.append(token)
        answer = []
        for _, label in sorted(items, key=lambda pair: pair[0]):
            answer += [label, COMMA]
        return answer[:-1] + [self.special("EOS")]


def _order(values, listed):
    """The indices of entries from the smallest number to the largest, then of those beyond the list."""
    width = -values.shape[2] % CHUNK
    chunks = jnp.pad(values, ((0, 0), (0, 0), (0, width))).reshape(*values.shape[:2], -1, CHUNK)
    parts = jnp.sum(chunks * TEN ** jnp.arange(CHUNK, dtype=INT)[None, None, None, :], axis=-1, dtype=INT)
    keys = [(~listed).astype(INT), *(parts[:, :, c] for c in reversed(range(parts.shape[2])))]
    entry = jnp.broadcast_to(jnp.arange(values.shape[1], dtype=INT)[None, :], values.shape[:2])
    return jax.lax.sort((*keys, entry), dimension=1, num_keys=len(keys), is_stable=True)[-1]


def _listed(labels, count, values, length, total):
    """The text of the list, and its length: each entry is a label, a colon, its digits and a comma."""
    entry = jnp.arange(count.shape[1], dtype=INT)[None, :]
    wide = jnp.where(entry < length[:, None], count + 3, 0)
    end = jnp.cumsum(wide, axis=1, dtype=INT)
    begins = jnp.where(entry < length[:, None], end - wide, total)
    row = jnp.arange(count.shape[0], dtype=INT)[:, None]
    marks = jnp.zeros((count.shape[0], total), INT).at[row, begins].add(1, mode="drop")
    which = jnp.cumsum(marks, axis=1, dtype=INT) - 1
    within = jnp.arange(total, dtype=INT)[None, :] - gather(begins, which)
    digit = gather(values.reshape(count.shape[0], -1), which * values.shape[2] + within - 2)
    comma = within == gather(wide, which) - 1
    text = jnp.select([within == 0, within == 1, comma], [gather(labels, which), COLON, COMMA], digit)
    return text, end[:, -1] - 1
