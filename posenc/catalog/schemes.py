"""The cards of schemes.

The docstring, the hooks and the shapes of the parameters are the source wherever they can be. So no second list can
disagree with the code. Test results are read from their record.
"""

from __future__ import annotations

import json
import math
import textwrap
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from posenc import naming
from posenc.attention.cache import stored_shapes
from posenc.attention.encode import each_head
from posenc.attention.kernels import serves
from posenc.catalog.card import Card, Fact, bibtex, flowing, idea, keys, paragraphs, settings_fact, uncited
from posenc.core.compose import SEVERAL, Composed, Pattern, Shares, layers, parts
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
"""The demands on a fused kernel, by the facts that a scheme reads."""
SITES = {
    **{"embed": "input", "neighbours": "neighbours", "locate": "position"},
    **{"query": "query", "key": "key", "value": "value"},
    **{"scale": "scale", "score": "score", "normalize": "weights", "value_bias": "weighted values", "output": "output"},
}
"""The place of each hook in attention."""
RECORD = Path(__file__).parents[1] / "contract" / "verified.json"
"""The test results of each scheme: `pytest tests/contract tests/oracles tests/golden --record` writes it."""
TYPICAL = Dims(width=64, heads=4, head=16, trained=40, longest=160)


def describe(text: str, dims: Dims = TYPICAL) -> dict[str, Any]:
    """A scheme described in plain values: `describe("rope")["enters"]` is `["query", "key"]`.

    A composition has `parts`, each described alone. Parameters are counted at the sizes under `dims`.
    """
    return card(text, dims).as_dict()


def card(text: str, dims: Dims = TYPICAL) -> Card:
    """The card of a scheme; that of a composition has `parts`."""
    scheme = naming.parse(text)
    check_dims(dims)
    each = [_alone(*part) for part in _schemes(scheme, dims)]
    if isinstance(scheme, Scheme) and not isinstance(scheme, SEVERAL):
        return each[0][0]
    cards = tuple(card for card, _ in each)
    plain = [dict((fact.key, fact.value) for fact in card.facts) for card in cards]
    counts = {k: sum(p["parameters"][k] for p in plain) for k in ("each layer", "shared")}
    reads = max((p["reads"] for p in plain), key=ORDER.index)
    cache = max(zip((rank for _, rank in each), (p["cache"] for p in plain), strict=True))[1]
    enters = [site for site in SITES.values() if any(site in p["enters"] for p in plain)]
    causal_only = "; ".join(p["causal only"] for p in plain if p["causal only"])
    facts = (*_where_and_cost(enters, counts, dims, causal_only, reads, cache), *_around(scheme))
    return Card("scheme", naming.spec(scheme), "", facts=facts, parts=cards)


def as_html(scheme: Any) -> str:
    """The card of a scheme as HTML, as notebooks show it."""
    return card(naming.spec(scheme)).as_html()


def cite(text: str) -> str:
    """The BibTeX of everything in a scheme, each entry once: `cite("rope + alibi")`."""
    scheme = naming.parse(text)
    entries: dict[str, None] = {}
    for thing in (*(part for part, _ in _schemes(scheme, TYPICAL)), *_coordinates(scheme)):
        entries |= dict.fromkeys(bibtex(type(thing).__doc__) or [uncited(thing.name)])
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
        "idea": idea(type(scheme)),
    }


def _alone(scheme: Scheme, dims: Dims) -> tuple[Card, int]:
    """The card of one plain scheme, and the rank of its cache by how much it needs."""
    bound, refused = scheme, ""
    try:
        bound = naming.bind(scheme, dims)
        counts, cached = _parameters_and_cache(bound, dims)
    except ValueError as error:
        counts, cached, refused = {"each layer": 0, "shared": 0}, (-1, ""), str(error)
    rank, cache = (3, f"none: {bound.limits['cache']}") if "cache" in bound.limits else cached
    causal_only, proof = scheme.limits.get("bidirectional", ""), _proof(scheme)
    first, *rest = paragraphs(type(scheme)) or [""]
    indented = [p for p in rest if p.startswith("    ")]
    facts = (
        *_where_and_cost(_enters(scheme), counts, dims, causal_only, bound.reads, cache),
        Fact("refused at these dims", refused),
        settings_fact(settings(scheme)),
        Fact("family", scheme.family),
        Fact("reads", bound.reads, label="score reads"),
        Fact("extrapolates", scheme.extrapolates, scheme.extrapolates or "not stated", "beyond L"),
        Fact("proof", proof, _verified(proof), "checked"),
        Fact("between two sequences", "cross" not in bound.limits, ""),
        Fact("contextual", bound.contextual, ""),
        Fact("axes", scheme.axes, ""),
        Fact("kernels", [kernel for kernel, why in serves(bound).items() if not why], ""),
    )
    card = Card(
        "scheme",
        naming.spec(scheme),
        flowing(first),
        "\n".join(textwrap.dedent(p) for p in indented),
        facts,
        tuple(flowing(p) for p in rest if p not in indented),
        keys(bibtex(type(scheme).__doc__)),
    )
    return card, rank


def _where_and_cost(
    enters: list[str], counts: dict[str, int], dims: Dims, causal_only: str, reads: str, cache: str
) -> tuple[Fact, ...]:
    """Return the facts that a plain scheme and a composition share: where it enters attention, and what it costs."""
    sizes = f"(width {dims.width}, {dims.heads} heads, trained on {dims.trained}, longest {dims.longest})"
    parameters = f"{counts['each layer']} in each layer, {counts['shared']} shared by all {sizes}"
    direction = f"causal only: {causal_only}" if causal_only else "causal and bidirectional"
    return (
        Fact("enters", enters, ", ".join(enters) or "nowhere", "enters at"),
        Fact("parameters", {**counts, "dims": settings(dims)}, parameters),
        Fact("causal only", causal_only, direction, "direction"),
        Fact("kernel class", KERNEL[reads], label="kernel"),
        Fact("cache", cache),
    )


def _schemes(scheme: Any, dims: Dims) -> list[tuple[Scheme, Dims]]:
    """The plain schemes in a composition, each once, in order, and the sizes of the heads that it has."""
    each = [pair for layer in layers(scheme) for pair in zip(parts(layer), _sizes(layer.scheme, dims), strict=True)]
    return list(dict.fromkeys(each))


def _sizes(scheme: Any, dims: Dims) -> tuple[Dims, ...]:
    """The sizes for each plain scheme of a layer; those of all heads where shares of them do not fit."""
    undivided = (dims,) * len(parts(scheme))
    fits = isinstance(scheme, Shares) and not dims.heads % sum(scheme.counts)
    return scheme.dims_of_parts(dims) if fits else undivided


def _coordinates(scheme: Any) -> list[Any]:
    """The coordinates in a composition."""
    return [c for layer in layers(scheme) for c, _ in layer.draws if c is not None]


def _around(scheme: Any) -> list[Fact]:
    """The rest of a composition: a window, a list of layers, coordinates."""
    facts = []
    if isinstance(scheme, Composed) and scheme.window is not None:
        first = f" and the first {scheme.sinks} of its document" if scheme.sinks else ""
        of = f" whose positions are less than {scheme.window} before its own" * (scheme.of == "positions")
        shown = f"a query sees keys{of}{first}" if of else f"a query sees {scheme.window} keys{first}"
        facts.append(Fact("window", shown))
    if isinstance(scheme, Composed) and scheme.unplaced is not None:
        facts.append(Fact("unplaced", f"tokens at position {scheme.unplaced} have no place"))
    for shared in dict.fromkeys(s for layer in layers(scheme) if isinstance(s := layer.scheme, Shares)):
        total, counts = sum(shared.counts), zip(shared.each, shared.counts, strict=True)
        shown = {naming.spec(s): f"{count} of {total}" for s, count in counts}
        facts.append(Fact("heads", shown, "; ".join(f"{count}: {text}" for text, count in shown.items())))
    if isinstance(scheme, Pattern):
        facts.append(Fact("layers", [naming.spec(s) for s in scheme.layers]))
    if coordinates := _coordinates(scheme):
        ideas = {naming.spec(c): idea(type(c)) for c in coordinates}
        facts.append(Fact("coordinates", ideas, "; ".join(f"{k}: {v}" for k, v in ideas.items())))
    return facts


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


def _verified(proof: dict[str, Any]) -> str:
    """The test results of a scheme, from the committed record."""
    results = []
    if golden := proof.get("golden"):
        results.append(f"{len(golden['cases'])} cases of {'; '.join(golden['sources'])} within {golden['largest']:.0e}")
    if oracle := proof.get("oracle"):
        results.append(f"its equation in float64 within {oracle['largest']:.0e}")
    if contract := proof.get("contract"):
        results.append(f"{contract['holds']} of {contract['applies']} properties that apply")
    return "; ".join(results) or "no test result is recorded"
