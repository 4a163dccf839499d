"""`posenc status` of groups that train: of a real worker, of a hundred made-up ones, and of files that lie."""

import json
import os
import time

import pytest

from posenc.lab.cli import status as command
from posenc.lab.store import claims
from posenc.lab.store import folder as store
from tests.lab import made
from tests.lab.swept import Swept


@pytest.fixture
def folder(posenc):
    """A run of one group that is done and one that waits."""
    folder = made.filled("mine", [made.rope()])
    made.write_plan(folder, made.plan(made.rope(label="alibi"), "waits"))
    return folder


def claim(folder, group, **said):
    content = {"host": "far", "where": "far", "pid": 7, "started": "5", "token": "t", "job": None, **said}
    (folder / "claims" / group).write_text(json.dumps(content))


def events(folder, *lines, worker="far-7"):
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    (folder / "events" / f"{worker}.jsonl").write_text(text)


def step(at, group="waits", **said):
    return {"time": 1.0, "event": "step", "group": group, "step": at, "steps": 1000, "rate": 20.0, **said}


def row(folder, group="waits"):
    return next(row for row in store.status(folder).rows if row.group == group)


@pytest.mark.ci
def test_a_real_worker_says_its_step_rate_time_left_and_checkpoint(tmp_path, posenc):
    run = tmp_path / "runs" / "real"
    swept = Swept(run, steps=2000, report=0.1, every=0.3)
    swept.step(100)
    end, found = time.monotonic() + 30, {}
    while not (found.get("rate") and found.get("saved")) and time.monotonic() < end:
        swept.step(int(found.get("step") or 0) + 20)
        (found,) = [r["running"] for r in json.loads(posenc("status", "real", "--json").out)["groups"] if r["running"]]
    text = posenc("status", "real").out
    swept.process.kill()
    swept.end()
    assert found["pid"] == swept.process.pid and found["job"] is None and 0 <= found["beat"] < 30
    assert 0 < found["step"] < 2000 == found["steps"] and 0 < found["saved"] <= 2000 and 0 <= found["age"] < 30
    assert found["left"] == pytest.approx((2000 - found["step"]) / found["rate"])
    assert f":{swept.process.pid}, step " in text and " of 2000, loss " in text and " steps/s, about " in text
    assert 0 < found["loss"] < 10
    assert " saved " in text and "beat " in text and "running 2" in text


def test_the_last_report_of_the_group_and_the_job_of_the_claim_are_shown(folder, posenc):
    claim(folder, "waits", job="1234_5")
    steps = step(900, "before"), step(100), step(300, loss=0.25), step(500, "other")
    events(folder, *steps, {"event": "saved", "group": "waits"})
    place = folder / "ckpt" / "waits" / "200.0123456789abcdef"
    place.mkdir(parents=True)
    os.utime(place, (time.time() - 125, time.time() - 125))
    found = row(folder).running
    assert (found.step, found.steps, found.rate, found.left, found.saved) == (300, 1000, 20.0, 35.0, 200)
    said = posenc("status", "mine").out
    expected = (
        "far:7, job 1234_5, step 300 of 1000, loss 0.25, 20 steps/s, about 35 s of steps left, step 200 saved 2 min 0"
    )
    assert expected in said and "beat 0 s ago" in said
    events(folder, step(1000, loss=0.25))
    said = posenc("status", "mine").out
    assert "step 1000 of 1000" in said and "evaluating" in said and " left" not in said


def test_a_group_that_was_stopped_says_where_it_goes_on(folder, posenc):
    """As Ctrl-C leaves it: a checkpoint, and no claim."""
    for at in (100, 50):
        (folder / "ckpt" / "waits" / f"{at}.0123456789abcdef").mkdir(parents=True)
    assert row(folder).saved == 100 and row(folder, "g0").saved is None
    assert "alibi   pending 3  saved at step 100\n" in posenc("status", "mine").out
    (folder / "errors" / "waits.txt").write_text("failed\nKaboom: no.\n")
    assert "saved at step 100; Kaboom: no.\n" in posenc("status", "mine").out
    claim(folder, "waits")
    assert row(folder).saved is None and "saved at" not in posenc("status", "mine").out, "its worker says how far it is"


def test_a_worker_that_has_not_reported_is_shown_without_steps(folder, posenc):
    claim(folder, "waits")
    assert row(folder).running.step is None and "far:7, beat 0 s ago" in posenc("status", "mine").out
    events(folder, step(300, rate=None))
    assert row(folder).running.rate is None and "step 300 of 1000, beat" in posenc("status", "mine").out


LIES = {
    "no JSON": ["{"],
    "lists": [[1]],
    "nested": ["[" * 100_000],
    "a step beyond the end": [step(2000)],
    "a step below 0": [step(-1)],
    "a text": [step("3")],
    "true": [step(True)],
    "huge": [step(10**400, steps=10**401)],
    "no number": [step(3, rate=float("nan"))],
    "half a line": [step(3), "x" * 5000],
}


@pytest.mark.parametrize("lie", LIES)
def test_a_log_that_lies_is_not_believed_and_costs_nothing(folder, lie, posenc):
    claim(folder, "waits")
    events(folder, *LIES[lie])
    assert row(folder).running.step is None and posenc("status", "mine").code == 0


@pytest.mark.parametrize("rate", [0, -1, "fast", 10**400, True])
def test_a_rate_that_cannot_be_gives_no_time_left(folder, rate):
    claim(folder, "waits")
    events(folder, step(3, rate=rate))
    assert (row(folder).running.step, row(folder).running.left) == (3, None)


@pytest.mark.parametrize("host", ["../../../etc", "a/b", "", "x" * 500, 5, None, [1]])
def test_a_claim_of_a_host_with_an_odd_name_reads_no_other_file(folder, host, posenc):
    claim(folder, "waits", host=host)
    said = posenc("status", "mine")
    assert said.code == 0 and row(folder).running.step is None


@pytest.mark.timeout(10)
def test_a_pipe_in_the_place_of_a_log_is_waited_for_by_nobody(folder):
    claim(folder, "waits")
    os.mkfifo(folder / "events" / "far-7.jsonl")
    assert row(folder).running.step is None


def test_many_workers_are_read_from_the_ends_of_their_logs(folder, posenc, monkeypatch):
    made.write_plan(folder, [line for n in range(100) for line in made.plan(made.rope((100 + n,)), f"w{n:03}")])
    long = json.dumps(step(1)) + "\n"
    for n in range(100):
        claim(folder, f"w{n:03}", host=f"h{n}", pid=n)
        events(folder, long * 500 + json.dumps(step(n, f"w{n:03}")), worker=f"h{n}-{n}")
    sizes, real = [], store._last_lines
    monkeypatch.setattr(store, "_last_lines", lambda path, n: sizes.append(len(str(found := real(path, n)))) or found)
    found = store.status(folder)
    assert [row.running.step for row in found.rows if row.running] == list(range(100))
    assert len(sizes) == 100 and max(sizes) < 3 * store.TAIL
    assert posenc("status", "mine").out.count("steps/s") == 100


def test_one_process_that_holds_many_groups_reports_each(folder, monkeypatch):
    """As the driver of a cluster does."""
    made.write_plan(folder, [line for n in range(200) for line in made.plan(made.rope((100 + n,)), f"w{n:03}")])
    for n in range(200):
        claim(folder, f"w{n:03}", job=f"ray on node{n}")
    events(folder, *(step(at + n, f"w{n:03}") for at in (0, 300) for n in range(200)))
    found = {row.group: row.running for row in store.status(folder).rows if row.running}
    assert {group: about.step for group, about in found.items()} == {f"w{n:03}": 300 + n for n in range(200)}
    assert found["w007"].job == "ray on node7"


@pytest.fixture
def looks(monkeypatch):
    """`looks(*changes)` changes the run after each look of a watch and then ends it; the list of its pauses."""

    def change(*changes):
        coming, pauses = list(changes), []

        def sleep(seconds):
            pauses.append(seconds)
            if not coming:
                raise KeyboardInterrupt
            coming.pop(0)()

        monkeypatch.setattr(command.time, "sleep", sleep)
        return pauses

    return change


def test_watch_looks_again_until_every_trial_has_a_result(folder, posenc, looks):
    claim(folder, "waits")
    events(folder, step(300, loss=0.25))
    report = lambda: events(folder, step(800, loss=0.0625))  # noqa: E731
    pauses = looks(report, lambda: made.write_record(folder, made.rope(label="alibi")))
    said = posenc("status", "mine", "--watch")
    assert said.code == 0 and len(pauses) == 2 and min(pauses) >= command.PAUSE
    assert "step 300 of 1000, loss 0.25, 20 steps/s" in said.out and "done 6" in said.out
    assert "step 800 of 1000, loss 0.0625, 20 steps/s" in said.out
    assert "copy  rope" not in said.out, "of groups that are done only the number is shown"


def test_ctrl_c_ends_a_watch(folder, posenc, looks):
    looks()
    assert posenc("status", "mine", "--watch").code == 130


def test_watch_as_json_prints_a_line_for_each_look(folder, posenc, looks):
    looks(lambda: claim(folder, "waits"), lambda: made.write_record(folder, made.rope(label="alibi")))
    lines = [json.loads(line) for line in posenc("status", "mine", "--watch", "--json").out.splitlines()]
    assert [line["counts"]["running"] for line in lines] == [0, 3, 0] and lines[2]["counts"]["done"] == 6


def test_a_claim_keeps_the_job_of_its_batch_system(folder, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    with claims.claim(folder, "waits"):
        assert row(folder).running.job == "77"
