"""Products of matrices I - β w wᵀ, a block of them at a time, from matrix products alone (Bischof & Van Loan, 1987).

`jax.lax.linalg.triangular_solve` would do what is inverted here. In jaxlib 0.10 on a CPU its batches are calls of
LAPACK that hold a thread while they wait for other threads, so that two of them at once on two cores deadlock.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from posenc.numerics.precision import product
from posenc.numerics.sizes import are_numbers

BLOCK = 16
"""The most matrices of a block. Larger blocks take fewer steps, and lose digits where all w are alike."""


def correction(
    q: Float[Array, "Q d"],
    k: Float[Array, "K d"],
    w: Float[Array, "K d"],
    beta: Float[Array, " K"],
    visible: Bool[Array, "Q K"],
) -> Float[Array, "Q K"]:
    """Return what the matrices after key j, up to query i, take from its score: q_i · k_j - q_i · H_i … H_{j+1} k_j.

    H_l = I - β_l w_l w_lᵀ, in the order of the keys that query i sees. From the last key to the first,

        z_l = (q_i - t) · w_l,   t ← t + z_l β_l w_l

    and t · k_j is what is taken from key j. Within a block z (I + B) = (q - t) · w with B_ml = β_m w_m · w_l for m > l.
    t is a difference of two vectors no longer than q, so that its error adds up and does not grow. In the system of all
    keys at once errors grow with their number.
    """
    keys = k.shape[0]
    count = -(-keys // BLOCK)
    width = -(-keys // max(1, count)) if are_numbers(keys) else BLOCK
    extra = count * width - keys  # keys of zeros, before all others
    cut = lambda a: jnp.pad(a, ((extra, 0), (0, 0))).reshape(count, width, a.shape[1])  # noqa: E731
    k, w, seen = cut(k), cut(w), cut(visible.T).swapaxes(1, 2)
    change = cut(beta[:, None]) * w
    inverse = inverse_of_unit_triangle(product(change, w.swapaxes(1, 2)))
    within = jnp.tril(product(change, k.swapaxes(1, 2)), -1)

    def step(t: Array, block: tuple[Array, ...]) -> tuple[Array, Array]:
        k, w, seen, change, inverse, within = block
        z = product(jnp.where(seen, product(q, w.T), 0) - product(t, w.T), inverse)
        return t + product(z, change), product(t, k.T) + product(z, within)

    _, blocks = jax.lax.scan(step, jnp.zeros_like(q), (k, w, seen, change, inverse, within), reverse=True)
    return blocks.swapaxes(0, 1).reshape(q.shape[0], count * width)[:, extra:]


def inverse_of_unit_triangle(below: Float[Array, "*blocks n n"]) -> Float[Array, "*blocks n n"]:
    """(I + B)⁻¹, where B is what `below` holds under its diagonal; the rest of it is not read.

    Both halves of all blocks at once: [A 0; C D]⁻¹ = [A⁻¹ 0; -D⁻¹ C A⁻¹ D⁻¹], in log₂ n stages. The series of powers of
    B has as many, but its terms grow like 3ⁿ and cancel; here all that is multiplied is part of B or of the inverse.
    """
    size = below.shape[-1]
    if size < 2:
        return jnp.ones_like(below)
    half = -(-size // 2)
    square = [(0, 0)] * (below.ndim - 2) + [(0, 2 * half - size)] * 2
    below = jnp.pad(below, square)  # an odd size grows by one row of the identity
    first, last = inverse_of_unit_triangle(jnp.stack((below[..., :half, :half], below[..., half:, half:])))
    corner = -product(product(last, below[..., half:, :half]), first)
    return jnp.block([[first, jnp.zeros_like(first)], [corner, last]])[..., :size, :size]
