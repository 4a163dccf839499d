"""Stick-breaking: from the query backwards, each key takes a share of the remaining weight."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from posenc.core.scheme import Scheme


class StickBreaking(Scheme, name="stick_breaking"):
    """A stick broken from the query backwards: each key takes a share of the weight that nearer keys left, so weights
    depend on order and softmax is not needed (Tan et al., 2025, §2).

        a_ij = β_ij Π_{j < l < i} (1 - β_il),   β_ij = σ(q_i · k_j / √d),   j < i

    A token does not attend to itself, and the remaining weight is dropped: the weights of a row sum to less than 1,
    those of the first row to 0. With `remainder` the token's own value receives the rest, an option of the authors'
    models. With `current` the token itself is the first key to take a share (`attend_current` in their code). The order
    of keys is by index, not by position, and only visible keys count.

    ```bibtex
    @inproceedings{tan2025scaling,
      title = {Scaling Stick-Breaking Attention: An Efficient Implementation and In-depth Study},
      author = {Tan, Shawn and Yang, Songlin and Courville, Aaron and Panda, Rameswar and Shen, Yikang},
      booktitle = {International Conference on Learning Representations},
      year = {2025},
      eprint = {2410.17980},
    }
    ```
    """

    remainder: bool = False
    current: bool = False

    family = "context"
    reads = "row"
    limits = {
        "bidirectional": "a stick is broken from the query backwards",
        "cross": "the stick is broken along one sequence",
    }
    extrapolates = "perplexity falls up to 8 times it, 2^11 tokens (Tan et al., 2025)"
    samples = ({"remainder": True}, {"remainder": True, "current": True})

    def normalize(self, p, s, tile):
        itself = tile.ki[None, :] == tile.qi[:, None]
        takes = tile.visible & (self.current | ~itself)
        leaves = jax.lax.cumsum(jnp.where(takes, jax.nn.log_sigmoid(-s), 0), 1, reverse=True)
        a = jnp.exp(jnp.where(takes, s + leaves, -jnp.inf))  # log β_ij is s_ij + log(1 - β_ij)
        return a + jnp.where(tile.visible & itself, jnp.exp(leaves[:, :1]), 0) if self.remainder else a
