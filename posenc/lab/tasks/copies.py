"""A text that copies itself: a source whose optimal predictor needs all of it, however long (ours).

A copy may be copied again, from either position. So no window holds all that the optimal predictor uses.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from posenc.lab.tasks.draw import FLOAT, INT, gather, uniforms
from posenc.lab.tasks.layout import continued
from posenc.lab.tasks.readers import exact_losses
from posenc.lab.tasks.task import CAUSAL, Layout, Sizes, Task

SYMBOLS = 16
LOOPS = 3.0
"""The ratio of `start` to `end` from which texts are loops of a few symbols."""


class Copies(Task, name="copies"):
    """Name the next symbol of a text that copies parts of itself (ours).

    0 5 2 0 5 2 1  ->  5 2 0 5 2 1 0           here `0 5 2` comes again

    At each place but the first a copy begins with probability `start`, unless one goes on: its first symbol is that of
    an earlier place, all as likely, and then it follows the text from there, until it ends with probability `end`
    before each further symbol. What is not copied has the base law, symbol k of 16 with weight 1 / (k + 1) (Zipf). The
    law of one symbol is this one everywhere.

    The score is the share of what the bag of symbols leaves to gain: 0 is the loss of the base law, 1 that of the sum
    over all ways in which the text may have copied itself. A reader of a window takes each symbol that is out of its
    sight to have the base law, and knows how long the text is.
    """

    layout = Layout.TOKENS
    directions = CAUSAL
    metric = "gain"
    ability = "language"
    next_token = True
    samples = ({"start": 0.05, "end": 0.2},)

    start: float = 0.1
    end: float = 0.1

    alphabet = classes = SYMBOLS
    sizes = Sizes(2, (64, 64), (128, 256, 512, 1024))

    def validate(self):
        super().validate()
        for name in ("start", "end"):
            if not 0 < (value := getattr(self, name)) <= 1:
                raise ValueError(f"The setting {name!r} of 'copies' must be above 0 and at most 1, not {value}.")
        if self.start > LOOPS * self.end:
            raise ValueError(
                f"With start={self.start} above {LOOPS:g} times end={self.end} the texts of 'copies' are loops of a few"
                " symbols; lower start, or raise end."
            )

    def make(self, key, n, n_max):
        keys = jax.random.split(key, 4)
        rows, length = n.shape[0], n_max + 1
        begins, ends, whence, what = (uniforms(k, rows, length) for k in keys)
        at = jnp.arange(length, dtype=INT)[None, :]
        back = 1 + jnp.minimum((whence * at.astype(FLOAT)).astype(INT), jnp.maximum(at - 1, 0))  # uniform on 1 … place

        def step(lag, draws):
            """Return how far back the copy reads; 0 if there is no copy."""
            place, begin, end, back = draws
            new = jnp.where((begin < self.start) & (place > 0), back, 0)
            lag = jnp.where((lag > 0) & (end >= self.end), lag, new)
            return lag, lag

        _, lags = jax.lax.scan(step, jnp.zeros(rows, INT), (at[0], begins.T, ends.T, back.T))
        below = jnp.asarray(np.cumsum(base_law())[:-1], FLOAT)
        source, reach = at - lags.T, 1
        while reach < length:  # to the place where a symbol was drawn, through copies of copies
            source, reach = gather(source, source), 2 * reach
        return continued(self, n, gather((what[:, :, None] >= below[None, None]).sum(2, dtype=INT), source))

    def answer(self, prompt):
        return prompt[1:]

    @property
    def unigram(self):
        return base_law()

    def losses(self, texts, window=None, places=None):
        law, unseen = base_law(), self._unseen(texts.shape[1], window)

        def probabilities(tokens, first):
            """A hidden state is "free", or a copy from d places back, and d stays while the copy goes on. Copies from
            before all that a reader ever sees say the same, so that of them the sum is enough. All numbers are relative
            to the base law."""
            rows, width = tokens.shape
            back, read = np.arange(1, width)[:, None], np.ascontiguousarray(tokens.T)
            free, lag = unseen[first, 0], np.ascontiguousarray(unseen[first, 1:width].T)
            far, each = 1 - free - lag.sum(0), np.zeros((rows, width))
            for i, token in enumerate(read):
                if i:
                    start = self.start * (free + self.end * (1 - free))
                    free, place = start * (1 / self.start - 1), first + i
                    lag *= 1 - self.end
                    lag += start / place if place.min() >= width - 1 else np.where(back <= place, start / place, 0)
                    far = (1 - self.end) * far + start * np.maximum(1 - (width - 1) / place, 0)
                    lag[:i] *= (read[:i][::-1] == token) / law[token]
                total = free + far + lag.sum(0)
                each[:, i] = law[token] * total
                free, far, lag = free / total, far / total, np.divide(lag, total, out=lag)
            return each[:, 1:]

        return exact_losses(texts, window, places, probabilities, lambda w: w)

    def _unseen(self, length: int, window: int | None) -> Float[np.ndarray, "firsts lags"]:
        """The law of the state at each index before any token was read: free, and a copy from 1, 2, … places back."""
        firsts, width = (1, length) if window is None else (length, window + 1)
        law = np.zeros((firsts, width))
        law[0, 0] = 1
        for place in range(1, firsts):
            free = law[place - 1, 0]
            start = self.start * (free + self.end * (1 - free))
            law[place] = (1 - self.end) * law[place - 1]
            law[place, 1 : place + 1] += start / place
            law[place, 0] = start * (1 / self.start - 1)
        return law


def base_law() -> Float[np.ndarray, " 16"]:
    """The law of a symbol that is not copied: Zipf's, the weight of the k-th being 1 / k."""
    weights = 1 / np.arange(1, SYMBOLS + 1)
    return weights / weights.sum()
