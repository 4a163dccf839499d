"""Another scheme goes on at another length, as in `then="0.5 pi(factor=2.0), length=16"`: fine-tuning."""

import dataclasses

import numpy as np
import pytest

from posenc.lab.cli.read import filter_results
from posenc.lab.explain.induced import diagram
from posenc.lab.results.results import load
from posenc.lab.reuse.evaluate import ask
from posenc.lab.run import plan, trainer
from posenc.lab.run.sweep import sweep
from posenc.lab.run.trainer import Beginnings
from posenc.lab.spec.experiment import Experiment, from_words
from posenc.lab.spec.run import Knobs, Plan
from posenc.lab.spec.toml import from_toml, to_toml
from posenc.lab.store import folder as store
from posenc.lab.train import needs
from posenc.lab.train.training import resolve, stages
from tests.lab.test_sweep import BASE, Watch, trials

THEN = "0.5 pi(factor=2.0), length=16"
RUN = dataclasses.replace(
    BASE, task="token_k_back(k=1, symbols=4)", model="decoder", scheme="rope", then=THEN, length=8
)
ALONE = dataclasses.replace(RUN, then=None)
PLAN = Plan(steps=8, seeds=(0, 1), sizes=(8, 16, 24), rows=8, segment=2)


def trained(folder, *runs, watch=None, **how):
    return sweep(Experiment("tiny", runs, PLAN), folder, watch=watch or Watch(), **how)


SWEPT = pytest.mark.ci  # reads two sweeps


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The run and the one that does not go on, kept."""
    folder = tmp_path_factory.mktemp("runs") / "both"
    assert trained(folder, RUN, ALONE, keep=True) == 0
    return folder


def record(folder, longer):
    (found,) = (r for r in load(folder).records if ("then" in r.run) == longer)
    return found


@SWEPT
def test_before_the_switch_it_is_the_run_that_does_not_go_on(both):
    longer, alone = ({t.knobs.seed: t.curve for t in record(both, has).trials} for has in (True, False))
    for seed in longer:
        assert longer[seed]["step"] == alone[seed]["step"] == list(range(1, 9))
        losses, plain = longer[seed]["loss"], alone[seed]["loss"]
        assert losses[:4] == plain[:4] and losses[4:] != plain[4:]


@SWEPT
def test_the_record_says_all_lengths_trained_on_and_what_is_beyond_them(both):
    task = record(both, True).task
    assert task.trained == (2, 16) and task.first_beyond == 16 and task.read_by == "beyond"
    assert record(both, False).task.trained == (2, 8)
    for trial in record(both, True).trials:
        assert sorted(trial.validation) == [8, 16]
        counts = trial.evaluations
        assert [counts[n]["beyond_scored"] for n in (8, 16, 24)] == [8 * 7, 8 * 15, 8 * 8], "all, all, from 16 on"
    rows = {(r.size, r.trained) for r in load(both).rows() if "length" in r.scheme}
    assert rows == {(8, True), (16, True), (24, False)}


@SWEPT
def test_the_second_stage_meets_the_longer_sizes_and_counts_from_the_first(both):
    cell = resolve(dataclasses.replace(RUN, then="0.5 yarn(factor=2.0), length=16"))
    first, last = (stage for stage, _ in stages(cell, 100))
    assert first.batching.sizes.length == 8 and last.batching.sizes.length == 16
    sizes = {int(last.batching.sizes.size(np.uint32(0), n)) for n in range(100)}
    assert min(sizes) == 2 and max(sizes) == 16 and len(sizes) == 15
    assert last.scheme.original == 8, "a factor counts from the length trained on first"
    assert plan.evaluated(cell, Plan()) == (4, 8, 12, 16, 20, 24, 32, 48, 64)
    assert cell.run.longest == 32 and resolve(dataclasses.replace(RUN, then="0.5 pi, length=99")).run.longest == 99


@SWEPT
def test_a_sweep_that_ends_within_the_longer_stage_gives_the_same_when_it_goes_on(both, tmp_path):
    def end(label, done, total, loss):
        if done == 6:
            raise KeyboardInterrupt

    cut = tmp_path / "cut"
    with pytest.raises(KeyboardInterrupt):
        trained(cut, RUN, watch=Watch(end))
    assert trials(cut) == {}
    assert trained(cut, RUN) == 0
    whole = trials(both)
    assert trials(cut) == {id: whole[id] for id in trials(cut)} and len(trials(cut)) == 2


@SWEPT
def test_a_kept_model_is_evaluated_as_trained_last_and_under_others_from_the_first_length(both):
    results = load(both)
    plain = ask(results)
    again, recorded = (
        [c for r in asked.records for t in r.trials for c in t.evaluations.values()] for asked in (plain, results)
    )
    assert again == [{**counts, "nats": pytest.approx(counts["nats"], abs=2)} for counts in recorded], "sums may round"
    longer = results.only(scheme="rope, then pi(factor=2.0), length=16")
    (found,) = ask(longer, schemes=["dynamic_ntk"], sizes=(24,)).records
    assert found.label == "dynamic_ntk, trained with rope, then pi(factor=2.0), length=16"
    assert "original=8" in found.run["under"] and found.task.trained == (2, 16)


@SWEPT
def test_a_label_has_the_length_and_is_chosen_by_it(both):
    label = plan.label(RUN)
    assert label == "rope, then pi(factor=2.0), length=16" == plan.shortest("rope(), then pi(2.0),length = 16")
    assert {r.label for r in load(both).records} == {"rope", label}
    assert diagram(label) == diagram("pi(factor=2.0)") and "── pi" in diagram(label)
    assert {r.scheme for r in filter_results(load(both), (f"scheme={label},rope",)).rows()} == {"rope", label}
    assert {r.scheme for r in filter_results(load(both), (f"scheme={label}",)).rows()} == {label}


def test_the_length_is_part_of_the_identity_in_one_form():
    def name(then, **change):
        return plan.identity(resolve(dataclasses.replace(RUN, then=then, **change)), Knobs(), 100)

    assert name(THEN) == name("0.50  pi(2.0),length= 16") != name("0.5 pi(factor=2.0), length=24")
    assert name("0.5 pi(factor=2.0), length=8") == name("0.5 pi(factor=2.0)") != name(THEN)
    assert len({name(then) for then in ("0.9 nope", "0.90  nope()", "0.9 rope", None)}) == 3
    cell = resolve(RUN)
    stored = store.plain(plan.written(cell))
    assert stored["then"].startswith("0.5 pi(") and stored["then"].endswith("), length=16")
    assert stored["revisions"].keys() >= {"RoPE", "PI"}
    assert plan.written(plan.planned_run(stored)) == plan.written(cell)
    assert plan.written(resolve(dataclasses.replace(RUN, then="0.9 nope")))["then"] == "0.9 nope"


def test_it_is_given_by_set_grid_only_and_toml():
    for words in (([], [f"then={THEN}", "length=8"]), ([f"then={THEN}"], ["length=8"])):
        (run,) = from_words(*words).runs
        assert run.then == THEN
    made = from_words([f"then=0.9 nope,{THEN},None"], ["length=8"])
    assert [run.then for run in made.runs] == ["0.9 nope", THEN, None]
    assert [run.then for run in made.only([f"then={THEN}"]).runs] == [THEN]
    assert [run.then for run in made.only(["then=0.50 pi(factor=2.0),length=16,0.9 nope"]).runs] == ["0.9 nope", THEN]
    assert [run.then for run in made.only(["then=0.90  nope(),none"]).runs] == ["0.9 nope", None]
    assert from_toml(to_toml(made)) == made
    with pytest.raises(ValueError, match="then is 'width=3'"):
        from_words(["then=0.9 nope, width=3"])


@pytest.mark.parametrize(
    ("then", "says"),
    [
        ("0.9 pi, length=4", "'0.9 pi, length=4'.* 8"),
        ("0.9 pi, length=x", "'x'.* 16777216"),
        ("0.9 pi, length=0", "'0'"),
        ("0.9 pi, length=", "''"),
        ("0.9 pi, length=16, length=32", "read"),
        ("0.9 pi, width=16", "read"),
        ("0.9, length=16", "'0.9, length=16'"),
        (", length=16", "share"),
        *((text, "then|cannot be") for text in ("nope", "0.9", "1.5 nope", "0 nope", "nan nope", "0.9 nope(")),
    ],
)
def test_a_text_that_is_none_is_refused_in_a_sentence(then, says):
    with pytest.raises(ValueError, match=says):
        dataclasses.replace(RUN, then=then)


def test_lengths_that_tables_or_tasks_do_not_have_are_refused_before_training(tmp_path):
    with pytest.raises(ValueError, match="12.* 16"):
        dataclasses.replace(RUN, longest=12)
    odd = dataclasses.replace(RUN, task="mqar(symbols=16, pairs=2)", shortest=8, then="0.5 pi, length=17")
    with pytest.raises(ValueError, match="17"):
        trained(tmp_path / "odd", odd)


def test_the_estimate_counts_the_longer_steps():
    def steps(then, *begun):
        every = set()
        return [needs.steps(resolve(dataclasses.replace(RUN, then=one)), 100, every) for one in (*begun, then)][-1]

    assert steps("0.5 pi") == steps(None) == 100 * needs.steps(resolve(ALONE), 1, set())
    assert 1.3 < steps(THEN) / steps(None) < 1.8
    assert steps(THEN, THEN) == steps(THEN) - steps(None) / 2, "a beginning is trained once"


@SWEPT
def test_runs_that_go_on_from_one_beginning_train_it_once_and_are_as_alone(both, tmp_path, monkeypatch):
    """The third run has another beginning, of as many steps by the same program on another task."""
    yarn = dataclasses.replace(RUN, then="0.5 yarn(factor=2.0), length=16")
    other = dataclasses.replace(yarn, task="token_k_back(k=2, symbols=4)")
    stages_run, real = [], trainer.program

    def program(stage, *args):
        stages_run.append(stage.run.scheme)
        return real(stage, *args)

    monkeypatch.setattr(trainer, "program", program)
    assert trained(tmp_path / "three", RUN, yarn, other) == 0
    assert sorted(stages_run) == ["pi(factor=2.0)", "rope", "rope", "yarn(factor=2.0)", "yarn(factor=2.0)"]
    alone = trials(both)
    for n, run in enumerate((yarn, other)):
        assert trained(tmp_path / str(n), run) == 0
        alone |= trials(tmp_path / str(n))
    found = trials(tmp_path / "three")
    assert len(found) == 6 and found == {id: alone[id] for id in found}


def test_beginnings_are_kept_while_they_are_few(monkeypatch):
    known, state = Beginnings(), {"a": np.zeros(100, np.float32)}
    monkeypatch.setattr("posenc.lab.run.trainer.BYTES", 1000)
    for key in "abc":
        known.put(key, state, [[0.5]])
    assert known.get("a") is None and known.get("c").losses == [[0.5]] and known.get("b") is not None
    known.put("d", {"a": np.zeros(1000, np.float32)}, [])
    assert all(known.get(key) is None for key in "abcd")
