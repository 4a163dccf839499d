"""The notebook of docs/ runs from its first cell to its last in an empty folder, with few steps and seeds."""

import json
import re
import sys
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parent.parent / "docs" / "your-task.ipynb"


def cells(kind):
    found = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in found if cell["cell_type"] == kind]


@pytest.mark.ci
@pytest.mark.lab
def test_every_cell_runs_in_turn(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POSENC_RUNS", str(tmp_path / "runs"))
    monkeypatch.syspath_prepend(str(tmp_path))
    space = {"__name__": "notebook"}
    try:
        for number, source in enumerate(cells("code"), 1):
            short = re.sub(r"steps=\d+", "steps=20", source).replace('"--seeds", "6"', '"--seeds", "2"')
            exec(compile(short, f"{NOTEBOOK.name}, cell {number}", "exec"), space)
    finally:
        from posenc.lab.tasks.task import TASKS

        sys.modules.pop("last_but_one", None)
        TASKS._classes.pop("last_but_one", None)
    said = capsys.readouterr().out
    assert "0 fail" in said and "n = 2" in said and (tmp_path / "chapter.html").is_file()
    assert {"nope", "learned", "rope"} <= {*space["medians"].index} and len(
        list(tmp_path.glob("figures/length.*"))
    ) >= 4


def test_it_holds_no_output_and_no_count():
    """An output would be a number that no command regenerates."""
    found = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in found)
