"""FoX: attention that forgets, by a gate of each token."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from posenc.scheme import Scheme


class FoX(Scheme, name="fox"):
    """A forget gate per token and head, whose logarithms add up between key and query (Lin et al., 2025, §3).

        s_ij + Σ_{l = j+1 … i} log f_l,   f_l = σ(w_h · x_l + b_h)

    The sum is a difference of running sums, which restart with each document and pass over padding. They are kept in
    float32, so a difference loses digits as the sums grow: it is good to their size times 2⁻²³. The key's own gate is
    left out, so a token sees itself undiminished. With a constant gate this is ALiBi of slope -log f; with the opposite
    sign of w and b it is CABLE (Veisi et al., 2025), whose penalty is a softplus. Undefined where the future is seen:
    what lies ahead would be raised, not forgotten.

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
    reads = "content"
    contextual = True
    causal_only = "forgetting runs from a key to a later query"
    cross = False

    def init_head(self, key, dims):
        return {"w": 0.02 * jax.random.normal(key, (dims.width,)), "b": jnp.zeros(())}

    def carry(self, dims):
        return jnp.zeros(()), jnp.zeros((), jnp.int32)  # the running sum so far, and its document

    def locate(self, p, x, at, carry):
        exact = jnp.promote_types(x.dtype, jnp.float32)
        total, document = carry
        gate = x.astype(exact) @ p["w"].astype(exact) + p["b"].astype(exact)
        gate = jnp.where(at.segment > 0, jax.nn.log_sigmoid(gate), 0)
        segments = jnp.concatenate([document[None].astype(at.segment.dtype), at.segment])
        documents = jax.lax.associative_scan(_latest, segments)
        c, restarted = jax.lax.associative_scan(_add, (gate, documents[1:] != documents[:-1]))
        c = jnp.where(restarted, c, c + total.astype(exact))
        return c, (c[-1].astype(total.dtype), documents[-1].astype(document.dtype))

    def score(self, p, s, tile):
        return s + (tile.i[:, None] - tile.j[None, :]).astype(s.dtype)


def _latest(a, b):
    """The document at the end of two stretches: padding ends none."""
    return jnp.where(b > 0, b, a)


def _add(a, b):
    """Two stretches of gates as one: the sum so far, and whether a document began within."""
    return jnp.where(b[1], b[0], a[0] + b[0]), a[1] | b[1]
