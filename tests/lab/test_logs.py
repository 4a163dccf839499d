"""Logs of records: what a kill, a flipped byte, a second writer or a full disk leaves costs its own line, and is named.
What 0.2.0 wrote is read and goes on."""

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from posenc.lab.figures.tables import table
from posenc.lab.results.results import load
from posenc.lab.store import folder as store
from posenc.lab.store import logs
from tests.lab import made

pytestmark = pytest.mark.usefixtures("runs")
OLD = Path(__file__).parent / "of_0_2"
"""A run folder of version 0.2.0: three groups, one that waits, one that tunes and reports a later seed; its table."""
LABELS = {"rope": "rotary", "alibi": "linear", "t5": "bucket", "nope": "none"}


def record(label, seeds=(0, 1)):
    return made.rope(seeds, label=label, family=LABELS[label])


def filled(name="a", labels=tuple(LABELS)):
    """A run with a record for each of these, in groups named as a sweep names them, and a group that waits."""
    folder = store.create(name)
    for content in (*map(record, labels), made.rope((9,))):
        made.write_plan(folder, made.plan(content, named(content)))
        if len(content["trials"]) == 2:
            made.write_record(folder, content)
    return folder


def named(content):
    return store.digest([trial["id"] for trial in content["trials"]])


def trials(folder):
    return {trial.id: trial for record in store.read_records(folder).records for trial in record.trials}


def label_of(line):
    return json.loads(line)["label"]


def lines(folder):
    return made.log_of(folder).read_bytes().splitlines(keepends=True)


def flip(content, at):
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def test_a_run_folder_has_a_log_for_each_process_and_a_sealed_line_for_each_group(runs):
    folder = filled()
    code = f"import sys; sys.path[:] = {sys.path!r}\nfrom tests.lab import test_logs\nfrom pathlib import Path\n"
    code += "test_logs.made.write_record(Path(sys.argv[1]), test_logs.made.rope((9,)))"
    subprocess.run([sys.executable, "-c", code, str(folder)], check=True)
    own, other = sorted((folder / "records").iterdir(), key=lambda path: -path.stat().st_size)
    assert own.name != other.name and own.read_bytes().count(b"\n") == 4 and other.read_bytes().count(b"\n") == 1
    assert f"-{os.getpid()}-" in own.name and f"-{os.getpid()}-" not in other.name
    state = store.status(folder)
    assert state.counts["done"] == 9 and state.problems == ()


def test_status_and_workers_decode_no_record(monkeypatch):
    folder = filled()
    monkeypatch.setattr(logs, "record_of", None)
    assert store.status(folder).counts["done"] == 8
    recorded = store.Recorded(folder)
    assert recorded.ids() == {trial["id"] for label in LABELS for trial in record(label)["trials"]}


@pytest.mark.parametrize("at", [0, 30, 100, 500, -300, -2])
def test_a_flipped_byte_costs_its_line_which_is_named_until_its_group_is_recorded_again(at):
    folder = filled()
    before, log = trials(folder), made.log_of(folder)
    content = lines(folder)
    content[2] = flip(content[2], at % len(content[2]))
    log.write_bytes(b"".join(content))
    stored, state = store.read_records(folder), store.status(folder)
    (problem,) = stored.problems
    assert problem.startswith(f"Line 3 of records/{log.name} is left out: ") and state.problems == stored.problems
    lost = {trial["id"] for trial in record("t5")["trials"]}
    assert stored.unreadable == 1 and trials(folder) == {id: t for id, t in before.items() if id not in lost}
    assert state.counts["done"] == 6 and store.Recorded(folder).ids() == before.keys() - lost
    made.write_record(folder, record("t5"))
    assert trials(folder) == before and store.status(folder).counts["done"] == 8
    assert store.status(folder).problems == (() if at != 100 else (problem,)), "of this one the name is gone too"


def test_any_flipped_byte_is_noticed():
    folder, draw = filled(labels=("rope", "alibi")), random.Random(0)
    log, before = made.log_of(folder), trials(folder)
    sound = log.read_bytes()
    for _ in range(200):
        log.write_bytes(flip(sound, draw.randrange(len(sound) - 1)))
        stored = store.read_records(folder)
        assert stored.problems and trials(folder).items() < before.items()
        assert {id for id, o in store.status(folder).outcomes.items() if o == "done"} == set(trials(folder))


@pytest.mark.parametrize("left", [1, 80, 300, 0.5, -2])
def test_a_torn_last_line_is_skipped_and_named(left):
    folder = filled()
    before, content = trials(folder), lines(folder)
    left = int(left * len(content[3])) if isinstance(left, float) else left
    made.log_of(folder).write_bytes(b"".join(content[:3]) + content[3][:left])
    stored = store.read_records(folder)
    (problem,) = stored.problems
    assert problem.startswith("Line 4 of records/") and "was cut short by a kill" in problem
    assert store.status(folder).problems == stored.problems and store.status(folder).counts["done"] == 6
    made.write_record(folder, record("nope"))
    assert trials(folder) == before and len(list((folder / "records").iterdir())) == 2, "and nothing is added to it"
    assert store.status(folder).problems == () or left < 130


@pytest.mark.parametrize("schema", [1, 2])
def test_lines_of_older_schemas_are_read(schema):
    """They have ids, outcomes and seconds of compiling in front; those of schema 1 hold the record under a key."""
    folder = filled()
    before, state, log = store.read_records(folder), store.status(folder), made.log_of(folder)
    log.write_bytes(b"".join(older(line, schema) for line in lines(folder)))
    assert store.read_records(folder) == before and store.status(folder) == state and state.problems == ()


def older(line, schema):
    content = json.loads(logs.unseal(line)[0])
    head = {"name": content.pop("name"), "ids": [trial["id"] for trial in content["trials"]]}
    head |= {"outcomes": [trial["outcome"] for trial in content["trials"]], "compiled": 0.0}
    body = head | ({"record": content} if schema == 1 else content)
    sealed = json.dumps(body, separators=(",", ":"))[1:]
    return f'{{"schema":{schema},"sha256":"{store.checksum(sealed)}",{sealed}\n'.encode()


def test_a_last_line_that_lacks_its_end_alone_is_whole():
    folder = filled()
    before, log = store.read_records(folder), made.log_of(folder)
    log.write_bytes(log.read_bytes()[:-1])
    assert store.read_records(folder) == before and before.problems == ()


def test_a_worker_reads_on_where_it_was_and_waits_for_the_end_of_a_line():
    folder = filled()
    content, log = lines(folder), made.log_of(folder)
    log.write_bytes(content[0] + content[1][:400])
    recorded = store.Recorded(folder)
    ids = [{trial["id"] for trial in record(label)["trials"]} for label in LABELS]
    assert recorded.ids() == ids[0]
    with open(log, "ab") as file:
        file.write(content[1][400:] + flip(content[2], 300) + content[3])
    assert recorded.ids() == ids[0] | ids[1] | ids[3]


def test_a_line_by_a_second_writer_is_not_joined_to_ours():
    folder = filled(labels=("rope", "alibi"))
    log = made.log_of(folder)
    with open(log, "ab") as file:
        file.write(b'{"schema":2,"sha256":"half a line of another')
    made.write_record(folder, record("t5"))
    stored = store.read_records(folder)
    assert {record.label for record in stored.records} == {"rope", "alibi", "t5"}
    (problem,) = stored.problems
    assert problem.startswith(f"Line 3 of records/{log.name} is left out") and stored.unreadable == 1


def test_a_fork_and_threads_write_whole_lines_and_a_fork_has_a_file_of_its_own():
    folder = filled(labels=("rope",))
    threads = [
        threading.Thread(target=lambda n=n: made.write_record(folder, made.rope((100 + n,), label="alibi")))
        for n in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log, size = made.log_of(folder), made.log_of(folder).stat().st_size
    code = textwrap.dedent(f"""
        import os, sys
        sys.path[:] = {sys.path!r}
        from pathlib import Path
        from tests.lab.test_logs import made
        folder = Path(sys.argv[1])
        made.write_record(folder, made.rope((200,), label="alibi"))
        if os.fork():
            os.wait()
            made.write_record(folder, made.rope((201,), label="alibi"))
        else:
            made.write_record(folder, made.rope((202,), label="alibi"))
            os._exit(0)
    """)
    subprocess.run([sys.executable, "-c", code, str(folder)], check=True)
    seeds = [
        [json.loads(line)["trials"][0]["knobs"]["seed"] for line in path.read_text().splitlines()]
        for path in (folder / "records").iterdir()
    ]
    assert log.stat().st_size == size and len(seeds) == 3 and [202] in seeds and [200, 201] in seeds
    stored = store.read_records(folder)
    assert stored.problems == () and len(stored.records) == 24


KILLED = """
    import os, sys
    sys.path[:] = {path!r}
    from pathlib import Path
    from posenc.lab.store import logs
    from tests.lab import made

    folder, real = Path(sys.argv[1]), os.write
    made.write_record(folder, made.rope((0,), label="rope"))

    def half(descriptor, content):
        real(descriptor, content[: len(content) // 2])
        os.kill(os.getpid(), 9)

    logs.os.{call} = {what}
    made.write_record(folder, made.rope((1,), label="rope"))
"""


@pytest.mark.parametrize(
    "call, what, done", [("write", "half", 1), ("fsync", "lambda _: os.kill(os.getpid(), 9)", 2), ("open", "half", 1)]
)
def test_a_kill_in_the_middle_of_a_record_leaves_the_others(call, what, done):
    folder = store.create("a")
    code = textwrap.dedent(
        KILLED.format(path=sys.path, call=call, what=what if call != "open" else "lambda *_: half(1, b'')")
    )
    assert subprocess.run([sys.executable, "-c", code, str(folder)]).returncode == -signal.SIGKILL
    stored = store.read_records(folder)
    assert len(stored.records) == done and len(stored.problems) == (call == "write")
    made.write_record(folder, made.rope((1,), label="rope"))
    assert len(trials(folder)) == 2 and store.read_records(folder).problems == ()


@pytest.mark.parametrize("written", [0, 100])
@pytest.mark.parametrize("first", [True, False])
def test_a_full_disk_leaves_a_log_as_it_was(written, first, monkeypatch):
    folder = store.create("a") if first else filled()
    before = {path: path.read_bytes() for path in (folder / "records").iterdir()}
    real, calls = os.write, []

    def full(descriptor, content):
        calls.append(len(content))
        if len(calls) == 1 and written:
            return real(descriptor, content[:written])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(logs.os, "write", full)
        with pytest.raises(store.DiskError, match="records' cannot be written: the disk is full; free some space"):
            made.write_record(folder, made.rope((7,)))
    assert calls and {path: path.read_bytes() for path in (folder / "records").iterdir()} == before
    made.write_record(folder, made.rope((7,)))
    assert made.rope((7,))["trials"][0]["id"] in trials(folder) and store.read_records(folder).problems == ()


def test_a_group_that_was_trained_again_counts_once_and_what_differs_is_named():
    folder = filled()
    before = store.read_records(folder)
    again = record("t5")
    again["provenance"]["host"] = "later"
    made.write_record(folder, again)
    stored = store.read_records(folder)
    assert stored.problems == () and len(stored.records) == 4
    assert [r.provenance["host"] for r in stored.records if r.label == "t5"] == ["later"]
    again["trials"][0]["evaluations"]["32"]["correct"] -= 300
    made.write_record(folder, again)
    (problem,) = store.read_records(folder).problems[:1]
    assert "line 6 of records/" in problem and "line 5 of" in problem and "differ by up to 0.300" in problem
    shutil.copy(made.log_of(folder), folder / "records" / "copy.jsonl")
    assert len(trials(folder)) == 8 == sum(len(r.trials) for r in before.records)


# --- version 0.2.0 ----------------------------------------------------------------------------------------------------


@pytest.fixture
def old(runs):
    return store.ready(shutil.copytree(OLD, runs / "old", ignore=shutil.ignore_patterns("table.csv")))


def test_a_folder_of_0_2_gives_its_table_and_goes_on(old):
    assert table(load(old), "csv").strip() == (OLD / "table.csv").read_text().strip()
    state, files = store.status(old), {path: path.read_bytes() for path in old.rglob("*.jsonl")}
    assert state.problems == () and (state.counts["done"], state.counts["pending"]) == (6, 3)
    assert {line.reports for line in store.read_plan(old) if line.tuning} == {(30, 31, 32)}
    made.write_record(old, made.rope((9,)))
    new = made.plan(made.rope((40,), label="t5", family="bucket"), "new") + made.plan(made.rope((41,), "sort"), "other")
    assert len(made.write_plan(old, new)) == 2 and store.status(old).counts["done"] == 7
    assert [line.id for line in store.read_plan(old)][-2:] == [line["id"] for line in new]
    plan = old / "plan.jsonl"
    assert plan.read_bytes().startswith(files.pop(plan)) and plan.read_text().count('"shared"') == 1
    assert files == {path: path.read_bytes() for path in files}


@pytest.mark.parametrize("name", ["5" * 32 + ".json", f"pack-{'5' * 64}.jsonl"])
def test_a_record_of_an_older_version_is_named_in_a_sentence_and_left_out(name):
    folder = filled()
    line = b'{"schema":1,"sha256":"%s","run":{},"label":"rope","trials":[]}\n' % (b"5" * 64)
    (folder / "records" / name).write_bytes(line * (1 + name.startswith("pack")))
    (problem,) = store.status(folder).problems
    assert f"records/{name} " in problem and "0.2.0" in problem and len(trials(folder)) == 8
    made.write_plan(folder, made.plan(made.rope((12,)), "more"))
