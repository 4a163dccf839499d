"""FoX: attention with a forget gate per token."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from posenc.core.scheme import Scheme
from posenc.numerics import segment_scans
from posenc.numerics.precision import product, widened


class FoX(Scheme, name="fox"):
    """A forget gate per token and head, whose logarithms add up between key and query (Lin et al., 2025, §3).

        s_ij + Σ_{l = j+1 … i} log f_l,   f_l = σ(w_h · x_l + b_h)

    The sum is a difference of running sums, which restart with each document and skip padding. They are kept in
    float32, so a difference loses digits as the sums grow: it is accurate to their size times 2⁻²³. The key's own gate
    is left out, so the score of a token with itself is unchanged. With a constant gate this is ALiBi of slope -log f;
    with the opposite sign of w and b it is CABLE (Veisi et al., 2025), whose penalty is a softplus. It is causal only:
    keys after the query would get a bonus instead of a penalty.

    ```bibtex
    @inproceedings{lin2025forgetting,
      title = {Forgetting Transformer: Softmax Attention with a Forget Gate},
      author = {Lin, Zhixuan and Nikishin, Evgenii and He, Xu Owen and Courville, Aaron},
      booktitle = {International Conference on Learning Representations},
      year = {2025},
      eprint = {2503.02130},
    }
    ```
    """

    family = "context"
    extrapolates = "strongly in perplexity (Lin et al., 2025)"
    reads = "content"
    contextual = True
    limits = {
        "bidirectional": "forgetting runs from a key to a later query",
        "cross": "forgetting runs along one sequence",
    }

    def init_head(self, key, dims):
        return {"w": 0.02 * jax.random.normal(key, (dims.width,)), "b": jnp.zeros(())}

    def carry(self, dims):
        return segment_scans.start()

    def locate(self, p, x: Float[Array, "L D"], at, carry):
        exact = widened(x.dtype)
        gate = jax.nn.log_sigmoid(product(x, p["w"]) + p["b"].astype(exact))
        return segment_scans.total(gate, at.segment, carry)

    def score(self, p, s, tile):
        return s + (tile.query_info[:, None] - tile.key_info[None, :]).astype(s.dtype)
