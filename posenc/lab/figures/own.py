"""The figure of an experiment: the one that it draws, or accuracy against size, in its own words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from posenc.lab.figures import figures
from posenc.lab.figures.panel_captions import foreign
from posenc.lab.figures.panels import Drawing
from posenc.lab.results.results import Results
from posenc.lab.results.words import Words


def drawing(experiment: Any, results: Results) -> tuple[Drawing, Results]:
    """The figure of an experiment, with a caption of its axes where it gives none, and the results that it shows."""
    results = worded(experiment, results)
    if experiment.figure is None:
        return figures.length(results), results
    made = experiment.figure(results)
    return (made if isinstance(made, Drawing) else Drawing(made, foreign(made, results))), results


def worded(experiment: Any, results: Results, metric: str | None = None) -> Results:
    """Results by a metric, or else by that which an experiment shows, with its words."""
    return replace(results.shown(metric or experiment.metric), words=Words(**experiment.words))
