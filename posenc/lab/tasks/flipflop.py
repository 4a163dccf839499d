"""A memory of one bit among distractions (Liu et al., 2023, §3).

@inproceedings{liu2023exposing, title={Exposing Attention Glitches with Flip-Flop Language Modeling},
  author={Liu, Bingbin and Ash, Jordan T. and others}, booktitle={NeurIPS}, year={2023}}
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from posenc.lab.tasks.draw import INT, gather, integers, last_true, uniforms
from posenc.lab.tasks.layout import tagged
from posenc.lab.tasks.task import CAUSAL, Layout, Sizes, Task

WRITE, READ, IGNORE = 2, 3, 4  # the bits are the tokens 0 and 1


class FlipFlop(Task, name="flip_flop"):
    """At each read, name the bit written last (Liu et al., 2023, definition 1).

    w 1 i 0 r 1 i 1 w 0 r 0  ->  1 at the first r, 0 at the second       n even

    Pairs of an instruction and a bit: the first writes, the last reads, the others ignore with probability p and write
    or read with (1-p)/2 each. Bits are uniform except after a read. The paper's size is 512, trained with p = 0.8 and
    evaluated also with 0.98 and 0.1. A size counts tokens, so it is even, and 4 or more. With `noisy` the loss covers
    every next token; without, the bits read. The bits read alone are scored in both cases.
    """

    layout = Layout.TOKENS
    directions = CAUSAL
    metric = "error"
    ability = "state"
    suites = ("state", "quick")
    samples = ({"p": 0.1}, {"noisy": True})
    alphabet, choices = 5, 2
    vocabulary = {WRITE: "w", READ: "r", IGNORE: "i"}
    sizes = Sizes(4, (512, 512), (512, 1024), step=2)

    p: float = 0.8
    noisy: bool = False

    classes = property(lambda task: 5 if task.noisy else 2)

    def validate(self):
        super().validate()
        if not 0 <= self.p <= 1:
            raise ValueError(f"The setting 'p' of 'flip_flop' must be a probability, not {self.p}.")

    def make(self, key, n, n_max):
        which, bits = jax.random.split(key)
        pairs = n_max // 2
        u, bit = uniforms(which, n.shape[0], pairs), integers(bits, n.shape[0], pairs, 2)
        j = jnp.arange(pairs, dtype=INT)[None, :]
        what = jnp.where(u < self.p, IGNORE, jnp.where(u < self.p + (1 - self.p) / 2, WRITE, READ))
        what = jnp.where(j == 0, WRITE, jnp.where(j == n[:, None] // 2 - 1, READ, what))
        bit = jnp.where(what == READ, gather(bit, last_true(what == WRITE)), bit)
        x = jnp.stack([what, bit], axis=2).reshape(n.shape[0], 2 * pairs)
        following = jnp.roll(x, -1, axis=1)
        has_next = jnp.arange(2 * pairs, dtype=INT)[None, :] < n[:, None] - 1
        weight = has_next.astype(jnp.float32) if self.noisy else None
        return tagged(self, n, x, n, following, x == READ, weight)

    def answer(self, prompt):
        memory, read = None, []
        for what, bit in zip(prompt[::2], prompt[1::2], strict=True):
            if what == WRITE:
                memory = bit
            elif what == READ:
                read.append(memory)
        return read
