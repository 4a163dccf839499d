"""`posenc which`: its scores are those of the committed records, counted here anew, and it says what is open."""

import functools
import json
import statistics
from collections import defaultdict
from pathlib import Path

import pytest

import posenc as package
from posenc.lab import tasks
from posenc.lab.results import ability_scores as scoring
from posenc.lab.results.ability_scores import ability_scores, schemes_in
from posenc.lab.spec.abilities import ABILITIES, ability_of, answers_each_token, tasks_with
from posenc.lab.tasks.task import TASKS, Layout
from posenc.language.modules import declarations
from tests.lab import made

RECORDS = Path(package.__file__).resolve().parent.parent / "experiments" / "records"
OURS = [name for name in tasks.names() if TASKS.find(name).__module__.startswith("posenc.")]


@pytest.fixture(scope="module", autouse=True)
def read_once():
    """Every command reads all records; here it is done once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scoring, "load", functools.cache(scoring.load))
        yield


def test_what_classes_declare_is_read_without_importing_them():
    assert sorted(declarations("lab.tasks")) == OURS and sorted(declarations("schemes")) == package.names()
    for name in OURS:
        task = tasks.parse(name)
        assert ability_of(name) == task.ability and task.ability in ABILITIES
        assert task.layout is Layout.TOKENS or not answers_each_token(name)
    assert sorted(name for ability in ABILITIES for name in tasks_with(ability)) == OURS
    assert ability_of("shifted(task='count_symbol(most=4)', size=9)") == "counting" and ability_of("theirs(k=2)") == ""
    assert answers_each_token("shifted(task='token_k_back', size=9)") and not answers_each_token("bucket_sort")


def test_scores_are_those_of_the_record():
    """Every trial of `flipflop` has one rate, so that nothing chooses among them."""
    found = {(score.scheme, score.model): score for score in ability_scores("state") if score.experiment == "flipflop"}
    trials, tasks = defaultdict(list), {}
    for record in json.loads((RECORDS / "flipflop.json").read_text())["records"]:
        row = record["label"], record["run"]["model"].partition("(")[0]
        trials[row] += record["trials"]
        tasks[row] = record["task"]
    assert len(found) == len(trials) > 5
    for row, of_row in trials.items():
        score, task = found[row], tasks[row]
        at = [trial["evaluations"]["128"] for trial in of_row]
        right = statistics.median(counts["last"] / counts["rows"] for counts in at)
        floor = max(share for share in task["floors_last"]["128"].values() if share is not None)
        assert (score.size, score.right.n, score.metric) == (128, len(at), "last")
        assert score.right.median == pytest.approx(right) and score.floor == pytest.approx(floor)
        assert score.score == pytest.approx(min(max((right - floor) / (1 - floor), 0), 1))
        inside = statistics.median(t["evaluations"]["64"]["last"] / t["evaluations"]["64"]["rows"] for t in of_row)
        assert score.trained_right == pytest.approx(inside) and score.learned is (inside >= 0.9)


def test_a_text_in_slots_counts_as_a_whole_and_answers_at_every_token_beyond_training():
    assert {score.metric for score in ability_scores("sorting")} == {"token"}
    assert {score.metric for score in ability_scores("offset") if "token_k_back" in score.task} == {"beyond", "last"}


def test_rates_that_tie_and_differ_beyond_training_are_told(posenc):
    (deep,) = [
        s
        for s in ability_scores("offset")
        if s.experiment == "norms" and "norm=post" in s.settings and "depth=8" in s.settings
    ]
    trials = [
        t
        for r in json.loads((RECORDS / "norms.json").read_text())["records"]
        for t in r["trials"]
        if (r["run"]["norm"], r["run"]["depth"]) == ("post", 8)
    ]
    for rate, right in deep.by_rate.items():
        at = [t["evaluations"]["32"] for t in trials if t["knobs"]["lr"] == rate]
        assert right == pytest.approx(statistics.median(counts["last"] / counts["rows"] for counts in at))
    assert len(deep.by_rate) > 1 and max(deep.by_rate.values()) - min(deep.by_rate.values()) > 0.3
    assert "rates that tie in validation: rope (depth=8, norm=post) 0." in posenc("which", "offset").out


@pytest.fixture
def own(posenc, tmp_path):
    """An experiment of this folder: rope 0.1 lower for each seed, alibi never learned, shaw below the floor."""
    folder = tmp_path / "experiments"
    (folder / "records").mkdir(parents=True)
    (folder / "ours.py").write_text('"""A claim.\n\nCost: none.\n"""\n\n\ndef runs():\n    return ()\n')
    inside = {8: 1.0, 16: 1.0, 24: 0.7}
    schemes = {"rope": [0.7, 0.6, 0.5], "alibi": [0.9, 0.9, 0.9], "shaw": [0.1, 0.1, 0.15]}
    records = []
    for label, last in schemes.items():
        trained = inside if label != "alibi" else {8: 1.0, 16: 0.8, 24: 0.8}
        trials = [made.trial(label, "count_symbol", seed, trained | {32: x}) for seed, x in enumerate(last)]
        records.append(made.record(label, "", "count_symbol", trials, model="decoder"))
    results = made.results("ours", records)
    from posenc.lab.store.records import write_bundle

    write_bundle(folder / "records" / "ours.json", "ours", results.records, [])


def test_an_experiment_of_this_folder_is_answered_from_too(posenc, own):
    said = posenc("which", "counting")
    assert said.code == 0 and said.err == ""
    block = next(part for part in said.out.split("\n\n") if "(ours;" in part).splitlines()
    assert block[0] == "count_symbol, decoder, trained on 4 to 16, at 32 (ours; n = 3; floor 0.20)"
    assert block[1] == "  0.50 rope; 0.00 shaw" and block[2] == "  not learned: alibi 0.80"
    assert "Fewer than 6 runs, which order no two schemes: atlas, atlas_encoders, ours." in said.out
    assert max(map(len, said.out.splitlines())) <= 100, "COLUMNS is 100"


def test_what_is_open_is_named(posenc):
    answer = json.loads(posenc("which", "sorting", "--json").out)
    schemes = {score["scheme"].partition(" ")[0] for score in answer["scores"]}
    assert schemes == {"alibi", "learned", "nope", "rope", "sinusoidal", "t5"}
    assert sorted({*answer["schemes without a record"], *schemes}) == package.names()
    assert answer["tasks without a record"] == ["sort_labels", "sort_multi", "sort_single"]
    said = posenc("which", "sorting").out
    assert f"{len(answer['schemes without a record'])} of {len(package.names())} schemes have no record" in said
    assert "Learned by no scheme at the sizes trained on: word_problem." in posenc("which", "state").out
    assert "fire" not in said.replace("posenc reproduce", ""), "a scheme in no record is not listed"


def test_a_model_is_named_where_most_have_another(posenc):
    def block(ability, task, experiment):
        parts = (" ".join(part.split()) for part in posenc("which", ability).out.split("\n\n"))
        return next(part for part in parts if part.startswith(task) and f"({experiment};" in part)

    most = block("counting", "count_symbol", "atlas")
    assert most.startswith("count_symbol, decoder if no other model is named, trained on 8 to 16, at 32 (atlas;")
    assert "nope (lstm); 0." in most and " nope; 0." in most and "(decoder)" not in most
    half = block("offset", "token_k_back,", "permutation")
    assert half.startswith("token_k_back, trained on 4 to 16") and "kerple (decoder); 1.00 kerple (encoder)" in half


@pytest.mark.ci
@pytest.mark.parametrize("ability", ABILITIES)
def test_every_ability_is_answered(posenc, ability):
    said = posenc("which", ability)
    assert said.code == 0 and said.out.startswith(f"{ability}: {ABILITIES[ability]}\n")


def test_without_a_name_the_abilities_are_listed(posenc):
    said = posenc("which")
    assert [line.split()[0] for line in said.out.splitlines()[1:]] == list(ABILITIES)
    assert [row["ability"] for row in json.loads(posenc("which", "--json").out)] == list(ABILITIES)


@pytest.mark.parametrize("words", [["which", "countin"], ["list", "tasks", "--ability", "countin"]])
def test_an_unknown_ability_names_those_that_exist(refuse, words):
    sentence = refuse(*words)
    assert "Did you mean 'counting'?" in sentence and all(name in sentence for name in ABILITIES)


def test_tasks_are_listed_by_ability(posenc):
    assert {row["name"]: row["ability"] for row in json.loads(posenc("list", "tasks", "--json").out)} == {
        name: tasks.parse(name).ability for name in tasks.names()
    }
    rows = json.loads(posenc("list", "tasks", "--ability", "sorting", "--json").out)
    assert [row["name"] for row in rows] == ["bucket_sort", "sort_labels", "sort_multi", "sort_single"]
    assert "use `posenc list tasks --ability`" in posenc("list", "schemes", "--ability", "sorting").err


def test_a_label_names_the_schemes_of_both_stages():
    assert schemes_in("dynamic_ntk(rule='pi'), trained with rope") == {"dynamic_ntk", "rope"}
