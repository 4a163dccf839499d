"""A run is written once, however many trials it has; older plans are read, and damage is named by its line."""

import json

import pytest

from posenc.lab.store import disk
from posenc.lab.store import folder as store
from posenc.lab.store.schema import written
from tests.lab import made

pytestmark = pytest.mark.usefixtures("runs")


def planned(*groups):
    """A run folder with these groups: pairs of a label and its seeds."""
    folder = store.create("a")
    for number, (label, seeds) in enumerate(groups):
        made.write_plan(folder, made.plan(made.rope(seeds, label=label), f"g{number}"))
    return folder


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_run_is_written_once_and_its_trials_name_it():
    folder = planned(("rope", (0, 1)), ("alibi", (0,)), ("rope", (2, 3)))
    runs, plan = lines(folder / "runs.jsonl"), lines(folder / "plan.jsonl")
    assert [run["shared"]["label"] for run in runs] == ["rope", "alibi"] and len(plan) == 5
    assert {tuple(line) for line in plan} == {("group", "id", "knobs", "run")}
    assert [line["run"] for line in plan] == [runs[n]["sha256"] for n in (0, 0, 1, 0, 0)]
    expected = made.plan(made.rope((0, 1)), "g0")
    assert [written(line) for line in store.read_plan(folder)][:2] == expected


def test_a_plan_of_a_version_before_0_2_is_refused_in_a_sentence():
    folder = planned(("rope", (0, 1)))
    whole = [store.canonical(written(line)) for line in store.read_plan(folder)]
    (folder / "plan.jsonl").write_text("\n".join(whole))
    with pytest.raises(ValueError, match="0.2.0"):
        store.read_plan(folder)


def test_a_plan_whose_last_line_was_cut_of_its_break_goes_on():
    folder = planned(("rope", (0,)))
    path = folder / "plan.jsonl"
    path.write_bytes(path.read_bytes().rstrip())
    made.write_plan(folder, made.plan(made.rope((1,)), "g1"))
    assert [line.knobs.seed for line in store.read_plan(folder)] == [0, 1]


def flip(text):
    return text.replace('"label":"alibi"', '"label":"alibj"')


DAMAGE = {
    "edited": (flip, "line 2 of .*runs.jsonl' does not match its checksum, so it was damaged or edited; restore"),
    "cut": (lambda t: t[:-40], "line 2 of .*runs.jsonl' is not JSON; restore the file"),
    "a line gone": (
        lambda t: t.splitlines()[0] + "\n",
        "line 3 of .*plan.jsonl' names a run that .*runs.jsonl' lacks;",
    ),
    "emptied": (lambda t: "", "line 1 of .*plan.jsonl' names a run that .*runs.jsonl' lacks; restore that file"),
    "gone": (lambda t: None, "names a run that .*runs.jsonl' lacks"),
    "a list": (lambda t: "[]\n", "line 1 of .*runs.jsonl' does not match its checksum"),
    "nested": (lambda t: "[" * 100_000, "line 1 of .*runs.jsonl' is not JSON"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_runs_are_named_by_their_line_and_nothing_is_planned_over_them(damage):
    folder = planned(("rope", (0, 1)), ("alibi", (0,)))
    path = folder / "runs.jsonl"
    change, said = DAMAGE[damage]
    content = change(path.read_text())
    path.unlink() if content is None else path.write_text(content)
    before = {p.name: p.read_bytes() for p in folder.glob("*.jsonl")}
    for act in (store.status, lambda f: made.write_plan(f, made.plan(made.rope((7,)), "g7"))):
        with pytest.raises(ValueError, match=said):
            act(folder)
    assert {p.name: p.read_bytes() for p in folder.glob("*.jsonl")} == before


WRONG = {
    "knobs": ({"knobs": {"lr": 0.1}}, "has no 'seed' in knobs; restore the file, or plan again"),
    "a rate": ({"knobs": {"seed": 0, "lr": -1.0}}, "has -1.0 as knobs.lr; float >= 0.0 is needed; restore"),
    "an id": ({"id": 5}, "has 5 as id; str is needed"),
    "a group": ({"group": "../x"}, "cannot be a name"),
    "steps of its own": ({"steps": 3}, "has 'steps' beside the run that it names; restore"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_line_is_named(wrong):
    folder = planned(("rope", (0, 1)))
    first, second = lines(folder / "plan.jsonl")
    change, said = WRONG[wrong]
    (folder / "plan.jsonl").write_text(f"{json.dumps(first)}\n{json.dumps(second | change)}\n")
    with pytest.raises(ValueError, match=said):
        store.read_plan(folder)


def test_what_a_later_version_adds_to_a_line_is_kept():
    folder = planned(("rope", (0,)))
    (line,) = lines(folder / "plan.jsonl")
    (folder / "plan.jsonl").write_text(json.dumps(line | {"later": 1}) + "\n")
    assert store.read_plan(folder)[0].other == {"later": 1}


def test_a_reader_beside_a_planner_finds_every_run(monkeypatch):
    """Runs are written before the plan that names them, and read after it."""
    folder, real, written_ = planned(("rope", (0,))), disk.write, []
    found = []

    def write(path, content):
        done = real(path, content)
        written_.append(path.name)
        found.append(len(store.read_plan(folder)))
        return done

    monkeypatch.setattr(disk, "write", write)
    made.write_plan(folder, made.plan(made.rope((0,), label="alibi"), "g1"))
    assert [name for name in written_ if name.endswith("jsonl")] == ["runs.jsonl", "plan.jsonl"]
    assert found[-2:] == [1, 2]
