"""Schemes of no one's, small enough to be read at a glance: one for each hook that few of ours use."""

import jax
import jax.numpy as jnp

from posenc.core.scheme import Scheme
from posenc.numerics.precision import product


class StickBreaking(Scheme, name=None):
    """Weights of its own: from the query backwards, each key takes a share of what is left."""

    reads = "row"
    limits = {"bidirectional": "a stick is broken from the query backwards"}

    def normalize(self, p, s, tile):
        stays = jnp.where(tile.visible, jax.nn.log_sigmoid(-s), 0)
        left = jnp.cumsum(stays[:, ::-1], 1)[:, ::-1] - stays  # of the keys between this one and the query
        return jnp.where(tile.visible, jnp.exp(jax.nn.log_sigmoid(s) + left), 0)


class Mixed(Scheme, name=None):
    """Scores that read those of all heads, under a penalty."""

    reads = "heads"

    def init_head(self, key, dims):
        return {"mix": 0.1 * jax.random.normal(key, (dims.heads,))}

    def score(self, p, s, tile):
        penalty = 0.1 * jnp.abs(tile.distance).astype(s.dtype)
        mixed = jnp.einsum("h,hqk->qk", p["mix"].astype(s.dtype), tile.gather(s), precision="highest")
        return s + mixed - penalty


class Turned(Scheme, name=None):
    """Values multiplied by their position, and outputs divided by it: both ends of the value."""

    def value(self, p, v, info):
        return v * (1 + 0.1 * info[:, None].astype(v.dtype))

    def output(self, p, o, info):
        return o / (1 + 0.1 * info[:, None].astype(o.dtype))


class Grid(Scheme, name=None):
    """A penalty on both axes of a plane."""

    reads = "distance"
    axes = 2

    def score(self, p, s, tile):
        return s - 0.1 * jnp.abs(tile.distance).sum(-1).astype(s.dtype)


class Counted(Scheme, name=None):
    """A running count of features above zero, told to keys and queries of each head: a carry, a reset, padding."""

    reads = "content"
    contextual = True
    limits = {"bidirectional": "it counts what came before", "cross": "it counts along one sequence"}

    def init_head(self, key, dims):
        return {"w": jax.random.normal(key, (dims.width,)) * dims.width**-0.5}

    def carry(self, dims):
        return jnp.zeros(()), jnp.zeros((), jnp.int32)

    def locate(self, p, x, at, carry):
        def step(carry, token):
            total, document = carry
            gate, segment = token
            now = jnp.where(segment > 0, segment, document)  # padding ends no document
            total = jnp.where(now == document, total, 0) + jnp.where(segment > 0, gate, 0)
            return (total, now), total

        gate = jax.nn.sigmoid(product(x, p["w"]))
        start = carry[0].astype(gate.dtype), carry[1].astype(at.segment.dtype)
        (total, document), c = jax.lax.scan(step, start, (gate, at.segment))
        return c, (total.astype(carry[0].dtype), document.astype(carry[1].dtype))

    def score(self, p, s, tile):
        share = (tile.query_info[:, None] - tile.key_info[None, :]) / (
            1 + tile.query_info[:, None]
        )  # a plain difference would hide an offset
        return s - share.astype(s.dtype)


TOYS = (StickBreaking(), Mixed(), Turned(), Grid(), Counted())
