"""The driver of a cluster: what it sends and writes, and what becomes of losses, failures, refusals and signals."""

import errno
import json
import os
import pickle
import signal
import socket
import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest

from posenc.lab.run.ray import LOST_AT_MOST, Driver
from posenc.lab.run.sweep import plan_experiment
from posenc.lab.run.worker import waiting
from posenc.lab.store import checkpoints
from posenc.lab.store import folder as store
from posenc.lab.store.claims import Claim
from tests.lab import made
from tests.lab.inline import Inline, driven
from tests.lab.test_sweep import Watch, copy_results, experiment, trials


@pytest.fixture
def run(tmp_path):
    """A run that is planned, and the lines of its groups."""
    folder = tmp_path / "far"
    plan_experiment(experiment(), folder)
    groups = waiting(folder, store.read_plan(folder), (), False)
    return SimpleNamespace(folder=folder, groups=list(groups), lines=groups)


def as_json(folder):
    return {id: json.dumps([t.evaluations, t.validation, t.curve]) for id, t in trials(folder).items()}


def lines(parcel):
    return pickle.loads(parcel["lines"])


def left(folder):
    """What a run that ended leaves of claims and checkpoints."""
    return [path.name for part in ("ckpt", "claims") for path in (folder / part).glob("*")]


def test_nodes_train_what_a_sweep_would_and_the_driver_records_it(run, whole):
    watch, cluster = Watch(), Inline()
    assert driven(run.folder, cluster, watch, keep=True) == 0
    assert as_json(run.folder) == as_json(whole) and left(run.folder) == []
    assert made.recorded(run.folder).keys() == made.recorded(whole).keys() and len(cluster.parcels) == 2
    for id in trials(whole):
        ours, theirs = (checkpoints.restore(folder, id) for folder in (run.folder, whole))
        assert str(ours) == str(theirs)
    assert [said[0] for said in watch.heard if said[0] in ("group", "finished")] == ["group", "finished"] * 2
    assert any(": on " in line for line in watch.notes())


def test_models_that_another_worker_kept_meanwhile_are_not_sent(run, whole, monkeypatch):
    def take(driver, *group, real=Driver._take):
        copy_results(whole, run.folder)
        return real(driver, *group)

    monkeypatch.setattr(Driver, "_take", take)
    cluster = Inline()
    assert driven(run.folder, cluster, Watch(), keep=True) == 0 and cluster.parcels == []


def test_claims_and_the_log_say_where_and_how_far_a_group_is(run, monkeypatch):
    monkeypatch.setattr("posenc.lab.run.progress.EVERY", 0.0)
    jobs, kept = [], []

    def record(self, group, answer, real=Driver._record):
        kept.append(group)  # so that nothing but the driver gives its claim back
        jobs.append(json.loads((run.folder / "claims" / group.name).read_text())["job"])
        real(self, group, answer)

    monkeypatch.setattr(Driver, "_record", record)
    assert driven(run.folder, Inline(), Watch()) == 0
    assert jobs == [f"ray on {socket.gethostname()}"] * 2 and left(run.folder) == []
    (log,) = (run.folder / "events").iterdir()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["event"] for line in lines] == ["started", "step", "step", "done"] * 2
    assert {(line["group"], line["step"], line["steps"]) for line in lines[2::4]} == {(g, 4, 4) for g in run.groups}


def test_a_group_that_is_lost_goes_on_elsewhere_from_its_checkpoint(run, whole):
    watch = Watch()
    cluster = Inline(lambda parcel, number: cluster.cut(parcel) if number == 0 else None)
    assert driven(run.folder, cluster, watch) == 0
    assert as_json(run.folder) == as_json(whole) and left(run.folder) == []
    text = "\n".join(watch.notes())
    assert "NodeDiedError); sent again." in text and "goes on from step 2." in text
    tokens = [parcel["token"] for parcel in cluster.parcels]
    assert len(tokens) == len(set(tokens)) == 3, "attempts never write to one place"


def test_a_group_that_is_lost_again_and_again_fails_and_the_others_do_not(run):
    first = run.groups[0]
    crashed = {"kind": "lost", "why": "WorkerCrashedError"}
    cluster, watch = Inline(lambda parcel, _: crashed if lines(parcel)[0].group == first else None), Watch()
    assert driven(run.folder, cluster, watch) == 1
    assert len(cluster.parcels) == LOST_AT_MOST + 1
    status = store.status(run.folder)
    assert status.counts["failed"] == 2 and status.counts["done"] == 2
    assert any("5 times" in n and "step 0 (WorkerCrashedError)" in n for n in watch.notes())
    assert left(run.folder) == []


@pytest.mark.parametrize(("says", "outcome"), [("RESOURCE_EXHAUSTED: 5 GiB", "oom"), ("boom", "failed")])
def test_a_failure_on_a_node_is_kept_with_its_traceback_and_ends_no_sweep(run, monkeypatch, says, outcome):
    def broken(*_):
        raise RuntimeError(says)

    watch = Watch()
    with monkeypatch.context() as patch:
        patch.setattr("posenc.lab.run.trainer._trial", broken)
        assert driven(run.folder, Inline(), watch) == 1
    errors = store.read_errors(run.folder)
    assert {kind for kind, _ in errors.values()} == {outcome} and len(errors) == 2
    assert all("in broken" in text and says in text for _, text in errors.values())
    assert len([line for line in watch.notes() if f"RuntimeError: {says} (see " in line]) == 2
    assert driven(run.folder, Inline(), Watch()) == 0, "another command tries again"


def test_a_node_that_differs_is_refused_in_a_sentence_and_nothing_of_it_is_recorded(run, monkeypatch):
    cluster = Inline()
    cluster.act = lambda parcel, _: parcel["software"].update(jax="0.0.1")
    with pytest.raises(ValueError, match=r"jax [\d.]+.* 0\.0\.1"):
        driven(run.folder, cluster, Watch())
    assert cluster.stopped and trials(run.folder) == {} and left(run.folder) == []


def test_a_run_that_a_node_would_name_otherwise_is_refused(run):
    cluster = Inline()

    def rename(parcel, number):
        other = [
            replace(line, run=json.loads(json.dumps(line.run).replace('"training": 1', '"training": 99')))
            for line in lines(parcel)
        ]
        parcel["lines"] = pickle.dumps(other)

    cluster.act = rename
    with pytest.raises(ValueError, match="version"):
        driven(run.folder, cluster, Watch())


def test_modules_that_a_node_lacks_are_named(run):
    with pytest.raises(ValueError, match="'absent'"):
        driven(run.folder, Inline(), Watch(), imports=("absent",))


def test_a_node_that_does_not_see_the_place_trains_without_checkpoints_and_says_so_once(run, whole, tmp_path):
    watch, cluster = Watch(), Inline()
    cluster.act = lambda parcel, _: parcel.update(sign="0" * 16)
    assert driven(run.folder, cluster, watch, every=1e-9) == 0
    assert as_json(run.folder) == as_json(whole)
    why = f"{run.folder} is not seen by every node; give --checkpoints a folder or URL that all nodes see."
    assert [line for line in watch.notes() if line.startswith("No checkpoints")] == [f"No checkpoints: {why}"]


def test_a_signal_has_nodes_save_and_the_same_command_goes_on(run, whole):
    cluster, watch = Inline(), Watch()

    def act(parcel, number):
        if number == 0:
            os.kill(os.getpid(), signal.SIGTERM)
        return cluster.cut(parcel) if number == 0 else None

    cluster.act = act
    assert driven(run.folder, cluster, watch) == 75
    assert cluster.stopped and "the same command goes on" in watch.notes()[-1]
    assert checkpoints.groups(run.folder) and not list((run.folder / "claims").iterdir())
    again = Watch()
    assert driven(run.folder, Inline(), again) == 0
    assert as_json(run.folder) == as_json(whole) and any("goes on from step 2" in line for line in again.notes())


def test_what_is_finished_when_a_signal_comes_is_recorded(run):
    class Late(Inline):
        def get(self, ref):
            if ref == 0:
                os.kill(os.getpid(), signal.SIGTERM)
            return super().get(ref)

    cluster = Late()
    assert driven(run.folder, cluster, Watch()) == 75 and cluster.stopped
    assert len(trials(run.folder)) == 2, "the one that had begun"


def test_groups_that_others_hold_are_awaited_and_not_sent(run, whole):
    first, held = next(iter(run.lines.items()))
    (record,) = [r for r in store.read_records(whole).records if r.ids == [line.id for line in held]]

    class Beside(Inline):
        def get(self, ref):
            answer = super().get(ref)
            if isinstance(ref, int):
                threading.Timer(0.5, lambda: store.write_record(run.folder, record)).start()
                threading.Timer(0.7, other.path.unlink).start()
            return answer

    with store.claim(run.folder, first) as other:
        cluster, watch = Beside(), Watch()
        assert driven(run.folder, cluster, watch) == 0
    assert len(cluster.parcels) == 1 and as_json(run.folder) == as_json(whole)
    assert any("Other workers" in note for note in watch.notes())


def test_the_answer_of_a_group_that_another_worker_took_is_not_written(run):
    def steal(parcel, number):
        for path in (run.folder / "claims").iterdir():
            path.write_text(json.dumps({"token": "another"}))

    watch, cluster = Watch(), Inline(steal, cores=0)
    beaten = Claim.taken

    def taken(claim):
        claim.beat()
        return beaten(claim)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Claim, "taken", taken)
        driven(run.folder, cluster, watch)
    assert trials(run.folder) == {} and len([said for said in watch.heard if said[0] == "taken"]) == 2


@pytest.mark.parametrize("times", [1, 99])
def test_a_full_disk_gets_the_space_of_checkpoints_and_loses_nothing(run, whole, monkeypatch, times):
    real, left_to_fail, watch = store.write_record, [times], Watch()

    def full(folder, record):
        if left_to_fail[0]:
            left_to_fail[0] -= 1
            raise store.DiskError(errno.ENOSPC, "full")
        return real(folder, record)

    with monkeypatch.context() as patch:
        patch.setattr(store, "write_record", full)
        if times == 1:
            assert driven(run.folder, Inline(), watch) == 0
        else:
            cluster = Inline()
            with pytest.raises(store.DiskError):
                driven(run.folder, cluster, watch)
            assert cluster.stopped and left(run.folder) == []
    assert any("full" in line and "dropped" in line for line in watch.notes())
    assert driven(run.folder, Inline(), Watch()) == 0
    assert as_json(run.folder) == as_json(whole)


def test_what_a_driver_left_that_was_killed_after_a_record_goes(run):
    assert driven(run.folder, Inline(), Watch()) == 0
    saved, held = (row.group for row in store.status(run.folder).rows[:2])
    (run.folder / "ckpt" / saved / "4.0123456789abcdef").mkdir(parents=True)
    claim = run.folder / "claims" / held
    claim.write_text(json.dumps({"host": "elsewhere", "pid": 1, "token": "t"}))
    os.utime(claim, (0, 0))
    plan_experiment(experiment(seeds=(2,)), run.folder)
    assert driven(run.folder, Inline(), Watch()) == 0
    assert left(run.folder) == []


def test_a_cluster_without_room_for_a_group_is_named_once(run):
    watch = Watch()
    assert driven(run.folder, Inline(cores=0), watch, cpus=4) == 0
    assert ["4 CPUs and 0 GPUs" in n for n in watch.notes() if n.startswith("No node")] == [True]
