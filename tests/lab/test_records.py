"""A record comes back as it was written, or is named and costs only its own trials."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from posenc.lab.results import statistics
from posenc.lab.results.results import load
from posenc.lab.store import folder as store
from posenc.lab.store import records
from tests.lab import made

pytestmark = pytest.mark.usefixtures("runs")
COMMITTED = sorted((Path(__file__).parents[2] / "experiments" / "records").glob("*.json*"))
LARGEST = ("atlas.json.gz", "atlas_encoders.json.gz")
"""They wait for `.ci/run`: each takes a second or two."""


def test_a_record_comes_back_as_it_was_written():
    folder = store.create("a")
    path = made.write_record(folder, made.rope())
    stored = store.read_records(folder)
    assert stored.problems == ()
    (record,) = stored.records
    assert record == made.typed(made.rope())
    content = json.loads(path.read_bytes())
    assert list(content) == ["schema", "sha256", "name", *made.rope()]
    assert content["name"] == store.digest(record.ids)
    assert {key: content[key] for key in made.rope()} == made.rope()


def test_what_a_later_version_adds_is_left_out():
    folder = made.filled("a", [made.rope((0,))])
    made.edit(folder, lambda said: said.update(later={"x": [1]}) or said["trials"][0]["knobs"].update(power=2.0))
    assert store.read_records(folder) == store.Stored((made.typed(made.rope((0,))),), ())


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=pytest.mark.ci if path.name in LARGEST else ()) for path in COMMITTED],
    ids=[path.stem for path in COMMITTED],
)
def test_a_committed_file_read_and_written_again_is_the_same_bytes(path, tmp_path):
    found = records.read_bundle(path)
    assert found.stored.problems == () and found.stored.records
    again = records.write_bundle(tmp_path / path.name, found.name, found.stored.records, found.unfinished)
    assert again.read_bytes() == path.read_bytes()


def test_labels_are_those_of_the_records_and_a_damaged_one_costs_its_own_alone(tmp_path):
    path = records.write_bundle(tmp_path / "a.json.gz", "a", [made.typed(made.rope()), made.typed(made.rope((7,)))], [])
    assert records.labels(path) == [(r.label, r.task.label) for r in load(path).records] == [("rope", "copy")] * 2
    content = json.loads(gzip.decompress(path.read_bytes()))
    del content["records"][0]["task"]
    path.write_bytes(gzip.compress(json.dumps(content).encode()))
    assert records.labels(path) == [("rope", "copy")]
    for damaged in (b"", gzip.compress(b"[1]"), gzip.compress(b'{"records": 3}')):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="'.*a.json.gz' is not a bundle of records: "):
            records.labels(path)


def test_a_bundle_whose_name_ends_in_gz_is_compressed_and_reads_as_the_plain_one(tmp_path):
    content = made.typed(made.rope())
    plain, packed = (records.write_bundle(tmp_path / name, "a", (content,), ()) for name in ("a.json", "a.json.gz"))
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    assert records.read_bundle(packed) == records.read_bundle(plain)
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(ValueError, match="a.json.gz' is not a bundle of records: it is not .* or is cut"):
        records.read_bundle(packed)
    packed.write_bytes(plain.read_bytes())
    with pytest.raises(ValueError, match="it is not compressed by gzip"):
        records.read_bundle(packed)


def test_nan_infinity_and_numpy_become_json():
    record = made.rope((0,))
    record["trials"][0]["curve"]["loss"] = np.array([1.0, np.nan, np.inf], np.float32)
    record["trials"][0]["evaluations"]["8"]["correct"] = np.int32(7)
    path = made.write_record(store.create("a"), record)
    said = json.loads(path.read_text(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert said["trials"][0]["curve"]["loss"] == [1.0, None, None]
    assert said["trials"][0]["evaluations"]["8"]["correct"] == 7


def test_the_name_of_a_record_does_not_depend_on_the_order_of_trials():
    assert store.digest(["b", "a"]) == store.digest(["a", "b"]) != store.digest(["a"])


@pytest.mark.parametrize(
    "older",
    [lambda trial: trial.pop("validation"), lambda trial: trial["evaluations"]["8"].update(total=1000)],
    ids=["no validation", "total"],
)
def test_a_record_of_a_version_before_0_2_is_named_and_left_out(older):
    folder = made.filled("a", [made.rope(), made.rope(label="alibi")])
    made.edit(folder, lambda said: older(said["trials"][0]), label="alibi")
    stored = store.read_records(folder)
    assert [record.label for record in stored.records] == ["rope"] and stored.unreadable == 1
    assert len(stored.problems) == 1 and "0.2.0" in stored.problems[0]


@pytest.mark.parametrize("differ", [0, 50])
def test_of_two_records_with_one_trial_the_first_name_wins_and_it_is_said(differ):
    folder = store.create("a")
    one, two = made.rope((0, 1)), made.rope((1, 2))
    two["trials"][0]["evaluations"]["32"]["correct"] -= differ
    for record in (one, two):
        made.write_record(folder, record)
    stored = store.read_records(folder)
    kept = {trial.id: trial for record in stored.records for trial in record.trials}
    shared, first = one["trials"][1]["id"], min(one, two, key=lambda r: store.digest([t["id"] for t in r["trials"]]))
    assert len(kept) == 3 == sum(len(record.trials) for record in stored.records)
    assert kept[shared] in made.typed(first).trials
    (problem,) = stored.problems
    assert shared[:12] in problem and made.log_of(folder).name in problem
    assert store.survey(folder).problems == stored.problems and store.survey(folder).outcomes.keys() == kept.keys()
    assert ("differ by up to 0.050" in problem) is ("differ" in problem) is bool(differ)


def test_a_record_of_an_unfinished_trial_is_refused():
    record = made.rope()
    record["trials"][0]["outcome"] = "failed"
    with pytest.raises(ValueError, match="'failed' has no record"):
        made.write_record(store.create("a"), record)


def test_a_trial_that_scored_nothing_at_a_size_has_no_number_there_and_hides_no_other(runs):
    """Of metrics by rows too: whole answers of which none is scored are not all wrong."""
    rope, odd = made.rope(seeds=range(3)), made.rope(seeds=range(3), task="odd")
    empty = [rope["trials"][1]["evaluations"]["24"]] + [
        t["evaluations"][n] for t in odd["trials"] for n in ("24", "32")
    ]
    for counts in empty:
        counts.update({name: 0 for name in counts if name != "rows"})
    found = load(made.filled("mine", [rope, odd]))
    for results in (found, found.shown("last"), found.shown("exact")):
        cells = {cell.task: cell for cell in statistics.cells(results)}
        assert cells["copy"].seeds[24] == (0, 2) and cells["copy"].seeds[32] == (0, 1, 2)
        assert [*cells["odd"].values] == [8, 16]
    named = [problem for problem in found.problems if "scored nothing at size" in problem]
    assert len(named) == 2 and any("rope on odd" in problem and "24, 32" in problem for problem in named)
    assert any(rope["trials"][1]["id"][:12] in problem and "rope on copy" in problem for problem in named)
