"""A command line in an empty folder, in this process: exit code, stdout, stderr, and what it left behind."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from posenc.lab.cli import main
from tests.lab import made
from tests.lab.conftest import programs_stay  # noqa: F401


class Said(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def posenc(tmp_path, monkeypatch, capfd):
    """`posenc("run", "--scheme", "rope")` as typed in an empty folder, without colours."""
    monkeypatch.chdir(tmp_path)
    for name, value in {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    for name in ("POSENC_RUNS", "POSENC_DEBUG", "CI"):
        monkeypatch.delenv(name, raising=False)

    def typed(*words: str) -> Said:
        code = main(words)
        return Said(code, *capfd.readouterr())

    return typed


@pytest.fixture
def runs(posenc):
    """Two finished schemes on two tasks, in runs/mine."""
    records = [
        made.rope(seeds=range(6)),
        made.rope(seeds=range(6), label="alibi", family="linear", drop=0.3),
        made.rope(task="index"),
        made.rope(task="index", label="alibi", family="linear", drop=0.3),
    ]
    return made.filled("mine", records)


@pytest.fixture
def left(tmp_path):
    """Every file that a command left behind, `left()`, but for the bytecode of modules that it imported."""
    files = lambda: (p for p in tmp_path.rglob("*") if p.is_file() and p.parent.name != "__pycache__")  # noqa: E731
    return lambda: sorted(str(p.relative_to(tmp_path)) for p in files())


@pytest.fixture
def refuse(posenc, left):
    """`refuse("run", "--scheme", "ropee")` is the one sentence of a command that ends with 2 and writes nothing."""

    def sentence(*words: str) -> str:
        before, said = left(), posenc(*words)
        assert (said.code, said.out) == (2, "") and left() == before, said
        assert len(said.err.strip().splitlines()) == 1, said.err
        assert "Traceback" not in said.err and "posenc failed" not in said.err, said.err
        return said.err

    return sentence
