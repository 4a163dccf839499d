"""Every experiment says what it claims and holds what was published; each runs.

At night all runs train two steps at the smallest sizes and are rehearsed at their own: hundreds of programs.
"""

import functools
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from posenc.lab import tasks
from posenc.lab.cli.watch import watching
from posenc.lab.figures.figures import drawing
from posenc.lab.results.atlas_cells import atlas_cells
from posenc.lab.results.floors import FLOORS
from posenc.lab.results.published import ALL, SEEN, Order, Published
from posenc.lab.results.rates import decided
from posenc.lab.results.results import Results, load
from posenc.lab.results.statistics import cells
from posenc.lab.run import plan
from posenc.lab.run.sweep import sweep
from posenc.lab.spec import atlas
from posenc.lab.spec.committed import record_of
from posenc.lab.spec.experiment_file import executed, from_file
from posenc.lab.spec.presets import PRESETS
from posenc.lab.spec.run import WITH
from posenc.lab.spec.settings import texts
from posenc.lab.store.schema import UnfinishedTrial
from posenc.lab.tasks.corpora import named_digest
from posenc.lab.tasks.floors import floors
from posenc.lab.train.training import resolve

FOLDER = Path(__file__).resolve().parent.parent / "experiments"
EXPERIMENTS = sorted(p for p in FOLDER.glob("*.py") if p.name[0] != "_")
RECORDED = [path for path in EXPERIMENTS if record_of(path).is_file()]
EACH = pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda p: p.stem)


@functools.cache
def committed_results(path: Path) -> Results:
    """The committed results of an experiment file, read once."""
    return load(record_of(path))


@functools.cache
def written(path):
    """An experiment as its file says it, executed once."""
    return from_file(path, yes=True)


@functools.cache
def resolved(path):
    """Its runs, resolved once."""
    return [resolve(run) for run in written(path).runs]


BY_TASK = {"atlas", "atlas_encoders", "extension", "ruoss_small", "sensitivity"}
"""Run a task at a time, each for itself in the record."""
SMALL = ("steps=2", "seeds=1", "lr=1e-3", "tuning=0", "rows=2", "batch=2", "width=16", "buckets=1")
SMALLEST = {
    "addition": ("length=2", "shortest=1", "sizes=2,3"),
    "atlas": ("length=10", "sizes=10,12"),
    "atlas_contrasts": ("length=8", "sizes=8,9"),
    "atlas_encoders": ("length=9", "sizes=9,10"),
    "atlas_longer": ("length=9", "sizes=9,10"),
    "atlas_recall": ("length=32", "shortest=32", "sizes=32,34"),
    "atlas_recall_seeds": ("length=32", "shortest=32", "sizes=32,34"),
    "averaging": ("length=8", "sizes=8,9"),
    "base": ("length=8", "sizes=8,9"),
    "base_content": ("length=16", "shortest=16", "sizes=16,18"),
    "both": ("length=8", "shortest=8", "sizes=8,9"),
    "copying": ("heads=2", "length=4", "shortest=4", "sizes=4,5"),
    "counting": ("length=4", "sizes=4,5"),
    "deletang": ("length=4", "sizes=4,5"),
    "extension": ("steps=20", "sizes=16,32"),
    "first_look": ("length=8", "shortest=8", "sizes=8,9"),
    "flipflop": ("length=8", "sizes=8,10"),
    "gates": ("length=17", "shortest=17", "sizes=17,18"),
    "induction": ("length=8", "shortest=8", "sizes=8,10"),
    "invariance": ("length=2", "sizes=1,4"),
    "language": ("length=8", "shortest=8", "sizes=8,16"),
    "language_control": ("length=8", "shortest=8", "sizes=8,16"),
    "larger": ("depth=1", "heads=2", "length=16", "shortest=16", "sizes=16,18"),
    "length": ("length=4", "sizes=4,5"),
    "memory": ("length=25", "shortest=25", "sizes=25,26"),
    "newcomers": ("length=8", "shortest=8", "sizes=8,10"),
    "norms": ("length=5", "sizes=5,6"),
    "permutation": ("length=8", "sizes=8,9"),
    "rasp": ("length=4", "shortest=4", "sizes=4,5"),
    "recall": ("length=64", "shortest=64", "sizes=64,66"),
    "reversal": ("length=4", "sizes=4,5"),
    "ruoss": ("length=4", "longest=2048", "sizes=4,5"),
    "ruoss_small": ("length=4", "sizes=4,5"),
    "sensitivity": ("length=8", "shortest=8", "sizes=8,9"),
    "sites": ("length=9", "sizes=9,10"),
    "state": ("length=3", "sizes=3,4"),
    "text": ("length=16", "sizes=16,32"),
}


@EACH
def test_an_experiment_says_what_it_claims(path):
    head = written(path).header
    for part in ("claim", "source", "cost", "command", "variation", "result"):
        assert getattr(head, part), f"{path.name} has no {part}"
    assert f"posenc sweep experiments/{path.name}" in head.command or "quickstart" in head.command
    recorded = record_of(path).exists()
    without = head.result == "not run." or not head.attempted
    assert recorded != without, "a result has a record, and a record a result"


@EACH
def test_what_was_published_is_data_and_of_a_setting_that_is_told(path):
    made = written(path)
    assert all(isinstance(one, Published | Order) for one in made.published)
    assert len(set(made.published)) == len(made.published)
    assert bool(made.published) <= bool(made.header.setting), "say what is smaller or other than where it was published"
    assert made.published or path.stem in ("first_look", "language_control", *atlas.EXPERIMENTS)


@EACH
def test_what_was_published_says_where_it_was_seen_and_the_header_what_is_from_memory(path):
    made = written(path)
    theirs = [one for one in made.published if one.origin == "published"]
    assert all(one.seen in SEEN and "memory" not in one.source for one in theirs)
    assert all(one.seen is None for one in made.published if one.origin == "ours")
    assert ("memory" in made.header.source) == ("memory" in {one.seen for one in theirs})


@EACH
def test_what_was_published_is_of_runs_that_are_planned(path):
    """By the very labels that results will have; a slip of spelling would be 'not run' for ever."""
    made, cells = written(path), resolved(path)
    lines = [UnfinishedTrial(**vars(line), outcome="pending") for line in plan.lines(made, cells)]
    results = Results(made.name, (), unfinished=tuple(lines))
    sizes = {(line.task, results.label(line, line)): set(line.sizes) for line in lines}
    ends = ((line, (cell.run.shortest, cell.run.trained_to)) for line, cell in _with(lines, cells))
    ranges = {(line.task, results.label(line, line)): between for line, between in ends}
    schemes = {scheme for _, scheme in sizes}
    for said in made.published:
        names = (said.first, said.second) if isinstance(said, Order) else (said.scheme,)
        for name in map(_trained_with, names):
            if said.task == ALL:
                assert name in schemes, name
                continue
            key = said.task, name
            assert key in sizes, f"{key} is no run of {path.name}; it has {sorted(sizes)}"
            low, high = ranges[key]
            if isinstance(said.over, tuple):
                assert set(said.over) <= sizes[key], said
            elif said.over == "beyond":
                assert any(n > high for n in sizes[key]), said
            else:
                assert any(low <= n <= high for n in sizes[key]), said


def _trained_with(label):
    """The label of the run itself, where a result is of its models under another scheme."""
    under, between, run = label.partition(WITH)
    assert not between or plan.shortest(under) == under, f"results would call it {plan.shortest(under)}"
    return run or under


def _with(lines, cells):
    """Lines with their cells: each cell has as many lines as there are sets of knobs."""
    each = len(lines) // len(cells)
    return zip(lines, [cell for cell in cells for _ in range(each)], strict=True)


def recorded_anew(name, made, folder, monkeypatch):
    """The module of an experiment, and the record that it writes of kept models of these runs."""
    module = executed(FOLDER / f"{name}.py")
    record = folder / module.RECORD.name
    with watching() as watch:
        assert sweep(made, folder / "runs", keep=True, watch=watch) == 0
    monkeypatch.setattr(module, "RECORD", record)
    module.main(str(folder / "runs"))
    results = load(record)
    assert not results.problems
    return module, results


@pytest.mark.nightly  # the dearest: two models are trained, kept, built anew and measured
def test_invariance_is_measured_on_kept_models(tmp_path, monkeypatch):
    """RoPE does not notice where a text begins, untrained or trained; sinusoids do; all notice another token."""
    path = FOLDER / "invariance.py"
    made = from_file(path).changed(texts([*SMALL, *SMALLEST["invariance"]], "--set"))
    made = replace(made, runs=tuple(r for r in made.runs if r.scheme in ("rope", "sinusoidal")))
    with watching() as watch:
        assert sweep(made, tmp_path / "runs", keep=True, watch=watch) == 0
    module = executed(path)
    monkeypatch.setattr(module, "MEASURED", tmp_path / "measured.csv")
    module.main(str(tmp_path / "runs"))
    for state in ("untrained", "trained"):
        moved, influence = module._read("moved", state), module._read("influence", state)
        assert set(moved) == {"rope", "sinusoidal"} and set(moved["rope"]) == set(module.SHIFTS)
        assert max(v for values in moved["rope"].values() for v in values) < 1e-4
        assert max(v for values in moved["sinusoidal"].values() for v in values) > 1e-3
        assert all(v > 1e-4 for found in influence.values() for v in found[0]), "its own token tells most"
    assert len(module.figure(load(tmp_path / "runs")).figure.axes) == 3


@pytest.mark.nightly  # as dear: a model of two, evaluated under thirty schemes
def test_extension_evaluates_kept_models_and_writes_one_record(tmp_path, monkeypatch):
    """Every method at every factor, without further training and after it, in one record that its figure is of."""
    made = from_file(FOLDER / "extension.py").changed(texts(SMALL, "--set") | texts(SMALLEST["extension"], "--set"))
    back = made.runs[0].task
    made = replace(made, runs=tuple(r for r in made.runs if r.task == back and (r.then or "pi").find("pi") >= 0))
    module, results = recorded_anew("extension", made, tmp_path, monkeypatch)
    assert back == module.BACK and len(trials_of(results)) == 2
    labels = {row.scheme for row in results.rows()}
    every = {module.label(m, f, False) for m in module.SCHEMES for f in module.FACTORS[1:]}
    assert every <= labels and module.label("pi", 8, True) in labels
    assert len(module.figure(results).figure.axes) == 2, "without training and after it"


@pytest.mark.nightly  # as dear
def test_a_record_of_the_atlas_takes_the_tasks_that_are_trained_and_rope_under_what_changes_it(tmp_path, monkeypatch):
    """One task after another; a task that lacks a trial waits."""
    extend_record = executed(FOLDER / "atlas.py").extend_record
    made = from_file(FOLDER / "atlas_encoders.py").changed(texts([*SMALL, *SMALLEST["atlas_encoders"]], "--set"))
    made = made.only(["task=before,count_symbol", "scheme=rope,learned"])
    record, run = tmp_path / "atlas_encoders.json", tmp_path / "runs"
    rows = {"rope", "learned", *map(atlas.row_of, atlas.AFTER_TRAINING)}
    begun = made.only(["task=before"]), replace(made, runs=made.runs[:3]), made
    for part, task in zip(begun, ("before", None, "count_symbol"), strict=True):
        with watching() as watch:
            assert sweep(part, run, keep=True, watch=watch) == 0
        assert extend_record(made, record, str(run)) == [task] * bool(task)
    cells = [(cell.row, cell.probe) for cell in atlas_cells(load(record))]
    assert sorted(cells) == sorted((row, probe) for row in rows for probe in ("order", "count"))


@pytest.mark.timeout(3600)
@pytest.mark.nightly  # a program for each run, of which there are hundreds
@EACH
def test_every_run_of_an_experiment_trains_two_steps_and_its_figure_is_drawn(path, tmp_path):
    made = from_file(path, yes=True).changed(texts(SMALL, "--set") | texts(SMALLEST[path.stem], "--set"))
    with watching() as watch:
        assert sweep(made, tmp_path / "runs", watch=watch) == 0
    results = load(tmp_path / "runs")
    assert not results.unfinished and {row.outcome for row in results.rows()} == {"done"}
    assert drawing(made, results)[0].figure.axes


@pytest.mark.timeout(3600)
@pytest.mark.nightly  # 180 runs of the largest alone
@EACH
def test_every_run_of_an_experiment_can_run_at_its_own_size(path):
    assert plan.resolved_runs(from_file(path, yes=True))


def test_the_table_of_ruoss_sums_to_what_its_abstract_says():
    """Best of each half, mean over tasks: 12.0 percent apart, which a slip in any of the maxima would move."""
    rows = written(FOLDER / "ruoss.py").published
    of = {}
    for one in rows:
        of.setdefault(one.task, {}).setdefault("@" in one.scheme, []).append(one.value)
    assert len(rows) == 165 and Counter(map(len, of.values())) == {2: 15}
    best = [sum(max(halves[random]) for halves in of.values()) / len(of) for random in (True, False)]
    assert best == pytest.approx([0.6697, 0.5502], abs=5e-5) and best[0] - best[1] == pytest.approx(0.12, abs=6e-4)
    plain = {task: max(halves[False]) for task, halves in of.items()}
    theirs = {task: share for task, (_, share) in executed(FOLDER / "deletang.py").BEST.items()}
    source = written(FOLDER / "ruoss.py").header.source
    assert f"is {100 * (best[0] - best[1]):.2f} points ahead of the best plain one, 12.0 in the abstract" in source
    assert {task for task in theirs if plain[task] != pytest.approx(theirs[task])} == {"parity_check"}
    assert f"parity is {100 * theirs['parity_check']:.1f} for {100 * plain['parity_check']:.1f}" in source


@pytest.mark.timeout(3600)
@pytest.mark.nightly  # texts of 500 characters by the thousand, for fifteen tasks
def test_the_floors_of_ruoss_are_those_of_its_tasks():
    """The mean over all sizes from 41 to 500, from nine of them by the trapezoid rule."""
    said = {one.task: one.floor for one in from_file(FOLDER / "ruoss.py", yes=True).published}
    sizes = PRESETS["ruoss"].plan.sizes
    for name, floor in said.items():
        at = floors(tasks.parse(name), sizes)
        kinds = [k for k in FLOORS if all(at[n].get(k) is not None for n in sizes)]
        means = [np.trapezoid([at[n][k] for n in sizes], sizes) / (sizes[-1] - sizes[0]) for k in kinds]
        assert max(means) == pytest.approx(floor, abs=0.01), name


def trials_of(results):
    """The trials of a record that were trained; the others are models of these under another scheme."""
    records = (*results.records, *results.tuning)
    return sorted(id for record in records if "under" not in record.run for id in record.ids)


def recorded_part(path):
    """The experiment and its record. Of one that is run a task at a time, it is that of the tasks its record holds."""
    experiment, results = written(path), committed_results(path)
    if path.stem not in BY_TASK:
        return experiment, results
    held = {label.partition("(")[0] for label in results.tasks()}
    return replace(
        experiment, runs=tuple(run for run in experiment.runs if run.task.partition("(")[0] in held)
    ), results


@pytest.mark.parametrize("path", RECORDED, ids=lambda p: p.stem)
def test_a_record_holds_every_trial_of_its_experiment(path):
    experiment, results = recorded_part(path)
    sizes = set(experiment.plan.sizes or {row.size for row in results.rows()})
    assert results.problems == () and not results.unfinished and {row.size for row in results.rows()} == sizes
    assert len(trials_of(results)) == experiment.trials


@pytest.mark.parametrize("path", RECORDED, ids=lambda p: p.stem)
def test_what_came_later_leaves_the_names_of_recorded_trials_as_they_were(path):
    """The same command on a committed record has nothing left to train."""
    experiment, recorded = recorded_part(path)
    read = {text: digest for record in recorded.records for text, digest in record.run.get("sources", {}).items()}
    if other := [text for text, digest in read.items() if named_digest(text) != digest]:
        pytest.skip(f"trials are named by the texts that they read; in this version of Python {other[0]} is another")
    kept, rates = set(experiment.runs), decided(recorded)
    cells = [cell for run, cell in zip(written(path).runs, resolved(path), strict=True) if run in kept]
    assert sorted(id for c in cells for id in plan.wanted(c, experiment.plan, rates)) == trials_of(recorded)


def test_words_of_an_experiment_are_of_tasks_and_lines_that_it_has():
    for path in RECORDED:
        experiment, results = written(path), committed_results(path)
        labels = {c.scheme for c in cells(results)}
        schemes = {label.partition(" (")[0] for label in labels}
        titled, held = set(experiment.words["titles"]), set(results.tasks())
        assert titled == held or path.stem in BY_TASK and titled > held, path.stem
        # tasks that were not run yet may have lines of their own
        assert set(experiment.words.get("names", ())) <= labels | schemes or path.stem in BY_TASK, path.stem
        assert experiment.words["counted"] != "size"
