"""A plan is one file; a run is written once, however many trials it has, and damage is named by its line."""

import json

import pytest

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
    found = lines(folder / "plan.jsonl")
    runs, plan = ([line for line in found if ("shared" in line) is is_run] for is_run in (True, False))
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


def edited(number, change):
    """Lines of a plan, of which one is changed."""

    def edit(lines):
        lines[number - 1] = change(lines[number - 1])
        return "".join(lines)

    return edit


def with_keys(**keys):
    return lambda line: json.dumps(json.loads(line) | keys) + "\n"


DAMAGE = {
    "edited": (edited(4, lambda line: line.replace('"label":"alibi"', '"label":"alibj"')), "line 4 .*checksum"),
    "cut": (edited(4, lambda line: line[:40] + "\n"), "line 4 .*JSON"),
    "a run gone": (edited(4, lambda _: ""), "line 4 .*run"),
    "a list": (edited(1, lambda _: "[]\n"), "line 1 .*object"),
    "nested": (edited(1, lambda _: "[" * 100_000 + "\n"), "line 1 .*JSON"),
    "knobs": (edited(3, with_keys(knobs={"lr": 0.1})), "line 3 .*'seed' in knobs"),
    "a rate": (edited(3, with_keys(knobs={"seed": 0, "lr": -1.0})), "line 3 .*-1.0 as knobs.lr; float >= 0.0"),
    "an id": (edited(3, with_keys(id=5)), "line 3 .*5 as id; str"),
    "a group": (edited(3, with_keys(group="../x")), "'../x'"),
    "steps of its own": (edited(3, with_keys(steps=3)), "line 3 .*'steps'"),
    "a trial twice": (lambda lines: "".join([*lines, lines[1]]), "Line 6 .*line 2 "),
    "seeds of no trial": (lambda lines: "".join([*lines, '{"trials":["x"],"reports":[7]}']), "line 6 .*trial x"),
    "seeds of one that does not tune": (
        lambda lines: "".join([*lines, json.dumps({"trials": [json.loads(lines[1])["id"]], "reports": [7]})]),
        "line 6 .*tuning",
    ),
    "a seed below 0": (lambda lines: "".join([*lines, '{"trials":["x"],"reports":[-7]}']), "line 6 .*-7 .*int"),
    "a trial that is a list": (lambda lines: "".join([*lines, '{"trials":[[1]],"reports":[7]}']), "line 6 .*str"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_line_is_named_and_nothing_is_planned_over_it(damage):
    folder = planned(("rope", (0, 1)), ("alibi", (0,)))
    path, (change, said) = folder / "plan.jsonl", DAMAGE[damage]
    path.write_text(change(path.read_text().splitlines(keepends=True)))
    before = path.read_bytes()
    for act in (store.status, lambda f: made.write_plan(f, made.plan(made.rope((7,)), "g7"))):
        with pytest.raises(ValueError, match=said) as refused:
            act(folder)
        assert "\n" not in str(refused.value)
    assert path.read_bytes() == before


WRONG = [
    *(("id", [1], "id; str"), ("run", 1, "run; object"), ("task", {}, "task; str"), ("label", None, "label; str")),
    *(("group", 3, "group; str"), ("knobs", "x", "knobs; object"), ("knobs", {"seed": 0, "lr": 10**400}, "lr; int <=")),
    *(("sizes", 8, "sizes; array"), ("sizes", ["8"], "int"), ("sizes", [-1], "int >="), ("rows", 0, "rows; int >= 1")),
    *(("steps", True, "steps; int"), ("steps", -1, "steps; int >= 0"), ("steps", 2**31, "steps; int <=")),
    *(
        ("segment", 0, "segment; int >= 1"),
        ("segment", -2, "segment; int >= 1"),
        ("segment", 3, "divisor of its 10 steps"),
    ),
]


@pytest.mark.parametrize(("key", "value", "said"), WRONG)
def test_what_no_plan_can_hold_is_refused_by_its_line_with_what_is_needed(key, value, said):
    folder = planned(("rope", (0,)))
    made.replanned(folder, lambda line: line | {key: value})
    with pytest.raises(ValueError, match=f"line [12] .* as .*{said}.*; restore the file"):
        store.read_plan(folder)
