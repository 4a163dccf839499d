"""What is known of a scheme by its name: idea, equation, where it enters, what it costs, whom to cite.

What can be is read off the scheme itself, from its docstring, its hooks and the shapes of its parameters, so that no
second list can disagree with the code; what the tests found of it is read from their record.
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
from posenc.attention.cache import blank
from posenc.attention.encode import each_head
from posenc.attention.kernels import serves
from posenc.core.compose import Chain, Composed, Pattern, layers, normal_form, parts
from posenc.core.parameters import init
from posenc.core.scheme import Dims, Scheme, check_dims
from posenc.language.registry import settings

KERNEL = {
    "nothing": "F0: the stock kernel serves, for x, q, k and v alone change",
    "distance": "F1: an elementwise score of positions and a small table",
    "positions": "F1: an elementwise score of positions and a small table",
    "content": "F2: an elementwise score with features of each token",
    "row": "F3: whole rows of scores",
    "heads": "F4: the scores of all heads at once",
}
"""What a fused kernel must offer, by what a scheme reads."""
SITES = {
    **{"embed": "input", "locate": "position", "query": "query", "key": "key", "value": "value"},
    **{"scale": "scale", "score": "score", "normalize": "weights", "value_bias": "weighted values", "output": "output"},
}
TYPICAL = Dims(width=64, heads=4, head=16, trained=40, longest=160)
RECORD = Path(__file__).parent / "contract" / "verified.json"
"""What the tests found of each scheme: `pytest tests/contract tests/oracles tests/golden --record` writes it."""
_FENCE = re.compile(r"```bibtex\n(.*?)```", re.DOTALL)


def describe(text: str, dims: Dims = TYPICAL) -> dict[str, Any]:
    """What a scheme is, in plain values: `describe("rope")["enters"]` is `["query", "key"]`.

    A composition has `parts`, each described alone. Parameters are counted at the sizes under `dims`.
    """
    scheme = naming.parse(text)
    check_dims(dims)
    each = [_alone(part, dims) for part in _schemes(scheme)]
    if isinstance(scheme, Scheme) and not isinstance(scheme, Chain):
        return each[0]
    counts = {k: sum(p["parameters"][k] for p in each) for k in ("each layer", "shared")}
    return {
        "scheme": naming.spec(scheme),
        "enters": [site for site in SITES.values() if any(site in p["enters"] for p in each)],
        "parameters": {**counts, "dims": settings(dims)},
        "causal only": "; ".join(p["causal only"] for p in each if p["causal only"]),
        "kernel class": max(p["kernel class"] for p in each),
        "cache": max(p["cache"] for p in each),
        **_around(scheme),
        "parts": each,
    }


def cite(text: str) -> str:
    """The BibTeX of everything in a scheme, each entry once: `cite("rope + alibi")`."""
    scheme = naming.parse(text)
    found: dict[str, None] = {}
    for thing in (*_schemes(scheme), *_coordinates(scheme)):
        found |= dict.fromkeys(_entries(type(thing)) or [f"% {thing.name}: its source names no publication to cite."])
    return "\n\n".join(found)


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


def _alone(scheme: Scheme, dims: Dims) -> dict[str, Any]:
    idea, equation, notes = _described(type(scheme))
    fitted, refused = scheme, ""
    try:
        fitted = naming.bind(scheme, dims)
        counts, cached = _counted(fitted, dims)
    except ValueError as error:
        counts, cached, refused = {"each layer": 0, "shared": 0}, "", str(error)
    return {
        "scheme": naming.spec(scheme),
        "idea": idea,
        "family": scheme.family,
        "equation": equation,
        "notes": notes,
        "enters": _enters(scheme),
        "reads": fitted.reads,
        "settings": settings(scheme),
        "parameters": {**counts, "dims": settings(dims)},
        "refused at these dims": refused,
        "kernel class": KERNEL[fitted.reads],
        "cache": f"K3: none, {fitted.limits['cache']}" if "cache" in fitted.limits else cached,
        "causal only": scheme.limits.get("bidirectional", ""),
        "between two sequences": "cross" not in fitted.limits,
        "contextual": fitted.contextual,
        "axes": scheme.axes,
        "extrapolates": scheme.extrapolates,
        "proof": _proof(scheme),
        "kernels": [kernel for kernel, why in serves(fitted).items() if not why],
        "cite": [key for entry in _entries(type(scheme)) for key in re.findall(r"@\w+\{([^,\s]+),", entry)],
    }


def _schemes(scheme: Any) -> list[Scheme]:
    """The plain schemes in a composition, each once, in order."""
    return list(dict.fromkeys(s for layer in layers(scheme) for s in parts(layer)))


def _coordinates(scheme: Any) -> list[Any]:
    """The coordinates in a composition."""
    return [c for layer in layers(scheme) for c, _ in normal_form(layer).draws if c is not None]


def _around(scheme: Any) -> dict[str, Any]:
    """What stands around the plain schemes: a window, a list of layers, coordinates."""
    found: dict[str, Any] = {}
    if isinstance(scheme, Composed) and scheme.window is not None:
        found["window"] = f"a query sees {scheme.window} keys"
    if isinstance(scheme, Pattern):
        found["layers"] = [naming.spec(s) for s in scheme.layers]
    if coordinates := _coordinates(scheme):
        found["coordinates"] = {naming.spec(c): _described(type(c))[0] for c in coordinates}
    return found


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


def _counted(scheme: Scheme, dims: Dims) -> tuple[dict[str, int], str]:
    """Parameters that each layer owns and those that all layers share; what a cache holds."""
    shapes = jax.eval_shape(lambda key: init(scheme, key, dims), jax.random.key(0))
    counts = {"each layer": 0, "shared": 0}
    for group in shapes.values():
        for name, leaf in group.items():
            size = sum(math.prod(a.shape) for a in jax.tree.leaves(leaf))
            counts["shared" if name in scheme.tied else "each layer"] += size
    return counts, "" if "cache" in scheme.limits else _cached(scheme, shapes, dims)


def _cached(scheme: Scheme, shapes: Any, dims: Dims) -> str:
    """What a cache holds beside keys and values that never change."""
    if why := scheme.limits.get("reencoded"):
        return f"K3: keys and values before any hook, encoded again in each call, for each key head: {why}"
    both = shapes["layer"], shapes["heads"]
    made = lambda *both: blank(scheme, both, dims, 1, jnp.float32, jnp.int32)  # noqa: E731
    keys, place, carry = jax.eval_shape(made, *both)
    stored = [a.shape[1:] for a in jax.tree.leaves(keys.info)]
    more = [["features of each key"] * (stored != [a.shape for a in jax.tree.leaves(place)])]
    more += [["a carry"] * bool(jax.tree.leaves(carry))]
    kept = f"for each {'query' if each_head(scheme, shapes['heads']) else 'key'} head"
    added = " and ".join(word for words in more for word in words)
    return f"K2: keys, values and {added}, {kept}" if added else f"K1: keys and values, {kept}"


def _proof(scheme: Scheme) -> dict[str, Any]:
    """What the tests found of one of our schemes when they were last recorded; empty for others."""
    return json.loads(RECORD.read_text(encoding="utf-8")).get(scheme.name, {}) if RECORD.exists() else {}
