"""RePo: positions computed from the tokens."""

from __future__ import annotations

from typing import Literal

import jax
from jaxtyping import Array, Float, PRNGKeyArray

from posenc.core.scheme import Scheme, bias_dtype
from posenc.numerics.precision import product
from posenc.numerics.rotation import angles, check_base, check_pairs, frequencies, rotate


class RePo(Scheme, name="repo"):
    """RoPE at a position computed from each token, for each head (Li et al., 2025).

        s_ij = (R(p_i ω) q_i) · (R(p_j ω) k_j) / √d,   p_i = w_h · (silu(G x_i) ∘ C x_i),   ω_c = base^(-2c / d)

    Computed positions are real numbers of any order and sign. The positions passed to attention are not used, so a
    token does not know its place in the text. G and C are the same for all heads; their number of rows is an eighth of
    the width, rounded up. With `mode="linear"` a position is w_h · x_i, with "shared" w · x_i for all heads; both are
    ablations in the authors' code. The authors' models keep RoPE in their first five layers. A position depends on its
    own token only, so the scheme is also defined in bidirectional attention and between two sequences.

    ```bibtex
    @misc{li2025repo,
      title = {{RePo}: Language Models with Context Re-Positioning},
      author = {Li, Huayang and Zhao, Tianyu and Sproat, Richard},
      year = {2025},
      eprint = {2512.14391},
    }
    ```
    """

    mode: Literal["swiglu", "linear", "shared"] = "swiglu"
    base: float = 500000.0

    family = "context"
    extrapolates = "some (Li et al., 2025)"
    contextual = True
    samples = ({"mode": "linear", "base": 100.0}, {"mode": "shared"})

    def validate(self):
        check_base(self.name, self.base)

    def bind(self, dims):
        check_pairs(self.name, dims.head)
        return self

    def init(self, key, dims):
        if self.mode == "shared":
            return {"w": _draw(key, dims.width)}
        inner = -(-dims.width // 8)
        names = ("gate", "content") if self.mode == "swiglu" else ()
        return {name: _draw(k, inner, dims.width) for name, k in zip(names, jax.random.split(key), strict=False)}

    def init_head(self, key, dims):
        if self.mode == "shared":
            return {}
        return {"w": _draw(key, dims.width if self.mode == "linear" else -(-dims.width // 8))}

    def locate(self, p, x: Float[Array, "L D"], at, carry):
        if self.mode == "swiglu":
            x = jax.nn.silu(product(x, p["gate"].T)) * product(x, p["content"].T)
        return product(x, p["w"]), carry

    def lookup(self, info, key_info, rows):
        return info  # it does not depend on earlier tokens

    def query(self, p, q, info):
        check_pairs(self.name, q.shape[-1])
        return rotate(q, angles(info, frequencies(q.shape[-1], self.base), bias_dtype(q)), "half"), ()

    def key(self, p, k, info):
        return self.query(p, k, info)


def _draw(key: PRNGKeyArray, *shape: int) -> Float[Array, ...]:
    return 0.02 * jax.random.truncated_normal(key, -3, 3, shape)
