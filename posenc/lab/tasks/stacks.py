"""A stack changed by pushes and pops, after the deterministic context-free tasks of Delétang et al. (2023).

@inproceedings{deletang2023neural, title={Neural Networks and the {C}homsky Hierarchy},
  author={Del{\\'e}tang, Gr{\\'e}goire and Ruoss, Anian and others}, booktitle={ICLR}, year={2023}}
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from posenc.lab.tasks.draw import INT, between, integers, pick
from posenc.lab.tasks.layout import ended
from posenc.lab.tasks.strings import SIZES
from posenc.lab.tasks.task import Layout, Task

POP, PUSH = 2, 3


class StackManipulation(Task, name="stack_manipulation"):
    """Follow pushes and pops, then write the stack from its top (Delétang et al., 2023, table B.1).

    0 1 1 0 4 2 2 ? …  ->  1 1 0 2 · · · ·

    First a stack from its bottom, its height uniform on 1 … n - 1, then actions: 2 pops, 3 pushes 0 and 4 pushes 1, all
    equally likely. A pop of the empty stack is ignored. There are n + 1 slots: a 2 ends the answer and is scored with
    it; 0s fill the rest, which count in the loss, as in the paper, but not in the metric. Stratum "depth": the final
    height of the stack.
    """

    layout = Layout.TAG
    ability = "state"
    suites = ("chomsky", "state")
    alphabet, classes = 5, 3
    vocabulary = {POP: "pop", PUSH: "push0", PUSH + 1: "push1"}
    sizes = SIZES

    def tokens(self, n):
        return 2 * n + 1

    def make(self, key, n, n_max):
        split, bit, act = jax.random.split(key, 3)
        batch, i = n.shape[0], jnp.arange(n_max, dtype=INT)[None, :]
        height = between(split, 1, jnp.maximum(n - 1, 1))
        tokens = jnp.where(i < height[:, None], integers(bit, batch, n_max, 2), POP + integers(act, batch, n_max, 3))
        depth = _depth(jnp.where(i < n[:, None], tokens, PUSH))
        left = pick(depth, n - 1)
        stack = _stack(tokens, depth, n, left)
        return ended(self, n, self.tokens(n_max), tokens, n, stack, left, n + 1, {"depth": left})

    def answer(self, prompt):
        stack = []
        for token in prompt:
            if token != POP:
                stack.append(token % PUSH)
            elif stack:
                stack.pop()
        return [*reversed(stack), 2]


def _depth(tokens: Int[Array, "B L"]) -> Int[Array, "B L"]:
    """The height of the stack after each token: the sum of steps, raised by as much as it would have fallen below 0."""
    sums = jnp.cumsum(jnp.where(tokens == POP, -1, 1), axis=1, dtype=INT)
    return sums - jnp.minimum(jax.lax.cummin(sums, axis=1), 0)


def _stack(tokens: Int[Array, "B L"], depth: Int[Array, "B L"], n: Int[Array, " B"], left: Int[Array, " B"]):
    """The stack from its top. A pushed symbol stays if the height never falls below its own, which is its place."""
    i = jnp.arange(tokens.shape[1], dtype=INT)[None, :]
    inside = i < n[:, None]
    lowest = jax.lax.cummin(jnp.where(inside, depth, tokens.shape[1]), axis=1, reverse=True)
    stays = inside & (tokens != POP) & (depth == lowest)
    place = jnp.where(stays, left[:, None] - depth, tokens.shape[1])
    row = jnp.arange(tokens.shape[0], dtype=INT)[:, None]
    return jnp.zeros_like(tokens).at[row, place].set(tokens % PUSH, mode="drop")
