"""The recorded cases as two files: configs and numbers of arrays in JSON, the arrays in NumPy's format, each once."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.huggingface.compare import ROWS, Layer

FOLDER = Path(__file__).parent
UNIT = 2.0**-20
"""Weights are stored as multiples of this."""


class Case(NamedTuple):
    """One config of a model type, and what its model computes with in each layer."""

    type: str
    name: str
    config: dict[str, Any]
    scheme: str
    """The text of the scheme that was compared."""
    layers: list[Layer]
    added: np.ndarray | None = None
    """What the model adds to its input, where that is not learned."""


def write(cases: list[Case], source: str, folder: Path = FOLDER) -> None:
    """Both files anew."""
    arrays, parts, layers, schemes = _Arrays(), _Once(), _Once(), _Once()
    listed = []
    for case in cases:
        rows = [
            layers.add(
                {
                    "q": arrays.add(layer.q),
                    "k": arrays.add(layer.k),
                    "weights": arrays.add(np.round(layer.weights / UNIT).astype(np.uint32)),
                    "table": None if layer.table is None else arrays.add(layer.table),
                    "positions": None if layer.positions is None else arrays.add(layer.positions),
                    "scale": layer.scale,
                    "cap": layer.cap,
                    "causal": layer.causal,
                }
                | ({} if layer.chunk is None else {"chunk": layer.chunk})
            )
            for layer in (smaller(layer, case.scheme) for layer in case.layers)
        ]
        added = None if case.added is None else arrays.add(case.added)
        settings = sorted(parts.add({name: value}) for name, value in case.config.items() if name != "model_type")
        listed.append([case.type, case.name, settings, schemes.add(case.scheme), _shortest(rows), added])
    lines = [f'"source": {json.dumps(source)}']
    for name, rows in (("settings", parts.rows), ("schemes", schemes.rows), ("layers", layers.rows), ("cases", listed)):
        lines.append(f'"{name}": [\n' + ",\n".join(json.dumps(row) for row in rows) + "\n]")
    (folder / "recorded.json").write_text("{" + ",\n".join(lines) + "}\n", encoding="utf-8")
    np.savez_compressed(folder / "recorded.npz", **arrays.stacked())


def source(folder: Path = FOLDER) -> str:
    """The versions that recorded the cases."""
    return json.loads((folder / "recorded.json").read_text(encoding="utf-8"))["source"]


def read(folder: Path = FOLDER) -> Iterator[Case]:
    """All recorded cases."""
    known = json.loads((folder / "recorded.json").read_text(encoding="utf-8"))
    with np.load(folder / "recorded.npz") as found:
        stacks = {name: found[name] for name in found.files}

    def array(place: list[Any] | None) -> Any:
        if place is None:
            return None
        a = stacks[place[0]][place[1]]
        return a * UNIT if a.dtype == np.uint32 else a

    stored = ("q", "k", "weights", "table", "positions")
    layers = [Layer(**row | {name: array(row[name]) for name in stored}) for row in known["layers"]]
    for kind, name, settings, scheme, rows, added in known["cases"]:
        config = {"model_type": kind}
        for n in settings:
            config |= known["settings"][n]
        yield Case(kind, name, config, known["schemes"][scheme], [layers[n] for n in rows], array(added))


def smaller(layer: Layer, scheme: str) -> Layer:
    """What is stored of a layer: two queries, and two heads where all heads have the same scheme."""
    weights = layer.weights if layer.weights.shape[1] == len(ROWS) else layer.weights[:, ROWS]
    if "alibi" in scheme or "t5" in scheme or len(layer.q) <= 2:
        return dataclasses.replace(layer, weights=weights)
    return dataclasses.replace(layer, q=layer.q[[0, -1]], k=layer.k[[0, -1]], weights=weights[[0, -1]])


def _shortest(rows: list[int]) -> list[int]:
    """Layers that repeat are stored once."""
    return rows[:1] if len(set(rows)) == 1 else rows


class _Once:
    """Rows of JSON, equal ones once."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self._at: dict[str, int] = {}

    def add(self, row: Any) -> int:
        key = json.dumps(row, sort_keys=True)
        if key not in self._at:
            self._at[key] = len(self.rows)
            self.rows.append(row)
        return self._at[key]


class _Arrays:
    """Arrays, equal ones once, in one stack for each shape and type."""

    def __init__(self) -> None:
        self._at: dict[str, list[Any]] = {}
        self._stacks: dict[str, list[np.ndarray]] = {}

    def add(self, a: np.ndarray) -> list[Any]:
        name = f"{a.dtype}_{'x'.join(map(str, a.shape))}"
        key = name + hashlib.sha256(np.ascontiguousarray(a).tobytes()).hexdigest()
        if key not in self._at:
            stack = self._stacks.setdefault(name, [])
            self._at[key] = [name, len(stack)]
            stack.append(a)
        return self._at[key]

    def stacked(self) -> dict[str, np.ndarray]:
        return {name: np.stack(stack) for name, stack in self._stacks.items()}
