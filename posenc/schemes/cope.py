"""CoPE: positions that count the tokens that matter to the query."""

from __future__ import annotations

import dataclasses
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from posenc.core.scheme import Scheme, bias_dtype, bound_setting, by_settings
from posenc.numerics.precision import product


class CoPE(Scheme, name="cope"):
    """A key's position is the sum of gates from it up to the query, so it counts the tokens that matter to the query; a
    learned vector per whole position, interpolated between, is scored by the query (Golovneva et al., 2024, §4).

        s_ij + q_i · e[p_ij] / √d,   p_ij = min(Σ_{l = j … i} g_il, npos - 1),   g_il = σ(q_i · k_l / √d)

    Gates of tokens that are not visible to the query are 0, so the count ends at documents, padding and windows. The
    positions passed to attention are not used. `gates` says what gates are computed from: "keys" as above; "scores",
    the incoming score, including what other schemes added to it (the paper's listing); "own", keys from a separate
    projection. `scaled` divides q · e by √d, the default of the authors' code; their listing does not. Their code can
    also use values instead of keys in the gates: that is "own" with the projection of the values. `npos` is the
    training length plus one, as in their code; e starts at zero, and the heads of a layer share it.

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
    """The number of whole positions from 0; larger ones count as the last."""
    gates: Literal["keys", "scores", "own"] = "keys"
    scaled: bool = True

    family = "context"
    reads = "row"
    contextual = by_settings(lambda self: self.gates == "own")
    limits = {
        "bidirectional": "its positions count from a key to a later query",
        "cross": "its positions count along one sequence",
    }
    extrapolates = "counts and flip-flops that attention with positions fails at (Golovneva et al., 2024)"
    samples = ({"npos": 4, "gates": "own"}, {"npos": 3, "gates": "scores", "scaled": False})

    def validate(self):
        if self.npos is not None and self.npos < 1:
            raise ValueError(f"'cope' has npos={self.npos}; it must be at least 1.")

    def bind(self, dims):
        return dataclasses.replace(self, npos=dims.trained + 1 if self.npos is None else self.npos)

    def init(self, key, dims):
        return {"embedding": jnp.zeros((self.npos, dims.head))}

    def init_head(self, key, dims):
        if self.gates != "own":
            return {}
        reach = dims.width**-0.5
        weights = jax.random.uniform(key, (dims.width + 1, dims.head), minval=-reach, maxval=reach)
        return {"gate": weights[:-1], "gate_bias": weights[-1]}

    def locate(self, p, x: Float[Array, "L D"], at, carry):
        if self.gates != "own":
            return (), carry
        return product(x, p["gate"]) + p["gate_bias"].astype(bias_dtype(x))[None, :], carry

    def query(self, p, q, info):
        return q, (product(q, p["embedding"].T), q.astype(bias_dtype(q)))  # its score of every whole position

    def score(self, p, s, tile):
        scores, q = tile.query_info
        inner = {"keys": tile.logits, "scores": s}.get(self.gates)
        gate = jnp.where(
            tile.visible, jax.nn.sigmoid(product(q, tile.key_info.T) * tile.scale if inner is None else inner), 0
        )
        position = jnp.minimum(jax.lax.cumsum(gate, 1, reverse=True), bound_setting(self.npos) - 1)
        below, above = (jnp.take_along_axis(scores, f(position).astype(jnp.int32), 1) for f in (jnp.floor, jnp.ceil))
        share = position - jnp.floor(position)
        return s + (above * share + below * (1 - share)) * (tile.scale if self.scaled else 1)
