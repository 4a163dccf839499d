"""Damaged and made-up files: one costs its own group and is named, numbers that cannot be are never shown, and nothing
waits for a pipe."""

import copy
import json
import os
import random

import pytest

from posenc.lab.figures.tables import table
from posenc.lab.results.rates import rates_by_cell
from posenc.lab.results.results import load
from posenc.lab.store import checkpoints, records
from posenc.lab.store import folder as store
from tests.lab import made

pytestmark = pytest.mark.usefixtures("runs")
HUGE = 10**400


def both():
    """A run of two groups."""
    return made.filled("a", [made.rope(), made.rope(label="alibi", family="linear")])


def first(content):
    return content["trials"][0]


def counts(content):
    return first(content)["evaluations"]["8"]


def set_counts(**change):
    return lambda r: counts(r).update(change)


def add_size(size):
    return lambda r: first(r)["evaluations"].update({size: counts(r)})


NO_SIZES = "has keys in trials[0].evaluations that are no sizes"
IMPOSSIBLE = {
    "below 0": (set_counts(correct=-5), "has -5 as trials[0].evaluations['8']['correct']; int >= 0 is needed"),
    "beyond its total": (set_counts(correct=10**9), "1000000000 correct of 1000 scored"),
    "more rows than there are": (set_counts(exact=101), "101 exact of 100 rows"),
    "last": (set_counts(last=101), "101 last of 100 rows"),
    "a text": (set_counts(correct="9"), "'9' as trials[0].evaluations['8']['correct']"),
    "None": (set_counts(correct=None), "None as trials[0].evaluations['8']['correct']; int is needed"),
    "true": (set_counts(correct=True), "True as trials[0].evaluations['8']['correct']; int is needed"),
    "a share": (set_counts(correct=0.5), "0.5 as trials[0].evaluations['8']['correct']; int is needed"),
    "huge": (set_counts(correct=HUGE, total=HUGE), "int <= 9223372036854775807 is needed"),
    "no scored": (lambda r: counts(r).pop("scored"), "no scored, of which its metric is made"),
    "nothing right": (lambda r: counts(r).pop("correct"), "no correct, of which"),
    "validation": (lambda r: first(r)["validation"]["8"].update(correct=2000), "2000 correct of 1000"),
    "a metric of none": (lambda r: r["task"].update(metric="tokens"), "its metric is 'tokens'; it is one of token"),
    "floors of text": (lambda r: r["task"]["floors"].update({"8": {"x": "y"}}), "has 'y' as task.floors['8']['x']"),
    "floors under names other than sizes": (
        lambda r: r["task"].update(floors={"x": {}}),
        "has keys in task.floors that are no sizes",
    ),
    "a floor above 1": (
        lambda r: r["task"]["floors"]["8"].update(prior=1.5),
        "has 1.5 as task.floors['8']['prior']; float <= 1.0 is needed",
    ),
    "a size of 5,000 digits": (add_size("1" * 5000), NO_SIZES),
    "digits of another script": (add_size("٣"), NO_SIZES),
    "one size twice": (add_size("08"), NO_SIZES),
    "a descending range": (lambda r: r["task"].update(trained=[16, 4]), "trained on sizes from 16 to 4"),
    "a range below 0": (lambda r: r["task"].update(trained=[-4, 4]), "has -4 as task.trained[0]"),
    "a range of texts": (lambda r: r["task"].update(trained=["4", 16]), "has '4' as task.trained[0]; int is needed"),
    "steps below 0": (lambda r: first(r).update(steps=-1), "has -1 as trials[0].steps"),
    "diverged after the end": (lambda r: first(r).update(diverged_at=11), "diverged at step 11 of 10"),
    "a rate of 10**400": (lambda r: first(r)["knobs"].update(lr=HUGE), "as trials[0].knobs.lr; int <="),
    "a rate below 0": (lambda r: first(r)["knobs"].update(lr=-1), "has -1 as trials[0].knobs.lr; int >= 0"),
    "a seed of 10**400": (lambda r: first(r)["knobs"].update(seed=HUGE), "as trials[0].knobs.seed; int <="),
    "a model that is a number": (lambda r: r["run"].update(model=5), "model of its run is 5; it is a text"),
    "seconds of 10**400": (lambda r: r["provenance"].update(compiled={"seconds": HUGE}), "seconds to compile"),
    "revisions in a list": (lambda r: r["run"].update(revisions=[1]), "revisions of its run"),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_a_sealed_record_of_impossible_numbers_is_named_and_costs_its_group(name):
    change, why = IMPOSSIBLE[name]
    folder = both()
    number = made.edit(folder, change)
    (problem,) = store.read_records(folder).problems
    place = f"Line {number} of records/{made.log_of(folder).name} is left out: "
    assert problem.startswith(place) and why in problem and len(problem) < 300
    results = load("a")
    assert {row.scheme for row in results.rows()} == {"alibi"} and results.problems == (problem,)


def test_a_record_of_impossible_numbers_is_not_written():
    record = made.rope()
    counts(record).update(correct=2000)
    with pytest.raises(ValueError, match="2000 correct of 1000 scored"):
        made.write_record(store.create("a"), record)


def test_the_same_numbers_in_a_bundle_cost_one_record(tmp_path):
    folder = both()
    path = store.bundle(folder, tmp_path / "b.json")
    whole = json.loads(path.read_bytes())
    body = whole["records"][0]
    counts(body).update(correct=-5)
    del body["sha256"]
    body["sha256"] = records._sum(body)
    path.write_text(json.dumps(whole))
    found = load(str(path))
    assert len(found.records) == 1 and "has -5 as trials[0]" in found.problems[0]


def test_a_model_of_another_version_keeps_what_was_written_of_it():
    made.filled("a", [made.rope(), {**made.rope(task="index"), "run": {"model": "decoder(later=3)", "task": "index"}}])
    assert len(load("a").rows()) == 24


@pytest.mark.timeout(10)
@pytest.mark.parametrize("part", ["records/x.json", "plan.jsonl", "errors/g0.txt", "claims/g9", "records/d/"])
def test_a_pipe_in_the_place_of_a_file_is_named_and_waited_for_by_nobody(part):
    folder = both()
    place = folder / part
    place.unlink(missing_ok=True)
    place.mkdir() if part.endswith("/") else os.mkfifo(place)
    if part == "plan.jsonl":
        for act in (lambda: store.status(folder), lambda: load("a")):
            with pytest.raises(ValueError, match=r"plan.jsonl' is not a plain file; remove it\.$"):
                act()
        return
    problems = store.status(folder).problems
    assert len(load("a").rows()) == 24 and load("a").problems == problems
    assert ["is not a plain file" in p for p in problems] == [True] * part.startswith("records")


@pytest.mark.timeout(10)
def test_a_pipe_in_the_place_of_a_claim_or_a_log_is_a_sentence():
    folder = both()
    os.mkfifo(folder / "claims" / "g9")
    with pytest.raises(ValueError, match="claims/g9' is not a plain file"), store.claim(folder, "g9"):
        pass
    os.mkfifo(folder / "events" / "w.jsonl")
    with pytest.raises(OSError):
        store.log(folder, "w", "begun")


@pytest.mark.parametrize("part", ["records", "errors", "claims"])
def test_a_file_in_the_place_of_a_part_of_a_run_is_named(part):
    folder = both()
    (folder / part).rename(folder / "elsewhere")
    (folder / part).write_text("")
    with pytest.raises(ValueError, match=f"{part}' is a file, but a run folder has a folder there"):
        store.status(folder)


def test_an_emptied_plan_is_noticed():
    folder = both()
    plan = folder / "plan.jsonl"
    text = plan.read_text()
    plan.write_text("")
    found = store.status(folder)
    assert found.counts["done"] == 0 and "lacks 6 " in found.problems[0]
    plan.write_text("\n".join(text.splitlines()[:-1]) + "\n")
    assert "lacks 1 " in store.status(folder).problems[0]


def test_a_record_of_a_newer_version_is_left_out_and_nothing_is_planned_beside_it():
    folder = both()
    log = made.log_of(folder)
    log.write_bytes(log.read_bytes().replace(b'"schema":3', b'"schema":7', 1))
    (problem,) = store.read_records(folder).problems
    assert "schema 7" in problem and "up to 3" in problem
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    with pytest.raises(ValueError, match="schema 7.* 3"):
        made.write_plan(folder, made.plan(made.rope(task="index"), "g7"))
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize("text", ["", "{", "[1]", "5", "{}", "[" * 9999])
def test_a_damaged_manifest_of_parameters_names_the_trial(text, runs):
    folder = store.create("a")
    (folder / "params" / "t").mkdir(parents=True)
    (folder / "params" / "t" / checkpoints.MANIFEST).write_text(text)
    (folder / "params" / "t" / "data").write_text("x")
    with pytest.raises(ValueError, match="trial t .*--keep"):
        checkpoints.restore(folder, "t")


ODD = [None, True, -1, 0, 2, HUGE, 1.5, float("nan"), "", "x", "9", [], [1], ["x"], {}, {"8": 1}, {"x": {"y": "z"}}]


def damaged(content, draw):
    """The same JSON with one value, anywhere in it, replaced, left out, or put in twice."""
    content = copy.deepcopy(content)
    at, key = content, None
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            break
        key = draw.choice(keys)
        if not isinstance(at[key], dict | list) or draw.random() < 0.2:
            break
        at = at[key]
    how = draw.random()
    if key is not None and how < 0.2 and isinstance(at, dict):
        del at[key]
    elif isinstance(at, dict) and how < 0.3:
        at[draw.choice(["8", "٣", "1" * 5000, "later"])] = draw.choice(ODD)
    elif key is not None:
        at[key] = draw.choice(ODD)
    return content


def changed(content, other):
    """Put other content in the place of this."""
    content.clear()
    content.update(other)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("seed", range(20))
def test_any_damage_to_a_sealed_record_gives_a_sentence_or_right_numbers(seed):
    draw, folder = random.Random(seed), both()
    log = made.log_of(folder)
    sound = log.read_bytes()
    for _ in range(25):
        log.write_bytes(sound)
        made.edit(folder, lambda said: changed(said, damaged(said, draw)))
        state, results = store.status(folder), load("a")
        assert all(p.endswith(".") and len(p) < 400 for p in results.problems), results.problems
        assert len({row.trial for row in results.rows() if row.scheme.startswith("alibi")}) == 3
        for row in results.rows():
            assert 0 <= row.value <= 1 and not row.exact > 1 and 0 <= row.floor <= 1, row
        assert state.counts["done"] + state.counts["diverged"] + state.counts["pending"] == 6
        assert "alibi" in table(results, "text") and results.choices("scheme") and rates_by_cell(results)
        assert results.provenance() and results.tasks().keys() >= {"copy"}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("seed", range(10))
def test_any_damage_to_a_plan_gives_a_sentence_or_right_counts(seed):
    draw, folder = random.Random(seed), both()
    plan = folder / "plan.jsonl"
    lines = plan.read_text().splitlines()
    for _ in range(25):
        at = draw.randrange(len(lines))
        cut = draw.choice([lambda s: s[: draw.randrange(len(s))], lambda s: json.dumps(damaged(json.loads(s), draw))])
        plan.write_text("\n".join([*lines[:at], cut(lines[at]), *lines[at + 1 :]]) + "\n")
        try:
            found = store.status(folder)
        except ValueError as refusal:
            assert str(refusal).endswith(".") and len(str(refusal)) < 400, refusal
        else:
            assert sum(found.counts.values()) == 6 and len(load("a").rows()) == 24
