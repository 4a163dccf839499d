"""Draws and scans that several tasks need. All draw position by position: row 0 of a draw is index 0 of every example.

In that order the first n values do not depend on how far the batch is padded. So an example is the same in every
bucket. Every dtype is stated: examples must not change when someone enables 64-bit types.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

INT, FLOAT = jnp.int32, jnp.float32


def integers(key: PRNGKeyArray, batch: int, length: int, high: int) -> Int[Array, "B L"]:
    """Uniform on 0..high-1."""
    return jax.random.randint(key, (length, batch), 0, high, INT).T


def between(key: PRNGKeyArray, low: int | Int[Array, " B"], high: Int[Array, " B"]) -> Int[Array, " B"]:
    """One number per row, uniform on low..high, both included."""
    return jax.random.randint(key, high.shape, low, high + 1, INT)


def uniforms(key: PRNGKeyArray, batch: int, length: int) -> Float[Array, "B L"]:
    """Uniform on [0, 1)."""
    return jax.random.uniform(key, (length, batch), FLOAT).T


def distinct(key: PRNGKeyArray, logits: Float[Array, "B S"], k: int) -> Int[Array, "B k"]:
    """k draws without replacement with weights exp(logits), in drawing order; any first j of them are j such draws."""
    noise = jax.random.gumbel(key, logits.shape[::-1], FLOAT).T
    return jax.lax.top_k(logits + noise, k)[1].astype(INT)


def distinct_positions(key: PRNGKeyArray, n: Int[Array, " B"], k: int, length: int) -> Int[Array, "B k"]:
    """k distinct indices below n, in drawing order."""
    within = jnp.arange(length, dtype=INT)[None, :] < n[:, None]
    return distinct(key, jnp.where(within, 0.0, -jnp.inf).astype(FLOAT), k)


def put(x: Int[Array, "B L"], at: Int[Array, " B"], value: int | Int[Array, " B"]) -> Int[Array, "B L"]:
    """x with one value written into each row, at the given index."""
    value = jnp.broadcast_to(jnp.asarray(value, INT), at.shape)
    return jnp.where(jnp.arange(x.shape[1], dtype=INT)[None, :] == at[:, None], value[:, None], x)


def pick(x: Int[Array, "B L"], at: Int[Array, " B"]) -> Int[Array, " B"]:
    """The entry of each row at the given index."""
    return jnp.take_along_axis(x, at[:, None], axis=1)[:, 0]


def gather(x: Int[Array, "B L"], where: Int[Array, "B M"]) -> Int[Array, "B M"]:
    """The entries of each row at these indices; an index outside gives the nearest entry, which the caller masks."""
    return jnp.take_along_axis(x, jnp.clip(where, 0, x.shape[1] - 1), axis=1)


def index(x: Shaped[Array, "B L"]) -> Int[Array, "B L"]:
    """The index of each entry in its row."""
    return jnp.broadcast_to(jnp.arange(x.shape[1], dtype=INT)[None, :], x.shape)


def inside(x: Int[Array, "B L"], n: Int[Array, " B"]) -> Int[Array, "B L"]:
    """The first n entries of each row; zeros follow."""
    return jnp.where(jnp.arange(x.shape[1], dtype=INT)[None, :] < n[:, None], x, 0)


def last_true(flags: Bool[Array, "B L"]) -> Int[Array, "B L"]:
    """For each index, the last one up to and including it at which the flag is set; -1 before the first."""
    return jax.lax.cummax(jnp.where(flags, index(flags), -1), axis=1)


def total(x: Int[Array, "B L"]) -> Int[Array, " B"]:
    """Row sums that stay int32."""
    return jnp.sum(x, axis=1, dtype=INT)


def compact(x: Int[Array, "B L"], keep: Bool[Array, "B L"]) -> Int[Array, "B L"]:
    """The kept entries of each row moved to its front, in order, then zeros; `total(keep)` is their number."""
    slot = jnp.where(keep, jnp.cumsum(keep, axis=1, dtype=INT) - 1, x.shape[1])  # beyond the row where dropped
    row = jnp.arange(x.shape[0], dtype=INT)[:, None]
    return jnp.zeros_like(x).at[row, slot].set(x, mode="drop")
