"""Golden cases: numbers that the original implementations gave, and what it means to agree with them.

A file holds one family. Its array `meta` is JSON and says everything: the cases, their arguments, the names of their
arrays. Nothing about a particular case is written anywhere in the tests.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class NotCovered(Exception):  # noqa: N818 - it is no error
    """This case needs a scheme that posenc does not have yet; the message names it."""


class Arrays(Mapping[str, np.ndarray]):
    """The arrays of a case, which remember who was looked at: an array that nobody reads was not compared."""

    def __init__(self, arrays: Mapping[str, np.ndarray]):
        self._arrays = dict(arrays)
        self.unread = set(arrays)

    def __getitem__(self, name: str) -> np.ndarray:
        self.unread.discard(name)
        return self._arrays[name]

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


class Case(NamedTuple):
    """One case of one family. `args` holds the file's common arguments too, and those of the case that it is `like`."""

    family: str
    id: str
    args: dict[str, Any]
    arrays: Arrays
    source: str = ""
    """Whose numbers these are: repository and commit, or package and version."""

    @property
    def double(self) -> bool:
        """Whether the reference computed in float64, so that we must, too."""
        return self.args.get("dtype") == "f64"

    def tolerance(self, single: float, double: float) -> float:
        """The tolerance that suits the precision of the reference."""
        return double if self.double else single

    @property
    def forward(self) -> float:
        """What most families allow for outputs."""
        return self.tolerance(1e-5, 1e-12)

    @property
    def backward(self) -> float:
        """What most families allow for gradients."""
        return self.tolerance(5e-5, 1e-10)


class Check(NamedTuple):
    """Our numbers beside theirs. The tolerance is relative to max(1, max |theirs|); 0 asks for equality."""

    name: str
    ours: Any
    theirs: np.ndarray
    tolerance: float

    @property
    def difference(self) -> float:
        """The largest difference, relative to max(1, max |theirs|); infinite where shapes differ."""
        ours, theirs = (np.asarray(a, np.float64) for a in (self.ours, self.theirs))
        if ours.shape != theirs.shape:
            return np.inf
        scale = max(1.0, np.abs(theirs).max(initial=0.0))
        return float(np.abs(ours - theirs).max(initial=0.0) / scale)

    def verify(self) -> None:
        """Raise an `AssertionError` that shows the numbers where they disagree."""
        ours, theirs = np.asarray(self.ours), np.asarray(self.theirs)
        assert ours.shape == theirs.shape, f"{self.name}: our shape is {ours.shape}, theirs {theirs.shape}"
        if not self.tolerance:
            np.testing.assert_array_equal(ours, theirs, err_msg=self.name)
            return
        bound = self.tolerance * max(1.0, np.abs(theirs, dtype=float).max(initial=0.0))
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=bound, err_msg=self.name)


def load(path: Path | str) -> list[Case]:
    """All cases of a file."""
    path = Path(path)
    with np.load(path, allow_pickle=False) as file:
        meta = json.loads(bytes(file["meta"]).decode())
        common = meta.get("args", {})
        own = {case["id"]: case["args"] for case in meta["cases"]}
        return [
            Case(
                path.stem,
                case["id"],
                {
                    **common,
                    **({"source": case["source"]} if "source" in case else {}),
                    **own.get(case["args"].get("like"), {}),
                    **case["args"],
                },
                Arrays({name: file[f"{case['id']}/{name}"] for name in case["arrays"]}),
                _source(meta.get("source", ""), case.get("source")),
            )
            for case in meta["cases"]
        ]


def _source(known: str | dict[str, str], which: str | None) -> str:
    """The first words of where a case is from: a repository and its commit, or a package and its version."""
    said = known if isinstance(known, str) else known.get(which or "", None) or "; ".join(known.values())
    said = which if which and isinstance(known, str) else said
    named = [re.match(r"[\w.-]+/[\w.-]+ [0-9a-f]{7,8}\b|[\w-]+ \d[\d.]*\d", part.strip()) for part in said.split(";")]
    return ", ".join(dict.fromkeys(m[0] for m in named if m)) or "an equation"
