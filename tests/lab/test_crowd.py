"""Many workers share a run: each group is trained once, and nobody waits while one is free."""

import json
import subprocess
import sys
from collections import Counter

import pytest

from posenc.lab.store import folder as store
from tests.lab import made
from tests.lab.swept import ROOT


@pytest.mark.ci
def test_two_hundred_groups_are_each_trained_once_by_eight_workers_and_none_waits_while_one_is_free(tmp_path):
    folder, lines = tmp_path / "x", []
    folder.mkdir()
    store.ready(folder)
    for n in range(200):
        record = made.rope((2 * n, 2 * n + 1))
        lines += made.plan(record, store.digest([trial["id"] for trial in record["trials"]]))
    made.write_plan(folder, lines)
    command = [sys.executable, "-m", "tests.lab.crowd", str(folder), "8"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == 8 and {worker["code"] for worker in found} == {0}
    times = Counter(group for worker in found for group in worker["ran"])
    assert len(times) == 200 and set(times.values()) == {1}
    assert store.status(folder).counts["done"] == 400 and store.held(folder) == ()
    assert not any(free for worker in found for free in worker["free"])
    assert sum(bool(worker["ran"]) for worker in found) > 1
