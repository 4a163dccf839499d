"""The benchmark of scale measures a run folder that the real readers take for a real one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import scale
from posenc.lab.results.results import load
from posenc.lab.run.plan import planned_run
from posenc.lab.store import folder as store

ROOT = Path(__file__).parent.parent


@pytest.mark.ci
def test_a_simulated_run_is_valid_and_a_few_trials_are_left(tmp_path):
    folder = tmp_path / "x"
    scale.simulated(folder, 30)
    found = store.status(folder)
    assert found.problems == () and found.counts["done"] == 30 and found.counts["pending"] == scale.LEFT
    records, plan = store.read_records(folder).records, store.read_plan(folder)
    assert len(records) == 30 and {len(record.trials) for record in records} == {1}
    assert len({line.group for line in plan}) == 30 + scale.LEFT
    assert planned_run(plan[-1].run).run.task == "even_pairs"
    assert len(load(folder).rows()) == 30 * len(scale.SIZES)
    assert scale.claim_ms(folder) > 0 and store.held(folder) == ()


@pytest.mark.ci
def test_the_command_writes_its_three_figures(tmp_path):
    command = [sys.executable, "-m", "benchmarks.scale", "--records", "20", "--rounds", "1"]
    command += ["--json", str(tmp_path / "figures.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "JAX_PLATFORMS": "cpu"})
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "figures.json").read_text())
    assert found["records"] == 20
    assert all(0 < found[name] < 1000 for name in ("status_s", "start_s", "claim_ms"))
    assert all(name in done.stdout for name in ("status_s", "start_s", "claim_ms"))
