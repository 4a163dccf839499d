"""PaTH: the tokens between key and query each change the key by a matrix much like a reflection."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from posenc.core.scheme import Scheme, bias_dtype
from posenc.numerics import segment_scans
from posenc.numerics.householder import correction
from posenc.numerics.precision import product, widened


class PaTH(Scheme, name="path"):
    """Each token between key and query changes the key by a rank-one matrix, much like a reflection (Yang et al., 2025,
    §2).

        s_ij = q_i · H_i H_{i-1} … H_{j+1} k_j / √d,   H_l = I - β_l w_l w_lᵀ,   β_l = 2 σ(b_h · x_l + c_h)

    w has length 1. It is x through a matrix of `rank` rows that the heads share, then a matrix for each head, then a
    convolution over each token and the `kernel` - 1 before it in its document. The authors' code has a silu after the
    convolution, which the paper does not mention: that is `activation="none"`. Where heads share keys, the authors'
    code shares w and β among them and uses a full matrix; here each query head has its own.

    `forget` adds the gates of FoX, Σ_{l = j+1 … i} log σ(f_h · x_l + e_h): "unscaled" as in the paper (PaTH-FoX), which
    equals `path + fox`, and "scaled" as in the authors' code, which also divides the sum by √d.

    A row of scores is computed from the last key to the first, a block of keys at a time (§3). Stored keys are never
    changed, so a cache holds them twice: as keys, and with w for the path. Each step of decoding walks the whole path
    again: some 40 K d products for each head and K keys.

    ```bibtex
    @inproceedings{yang2025path,
      title = {{PaTH} Attention: Position Encoding via Accumulating {Householder} Transformations},
      author = {Yang, Songlin and Shen, Yikang and Wen, Kaiyue and Tan, Shawn and Mishra, Mayank and Ren, Liliang and
                Panda, Rameswar and Kim, Yoon},
      booktitle = {Advances in Neural Information Processing Systems},
      year = {2025},
      eprint = {2505.16381},
    }
    ```
    """

    rank: int = 32
    kernel: int = 3
    activation: Literal["silu", "none"] = "silu"
    forget: Literal["none", "scaled", "unscaled"] = "none"

    family = "context"
    extrapolates = "strongly in state tracking (Yang et al., 2025)"
    reads = "row"
    contextual = True
    precedence = "first"
    limits = {"bidirectional": "its path runs from a key to a later query", "cross": "its path lies in one sequence"}
    samples = (
        {"rank": 3, "forget": "scaled"},
        {"kernel": 1, "activation": "none", "forget": "unscaled"},
    )

    def validate(self):
        for name in ("rank", "kernel"):
            if getattr(self, name) < 1:
                raise ValueError(f"The setting {name!r} of 'path' is {getattr(self, name)}; it must be at least 1.")

    def init(self, key, dims):
        return {"down": dims.width**-0.5 * jax.random.normal(key, (self.rank, dims.width))}

    def init_head(self, key, dims):
        up, conv, beta, gate = jax.random.split(key, 4)
        reach = self.kernel**-0.5
        p = {
            "up": self.rank**-0.5 * jax.random.normal(up, (dims.head, self.rank)),
            "conv": jax.random.uniform(conv, (dims.head, self.kernel), minval=-reach, maxval=reach),
            "beta": 0.02 * jax.random.normal(beta, (dims.width,)),
            "beta_bias": jnp.zeros(()),
        }
        if self.forget == "none":
            return p
        return p | {"gate": 0.02 * jax.random.normal(gate, (dims.width,)), "gate_bias": jnp.zeros(())}

    def carry(self, dims):
        return segment_scans.none(self.kernel - 1, dims.head), segment_scans.start()

    def locate(self, p, x: Float[Array, "L D"], at, carry):
        x = x.astype(widened(x.dtype))
        p = {name: a.astype(x.dtype) for name, a in p.items()}
        near, past = segment_scans.recent(
            product(product(x, p["down"].T), p["up"].T), at.segment, carry[0]
        )  # [L, kernel, d]
        w = (near * p["conv"].T[None]).sum(1)
        w = jax.nn.silu(w) if self.activation == "silu" else w
        w = w * jax.lax.rsqrt((w**2).sum(-1, keepdims=True) + 1e-6)  # zero for padding, which then changes nothing
        beta = 2 * jax.nn.sigmoid(product(x, p["beta"]) + p["beta_bias"])
        if self.forget == "none":
            return (w, beta, ()), (past, carry[1])
        gates, so_far = segment_scans.total(
            jax.nn.log_sigmoid(product(x, p["gate"]) + p["gate_bias"]), at.segment, carry[1]
        )
        return (w, beta, gates), (past, so_far)

    def query(self, p, q, info):
        return q, (q.astype(bias_dtype(q)), info[2])

    def key(self, p, k, info):
        return k, (k.astype(bias_dtype(k)), *info)

    def score(self, p, s, tile):
        (q, query_gates), (k, w, beta, key_gates) = tile.query_info, tile.key_info
        s = s - correction(q, k, w, beta, tile.visible) * tile.scale
        if self.forget == "none":
            return s
        return s + (query_gates[:, None] - key_gates[None, :]) * (tile.scale if self.forget == "scaled" else 1)
