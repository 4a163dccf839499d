"""A scheme is a value and its hooks are functions: the same in, the same out, however they are run."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from posenc.attention.attend import embed
from posenc.attention.encode import each_head
from posenc.attention.shares import sizes
from posenc.contract.case import DOCUMENTS, Case, rows
from posenc.contract.report import Outcome, absent, at_most, error, holds_if
from posenc.core.compose import SEVERAL, merge, parts, pick, spread
from posenc.core.parameters import init
from posenc.core.scheme import SCHEMES, At, Dims, Scheme
from posenc.naming import bind, parse, spec

SHORT, LONG = 20, 64


def compiled_equals_op_by_op(case: Case) -> Outcome:
    """jit = no jit."""
    return at_most(error(case.plain(), case.eager(case.params, case.inputs)), 1e-12)


def parameter_sets_stack(case: Case) -> Outcome:
    """vmap over parameters = one by one."""
    if not jax.tree.leaves(case.params):
        return absent("it has no parameters")
    each = [case.params, case.parameters(1), case.parameters(2)]
    stacked = jax.tree.map(lambda *a: np.stack(a), *each)
    together = case.jit(jax.vmap(case.layer, (0, None)))(stacked, case.inputs)
    return at_most(max(error(a, case.plain(p=p)) for a, p in zip(together, each, strict=True)), 1e-12)


def implied_positions_are_the_index(case: Case) -> Outcome:
    """Positions passed = positions implied, counted from the start of each document."""
    apart = error(case.output(), case.plain())
    implied = case.implied(DOCUMENTS)
    return at_most(max(apart, error(case.output(segments=DOCUMENTS), implied)), 1e-12)


def no_state_is_kept(case: Case) -> Outcome:
    """Check that a length gives the same program before a longer one and after, and that a short output begins a long
    one. A scheme without a cache, or one that re-encodes its keys, may change earlier outputs as the text grows."""
    first, _, after = (_program(case, n) for n in (SHORT, LONG, SHORT))
    if after != first:
        return Outcome(False, reason=f"after length {LONG} another program was traced at length {SHORT}")
    if grows := case.scheme.limits.get("cache") or case.scheme.limits.get("reencoded"):
        return Outcome(True, reason=grows)
    long = case.plain(case.long)
    return at_most(error(long[: len(case.index)], case.plain()), 1e-11)


def _program(case: Case, length: int) -> tuple[str, list[bytes]]:
    """The program of a number of tokens."""
    return _traced(lambda p, a: case.layer(p, a), case.params, case.take(length))


def _traced(f: Callable, *args: Any) -> tuple[str, list[bytes]]:
    """A program and the constants in it, traced again."""
    traced = jax.make_jaxpr(f)(*args)
    return re.sub(r"0x[0-9a-f]+", "", str(traced)), [np.asarray(c).tobytes() for c in traced.consts]


def parameters_are_as_declared(case: Case) -> Outcome:
    """Check that names, shapes, values and types depend on sizes and the key alone, and that heads lead. Shared
    parameters must exist."""
    first, again = (_traced(lambda key: init(case.scheme, key, case.dims), jax.random.key(0)) for _ in range(2))
    if first != again:
        return Outcome(False, reason="the same sizes and key gave other parameters the second time")
    shapes = jax.eval_shape(lambda key: init(case.scheme, key, case.dims), jax.random.key(0))
    made = jax.tree.leaves(shapes, is_leaf=lambda p: isinstance(p, dict))
    plain = [(s, size) for cut, size in sizes(case.scheme, case.dims) for s in parts(cut.scheme)]
    for (scheme, dims), p in zip(plain, made, strict=True):
        if fault := _undeclared(scheme, p, dims):
            return Outcome(False, reason=fault)
    return Outcome(True, reason=f"{sum(a.size for a in jax.tree.leaves(shapes))} numbers")


def _undeclared(scheme: Scheme, p: dict, dims: Dims) -> str:
    layer, each = p["layer"], p["heads"]
    if shared := layer.keys() & each.keys():
        return f"{', '.join(sorted(shared))} names a parameter of the layer and of its heads"
    if missing := scheme.tied - layer.keys() - each.keys() - _under_other_settings(scheme, dims):
        return f"{', '.join(sorted(missing))} is declared tied, but no such parameter exists"
    if any(a.shape[0] != dims.heads for a in jax.tree.leaves(each)):
        return "a parameter of heads has no leading head axis"
    if not all(jnp.issubdtype(a.dtype, jnp.floating) for a in jax.tree.leaves(p)):
        return "a parameter is not of a floating type, so it cannot be trained"
    if any(a.weak_type for a in jax.tree.leaves(p)):
        return "a parameter is weakly typed, so training would be compiled twice; give its type"
    return ""


def _under_other_settings(scheme: Scheme, dims: Dims) -> set[str]:
    """Return the names of parameters under the defaults and the samples: a setting may leave out what is declared tied.

    A share of the heads is narrower than the model, so that it takes the width of its own heads.
    """
    if not isinstance(type(scheme).tied, frozenset) or not scheme.samples:
        return set()
    names, dims = set(), dataclasses.replace(dims, width=dims.heads * dims.head)
    for settings in ({}, *scheme.samples):
        bound = bind(type(scheme)(**settings), dims)
        made = jax.eval_shape(functools.partial(init, bound, dims=dims), jax.random.key(0))
        names |= made["layer"].keys() | made["heads"].keys()
    return names


def embed_reads_shared_parameters(case: Case) -> Outcome:
    """The input is made once for all layers, so all layers share the parameters that it reads."""
    if not case.scheme.overrides("embed"):
        return absent("it does not act on the input")

    @case.jit
    @jax.grad
    def read(p, x):
        return (embed(case.scheme, p, x) * jnp.cos(jnp.arange(case.dims.width))[None, :]).sum()

    read = jax.tree_util.tree_leaves_with_path(read(case.params, case.inputs.x))
    names = {path[-1].key for path, g in read if float(jnp.max(jnp.abs(g))) > 0}
    untied = names - frozenset().union(*(s.tied for s in parts(case.scheme)))
    return holds_if(not untied, f"embed reads {', '.join(sorted(untied))}, which is not declared tied")


def it_is_a_value(case: Case) -> Outcome:
    """Equal where its settings are equal, hashable, frozen, and without arrays: one compilation for equal schemes."""
    scheme = case.scheme
    twin = dataclasses.replace(scheme)
    if scheme != twin or hash(scheme) != hash(twin):
        return Outcome(False, reason="a copy is not equal to it, or does not hash alike")
    if jax.tree.leaves(scheme):
        return Outcome(False, reason="it has leaves as a pytree; parameters belong to the caller")
    if bind(scheme, case.dims) != scheme:
        return Outcome(False, reason="binding it twice gives another scheme")
    return holds_if(_frozen(scheme), "an attribute can be set on it")


def _frozen(scheme: Scheme) -> bool:
    try:
        scheme.name = "other"  # type: ignore[misc]
    except dataclasses.FrozenInstanceError:
        return True
    return False


def its_text_names_it(case: Case) -> Outcome:
    """parse(spec(scheme)) == scheme, before its open settings are filled and after."""
    if not all(getattr(s, "name", None) in SCHEMES.names() for s in parts(case.scheme)):
        return absent("it is not registered under a name")
    for scheme in (case.unbound, case.scheme):
        if parse(spec(scheme)) != scheme:
            return Outcome(False, reason=f"{spec(scheme)!r} names another scheme")
    return Outcome(True, reason=spec(case.scheme))


def its_samples_build(case: Case) -> Outcome:
    """Every sample of settings makes a scheme with parameters."""
    if isinstance(case.scheme, SEVERAL) or not case.scheme.samples:
        return absent("it lists no samples")
    for settings in case.scheme.samples:
        scheme = bind(type(case.scheme)(**settings), case.dims)
        jax.eval_shape(functools.partial(init, scheme, dims=case.dims), jax.random.key(0))
    return Outcome(True, reason=f"{len(case.scheme.samples)} samples")


def locate_reads_as_declared(case: Case) -> Outcome:
    """`contextual` says whether `locate` reads features; where it does not, only parameters tell heads apart."""
    scheme, index = case.scheme, jnp.arange(len(case.index), dtype=jnp.int32)
    place = spread(scheme, jnp.asarray(case.positions(case.index)))

    @case.jit
    def located(p, x, head):
        at = At(place, index, jnp.ones_like(index), index + 1, head, case.dims.heads)
        return scheme.locate(p, x, at, scheme.carry(case.dims))[0]

    layer, heads = pick(case.params, "layer"), pick(case.params, "heads")
    p, x = merge(layer, rows(heads, 0)) if each_head(scheme, heads) else layer, case.inputs.x
    if not scheme.contextual:
        apart = error(located(p, None, 0), located(p, None, case.dims.heads - 1))
        return at_most(apart, 0.0, "" if not apart else "it tells heads apart without being contextual")
    apart = error(located(p, x, 0), located(p, x[::-1] + 1, 0))
    return holds_if(apart > 0, "it is declared contextual, but features change nothing")
