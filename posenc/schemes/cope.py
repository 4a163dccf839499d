"""CoPE: positions that count what the query cares for."""

from __future__ import annotations

import dataclasses
from typing import Literal

import jax
import jax.numpy as jnp

from posenc.core.scheme import Scheme, bias_dtype
from posenc.numerics.precision import product


class CoPE(Scheme, name="cope"):
    """A key's position is the sum of gates from it up to the query, so that it counts what the query cares for; a
    learned vector for each whole position meets the query, those between by interpolation (Golovneva et al., 2024, §4).

        s_ij + q_i · e[p_ij] / √d,   p_ij = min(Σ_{l = j … i} g_il, npos - 1),   g_il = σ(q_i · k_l / √d)

    Gates of tokens that the query does not see are 0, so documents, padding and windows bound the count; positions that
    are passed are not read. `gates` says what they are made of: "keys" as above; "scores", the score as it comes in,
    with what other schemes added to it (the paper's listing); "own", keys of a projection of their own. `scaled`
    divides q · e by √d, as the authors' code does unless told otherwise; their listing does not. Their code can also
    take values for keys in the gates: that is "own" with the projection of the values. `npos` is the training length
    and one, as in their code; e starts at zero, and the heads of a layer share it.

    ```bibtex
    @misc{golovneva2024contextual,
      title = {Contextual Position Encoding: Learning to Count What's Important},
      author = {Golovneva, Olga and Wang, Tianlu and Weston, Jason and Sukhbaatar, Sainbayar},
      year = {2024},
      eprint = {2405.18719},
    }
    ```
    """

    npos: int | None = None
    """Whole positions from 0 on; those beyond are the last one."""
    gates: Literal["keys", "scores", "own"] = "keys"
    scaled: bool = True

    family = "context"
    reads = "row"
    contextual = property(lambda self: self.gates == "own")
    limits = {
        "bidirectional": "its positions count from a key to a later query",
        "cross": "its positions count along one sequence",
    }
    extrapolates = "counts and flip-flops that attention with positions fails at (Golovneva et al., 2024)"
    samples = ({"npos": 4, "gates": "own"}, {"npos": 3, "gates": "scores", "scaled": False})

    def validate(self):
        if self.npos is not None and self.npos < 1:
            raise ValueError(f"'cope' has at least 1 position, not npos={self.npos}.")

    def bind(self, dims):
        return dataclasses.replace(self, npos=dims.trained + 1 if self.npos is None else self.npos)

    def init(self, key, dims):
        return {"embedding": jnp.zeros((self.npos, dims.head))}

    def init_head(self, key, dims):
        if self.gates != "own":
            return {}
        reach = dims.width**-0.5
        drawn = jax.random.uniform(key, (dims.width + 1, dims.head), minval=-reach, maxval=reach)
        return {"gate": drawn[:-1], "gate_bias": drawn[-1]}

    def locate(self, p, x, at, carry):
        if self.gates != "own":
            return (), carry
        return product(x, p["gate"]) + p["gate_bias"].astype(bias_dtype(x))[None, :], carry

    def query(self, p, q, info):
        return q, (product(q, p["embedding"].T), q.astype(bias_dtype(q)))  # its word on every whole position

    def score(self, p, s, tile):
        word, q = tile.query_info
        told = {"keys": tile.logits, "scores": s}.get(self.gates)
        gate = jnp.where(
            tile.visible, jax.nn.sigmoid(product(q, tile.key_info.T) * tile.scale if told is None else told), 0
        )
        place = jnp.minimum(jax.lax.cumsum(gate, 1, reverse=True), self.npos - 1)
        below, above = (jnp.take_along_axis(word, f(place).astype(jnp.int32), 1) for f in (jnp.floor, jnp.ceil))
        share = place - jnp.floor(place)
        return s + (above * share + below * (1 - share)) * (tile.scale if self.scaled else 1)
