"""Nested brackets of bounded depth (Hewitt et al., 2020, §2; Yao et al., 2021, §2).

@inproceedings{hewitt2020rnns, title={{RNN}s can Generate Bounded Hierarchical Languages with Optimal Memory},
  author={Hewitt, John and Hahn, Michael and Ganguli, Surya and others}, booktitle={EMNLP}, year={2020},
  eprint={2010.07515}}
@inproceedings{yao2021self, title={Self-Attention Networks Can Process Bounded Hierarchical Languages},
  author={Yao, Shunyu and Peng, Binghui and Papadimitriou, Christos and others}, booktitle={ACL}, year={2021},
  eprint={2105.11115}}
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from posenc.lab.tasks.draw import FLOAT, INT, integers, uniforms
from posenc.lab.tasks.layout import tagged
from posenc.lab.tasks.task import CAUSAL, Layout, Sizes, Task


class Dyck(Task, name="dyck"):
    """Name the kind of the next bracket if it is a closing one (Hewitt et al., 2020, §2; Yao et al., 2021, §2).

    ( [ ] )  ->  at [ the kind of ], at ] the kind of )       uniform over all words of n brackets, n even

    The opening brackets ( [ … are the tokens 0 … kinds-1, the closing ones the next `kinds`. Words are never deeper
    than `depth`, and kinds are uniform. The authors' samplers are not uniform over words; this one is. Sizes are even.
    With `full` the loss covers every next token and the classes are all brackets. Brackets after which only one is
    legal, those at the full depth, are scored, since an argmax cannot show whether a whole distribution is legal.
    """

    layout = Layout.TOKENS
    directions = CAUSAL
    ability = "state"
    suites = ("state",)
    least = {"kinds": 1, "depth": 1}
    samples = ({"kinds": 2, "depth": 3}, {"full": True, "kinds": 2, "depth": 3})

    kinds: int = 8
    depth: int = 10
    full: bool = False

    alphabet = property(lambda task: 2 * task.kinds)
    classes = property(lambda task: 2 * task.kinds if task.full else task.kinds)
    cue = property(lambda task: None if task.full else range(task.kinds))

    @property
    def vocabulary(self):
        opened = {kind: f"({kind}" for kind in range(self.kinds)}
        return opened | {self.kinds + kind: f"{kind})" for kind in range(self.kinds)}

    @property
    def sizes(self):
        least = 2 * self.depth if self.full else 2
        return Sizes(least, (least, max(64, least)), (66, 96, 128, 192, 256) if least <= 64 else (), step=2)

    def make(self, key, n, n_max):
        shape, kind = jax.random.split(key)
        rows, deepest = n.shape[0], min(self.depth, n_max // 2)  # reached if every bracket opens first
        rises = jnp.asarray(_rises(n_max, deepest), FLOAT).reshape(-1)
        u, kinds = uniforms(shape, rows, n_max), integers(kind, rows, n_max, self.kinds)
        level = jnp.arange(deepest, dtype=INT)[None, :]

        def step(state, now):
            d, stack = state
            t, chance, fresh = now
            left = jnp.maximum(n - t, 0)
            opens = chance < rises[left * (deepest + 1) + d]
            stack = jnp.where(opens[:, None] & (level == d[:, None]), fresh[:, None], stack)
            d = jnp.where(opens, d + 1, jnp.maximum(d - 1, 0))  # below 0 only after the end of the word
            top = jnp.sum(jnp.where(level == d[:, None], stack, 0), axis=1, dtype=INT)
            return (d, stack), (jnp.where(opens, fresh, self.kinds + top), d)

        start = jnp.zeros(rows, INT), jnp.zeros((rows, deepest), INT)
        _, (x, d) = jax.lax.scan(step, start, (jnp.arange(n_max, dtype=INT), u.T, kinds.T))
        return self._targets(n, x.T, d.T)

    def _targets(self, n, x, d):
        """Each bracket's target is the one after it."""
        following, has_next = jnp.roll(x, -1, axis=1), jnp.arange(x.shape[1], dtype=INT)[None, :] < n[:, None] - 1
        deepest = jnp.max(jnp.where(jnp.arange(x.shape[1], dtype=INT)[None, :] < n[:, None], d, 0), axis=1)
        strata = {"depth": deepest.astype(INT)}
        if self.full:
            return tagged(self, n, x, n, following, has_next & (d == self.depth), has_next.astype(FLOAT), strata)
        return tagged(self, n, x, n, following - self.kinds, has_next & (following >= self.kinds), None, strata)

    def answer(self, prompt):
        stack, answer = [], []
        for token, after in zip(prompt, prompt[1:], strict=False):
            if token < self.kinds:
                stack.append(token)
            else:
                stack.pop()
            if self.full and len(stack) == self.depth:
                answer.append(self.kinds + stack[-1])
            if not self.full and after >= self.kinds:
                answer.append(stack[-1])
        return answer


def _rises(length: int, depth: int) -> np.ndarray:
    """[length + 1, depth + 1]: the probability that a uniform word opens a bracket, by brackets left and depth.

    Paths down to 0 that stay within 0..depth are counted in whole numbers; only their quotient is rounded.
    """
    ways, table = [1] + [0] * depth, [[0.0] * (depth + 1)]
    for _ in range(length):
        padded = [0, *ways, 0]
        up, ways = padded[2:], [padded[d] + padded[d + 2] for d in range(depth + 1)]
        table.append([u / w if w else 0.0 for u, w in zip(up, ways, strict=True)])
    return np.array(table)
