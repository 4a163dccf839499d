"""A scheme described by its name: idea, equation, where it enters, what it costs, whom to cite.

Importing this needs no jax; describing a scheme does.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from posenc.core.scheme import Dims

SITES = {
    **{"embed": "input", "locate": "position", "query": "query", "key": "key", "value": "value"},
    **{"scale": "scale", "score": "score", "normalize": "weights", "value_bias": "weighted values", "output": "output"},
}
"""Where each hook enters attention."""
RECORD = Path(__file__).parent.parent / "contract" / "verified.json"
"""The test results of each scheme: `pytest tests/contract tests/oracles tests/golden --record` writes it."""


def describe(text: str, dims: Dims | None = None) -> dict[str, Any]:
    """A scheme described in plain values: `describe("rope")["enters"]` is `["query", "key"]`.

    A composition has `parts`, each described alone. Parameters are counted at the sizes under `dims`.
    """
    from posenc.catalog.schemes import card

    return card(text, dims).as_dict()


def cite(text: str) -> str:
    """The BibTeX of everything in a scheme, each entry once: `cite("rope + alibi")`."""
    from posenc.catalog import schemes

    return schemes.cite(text)


def summary(name: str) -> dict[str, Any]:
    """One row of `posenc list`: the scheme of a name at its defaults."""
    from posenc.catalog import schemes

    return schemes.summary(name)
