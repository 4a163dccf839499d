"""A scheme described by its name: idea, equation, where it enters, what it costs, whom to cite.

The docstring, the hooks and the shapes of the parameters are the source wherever they can be, so that no second list
can disagree with the code; test results are read from their record.
"""

from __future__ import annotations

import inspect
import json
import math
import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from posenc import naming
from posenc.attention.cache import stored_shapes
from posenc.attention.encode import each_head
from posenc.attention.kernels import serves
from posenc.core.compose import Chain, Composed, Pattern, layers, parts
from posenc.core.parameters import init
from posenc.core.scheme import ORDER, Dims, Scheme, check_dims
from posenc.language.registry import settings

KERNEL = {
    "nothing": "any attention kernel: only x, q, k and v change",
    "distance": "an elementwise score of positions and a small table",
    "positions": "an elementwise score of positions and a small table",
    "content": "an elementwise score with features of each token",
    "row": "whole rows of scores",
    "heads": "the scores of all heads at once",
}
"""What a fused kernel must offer, by what a scheme reads."""
SITES = {
    **{"embed": "input", "locate": "position", "query": "query", "key": "key", "value": "value"},
    **{"scale": "scale", "score": "score", "normalize": "weights", "value_bias": "weighted values", "output": "output"},
}
TYPICAL = Dims(width=64, heads=4, head=16, trained=40, longest=160)
RECORD = Path(__file__).parent / "contract" / "verified.json"
"""The test results of each scheme: `pytest tests/contract tests/oracles tests/golden --record` writes it."""
_FENCE = re.compile(r"```bibtex\n(.*?)```", re.DOTALL)


def describe(text: str, dims: Dims = TYPICAL) -> dict[str, Any]:
    """A scheme described in plain values: `describe("rope")["enters"]` is `["query", "key"]`.

    A composition has `parts`, each described alone. Parameters are counted at the sizes under `dims`.
    """
    scheme = naming.parse(text)
    check_dims(dims)
    each, ranks = zip(*(_alone(part, dims) for part in _schemes(scheme)), strict=True)
    if isinstance(scheme, Scheme) and not isinstance(scheme, Chain):
        return each[0]
    counts = {k: sum(p["parameters"][k] for p in each) for k in ("each layer", "shared")}
    return {
        "scheme": naming.spec(scheme),
        "enters": [site for site in SITES.values() if any(site in p["enters"] for p in each)],
        "parameters": {**counts, "dims": settings(dims)},
        "causal only": "; ".join(p["causal only"] for p in each if p["causal only"]),
        "kernel class": KERNEL[max((p["reads"] for p in each), key=ORDER.index)],
        "cache": max(zip(ranks, (p["cache"] for p in each), strict=True))[1],
        **_around(scheme),
        "parts": list(each),
    }


def cite(text: str) -> str:
    """The BibTeX of everything in a scheme, each entry once: `cite("rope + alibi")`."""
    scheme = naming.parse(text)
    entries: dict[str, None] = {}
    for thing in (*_schemes(scheme), *_coordinates(scheme)):
        entries |= dict.fromkeys(_entries(type(thing)) or [f"% {thing.name}: its source names no publication to cite."])
    return "\n\n".join(entries)


def summary(name: str) -> dict[str, Any]:
    """One row of `posenc list`: the scheme of a name at its defaults."""
    scheme = naming.parse(name)
    return {
        "name": name,
        "family": scheme.family,
        "enters": _enters(scheme),
        "reads": scheme.reads,
        "bidirectional": "bidirectional" not in scheme.limits,
        "idea": _described(type(scheme))[0],
    }


def _alone(scheme: Scheme, dims: Dims) -> tuple[dict[str, Any], int]:
    """One plain scheme described, and the rank of its cache by how much it needs."""
    idea, equation, notes = _described(type(scheme))
    bound, refused = scheme, ""
    try:
        bound = naming.bind(scheme, dims)
        counts, cached = _parameters_and_cache(bound, dims)
    except ValueError as error:
        counts, cached, refused = {"each layer": 0, "shared": 0}, (-1, ""), str(error)
    rank, cache = (3, f"none: {bound.limits['cache']}") if "cache" in bound.limits else cached
    card = {
        "scheme": naming.spec(scheme),
        "idea": idea,
        "family": scheme.family,
        "equation": equation,
        "notes": notes,
        "enters": _enters(scheme),
        "reads": bound.reads,
        "settings": settings(scheme),
        "parameters": {**counts, "dims": settings(dims)},
        "refused at these dims": refused,
        "kernel class": KERNEL[bound.reads],
        "cache": cache,
        "causal only": scheme.limits.get("bidirectional", ""),
        "between two sequences": "cross" not in bound.limits,
        "contextual": bound.contextual,
        "axes": scheme.axes,
        "extrapolates": scheme.extrapolates,
        "proof": _proof(scheme),
        "kernels": [kernel for kernel, why in serves(bound).items() if not why],
        "cite": [key for entry in _entries(type(scheme)) for key in re.findall(r"@\w+\{([^,\s]+),", entry)],
    }
    return card, rank


def _schemes(scheme: Any) -> list[Scheme]:
    """The plain schemes in a composition, each once, in order."""
    return list(dict.fromkeys(s for layer in layers(scheme) for s in parts(layer)))


def _coordinates(scheme: Any) -> list[Any]:
    """The coordinates in a composition."""
    return [c for layer in layers(scheme) for c, _ in layer.draws if c is not None]


def _around(scheme: Any) -> dict[str, Any]:
    """The rest of a composition: a window, a list of layers, coordinates."""
    facts: dict[str, Any] = {}
    if isinstance(scheme, Composed) and scheme.window is not None:
        first = f" and the first {scheme.sinks} of its document" if scheme.sinks else ""
        facts["window"] = f"a query sees {scheme.window} keys{first}"
    if isinstance(scheme, Pattern):
        facts["layers"] = [naming.spec(s) for s in scheme.layers]
    if coordinates := _coordinates(scheme):
        facts["coordinates"] = {naming.spec(c): _described(type(c))[0] for c in coordinates}
    return facts


def _described(cls: type) -> tuple[str, str, list[str]]:
    """The parts of a docstring: the idea, the equation, and the paragraphs that follow, BibTeX left out."""
    paragraphs = re.split(r"\n\s*\n", _FENCE.sub("", inspect.cleandoc(cls.__doc__ or "")).strip())
    indented = [p for p in paragraphs if p.startswith("    ")]
    notes = [" ".join(p.split()) for p in paragraphs[1:] if p not in indented]
    return " ".join(paragraphs[0].split()), "\n".join(inspect.cleandoc(p) for p in indented), [n for n in notes if n]


def _entries(cls: type) -> list[str]:
    """The BibTeX entries in a docstring."""
    blocks = _FENCE.findall(inspect.cleandoc(cls.__doc__ or ""))
    return [entry.strip() for block in blocks for entry in re.split(r"\n(?=@)", block.strip())]


def _enters(scheme: Scheme) -> list[str]:
    return [site for hook, site in SITES.items() if scheme.overrides(hook)]


def _parameters_and_cache(scheme: Scheme, dims: Dims) -> tuple[dict[str, int], tuple[int, str]]:
    """The numbers of parameters of each layer and of those that all layers share; its cache, ranked."""
    shapes = jax.eval_shape(lambda key: init(scheme, key, dims), jax.random.key(0))
    counts = {"each layer": 0, "shared": 0}
    for group in shapes.values():
        for name, leaf in group.items():
            size = sum(math.prod(a.shape) for a in jax.tree.leaves(leaf))
            counts["shared" if name in scheme.tied else "each layer"] += size
    return counts, (-1, "") if "cache" in scheme.limits else _cached(scheme, shapes, dims)


def _cached(scheme: Scheme, shapes: Any, dims: Dims) -> tuple[int, str]:
    """The contents of a cache, after their rank: keys and values, more than those, or keys before any hook."""
    if why := scheme.limits.get("reencoded"):
        return 2, f"keys and values before any hook, encoded again in each call, for each key head: {why}"
    groups = shapes["layer"], shapes["heads"]
    keys, position, carry = stored_shapes(scheme, groups, dims, 1, jnp.float32, jnp.int32)
    stored = [a.shape[1:] for a in jax.tree.leaves(keys.info)]
    more = [["features of each key"] * (stored != [a.shape for a in jax.tree.leaves(position)])]
    more += [["a carry"] * bool(jax.tree.leaves(carry))]
    kept = f"for each {'query' if each_head(scheme, shapes['heads']) else 'key'} head"
    added = " and ".join(name for names in more for name in names)
    return (1, f"keys, values and {added}, {kept}") if added else (0, f"keys and values, {kept}")


def _proof(scheme: Scheme) -> dict[str, Any]:
    """The recorded test results of one of our schemes; empty for others."""
    return json.loads(RECORD.read_text(encoding="utf-8")).get(scheme.name, {}) if RECORD.exists() else {}
