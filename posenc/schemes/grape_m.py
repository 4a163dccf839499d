"""Contextual GRAPE-M: rotations by a phase that grows with each token, by a gate from its content."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from posenc.core.scheme import Scheme, bias_dtype
from posenc.numerics import segment_scans
from posenc.numerics.precision import product
from posenc.numerics.rotation import angles, check_base, check_pairs, frequencies, rotate


class GRAPEM(Scheme, name="grape_m"):
    """RoPE whose position is a sum of gates of the tokens before (contextual GRAPE-M; Zhang et al., 2026, and the
    authors' code).

        q'_i = R(-Φ_i θ) q_i,   k'_j = R(-Φ_j θ) k_j,   Φ_t = Σ_{l < t} σ((w · x_l + b) / omega_scale),   θ_c = e^{f_c}

    The heads of a layer share one phase unless `phase_per_head`, and one list of log-frequencies f, which start at
    RoPE's, unless `frequencies_per_head`. w starts at 0 and b at softplus⁻¹(10⁻³): the authors meant steps of 10⁻³
    through a softplus, but their code has a sigmoid, so steps start at 0.39; this follows the code. The sum restarts
    with each document and skips padding; positions are not used. With a constant gate this is RoPE with learned
    frequencies. So is the non-contextual, commuting GRAPE-M, which therefore has no name here. Pairs are i and i + d/2.
    The sum is kept in float32: a difference is accurate to the sum's size times 2⁻²³.

    ```bibtex
    @inproceedings{zhang2026group,
      title = {Group Representational Position Encoding},
      author = {Zhang, Yifan and Chen, Zixiang and Liu, Yifeng and Qin, Zhen and Yuan, Huizhuo and Xu, Kangping and
                Yuan, Yang and Gu, Quanquan and Yao, Andrew Chi-Chih},
      booktitle = {International Conference on Learning Representations},
      year = {2026},
      eprint = {2512.07805},
    }
    ```
    """

    omega_scale: float = 16.0
    phase_per_head: bool = False
    frequencies_per_head: bool = False
    base: float = 10000.0

    family = "context"
    extrapolates = "some (Zhang et al., 2026)"
    contextual = True
    limits = {
        "bidirectional": "its phases add up from a key to a later query",
        "cross": "its phases add up along one sequence",
    }
    samples = (
        {"phase_per_head": True, "frequencies_per_head": True, "omega_scale": 2.0},
        {"frequencies_per_head": True},
    )

    def validate(self):
        check_base("grape_m", self.base)
        if self.omega_scale <= 0:
            raise ValueError(
                f"The gates of 'grape_m' divide by omega_scale={self.omega_scale}; it must be above 0, such as 16."
            )

    def bind(self, dims):
        check_pairs("grape_m", dims.head)
        return self

    def init(self, key, dims):
        return self._parameters(dims, False)

    def init_head(self, key, dims):
        return self._parameters(dims, True)

    def _parameters(self, dims, per_head: bool):
        """The parameters of the layer, or of each head."""
        made = {}
        if self.phase_per_head == per_head:
            made |= {"w": jnp.zeros(dims.width), "b": jnp.asarray(math.log(math.expm1(1e-3)), jnp.float32)}
        if self.frequencies_per_head == per_head:
            made |= {"log_frequency": jnp.asarray(np.log(frequencies(dims.head, self.base)), jnp.float32)}
        return made

    def carry(self, dims):
        return segment_scans.start()

    def locate(self, p, x: Float[Array, "L D"], at, carry):
        exact = bias_dtype(x)
        gate = product(x, p["w"]) + p["b"].astype(exact)
        step = jax.nn.sigmoid(gate / jnp.asarray(self.omega_scale, exact))
        phase, carry = segment_scans.total(step, at.segment, carry)
        return phase - step, carry

    def query(self, p, q, info):
        return self._rotate(p, q, info), info

    def key(self, p, k, info):
        return self._rotate(p, k, info), info

    def _rotate(self, p: dict, x: Array, phase: Float[Array, " L"]) -> Array:
        return rotate(x, -angles(phase, jnp.exp(p["log_frequency"].astype(phase.dtype)), bias_dtype(x)), "half")
