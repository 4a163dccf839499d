"""Published settings by name: `posenc run --preset ruoss --task parity_check`, and `PRESETS["ruoss"].run` in a file.

A preset is one cell of a publication: a task and a scheme of the paper, with all of its setting that `Run` and `Plan`
can express. `left_out` lists the rest. Explicit options override a preset. The numbers are data, in `presets.toml`. No
jax.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from posenc.lab.spec.run import Plan, Run

EVIDENCE = {
    "code": "read in the authors' code",
    "issue": "said by the authors in a public issue",
    "run": "seen to learn in a run of ours",
    "memory": "from memory of the paper, so look before quoting",
}


@dataclass(frozen=True)
class Preset:
    """The setting of one paper, as far as ours can say it."""

    name: str
    idea: str
    """The models and tasks of the publication."""
    source: str
    run: Run
    plan: Plan
    evidence: tuple[str, ...]
    """How the numbers are known, of `EVIDENCE`."""
    left_out: tuple[str, ...]
    """Differences of our setting from the published one."""


def _read(path: Path) -> dict[str, Preset]:
    with path.open("rb") as file:
        tables = tomllib.load(file)
    return {name: _preset(name, **table) for name, table in tables.items()}


def _preset(name: str, *, run: dict, plan: dict, evidence: list[str], left_out: list[str], **texts: str) -> Preset:
    return Preset(name, run=Run(**run), plan=Plan(**plan), evidence=tuple(evidence), left_out=tuple(left_out), **texts)


PRESETS = _read(Path(__file__).with_suffix(".toml"))
