"""What is known of a scheme by its name: idea, equation, where it enters, what it costs, whom to cite.

Everything is read off the scheme itself, from its docstring, its hooks and the shapes of its parameters, so that no
second list can disagree with the code.
"""

from __future__ import annotations

import inspect
import math
import re
from typing import Any

import jax

from posenc import naming
from posenc.attention import KERNELS
from posenc.compose import Chain, Pattern, Placed, Windowed
from posenc.parameters import init
from posenc.registry import settings
from posenc.scheme import Dims, Scheme
from posenc.sides import each_head

SITES = {
    **{"embed": "input", "locate": "position", "query": "query", "key": "key", "value": "value"},
    **{"scale": "scale", "score": "score", "weigh": "weights", "extra": "weighted values", "output": "output"},
}
TYPICAL = Dims(width=64, heads=4, head=16, trained=40, longest=160)
_FENCE = re.compile(r"```bibtex\n(.*?)```", re.DOTALL)


def describe(text: str) -> dict[str, Any]:
    """What a scheme is, in plain values: `describe("rope")["enters"]` is `["query", "key"]`.

    A composition has `parts`, each described alone. Parameters are counted at the sizes under `dims`.
    """
    scheme = naming.parse(text)
    parts = [_alone(part) for part in _parts(scheme)]
    if isinstance(scheme, Scheme) and not isinstance(scheme, Chain):
        return parts[0]
    counts = {k: sum(p["parameters"][k] for p in parts) for k in ("each layer", "shared")}
    return {
        "scheme": naming.spec(scheme),
        "enters": [site for site in SITES.values() if any(site in p["enters"] for p in parts)],
        "parameters": {**counts, "dims": settings(TYPICAL)},
        "causal only": "; ".join(p["causal only"] for p in parts if p["causal only"]),
        **_wrapped(scheme),
        "parts": parts,
    }


def cite(text: str) -> str:
    """The BibTeX of everything in a scheme, each entry once: `cite("rope + alibi")`."""
    scheme = naming.parse(text)
    found: dict[str, None] = {}
    for thing in (*_parts(scheme), *_places(scheme)):
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
        "bidirectional": not scheme.causal_only,
        "idea": _told(type(scheme))[0],
    }


def _alone(scheme: Scheme) -> dict[str, Any]:
    idea, equation, notes = _told(type(scheme))
    fitted, refused = scheme, ""
    try:
        fitted = naming.bind(scheme, TYPICAL)
        counts, cached = _counted(fitted)
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
        "parameters": {**counts, "dims": settings(TYPICAL)},
        "refused at these dims": refused,
        "keys cached": f"none: {fitted.uncached}" if fitted.uncached else cached,
        "causal only": scheme.causal_only,
        "between two sequences": fitted.cross,
        "contextual": fitted.contextual,
        "axes": scheme.axes,
        "kernels": [kernel for kernel in KERNELS if kernel != "auto"],
        "cite": [key for entry in _entries(type(scheme)) for key in re.findall(r"@\w+\{([^,\s]+),", entry)],
    }


def _parts(scheme: Any) -> list[Scheme]:
    """The plain schemes in a composition, each once, in order."""
    match scheme:
        case Placed(inner) | Windowed(inner):
            return _parts(inner)
        case Pattern(layers, before):
            parts = [p for s in ((before, *layers) if before is not None else layers) for p in _parts(s)]
        case Chain():
            parts = [p for s in scheme.parts for p in _parts(s)]
        case _:
            return [scheme]
    return list(dict.fromkeys(parts))


def _places(scheme: Any) -> list[Any]:
    """The coordinates in a composition."""
    match scheme:
        case Placed(_, where):
            return [where]
        case Windowed(inner):
            return _places(inner)
        case Pattern(layers, before):
            return [c for s in ((before, *layers) if before is not None else layers) for c in _places(s)]
        case Chain():
            return [c for s in scheme.parts for c in _places(s)]
    return []


def _wrapped(scheme: Any) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if isinstance(scheme, Windowed):
        said["window"] = f"a query sees {scheme.keys} keys"
    if isinstance(scheme, Pattern):
        said["layers"] = [naming.spec(s) for s in scheme.layers]
    if where := _places(scheme):
        said["coordinates"] = {naming.spec(c): _told(type(c))[0] for c in where}
    return said


def _told(cls: type) -> tuple[str, str, list[str]]:
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


def _counted(scheme: Scheme) -> tuple[dict[str, int], str]:
    """Parameters that each layer owns and those that all layers share; which heads keys are cached for."""
    shapes = jax.eval_shape(lambda key: init(scheme, key, TYPICAL), jax.random.key(0))
    counts = {"each layer": 0, "shared": 0}
    for group in shapes.values():
        for name, leaf in group.items():
            size = sum(math.prod(a.shape) for a in jax.tree.leaves(leaf))
            counts["shared" if name in scheme.tied else "each layer"] += size
    return counts, f"one for each {'query' if each_head(scheme, shapes['heads']) else 'key'} head"
