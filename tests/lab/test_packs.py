"""Packed records are read as single ones are; a kill, damage or a second process loses none."""

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

from posenc.lab.results.results import load
from posenc.lab.store import compacting, disk, packs
from posenc.lab.store import folder as store
from posenc.lab.store.reading import singles
from tests.lab import made

LABELS = {"rope": "rotary", "alibi": "linear", "t5": "bucket", "nope": "none"}


@pytest.fixture(autouse=True)
def runs(tmp_path, monkeypatch):
    monkeypatch.setenv("POSENC_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def named(record):
    """The group that a sweep would plan for a record."""
    return store.digest([trial["id"] for trial in record["trials"]])


def filled(name="a", seeds=((0, 1), (2,))):
    """A run of eight records, in groups as a sweep plans them, and one group that waits."""
    folder = store.create(name)
    records = [made.rope(s, label=label, family=family) for label, family in LABELS.items() for s in seeds]
    for record in records:
        made.write_plan(folder, made.plan(record, named(record)))
        made.write_record(folder, record)
    left = made.rope((9,))
    made.write_plan(folder, made.plan(left, named(left)))
    return folder


def files(folder):
    return {path.name: path.read_bytes() for path in sorted((folder / "records").iterdir())}


def pack_of(folder):
    (pack,) = packs.present(folder)
    return pack, packs.index_path(pack)


def seen(folder):
    """What readers see of a folder."""
    state = store.status(folder)
    return store.read_records(folder), state.outcomes, state.rows, state.compiling, load(folder).rows()


def test_packed_records_are_read_as_the_single_ones_were():
    folder = filled()
    before, files_before, bundle = seen(folder), files(folder), store.bundle(folder, folder.parent / "one.json")
    done = compacting.compact(folder)
    assert (done.records, len(done.packs), done.mended) == (8, 1, 0) and singles(folder) == []
    assert seen(folder) == before and before[0].problems == ()
    pack, index = pack_of(folder)
    assert sorted(pack.read_bytes().splitlines(keepends=True)) == sorted(files_before.values())
    assert all(json.loads(line)["trials"] for line in pack.read_bytes().splitlines())
    with pytest.raises(ValueError):  # no reader of single files takes it for a record
        json.loads(index.read_bytes())
    assert store.bundle(folder, folder.parent / "two.json").read_bytes() == bundle.read_bytes()
    after = files(folder)
    assert compacting.compact(folder) == (0, (), 0) and files(folder) == after


@pytest.mark.parametrize("seed", range(4))
def test_any_part_packed_any_number_of_times_is_read_the_same(seed):
    draw, folder = random.Random(seed), filled()
    before = seen(folder)
    for _ in range(3):
        aside = [(path, path.read_bytes()) for path in draw.sample(singles(folder), len(singles(folder)) // 2)]
        for path, _ in aside:
            path.unlink()
        compacting.compact(folder)
        for path, content in aside:
            path.write_bytes(content)
        assert seen(folder) == before
    assert len(packs.present(folder)) > 1


def test_status_reads_no_record_of_a_pack(monkeypatch):
    folder = filled()
    compacting.compact(folder)
    monkeypatch.setattr("posenc.lab.store.packs.unsealed", None)
    monkeypatch.setattr("posenc.lab.store.reading.unsealed", None)
    assert store.status(folder).counts["done"] == 12


def test_large_packs_are_cut(monkeypatch):
    folder = filled()
    before = seen(folder)
    monkeypatch.setattr(compacting, "LARGEST", 5000)
    done = compacting.compact(folder)
    assert len(done.packs) > 2 and seen(folder) == before


def lose(path, content):
    path.unlink() if content is None else path.write_bytes(content)


def flip(content, at):
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


DAMAGE = {
    "flipped": lambda b: flip(b, len(b) // 2),
    "flipped at a line break": lambda b: flip(b, b.index(b"\n")),
    "a line gone": lambda b: b"".join(b.splitlines(keepends=True)[:2] + b.splitlines(keepends=True)[3:]),
    "cut": lambda b: b[: len(b) * 2 // 3],
    "emptied": lambda b: b"",
    "deleted": lambda b: None,
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("indexed", [True, False])
def test_a_damaged_pack_names_its_lines_and_the_others_are_read(damage, indexed):
    folder = filled()
    whole = {t.id: t for r in store.read_records(folder).records for t in r.trials}
    compacting.compact(folder)
    pack, index = pack_of(folder)
    damaged = DAMAGE[damage](pack.read_bytes())
    lose(pack, damaged)
    if not indexed:
        index.unlink()
    stored, state = store.read_records(folder), store.status(folder)
    kept = {t.id: t for r in stored.records for t in r.trials}
    assert kept.items() < whole.items() and {i for i, o in state.outcomes.items() if o == "done"} == set(kept)
    assert stored.problems == state.problems and len(stored.problems) == (damaged is not None or indexed)
    assert all(pack.name in problem and problem.endswith(".") for problem in stored.problems)
    expected = {"flipped": "Line ", "cut": "Lines ", "a line gone": "Line 3 of" if indexed else ""}
    if damage in expected and (indexed or damage == "flipped"):
        assert stored.problems[0].startswith(expected[damage]), stored.problems
    if damage not in ("emptied", "deleted"):
        assert kept
    for record in [
        made.rope(s, label=label, family=family) for label, family in LABELS.items() for s in ((0, 1), (2,))
    ]:
        if not {t["id"] for t in record["trials"]} <= set(kept):
            made.write_record(folder, record)  # they run again
    assert store.status(folder).counts["done"] == 12
    compacting.compact(folder)
    stored = store.read_records(folder)
    assert {t.id: t for r in stored.records for t in r.trials} == whole and stored.problems == ()
    assert singles(folder) == []


INDEX_DAMAGE = {name: DAMAGE[name] for name in ("flipped", "flipped at a line break", "cut", "emptied")} | {
    "another version": lambda b: b.replace(b'"schema":1', b'"schema":2', 1),
    "a JSON list": lambda b: b"[1]\n",
    "zeros": lambda b: bytes(len(b)),
}


@pytest.mark.parametrize("damage", INDEX_DAMAGE)
def test_a_damaged_index_is_named_and_made_again(damage):
    folder = filled()
    before = seen(folder)
    compacting.compact(folder)
    _, index = pack_of(folder)
    content = index.read_bytes()
    index.write_bytes(INDEX_DAMAGE[damage](content))
    stored, *rest = seen(folder)
    assert stored.records == before[0].records and rest[0] == before[1]
    (problem,) = stored.problems
    assert problem.startswith(f"records/{index.name} is not used: ") and "`posenc compact` makes it again" in problem
    assert compacting.compact(folder).mended == 1 and index.read_bytes() == content and seen(folder) == before


def test_a_missing_index_is_made_again_without_a_word():
    folder = filled()
    before = seen(folder)
    compacting.compact(folder)
    _, index = pack_of(folder)
    content = index.read_bytes()
    index.unlink()
    assert seen(folder) == before
    assert compacting.compact(folder).mended == 1 and index.read_bytes() == content


def test_a_pack_of_another_run_under_this_name_is_damage_to_every_line():
    folder, other = filled(), filled("b", seeds=((5,), (6,)))
    compacting.compact(folder)
    compacting.compact(other)
    pack, _ = pack_of(folder)
    pack.write_bytes(pack_of(other)[0].read_bytes())
    stored = store.read_records(folder)
    assert stored.records == () and stored.problems[0].startswith("Lines 1–8 of ")


def test_a_link_in_the_place_of_a_pack_or_an_index_is_named_and_not_followed(tmp_path):
    folder = filled()
    compacting.compact(folder)
    for path in pack_of(folder):
        outside = tmp_path / "outside"
        path.rename(outside)
        path.symlink_to(outside)
        problems = store.read_records(folder).problems
        assert any(path.name in problem and "it is a link" in problem for problem in problems)
        path.unlink()
        outside.rename(path)


def test_impossible_numbers_in_a_pack_with_right_checksums_are_named_and_not_shown():
    folder = filled()
    path = singles(folder)[0]
    content = json.loads(path.read_bytes())
    content["trials"][0]["evaluations"]["8"]["correct"] = -5
    line = (json.dumps(content, separators=(",", ":")) + "\n").encode()
    pack = folder / "records" / packs.name_of(line)
    pack.write_bytes(line)
    entry = packs.entry_of(store.read_records(folder).records[0], line)
    packs.index_path(pack).write_bytes(packs.index_text(pack, [entry]))
    path.unlink()
    (problem,) = store.read_records(folder).problems
    assert problem.startswith("Line 1 of records/") and "-5 as 'correct'" in problem


STAGES = {
    "before the pack": ("os.replace", 0),
    "before the index": ("os.replace", 1),
    "before the first file goes": ("os.rename", 0),
    "between moving and removing": ("pathlib.Path.unlink", 0),
    "in the middle of removing": ("os.rename", 4),
}
KILLED = """
    import os, pathlib, sys
    sys.path[:] = {path!r}
    from posenc.lab.store import compacting, claims
    owner, name = {what!r}.rsplit(".", 1)
    owner = eval(owner)
    real, left = getattr(owner, name), [{after}]

    def die(*given, **how):
        if "records" in str(given[0]):
            if not left[0]:
                os.kill(os.getpid(), 9)
            left[0] -= 1
        return real(*given, **how)

    setattr(owner, name, die)
    compacting.compact(pathlib.Path(sys.argv[1]))
"""


@pytest.mark.parametrize("stage", STAGES)
def test_a_kill_at_any_stage_leaves_every_record_once(stage):
    folder = filled()
    before = seen(folder)
    what, after = STAGES[stage]
    code = textwrap.dedent(KILLED.format(path=sys.path, what=what, after=after))
    assert subprocess.run([sys.executable, "-c", code, str(folder)]).returncode == -signal.SIGKILL
    assert seen(folder) == before
    compacting.compact(folder)
    assert seen(folder) == before and singles(folder) == [] and len(packs.present(folder)) == 1


def test_a_full_disk_is_one_error_and_everything_stays(monkeypatch):
    folder = filled()
    before, contents = seen(folder), files(folder)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda *_: (_ for _ in ()).throw(OSError(28, os.strerror(28))))
        with pytest.raises(store.DiskError, match="the disk is full"):
            compacting.compact(folder)
    assert seen(folder) == before and files(folder) == contents


def test_of_two_at_once_one_packs_and_nothing_is_lost():
    folder, start, done = filled(), threading.Barrier(4), []
    before = seen(folder)

    def work():
        start.wait()
        done.append(compacting.compact(folder))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(one.records for one in done if one is not None) == 8 and seen(folder) == before


def test_two_that_both_believe_they_are_alone_lose_nothing(monkeypatch):
    folder = filled()
    before, real, nested = seen(folder), compacting._remove, []

    def remove(path, entry):  # the other one packs all between our pack and our first removal
        if not nested:
            nested.append(True)
            compacting._compact(folder)
        real(path, entry)

    monkeypatch.setattr(compacting, "_remove", remove)
    compacting._compact(folder)
    assert nested and seen(folder) == before and singles(folder) == []


def test_a_record_written_again_while_its_pack_is_written_stays(monkeypatch):
    folder = filled()
    path, real = singles(folder)[0], disk.write
    ids = [trial["id"] for trial in json.loads(path.read_bytes())["trials"]]
    newer = store.read_records(folder).records[0]

    def write(place, content):
        done = real(place, content)
        if packs.PACK.fullmatch(place.name):
            monkeypatch.undo()
            os.environ["POSENC_RUNS"] = str(folder.parent)
            import dataclasses

            store.write_record(folder, dataclasses.replace(newer, provenance={"host": "later"}))
        return done

    monkeypatch.setattr(disk, "write", write)
    compacting.compact(folder)
    assert singles(folder) == [path]
    (found,) = [r for r in store.read_records(folder).records if r.ids == ids]
    assert found.provenance == {"host": "later"} and store.read_records(folder).problems == ()
    assert compacting.compact(folder).records == 0 and singles(folder) == [path], "the pack keeps the older one"


def test_a_file_that_is_packed_while_a_folder_is_read_is_found_in_its_pack(monkeypatch):
    folder = filled()
    before, real = store.read_records(folder), disk.part

    def part(place, name):
        listed = real(place, name)
        if name == "records":
            monkeypatch.setattr(disk, "part", real)
            compacting.compact(folder)
        return listed

    monkeypatch.setattr(disk, "part", part)
    assert store.read_records(folder) == before and singles(folder) == []


def test_the_groups_that_workers_hold_and_files_of_other_names_are_not_packed():
    folder = filled()
    held, odd, pretty, *_ = singles(folder)
    odd = odd.rename(odd.with_name("x.json"))
    pretty.write_text(json.dumps(json.loads(pretty.read_bytes()), indent=1))
    with store.claim(folder, held.stem):
        assert compacting.compact(folder).records == 5
    assert singles(folder) == sorted([held, odd, pretty])
    assert store.status(folder).counts["done"] == 12


def test_a_worker_looks_its_group_up_in_packs_that_came_after_it_started():
    folder = filled()
    recorded = store.Recorded(folder)
    path, *others = singles(folder)
    ids, names = recorded.ids(path.stem), recorded.names()
    assert ids and names == {p.stem for p in (path, *others)}
    compacting.compact(folder)
    assert recorded.ids(path.stem) == ids and recorded.names() == names and recorded.ids("0" * 32) == []
    pack, _ = pack_of(folder)
    pack.write_bytes(b" " * pack.stat().st_size)
    assert recorded.ids(path.stem) == [], "a damaged line is no result"


@pytest.mark.nightly  # a kill at each stage, in the same file
def test_kills_at_random_moments_inside_compact_lose_nothing():
    draw, folder = random.Random(0), filled(seeds=[(n,) for n in range(60)])
    code = f"import sys, pathlib; sys.path[:] = {sys.path!r}; from posenc.lab.store import compacting\n"
    code += "print('on', flush=True)\ncompacting.compact(pathlib.Path(sys.argv[1]))"
    before, contents, kills = store.read_records(folder), files(folder), 0
    while kills < 25:
        child = subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE)
        assert child.stdout.readline() == b"on\n"
        threading.Event().wait(draw.uniform(0, 0.4))
        child.kill()
        kills += child.wait() == -signal.SIGKILL
        child.stdout.close()
        assert store.read_records(folder) == before
        if not singles(folder):
            for name in files(folder):
                (folder / "records" / name).unlink()
            for name, content in contents.items():
                (folder / "records" / name).write_bytes(content)
