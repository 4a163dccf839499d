"""Selective RoPE: rotations by angles computed from the tokens and summed along the document."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from posenc.core.scheme import Scheme
from posenc.numerics import segment_scans
from posenc.numerics.precision import product, widened
from posenc.numerics.rotation import check_base, check_pairs, frequencies, rotate


class SelectiveRoPE(Scheme, name="selective_rope"):
    """RoPE by phases computed from each token and summed along the document (Movahedi et al., 2025).

        s_ij = (R(τ φ_i) q_i) · (R(τ φ_j) k_j) / √d,   φ_i = Σ_{l ≤ i} (conv(W x̂)_l + exp(b)) σ(g · x̂_l + c)

    φ has d/2 phases, and τ a temperature for each: base^(-2c / d), the frequencies of RoPE, or with `spectrum="rfa"`
    tan(π base c / (d - 2)) divided by the largest of them, for a base below 1. Learned `frequencies` start there. x̂ is
    x cut into one slice per head, each normalised to length 1 (the authors' code), so the number of heads must divide
    the width. W is a product of two matrices of inner size `rank`, the first shared by all heads. With rank 0 it is a
    full matrix that reads only the head's own slice, and its columns share one learned length. The convolution reads
    each token and the `kernel` - 1 before it in its document, separately for each phase, with `activation` after it.
    With kernel 0 it is the difference of neighbours, whose sum is the phase of the token alone. `bias` adds the term
    exp(b), `gate` the logistic factor; with a bias and W = 0 this is RoPE.

    The authors' experiments use rank 32. Their gates with an inner matrix, or with a value for each phase, are left
    out. The sums are kept in float32: an angle is accurate to the sum's size times 2⁻²³. Causal, as the authors'
    models.

    ```bibtex
    @inproceedings{movahedi2026selective,
      title = {Selective Rotary Position Embedding},
      author = {Movahedi, Sajad and Carstensen, Timur and Afzal, Arshia and Hutter, Frank and Orvieto, Antonio and
                Cevher, Volkan},
      booktitle = {International Conference on Learning Representations},
      year = {2026},
      eprint = {2511.17388},
    }
    ```
    """

    rank: int = 16
    kernel: int = 4
    activation: Literal["none", "silu"] = "none"
    gate: bool = False
    bias: bool = False
    spectrum: Literal["rope", "rfa"] = "rope"
    base: float = 500000.0
    frequencies: Literal["fixed", "learned"] = "fixed"

    family = "context"
    extrapolates = "strongly (Movahedi et al., 2025)"
    contextual = True
    limits = {
        "bidirectional": "its phases add up from a key to a later query",
        "cross": "its phases add up along one sequence",
    }
    samples = (
        {"rank": 3, "gate": True, "base": 100.0, "frequencies": "learned"},
        {"kernel": 0, "bias": True},
        {"rank": 0, "activation": "silu", "gate": True, "bias": True, "spectrum": "rfa", "base": 0.9},
    )

    def validate(self):
        for name in ("rank", "kernel"):
            if getattr(self, name) < 0:
                raise ValueError(
                    f"The setting {name!r} of 'selective_rope' is {getattr(self, name)}; it must be at least 0."
                )
        if self.activation != "none" and not self.kernel:
            raise ValueError(
                "'selective_rope' with kernel=0 has no activation; take kernel=4, or leave activation out."
            )
        if self.spectrum == "rope":
            check_base(self.name, self.base)
        elif not 0 < self.base < 1:
            raise ValueError(
                f"The base of 'rfa' temperatures is {self.base}; it must be above 0 and below 1, such as 0.9."
            )

    def bind(self, dims):
        self._fixed(dims.head)
        _check_slices(dims.width, dims.heads)
        return self

    def init(self, key, dims):
        p = {"down": _draw(key, self.rank, dims.width)} if self.rank else {}
        fixed = self.frequencies == "fixed"
        return p if fixed else p | {"temperature": jnp.asarray(self._fixed(dims.head), jnp.float32)}

    def init_head(self, key, dims):
        pairs = self._fixed(dims.head).size
        up, conv, gate = jax.random.split(key, 3)
        if self.rank:
            p = {"up": _draw(up, pairs, self.rank)}
        else:
            p = {"w": _draw(up, pairs, dims.width // dims.heads), "length": jnp.ones(())}
        if self.kernel:
            p["conv"] = _draw(conv, pairs, self.kernel)
        if self.bias:
            p["bias"] = jnp.zeros(pairs)
        return p | ({"gate": _draw(gate, dims.width), "gate_bias": jnp.zeros(())} if self.gate else {})

    def carry(self, dims):
        pairs = dims.head // 2
        return segment_scans.none((self.kernel or 2) - 1, pairs), segment_scans.start(pairs)

    def locate(self, p, x: Float[Array, "L D"], at, carry):
        exact = widened(x.dtype)
        p = {name: a.astype(exact) for name, a in p.items()}
        slices = _unit(x.astype(exact), at.heads)
        unit = slices.reshape(x.shape)
        if self.rank:
            phase = product(product(unit, p["down"].T), p["up"].T)
        else:
            length = jnp.sqrt(jnp.maximum((p["w"] ** 2).sum(-1), 1e-24))
            phase = product(jnp.take(slices, at.head, 1), p["w"].T) * (p["length"] / length)[None, :]
        near, past = segment_scans.recent(phase, at.segment, carry[0])  # [L, kernel, d/2]
        phase = (near * p["conv"].T[None]).sum(1) if self.kernel else near[:, 1] - near[:, 0]
        if self.activation == "silu":
            phase = jax.nn.silu(phase)
        if self.bias:
            phase = phase + jnp.exp(p["bias"])[None, :]
        if self.gate:
            phase = phase * jax.nn.sigmoid(product(unit, p["gate"]) + p["gate_bias"])[:, None]
        phases, so_far = segment_scans.total(phase, at.segment, carry[1])
        return phases, (past, so_far)

    def query(self, p, q, info):
        return self._rotate(p, q, info), ()

    def key(self, p, k, info):
        return self._rotate(p, k, info), ()

    def _rotate(self, p, x, phases):
        temperature = jnp.asarray(p.get("temperature", self._fixed(x.shape[-1])), phases.dtype)
        return rotate(x, phases * temperature[None, :], "half")

    def _fixed(self, head: int) -> np.ndarray:
        """The fixed temperatures of a head of this width; a `ValueError` where it cannot be cut into pairs."""
        check_pairs(self.name, head)
        if self.spectrum == "rope":
            return frequencies(head, self.base)
        if head < 4:
            raise ValueError(
                f"The lowest 'rfa' temperature is 0, so a head of {head} features would not turn; take at least 4."
            )
        tangent = np.tan(np.pi * self.base * np.arange(head // 2) / (head - 2))
        return tangent / tangent[-1]


def _draw(key: PRNGKeyArray, *shape: int) -> Float[Array, ...]:
    return 0.02 * jax.random.normal(key, shape)


def _unit(x: Float[Array, "L D"], heads: int) -> Float[Array, "L H D/H"]:
    """The features of each token, cut into a slice for each head and normalised to length 1."""
    _check_slices(x.shape[-1], heads)
    slices = x.reshape(x.shape[0], heads, -1)
    return slices * jax.lax.rsqrt((slices**2).sum(-1, keepdims=True) + 1e-6)


def _check_slices(width: int, heads: int) -> None:
    if width % heads:
        raise ValueError(
            f"'selective_rope' cuts the width into a slice for each head, and {heads} heads do not divide {width};"
            " choose a divisor."
        )
