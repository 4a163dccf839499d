"""Every experiment says what it claims, and its committed figure is drawn again from its committed record."""

import re
from pathlib import Path

import pytest

from posenc.cli import main
from posenc.lab import plan
from posenc.lab.experiment import from_file
from posenc.lab.results import load
from posenc.lab.train import resolve

FOLDER = Path(__file__).resolve().parent.parent / "experiments"
EXPERIMENTS = sorted(p for p in FOLDER.glob("*.py"))
RECORDED = sorted((FOLDER / "records").glob("*.json"))


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda p: p.stem)
def test_an_experiment_says_what_it_claims(path):
    text = path.read_text(encoding="utf-8")
    for word in ("Source", "Cost", "Command", "Variation", "Result"):
        assert re.search(rf"^{word}: \S", text, re.MULTILINE), f"{path.name} has no line {word}:"
    assert (FOLDER / "records" / f"{path.stem}.json").exists()


@pytest.mark.parametrize("path", RECORDED, ids=lambda p: p.stem)
def test_a_record_holds_every_trial_of_its_experiment(path):
    experiment, results = from_file(FOLDER / f"{path.stem}.py", yes=True), load(path)
    sizes = set(experiment.plan.sizes)
    assert results.problems == () and {row["size"] for row in results.rows()} == sizes
    assert len(results.rows()) == experiment.trials * len(sizes)


@pytest.mark.parametrize("path", RECORDED, ids=lambda p: p.stem)
def test_what_came_later_leaves_the_names_of_recorded_trials_as_they_were(path):
    """The same command on a committed record has nothing left to train."""
    experiment, recorded = from_file(FOLDER / f"{path.stem}.py", yes=True), load(path).trials()
    cells = [resolve(run) for run in experiment.runs]
    names = [plan.identity(c, k, experiment.plan.steps) for c in cells for k in experiment.plan.knobs()]
    assert sorted(names) == recorded


@pytest.mark.parametrize("path", RECORDED, ids=lambda p: p.stem)
def test_a_committed_figure_is_drawn_again(path, tmp_path, capsys):
    assert main(("plot", str(FOLDER / f"{path.stem}.py"), "-o", str(tmp_path))) == 0
    for ending in ("csv", "caption.txt", "svg"):
        name = f"{path.stem}.{ending}"
        assert (tmp_path / name).read_bytes() == (FOLDER / "figures" / name).read_bytes(), name
