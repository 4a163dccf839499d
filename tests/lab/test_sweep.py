"""A sweep end to end, tiny: it resumes without repeating, adds only what is new, and loses nothing to a signal."""

import contextlib
import dataclasses
import json
import os
import shutil
import signal
from types import SimpleNamespace

import numpy as np
import pytest

from posenc.lab.cli import main
from posenc.lab.figures.tables import table
from posenc.lab.results.results import load
from posenc.lab.run import plan, trainer, worker
from posenc.lab.run import sweep as sweeping
from posenc.lab.run.sweep import rehearse, sweep
from posenc.lab.spec.experiment import Experiment, grid
from posenc.lab.spec.run import Plan, Run
from posenc.lab.store import checkpoints
from posenc.lab.store import folder as store
from posenc.lab.train.device import describe

BASE = Run(task="even_pairs", width=8, depth=1, heads=2, hidden=8, batch=4, length=4)
PLAN = Plan(steps=4, seeds=(0, 1), sizes=(4, 8), rows=8, segment=2)


def experiment(**change):
    return Experiment("tiny", grid(BASE, scheme=["rope", "nope"]), dataclasses.replace(PLAN, **change))


class Watch:
    """Remembers what it is told, and may do something at a step."""

    def __init__(self, at_step=None):
        self.heard, self.at_step = [], at_step

    def __getattr__(self, name):
        def hear(*said):
            self.heard.append((name, *said))
            if name == "step" and self.at_step:
                self.at_step(*said)

        return hear

    def labels(self):
        return [said[1] for said in self.heard if said[0] == "group"]

    def notes(self):
        return [said[1] for said in self.heard if said[0] == "note"]


def trials(folder):
    return {t.id: t for r in store.read_records(folder).records for t in r.trials}


def test_everything_planned_is_recorded(whole):
    found = trials(whole)
    assert len(found) == 4 and {t.outcome for t in found.values()} == {"done"}
    assert store.status(whole).counts["done"] == 4
    for trial in found.values():
        assert set(trial.evaluations) == {4, 8} and all(e["rows"] == 8 for e in trial.evaluations.values())
        assert set(trial.validation) == {4} and trial.validation[4]["rows"] == 8
        assert trial.curve["step"] == [1, 2, 3, 4] and np.isfinite(trial.curve["loss"]).all()


def test_a_record_says_where_it_is_from(whole):
    about = store.read_records(whole).records[0].provenance
    assert {"posenc", "commit", "python", "jax", "flax", "device", "lanes", "ended", "seconds"} <= set(about)


def test_the_same_command_again_does_nothing(whole):
    watch = Watch()
    before = {p: p.stat().st_mtime_ns for p in (whole / "records").iterdir()}
    assert sweep(experiment(), whole, watch=watch) == 0
    assert watch.labels() == [] and before == {p: p.stat().st_mtime_ns for p in (whole / "records").iterdir()}


def copy_results(folder, to):
    """What another worker has done meanwhile."""
    for part in ("records", "params"):
        shutil.copytree(folder / part, to / part, dirs_exist_ok=True)


def test_models_that_another_worker_kept_meanwhile_are_not_trained_again(whole, tmp_path):
    watch = Watch(lambda *_: copy_results(whole, tmp_path / "x"))
    assert sweep(experiment(), tmp_path / "x", watch=watch, keep=True) == 0
    assert watch.labels() == ["rope · even_pairs"] and trials(tmp_path / "x") == trials(whole)


def test_a_signal_ends_after_the_segment_and_the_rest_resumes_to_the_same_table(whole, tmp_path):
    folder, sent = tmp_path / "cut", []

    def stop(label, steps, total, loss):
        if label.startswith("nope") and not sent:
            sent.append(os.kill(os.getpid(), signal.SIGTERM))

    assert sweep(experiment(), folder, watch=Watch(stop)) == 75
    assert len(trials(folder)) == 2, "the group that was finished is recorded, the one cut short is not"
    resumed = Watch()
    assert sweep(experiment(), folder, watch=resumed) == 0
    assert [label.split(" ")[0] for label in resumed.labels()] == ["nope"]
    assert table(load(folder), "csv") == table(load(whole), "csv")
    assert trials(folder) == trials(whole)


def test_running_out_of_memory_is_an_outcome_of_its_own(tmp_path, monkeypatch):
    def full(*_):
        raise RuntimeError("RESOURCE_EXHAUSTED: planted")

    monkeypatch.setattr(trainer, "program", full)
    assert sweep(experiment(), tmp_path / "x", watch=Watch()) == 1
    assert store.status(tmp_path / "x").counts["oom"] == 4


def test_what_cannot_run_is_refused_before_anything_is_written(tmp_path):
    bad = Experiment("bad", (BASE, dataclasses.replace(BASE, scheme="learned", longest=4)), PLAN)
    with pytest.raises(ValueError, match="learned.*even_pairs"):
        sweep(bad, tmp_path / "x", watch=Watch())
    assert not (tmp_path / "x").exists()


def test_a_rehearsal_counts_and_writes_nothing(whole, tmp_path):
    said = rehearse(experiment(seeds=(0, 1, 2)), tmp_path / "x")
    assert (said["trials"], said["done"], said["programs"]) == (6, 0, 9) and said["seconds"] > 0
    fresh = said["operations"]
    assert said["device"] == describe()["device"]
    assert not (tmp_path / "x").exists()
    said = rehearse(experiment(seeds=(0, 1, 2)), whole)
    assert (said["trials"], said["done"], said["programs"]) == (6, 4, 9)
    assert 0 < said["operations"] == pytest.approx(fresh / 3), "one seed of three is left"


def test_a_command_resolves_and_traces_each_run_once(tmp_path, monkeypatch):
    traced, rehearsed = [], plan.rehearsed
    monkeypatch.setattr(worker.Worker, "carry_out", lambda *_: 0)
    monkeypatch.setenv("POSENC_RUNS", str(tmp_path))
    monkeypatch.setattr(plan, "rehearsed", lambda run, *rest: (traced.append(run.scheme), rehearsed(run, *rest))[1])
    monkeypatch.setattr(plan, "planned_run", None)
    model = "width=8 depth=1 heads=2 hidden=8 batch=4 length=4 steps=0 sizes=4 rows=8"
    words = f"sweep --grid scheme=rope,nope task=even_pairs --set {model} --seeds 1 --name x"
    main(words.split())
    assert traced == ["rope", "nope"] and len(store.read_plan(tmp_path / "x")) == 2


def test_an_estimate_is_not_slower_for_what_others_do_at_times(monkeypatch):
    """All products but one wait for another program; 1024 times 1024 is 2³¹ operations, here in a second."""
    clock = iter(np.cumsum([0, 9, 1, 5] + [0, 1] + [3, 7] * 6).tolist())
    monkeypatch.setattr(sweeping, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    assert sweeping.peak() == 2**31


@pytest.mark.ci
def test_kept_parameters_come_back_bit_for_bit_and_make_the_recorded_numbers(whole):
    import jax
    import jax.numpy as jnp
    from flax import nnx

    from posenc.lab.reuse.kept import restored
    from posenc.lab.train.evaluation import evaluate
    from posenc.lab.train.exact import FAR
    from posenc.lab.train.lanes import Arrangement
    from posenc.lab.train.training import pure

    line = store.read_plan(whole)[0]
    cell = plan.planned_run(line.run)
    model, kept = restored(cell, whole, line.id), checkpoints.restore(whole, line.id)
    jax.tree.map(np.testing.assert_array_equal, jax.tree.leaves(pure(model)), jax.tree.leaves(kept))
    assert model.readout.get_value().shape[-1] == cell.task.classes, "and no class that the task does not have"
    lanes, seed = jax.tree.map(lambda a: a[None], model), jnp.full(1, line.knobs.seed, jnp.uint32)
    for examples, sizes, chosen in (("evaluations", line.sizes, False), ("validation", [4], True)):
        sums = evaluate(cell, line.rows, Arrangement("map", 1), lanes, seed, sizes, [chosen] * len(sizes))
        sums = {name: a[0] for name, a in sums.rows.items() if name != FAR}
        recorded = getattr(trials(whole)[line.id], examples)
        assert recorded == {n: {name: int(a[at]) for name, a in sums.items()} for at, n in enumerate(sizes)}
    assert isinstance(nnx.state(model), nnx.State)


def test_a_group_that_another_worker_finishes_is_not_run_again(whole, tmp_path, monkeypatch):
    """Held at first, then recorded by the other: nothing is trained twice, and the sweep ends when all is done."""
    folder, theirs = tmp_path / "shared", {line.group for line in store.read_plan(whole)}
    real = store.claim

    @contextlib.contextmanager
    def busy(place, group):
        if group in theirs:
            theirs.remove(group)
            yield None
            for path in (whole / "records").iterdir():
                shutil.copy(path, place / "records")
        else:
            with real(place, group) as claim:
                yield claim

    monkeypatch.setattr(store, "claim", busy)
    monkeypatch.setattr("posenc.lab.run.worker.PAUSES", (0.0, 0.0))
    watch = Watch()
    assert sweep(experiment(), folder, watch=watch) == 0
    assert watch.labels() == [] and store.status(folder).counts["done"] == 4
    assert [said[1] for said in watch.heard if said[0] == "others"][-1] == 4
    assert ["2 groups" in note for note in watch.notes()] == [True]


@pytest.mark.ci
def test_a_signal_ends_the_wait_for_another_worker(tmp_path, monkeypatch):
    @contextlib.contextmanager
    def busy(*_):
        os.kill(os.getpid(), signal.SIGTERM)
        yield None

    assert sweep(experiment(steps=0), tmp_path / "x", watch=Watch()) == 0
    monkeypatch.setattr(store, "claim", busy)
    monkeypatch.setattr(store, "write_plan", lambda *_: None)
    next((tmp_path / "x" / "records").iterdir()).unlink()
    assert sweep(experiment(steps=0), tmp_path / "x", watch=Watch()) == 75


def test_a_trial_is_named_by_everything_that_decides_its_result():
    def name(run, seed=0, steps=4):
        from posenc.lab.train.training import resolve

        knobs = Plan(seeds=(seed,)).knobs()[0]
        return plan.identity(resolve(run), knobs, steps)

    base = name(BASE)
    assert base == name(dataclasses.replace(BASE, scheme="rope(base=10000)")), "a default written out is the default"
    assert base == name(dataclasses.replace(BASE, hidden=8, longest=16)), "what is filled in is what is hashed"
    changed = [
        dataclasses.replace(BASE, scheme="rope(base=20000.0)"),
        dataclasses.replace(BASE, width=16),
        dataclasses.replace(BASE, task="parity_check"),
        dataclasses.replace(BASE, length=5),
        dataclasses.replace(BASE, dataset=8),
        dataclasses.replace(BASE, uniform="numbers"),
        dataclasses.replace(BASE, evaluation="as_trained"),
    ]
    assert len({base, name(BASE, seed=1), name(BASE, steps=5), *map(name, changed)}) == 10


def test_a_new_revision_is_a_new_trial(monkeypatch):
    from posenc.lab.models.kinds import EncoderModel
    from posenc.lab.train.training import resolve
    from posenc.schemes.rope import RoPE

    knobs = Plan().knobs()[0]
    before = plan.identity(resolve(BASE), knobs, 4)
    for thing, name in ((RoPE, "revision"), (plan.train, "REVISION"), (EncoderModel, "revision")):
        with monkeypatch.context() as patch:
            patch.setattr(thing, name, getattr(thing, name) + 1)
            assert plan.identity(resolve(BASE), knobs, 4) != before


def test_the_plan_holds_no_path_of_this_machine(whole):
    for path in (whole / "plan.jsonl", whole / "sweep.toml", *(whole / "records").iterdir()):
        assert str(whole.parent) not in path.read_text()
    json.loads((whole / "plan.jsonl").read_text().splitlines()[0])
