"""Schemes and tasks of other packages: found by their entry points, listed, and where they fail listed as broken."""

import json
import subprocess
import sys

import pytest

SCHEME = """
from posenc import Scheme

class Strange(Scheme, name="strange"):
    "A penalty that someone else thought of (nobody, 2026)."
    reads = "distance"
    def score(self, p, s, tile):
        return s - 0.1 * abs(tile.distance).astype(s.dtype)
"""
TASK = """
from posenc.tasks import parse
from posenc.tasks.copying import *
from posenc.tasks.task import TASKS
class_ = TASKS.find("reverse_string")
TASKS.add("odd_task", class_)
"""
POINTS = """
[posenc.schemes]
strange = strange
crooked = crooked

[posenc.tasks]
odd_task = odd_task
bent = crooked
"""


@pytest.fixture
def installed(tmp_path):
    """A folder that Python takes for an installed package; runs a program that sees it."""
    (tmp_path / "strange.py").write_text(SCHEME)
    (tmp_path / "odd_task.py").write_text(TASK)
    (tmp_path / "crooked.py").write_text("raise RuntimeError('it rains')\n")
    about = tmp_path / "strange-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: strange\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)

    def run(*words):
        start = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from posenc.lab.cli import main; sys.exit(main())"
        return subprocess.run([sys.executable, "-c", start, *words], capture_output=True, text=True, cwd=tmp_path)

    return run


@pytest.mark.ci
def test_a_stranger_s_scheme_is_listed_and_described_and_a_broken_one_says_why(installed):
    rows = {row["name"]: row for row in json.loads(installed("list", "--json").stdout)}
    assert rows["strange"]["enters"] == ["score"] and "rope" in rows
    assert rows["crooked"]["idea"] == "broken: RuntimeError: it rains"
    described = installed("describe", "strange + rope")
    assert described.returncode == 0 and "someone else thought of" in described.stdout
    refused = installed("describe", "crooked")
    assert refused.returncode == 2 and "'crooked'" in refused.stderr
    assert "it rains" in refused.stderr and len(refused.stderr.splitlines()) == 1


@pytest.mark.ci
def test_a_stranger_s_task_is_listed_and_a_broken_one_says_why(installed):
    rows = {row["name"]: row for row in json.loads(installed("list", "tasks", "--json").stdout)}
    assert "odd_task" in rows and rows["bent"]["idea"] == "broken: RuntimeError: it rains"
