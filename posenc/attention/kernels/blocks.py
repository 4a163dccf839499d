"""Squares of scores a few at a time, on a processor: those of some sequences, or of some key heads of one.

A processor is fastest on scores that stay in its cache: there a gradient takes less time with every score made anew
(Chen et al., 2016, Training deep nets with sublinear memory cost) than with all of them kept. So sequences with many
scores follow one another by a few, and so do the key heads of a sequence that has too many. Each gives what it gives
alone, to rounding, and drops the weights that it drops alone.

A block takes its sequences, or heads, at equal steps: where they lie on several devices, each device has its share of
every block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from posenc.attention.kernels import dense
from posenc.attention.kernels.form import Encoded, Form
from posenc.numerics.sizes import are_numbers

SCORES = 2**20
"""Scores of a block, 4 MiB in float32: by `benchmarks/squares.py`, for 16 sequences of 256 tokens and 8 heads."""
LONG = 240 * 240
"""Scores of one head from which blocks are faster; at 128 tokens they are slower."""

Mix = Callable[[Form, Encoded], Float[Array, "Q H d"]]


def pay(queries: Any, keys: Any) -> bool:
    """Tell whether blocks are faster on this device, for these numbers of queries and keys."""
    return jax.default_backend() == "cpu" and are_numbers(queries, keys) and queries * keys >= LONG


def sequences(mix: Mix, form: Form, encoded: Encoded, held: int) -> Float[Array, "Q H d"]:
    """`mix` of one sequence, which makes `held` scores at once; under `jax.vmap`, of a block of sequences at a time.

    It is for where the sequences are mapped at once: a gradient does not pass it before.
    """

    def mix_sequence(learned: PyTree, encoded: Encoded) -> Array:
        return mix(form._replace(params=learned[0], sinks=learned[1]), encoded)

    def mix_sequences(count: int, mapped: PyTree, *args: PyTree) -> tuple[Array, bool]:
        leaves, tree = jax.tree.flatten(args)
        own = jax.tree.leaves(mapped)
        axes = ([0 if each else None for each in own],)
        run = jax.vmap(lambda leaves: mix_sequence(*tree.unflatten(leaves)), axes)
        size = fitting(count, held) if are_numbers(count) else count
        anew = form.kernel == "dense" and _heads_at_once(form, encoded) == encoded.k.shape[0]
        return _in_blocks(run, leaves, own, size, anew), True

    each = jax.custom_batching.custom_vmap(mix_sequence)
    each.def_vmap(mix_sequences)
    return each((form.params, form.sinks), encoded)


def squares(form: Form, encoded: Encoded) -> Float[Array, "Q H d"]:
    """The dense kernel of one sequence, a block of key heads at a time where all of them have too many scores."""
    size, groups, (layer, head_params) = _heads_at_once(form, encoded), encoded.k.shape[0], form.params
    if size == groups:
        return dense.mix(form, encoded)
    of_queries = head_params, form.sinks, jnp.arange(form.heads), encoded.q, encoded.query_info
    leaves, tree = jax.tree.flatten(of_queries)
    own = [a.shape[0] > 1 for a in leaves]  # info that is equal for all heads is stored once
    nested = [a.reshape(groups, -1, *a.shape[1:]) if each else a for a, each in zip(leaves, own, strict=True)]
    keys, key_tree = jax.tree.flatten((encoded.k, encoded.v, encoded.key_info))

    def run(leaves: Sequence[Array]) -> Float[Array, "g R Q d"]:
        flat = [a.reshape(-1, *a.shape[2:]) if each else a for a, each in zip(leaves, own, strict=False)]
        own_params, sinks, heads, q, query_info = tree.unflatten(flat)
        k, v, key_info = key_tree.unflatten(leaves[len(own) :])
        part = encoded._replace(q=q, query_info=query_info, k=k, v=v, key_info=key_info)
        out = dense.square(form._replace(params=(layer, own_params), sinks=sinks), part, heads)
        return out.reshape(size, -1, *out.shape[1:])

    out = _in_blocks(run, nested + keys, own + [True] * len(keys), size, anew=True)
    return out.reshape(-1, *out.shape[2:]).swapaxes(0, 1)


def fitting(count: int, held: int) -> int:
    """Return how many of `count` sequences or heads are a block, if each holds `held` scores.

    They divide the count, and so does the share of each device that it may lie on.
    """
    devices = 1 if jax.sharding.get_abstract_mesh().manual_axes else jax.device_count()
    share = count // devices if count % devices == 0 else count
    most = max(1, SCORES // held)
    return count // share * max(n for n in range(1, share + 1) if share % n == 0 and n <= most)


def _heads_at_once(form: Form, encoded: Encoded) -> int:
    """How many key heads of a sequence are a block: all where a head reads the scores of others."""
    (heads, queries, _), (groups, keys, _) = encoded.q.shape, encoded.k.shape
    return groups if form.scheme.reads == "heads" else fitting(groups, heads // groups * queries * keys)


def _in_blocks(
    run: Callable[[list[Array]], Array], arrays: list[Array], own: list[bool], size: Any, anew: bool
) -> Float[Array, "n ..."]:
    """Run `run` on arrays in blocks of `size`. Arrays that are `own` have something for each of n.

    With `anew` a gradient makes everything of a block again.
    """
    count = next(a.shape[0] for a, each in zip(arrays, own, strict=True) if each)
    if not are_numbers(count, size) or size == count:
        return run(arrays)
    cut = lambda a: a.reshape(size, -1, *a.shape[1:]).swapaxes(0, 1)  # noqa: E731

    def run_block(block: list[Array]) -> Array:
        parts = iter(block)
        return run([next(parts) if each else a for a, each in zip(arrays, own, strict=True)])

    run_block = jax.checkpoint(run_block, prevent_cse=False) if anew else run_block
    out = jax.lax.map(run_block, [cut(a) for a, each in zip(arrays, own, strict=True) if each])
    return out.swapaxes(0, 1).reshape(count, *out.shape[2:])
