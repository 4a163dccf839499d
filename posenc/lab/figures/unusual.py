"""The settings of runs that are not the default, as captions and reports name them. No jax."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from posenc.lab.figures.style import plain
from posenc.lab.results.results import Results, grouped, shortest_model
from posenc.lab.spec.run import Knobs, Plan, Run
from posenc.lab.store.schema import GroupRecord, TrialRecord

SAID = ("task", "scheme", "width", "depth", "heads", "shortest", "length", "then", "seed", "lr")
"""Settings that captions name otherwise: in labels, with the model, and as the sizes trained on."""


def unusual(results: Results) -> list[str]:
    """Return a sentence with every setting of the reported runs that is neither the default nor in their labels."""
    pairs = ((record, trial) for record in results.records for trial in record.trials)
    values = grouped(item for pair in pairs for item in _changed(*pair) if item[0] not in results.varying)
    each = [f"{name}={' or '.join(dict.fromkeys(texts))}" for name, texts in values.items()]
    return [f"Settings other than the default: {', '.join(map(plain, each))}."] if each else []


def _changed(record: GroupRecord, trial: TrialRecord) -> Iterator[tuple[str, str]]:
    """Each setting of a trial that is not the default, as a text."""
    run, usual = record.run, _usual(record.run)
    if "(" in (model := shortest_model(str(run.get("model", "")))):
        yield "model", model
    for f in fields(Run):
        if f.name not in (*SAID, "model") and run.get(f.name) is not None and run[f.name] != usual.get(f.name):
            yield f.name, str(run[f.name])
    if trial.steps != Plan().steps:
        yield "steps", str(trial.steps)
    for name, default in Knobs()._asdict().items():
        if name not in SAID and (value := getattr(trial.knobs, name)) not in (None, default):
            yield name, f"{value:g}"


def _usual(run: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults of a run, those that follow from its other settings too."""
    usual = {f.name: f.default for f in fields(Run)}
    width, length = run.get("width", usual["width"]), run.get("length", usual["length"])
    return usual | {"hidden": 4 * width, "longest": 4 * length, "buckets": 1 if length <= 16 else 4}
