"""Seeds that choose a learning rate are not the seeds reported, whatever reads, stores or goes on with them."""

import json
import shutil

import pytest

from posenc.lab.figures import captions, files
from posenc.lab.figures.tables import table
from posenc.lab.results import rates, statistics
from posenc.lab.results.results import load
from posenc.lab.results.standing import finished, standing
from posenc.lab.results.table import table as table_of
from posenc.lab.run.sweep import rehearse, sweep
from posenc.lab.spec import settings
from posenc.lab.spec.experiment import from_words
from posenc.lab.spec.run import Plan
from posenc.lab.spec.toml import from_toml, to_toml
from posenc.lab.store import folder as store
from posenc.lab.store.schema import TUNING, PlannedTrial, TrialRecord, read
from tests.lab import made
from tests.lab.retuned import RATES, SEEDS, TUNING_SEEDS, asked, said, tiny
from tests.lab.test_sweep import Watch

# what is planned


def test_nine_trials_choose_and_six_are_reported():
    plan = Plan(lr=(3e-4, 1e-3, 3e-3), tuning=(0, 1, 2), seeds=tuple(range(3, 9)))
    assert plan.trials == 15 and len(plan.knobs()) == 9
    assert {k.seed for k in plan.knobs()} == {0, 1, 2} and {k.seed for k in plan.at(1e-3, plan.seeds)} == {*range(3, 9)}
    assert Plan(lr=(3e-4, 1e-3), seeds=(0, 1)).trials == 4, "without, every seed at every rate, as before"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"tuning": (0, 1), "seeds": (1, 2)}, "seed 1.*seeds=2:4"),
        ({"tuning": (0,), "seeds": (1,), "lr": (1e-3,)}, "lr.* 0.001"),
        ({"tuning": (0, 0), "seeds": (1,)}, r"tuning.*\(0, 0\)"),
        ({"tuning": (-1,), "seeds": (1,)}, "4294967295"),
    ],
)
def test_a_choice_that_cannot_be_is_one_sentence(change, why):
    with pytest.raises(ValueError, match=why) as refused:
        Plan(**{"lr": RATES} | change)
    assert "\n" not in str(refused.value)


def test_a_text_says_them_as_it_says_seeds():
    found = {text: settings.value("tuning", text) for text in ("3", "0,5", "0:2", "0", "")}
    assert found == {"3": (0, 1, 2), "0,5": (0, 5), "0:2": (0, 1), "0": (), "": ()}
    asked = from_words(["scheme=rope,nope"], ["tuning=0:2", "lr=1e-3,1e-2", "task=copy"], seeds="2:5", name="a")
    assert (asked.plan.tuning, asked.plan.seeds, asked.trials) == ((0, 1), (2, 3, 4), 14)
    assert from_toml(to_toml(asked)) == asked


# what is read


def tuned(**schemes):
    """Records of schemes whose tuning seeds are right at 1e-2 on validation and at 1e-3 on test examples, or as given:
    rate to validation, None for one that diverged. The reported seeds were trained at 1e-2."""
    recs = []
    for scheme, validation in (schemes or {"rope": {1e-3: 0.2, 1e-2: 0.8}}).items():
        found = []
        for lr, right in validation.items():
            test = {n: 1.0 if lr == 1e-3 else 0.1 for n in made.SIZES}
            about = {"lr": lr, "role": TUNING}
            for seed in TUNING_SEEDS:
                if right is None:
                    found.append(made.trial(scheme, "copy", seed, {}, outcome="diverged", validation={}, **about))
                else:
                    found.append(made.trial(scheme, "copy", seed, test, validation={16: right}, **about))
        share = lambda s: {n: 1.0 if n <= made.TRAINED[1] else 0.5 + s / 100 for n in made.SIZES}  # noqa: E731
        found += [made.trial(scheme, "copy", s, share(s), lr=1e-2) for s in SEEDS]
        recs.append(made.record(scheme, "rotary", "copy", found))
    return recs


def test_the_tuning_seeds_choose_and_the_others_are_reported():
    """Only the reported seeds, at the rate that the others chose on validation examples."""
    results = made.results("a", tuned())
    (cell,) = statistics.cells(results)
    assert cell.rate == 1e-2, "test examples chose"
    assert {seed for seeds in cell.seeds.values() for seed in seeds} == {*SEEDS}
    assert cell.values[32] == (0.52, 0.53, 0.54) and (cell.n, cell.tuning) == (3, TUNING_SEEDS)
    assert {row.seed for row in results.rows()} == {*SEEDS}
    assert (cell.rates, cell.counts) == (RATES, {"done": 7})
    assert {row.seed for row in results.tuning_rows()} == {*TUNING_SEEDS}
    assert len(results.trials()) == 7, "all are named as the source"


def test_no_metric_that_is_requested_changes_the_choice():
    """By whole answers, the other rate would have been chosen."""
    results = made.results("a", tuned())
    for metric in (None, "exact", "accuracy"):
        assert {c.rate for c in statistics.cells(results.shown(metric))} == {1e-2}
    assert statistics.cells(results.shown("exact"))[0].n == 3


def test_results_of_some_seeds_keep_those_that_chose():
    results = made.results("a", tuned())
    assert results.choices("seed") == [*SEEDS] and results.choices("lr") == [*RATES]
    (cell,) = statistics.cells(results.only(seed=3))
    assert (cell.rate, cell.n, cell.tuning) == (1e-2, 1, TUNING_SEEDS)
    assert statistics.cells(results.only(task="sort")) == ()


def test_a_rate_at_which_all_diverge_is_chosen_only_where_there_is_no_other():
    """A uniform guess, as which a diverged run counts, is better than what the other rate learned."""
    (cell,) = statistics.cells(made.results("a", tuned(rope={1e-3: None, 1e-2: 0.05})))
    assert (cell.rate, cell.unstable) == (1e-2, False)
    found = made.results("a", tuned(rope={1e-3: None, 1e-2: None}))
    (cell,) = statistics.cells(found)
    assert (cell.rate, cell.unstable, cell.n) == (1e-3, True, 0)
    lost = "1 scheme diverged in all tuning trials at every rate and is reported at the smallest: rope on copy."
    assert lost in table(found)


def test_until_all_have_a_result_nothing_is_decided():
    record = tuned()[0]
    lost = {**made.plan(record, "g")[0], "outcome": "failed", "reports": [*SEEDS]}
    record = {**record, "trials": record["trials"][1:]}
    assert rates.decided(made.results("a", [record], [lost])) == {}
    whole = made.results("a", tuned())
    assert set(rates.decided(whole).values()) == {1e-2} and len(rates.decided(whole)) == 4


def test_tables_captions_and_files_say_how_the_rate_was_chosen():
    results = made.results("a", tuned())
    text = table(results)
    assert "n counts runs at lr, chosen on validation examples of the sizes trained on, by 2 other seeds." in text
    assert "The other counts are over all rates tried and all seeds." in text
    (line,) = captions.rates(statistics.cells(results))
    assert line.startswith("Of the learning rates 0.001, 0.01, each scheme's was, per task, chosen on validation")
    every = table_of(results)
    assert {*every[every.tuning].seed} == {*TUNING_SEEDS}
    assert {*every[every.reported].seed.dropna()} == {*SEEDS}
    assert "\n" in files.data(results) and ",0.001," not in files.data(results), "figures draw reported seeds alone"


def test_a_comparison_pairs_reported_seeds():
    results = made.results("a", tuned(rope={1e-3: 0.2, 1e-2: 0.8}, alibi={1e-3: 0.2, 1e-2: 0.8}))
    (one,) = statistics.compare(results, "rope", "alibi")
    assert [seed for seed, *_ in one.pairs] == [*SEEDS]


def test_seeds_that_chose_and_are_reported_are_said():
    both = [made.trial("rope", "copy", s, {16: 0.5, 32: 0.5}, lr=lr) for s in SEEDS for lr in RATES]
    text = table(made.results("a", [made.record("rope", "rotary", "copy", both)]))
    assert "by the reported seeds themselves" in text


def test_a_role_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match="the role 'choosing'; only 'tuning' is known"):
        read(TrialRecord, made.trial("rope", "copy", 0, {16: 1.0}, role="choosing"))
    line = made.plan(tuned()[0], "g")[0]
    assert read(PlannedTrial, {**line, "reports": [2]}).tuning and not read(PlannedTrial, line).tuning


# what is trained


REPORTED = (2, 3, 4, 5)
"""As many as tuning trials, so that both stages are one program."""


@pytest.fixture(scope="module")
def tuned_run(tmp_path_factory):
    folder, watch = tmp_path_factory.mktemp("runs") / "whole", Watch()
    assert sweep(asked(seeds=REPORTED), folder, watch=watch) == 0
    return folder, watch


@pytest.mark.ci
def test_one_command_trains_both_stages(tuned_run):
    """Every tuning seed at every rate, and every reported seed at the rate that `cells` chooses."""
    folder, watch = tuned_run
    (cell,) = statistics.cells(load(folder))
    assert (cell.scheme, cell.n, cell.tuning) == ("rope", len(REPORTED), TUNING_SEEDS)
    tuning = {(seed, rate, True) for seed in TUNING_SEEDS for rate in RATES}
    trials = [trial for record in store.read_records(folder).records for trial in record.trials]
    roles = {(trial.knobs.seed, trial.knobs.lr, trial.tuning) for trial in trials}
    assert roles == tuning | {(seed, cell.rate, False) for seed in REPORTED}
    assert finished(folder) and standing(folder).undecided == 0
    begun = [said[1:3] for said in watch.heard if said[0] == "begin"]
    assert begun == [(8, 0), (8, 4)], "both stages are counted from the start"


def test_the_same_command_again_trains_nothing(tuned_run):
    folder, _ = tuned_run
    again = Watch()
    assert sweep(asked(seeds=REPORTED), folder, watch=again) == 0 and again.labels() == []
    counts = rehearse(asked(seeds=REPORTED), folder)
    assert (counts["trials"], counts["tuning"], counts["done"]) == (8, 4, 8)


def test_a_rehearsal_counts_both_stages(tmp_path):
    counts = rehearse(tiny(), tmp_path / "x")
    assert (counts["trials"], counts["tuning"], counts["done"]) == (14, 8, 0)
    one = rehearse(tiny(tuning=(), lr=(1e-3,), seeds=(0,)), tmp_path / "x")
    assert counts["operations"] == pytest.approx(7 * one["operations"])


def test_a_trial_keeps_its_role(tuned_run, tmp_path):
    folder = shutil.copytree(tuned_run[0], tmp_path / "roles")
    with pytest.raises(ValueError, match=r"seed 0\).*tuning"):
        sweep(asked(tuning=(), seeds=(0,)), folder, watch=Watch())
    with pytest.raises(ValueError, match="seeds"):
        sweep(asked(tuning=(*TUNING_SEEDS, 2), seeds=(3, 4)), folder, watch=Watch())


def test_a_bundle_keeps_roles_and_reads_alike(tuned_run, tmp_path):
    path = store.bundle(tuned_run[0], tmp_path / "b.json", "whole")
    assert table(load(path), "csv") == table(load(tuned_run[0]), "csv")
    kept = [t for r in json.loads(path.read_text())["records"] for t in r["trials"]]
    assert {t["knobs"]["seed"]: t.get("role") for t in kept} == {0: TUNING, 1: TUNING} | dict.fromkeys(REPORTED)


def test_the_command_line_says_what_it_will_do(tmp_path, monkeypatch):
    monkeypatch.setenv("POSENC_RUNS", str(tmp_path))
    words = "sweep --grid scheme=rope task=even_pairs --set lr=1e-3,1e-2 tuning=0,1 seeds=2,3 steps=1 width=8 --name a"
    text = said(*words.split(), "--dry-run")
    assert "Of each run, 4 trials choose the learning rate (2 rates, 2 seeds); 2 other seeds" in text
    assert "\n6 trials in" in text and "Intervals and tests need 6 reported seeds" in text
