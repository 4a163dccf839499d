"""`posenc clean`: what no longer serves goes, after it was listed; what a living worker needs, and results, stay."""

import os
import time

import pytest

from posenc.lab.store import folder as store
from tests.lab import made

STEP = "40.0123456789abcdef"


@pytest.fixture
def folder(posenc):
    """A run of three groups, each with a checkpoint: one recorded, one waiting, one in work. A claim of the dead, a
    file half written today and one of last week."""
    done, waiting, working = (made.rope(label=name) for name in ("rope", "alibi", "t5"))
    folder = made.filled("mine", [done])
    groups = ["done", "waiting", "working"]
    made.write_plan(folder, [line for rec, group in zip((waiting, working), groups[1:], strict=True)
                             for line in made.plan(rec, group)])  # fmt: skip
    recorded = next(line.group for line in store.read_plan(folder) if line.group not in groups)
    for group in (recorded, *groups[1:]):
        (folder / "ckpt" / group / STEP).mkdir(parents=True)
        (folder / "ckpt" / group / STEP / "manifest.json").write_bytes(bytes(2000))
    (folder / "claims" / "waiting").write_text('{"host": "gone", "pid": 1, "where": "elsewhere", "token": "ab"}')
    old = folder / "records" / ".old.tmp"
    for path in (old, folder / "records" / ".new.tmp"):
        path.write_bytes(b"half")
    for path in (folder / "claims" / "waiting", old):
        os.utime(path, (time.time() - 7 * 86400,) * 2)
    return folder, recorded


def files(folder):
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def test_what_no_longer_serves_is_listed_and_then_removed(folder, posenc):
    folder, recorded = folder
    before = files(folder)
    with store.claim(folder, "working"):
        listed = posenc("clean", "mine", "--dry-run")
        assert listed.code == 0 and "3 would be removed" in listed.out and files(folder) - {"claims/working"} == before
        said = posenc("clean", "mine")
    assert said.code == 0 and "3 removed, 0.0 MB." in said.out
    gone = {f"ckpt/{recorded}/{STEP}/manifest.json", "claims/waiting", "records/.old.tmp"}
    assert before - files(folder) == gone
    for name in gone:
        assert name.removesuffix("/manifest.json").removesuffix(f"/{STEP}") in said.out
    assert "0 removed" in posenc("clean", "mine").out


def test_a_folder_without_a_plan_is_left_alone(refuse, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ".x.tmp").write_text("")
    sentence = refuse("clean", str(tmp_path / "other"))
    assert "plan.jsonl" in sentence
