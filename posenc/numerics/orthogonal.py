"""Orthogonal matrices: random ones, and exponentials of skew-symmetric ones, orthogonal to rounding at every position.

On a CPU matrices are decomposed one after another. In jaxlib 0.10 a batched LAPACK call holds a thread while it waits
for other threads, so that two such calls at once on two cores deadlock. A call for one matrix does not wait, and gives
the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float


def skew(entries: Float[Array, "*maps n*(n-1)/2"], size: int) -> Float[Array, "*maps n n"]:
    """The skew-symmetric matrix with these numbers above its diagonal, row by row."""
    rows, columns = np.triu_indices(size, 1)
    upper = jnp.zeros((*entries.shape[:-1], size, size), entries.dtype).at[..., rows, columns].set(entries)
    return upper - upper.swapaxes(-1, -2)


def haar(normal: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """A uniformly random rotation or reflection, from a matrix of standard normal entries. It has no gradient."""
    q, r = _one_by_one(lambda a: tuple(jnp.linalg.qr(a)), normal)
    return q * jnp.sign(jnp.diagonal(r))[None, :]  # without this q is not uniform


@jax.custom_jvp
def turns(generator: Float[Array, "n n"], position: Float[Array, " L"]) -> Float[Array, "L n n"]:
    """exp(p S) for each position p of a skew-symmetric S, through the eigenvectors of S.

    A power series loses orthogonality far from position 0. The derivative is that of the exponential (Daleckii and
    Krein), finite where eigenvalues are equal; the derivative of the eigenvectors is not. Only the first derivative is
    defined there.
    """
    vectors, phase, _ = _spectrum(generator, position)
    return _back(vectors, _diagonal(phase))


@turns.defjvp
def _turns_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    (generator, position), (change, step) = primals, tangents
    vectors, phase, values = _spectrum(generator, position)
    half = position[:, None, None] * (values[:, None] - values[None, :])[None] / 2
    mean = _phase(position[:, None, None] * (values[:, None] + values[None, :])[None] / 2)
    divided = mean * _complex(position[:, None, None] * jnp.sinc(half / np.pi))
    inner = jnp.einsum("ba,bc,cd->ad", vectors.conj(), _complex(change), vectors, precision="highest")
    along = jax.lax.complex(jnp.zeros_like(values), values)[None, :] * phase * _complex(step)[:, None]
    return _back(vectors, _diagonal(phase)), _back(vectors, divided * inner[None] + _diagonal(along))


def _spectrum(generator: Array, position: Array) -> tuple[Complex[Array, "n n"], Complex[Array, "L n"], Array]:
    """Eigenvectors of S, e^{ipλ} at each position, and λ: S = V iλ V*."""
    hermitian = jax.lax.complex(jnp.zeros_like(generator), -generator)
    values, vectors = _one_by_one(lambda a: tuple(jnp.linalg.eigh(a)), hermitian)
    values = (values - values[::-1]) / 2  # exact pairs ±λ, without which the matrix is not real far from 0
    return vectors, _phase(position[:, None] * values[None, :]), values


def _one_by_one(decompose: Callable[[Array], tuple[Array, ...]], a: Array) -> tuple[Array, ...]:
    """A decomposition of one matrix after another on a CPU; GPUs and TPUs decompose the batch at once."""
    return jax.lax.platform_dependent(a, cpu=jax.custom_batching.sequential_vmap(decompose), default=decompose)


def _back(vectors: Complex[Array, "n n"], inner: Complex[Array, "L n n"]) -> Float[Array, "L n n"]:
    return jnp.einsum("ab,lbc,dc->lad", vectors, inner, vectors.conj(), precision="highest").real


def _diagonal(a: Complex[Array, "L n"]) -> Complex[Array, "L n n"]:
    return a[:, :, None] * jnp.eye(a.shape[-1], dtype=a.dtype)[None]


def _phase(angle: Array) -> Array:
    return jax.lax.complex(jnp.cos(angle), jnp.sin(angle))


def _complex(a: Array) -> Array:
    return jax.lax.complex(a, jnp.zeros_like(a))
