"""Sparse weights in place of softmax, and the temperature that goes with them."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from posenc.core.scheme import Scheme, bias_dtype, by_settings
from posenc.numerics.precision import product
from posenc.numerics.temperatures import multiplied

STEPS = 40
"""The most Newton steps; half of them reach rounding for rows of a million keys."""


class Entmax(Scheme, name="entmax"):
    """α-entmax in place of softmax: weights of exactly 0 for low scores, whatever the number of keys (Peters et al.,
    2019; in attention, Vasylenko et al., 2025).

        a_ij = max((α - 1) s_ij - τ_i, 0)^{1 / (α - 1)},   τ_i such that a row sums to 1

    α = 2 is sparsemax, and α to 1 softmax, which 1 itself is not: leave the scheme out. τ is found by Newton's method
    from below, which is monotone for α up to 2; larger ones are refused. The derivative is that of the weights at their
    τ. Sums of a row need it whole, so tiles do not serve. ASEntmax is `asentmax + entmax`, on the heads that NAPE
    leaves without a bias: there are slopes of 0 in `alibi(slopes=(1.0, 0.5, 0.0, 0.0))`.

    ```bibtex
    @inproceedings{peters2019sparse,
      title = {Sparse Sequence-to-Sequence Models},
      author = {Peters, Ben and Niculae, Vlad and Martins, André F. T.},
      booktitle = {Proceedings of the 57th Annual Meeting of the Association for Computational Linguistics},
      year = {2019},
      eprint = {1905.05702},
    }
    @inproceedings{vasylenko2026long,
      title = {Long-Context Generalization with Sparse Attention},
      author = {Vasylenko, Pavlo and Pitorro, Hugo and Martins, André F. T. and Treviso, Marcos},
      booktitle = {International Conference on Learning Representations},
      year = {2026},
      eprint = {2506.16640},
    }
    ```
    """

    alpha: float = 1.5

    family = "context"
    extrapolates = "strongly, with asentmax and alibi (Vasylenko et al., 2025)"
    reads = "row"
    samples = ({"alpha": 2.0}, {"alpha": 1.25})

    def validate(self):
        if not 1 < self.alpha <= 2:
            raise ValueError(f"The alpha of 'entmax' is {self.alpha}; it must be above 1 and at most 2, such as 1.5.")

    def normalize(self, p, s, tile):
        return entmax(self.alpha, s, tile.visible)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def entmax(alpha: float, s: Float[Array, "Q K"], seen: Bool[Array, "Q K"]) -> Float[Array, "Q K"]:
    """Return the weights of the seen keys; a row that sees nothing is zero.

    Newton's steps end when no row moves by more than rounding.
    """
    power = 1 / (alpha - 1)
    z = jnp.where(seen, (alpha - 1) * s, -jnp.inf)
    top = z.max(-1, keepdims=True, initial=-jnp.inf)
    z = z - jnp.where(top > -jnp.inf, top, 0)

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        count, tau, _ = state
        above = jnp.maximum(z - tau, 0)
        slope = jnp.where(above > 0, _raised(jnp.where(above > 0, above, 1), power - 1), 0)
        gap = ((slope * above).sum(-1, keepdims=True) - 1) / jnp.maximum(power * slope.sum(-1, keepdims=True), 1)
        gap = jnp.where(gap > jnp.finfo(gap.dtype).eps, gap, 0)  # a row that has ended does not move with others
        return count + 1, tau + gap, gap

    def moves(state: tuple[Array, Array, Array]) -> Array:
        count, _, gap = state
        return (count < STEPS) & (gap > 0).any()

    start = jnp.full_like(top, -1.0)
    _, tau, _ = jax.lax.while_loop(moves, step, (jnp.zeros((), jnp.int32), start, jnp.ones_like(start)))
    weights = jnp.where(seen, _raised(jnp.maximum(z - tau, 0), power), 0)
    total = weights.sum(-1, keepdims=True)
    return weights / jnp.where(total > 0, total, 1)


def _raised(a: Float[Array, "*shape"], power: float) -> Float[Array, "*shape"]:
    """Return a power; a whole one by products, which cost a hundredth of a general one."""
    return jax.lax.integer_pow(a, round(power)) if abs(power - round(power)) < 1e-12 else a**power


@entmax.defjvp
def _entmax(alpha: float, of: tuple[Array, Array], by: tuple[Array, Any]) -> tuple[Array, Array]:
    (s, seen), (ds, _) = of, by
    weights = entmax(alpha, s, seen)
    share = jnp.where(weights > 0, jnp.where(weights > 0, weights, 1) ** (2 - alpha), 0)
    ds = jnp.where(weights > 0, ds, 0)
    total = share.sum(-1, keepdims=True)
    mean = (share * ds).sum(-1, keepdims=True) / jnp.where(total > 0, total, 1)
    return weights, share * (ds - mean)


class ASEntmax(Scheme, name="asentmax"):
    """The temperature of adaptive-scalable entmax: queries multiplied by a learned power of a logarithm (Vasylenko et
    al., 2025).

        q'_i = q_i (δ + β_i log(p_i + 2)^{γ_i})

    δ is `delta`. With `kind="adaptive"`, β = softplus(u_h · x_i) and γ = `spread` · tanh(w_h · x_i) read the query's
    own token; "learned" has a β and a γ for each head; "log" is β log(p_i + 2) alone, without δ. p counts from 0.
    Released code scales only the heads without slopes; here each head is scaled, and a β of 0 leaves one alone. β
    starts at 0 where it is learned, 1 / log L in "log" for the training length L, and u and w near 0: the authors'
    start was not in reach.

    ```bibtex
    @inproceedings{vasylenko2026long,
      title = {Long-Context Generalization with Sparse Attention},
      author = {Vasylenko, Pavlo and Pitorro, Hugo and Martins, André F. T. and Treviso, Marcos},
      booktitle = {International Conference on Learning Representations},
      year = {2026},
      eprint = {2506.16640},
    }
    ```
    """

    kind: Literal["adaptive", "learned", "log"] = "learned"
    delta: float = 1.0
    spread: float = 2.0

    family = "temperature"
    extrapolates = "strongly, with entmax and alibi (Vasylenko et al., 2025)"
    precedence = "temperature"
    contextual = by_settings(lambda self: self.kind == "adaptive")
    samples = ({"kind": "adaptive", "delta": 0.5, "spread": 1.0}, {"kind": "log"})

    def validate(self):
        if self.delta < 0 or self.spread <= 0:
            raise ValueError(
                f"'asentmax' has delta={self.delta} and spread={self.spread}; delta must be at least 0, spread above 0."
            )

    def init_head(self, key, dims):
        if self.kind == "adaptive":
            keys = jax.random.split(key)
            names = zip(("beta", "gamma"), keys, strict=True)
            return {name: 0.02 * jax.random.normal(k, (dims.width,)) for name, k in names}
        if self.kind == "log":
            return {"beta": 1 / jnp.log(jnp.float32(dims.trained + 1))}
        return {"beta": jnp.zeros(()), "gamma": jnp.ones(())}

    def locate(self, p, x, at, carry):
        if self.kind != "adaptive":
            return at.position, carry
        x = cast(Array, x)
        beta, gamma = (product(x, p[name]) for name in ("beta", "gamma"))
        return (at.position, jax.nn.softplus(beta), self.spread * jnp.tanh(gamma)), carry

    def query(self, p, q, info):
        exact = bias_dtype(q)
        position, *powers = info if self.kind == "adaptive" else (info, *(p[n] for n in ("beta", "gamma") if n in p))
        log = jnp.log(jnp.maximum(position, 0).astype(exact) + 2)
        beta, *gamma = (a.astype(exact) for a in powers)
        return multiplied(q, self.delta + beta * log ** gamma[0] if gamma else beta * log), info
