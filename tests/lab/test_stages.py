"""Another scheme goes on with the same parameters (DroPE; Gelberg et al., 2025): what is carried, and what is not."""

from unittest.mock import ANY

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from posenc.lab import plan, store, worker
from posenc.lab.experiment import Experiment, from_words
from posenc.lab.results import load
from posenc.lab.run import Knobs, Plan, Run
from posenc.lab.sweep import rehearse, sweep
from posenc.lab.train import State, carried, init, resolve, stages
from tests.lab.test_sweep import PLAN, Watch, trials

RUN = Run(task="even_pairs", scheme="rope", then="0.5 nope", width=8, depth=1, heads=2, hidden=8, batch=4, length=4)


def experiment(*runs, **change):
    return Experiment("tiny", runs or (RUN,), Plan(**{**vars(PLAN), **change}))


def state(scheme, seed=0):
    cell = resolve(Run(task="even_pairs", scheme=scheme, width=8, depth=1, heads=2, hidden=8, length=4))
    return jax.jit(lambda s: init(cell, Knobs(s, 1e-3, 0.0, 0.1, 1.0)))(jnp.uint32(seed))


def leaves(tree):
    return {jax.tree_util.keystr(path): np.asarray(a) for path, a in jax.tree_util.tree_leaves_with_path(tree)}


def test_what_has_the_same_path_is_carried_over_bit_for_bit_and_the_rest_starts_anew():
    before, fresh = state("rope + t5"), state("kerple", seed=1)
    before = State(before.model, jax.tree.map(lambda a: a + 3, before.optimiser), jnp.int32(7))
    old, new, found = leaves(before), leaves(fresh), leaves(carried(before, fresh))
    assert found.keys() == new.keys() and len(new.keys() - old.keys()) > 3
    for path, a in found.items():
        np.testing.assert_array_equal(a, old[path] if path in old and old[path].shape == a.shape else new[path])
    assert found[".diverged"] == 7 and any("up" in path and (found[path] != new[path]).any() for path in found)


def test_the_second_stage_starts_from_the_last_parameters_of_the_first(tmp_path, monkeypatch):
    seen, real = [], worker.carried

    def listen(before, fresh):
        seen.append((leaves(before.model), leaves(real(before, fresh).model)))
        return real(before, fresh)

    monkeypatch.setattr(worker, "carried", listen)
    assert sweep(experiment(), tmp_path / "one", watch=Watch()) == 0
    ((before, after),) = seen
    assert before.keys() == after.keys(), "rope and nope have no parameters, so all are carried"
    for path, a in before.items():
        np.testing.assert_array_equal(after[path], a)
    (found,) = load(tmp_path / "one").records
    assert found["label"] == "rope, then nope" and found["run"]["then"].startswith("0.5 nope")


def test_each_stage_is_three_programs_and_no_more(tmp_path, monkeypatch):
    built, real = [], worker.program
    monkeypatch.setattr(worker, "program", lambda *args: built.append(real(*args)) or built[-1])
    assert sweep(experiment(), tmp_path / "one", watch=Watch()) == 0
    assert len(built) == 2 and [p._cache_size() for p in built[0]] == [1, 1, 0]
    assert [p._cache_size() for p in built[1]] == [1, 1, 1]
    assert rehearse(experiment(), tmp_path / "none")["programs"] == 6


def test_losses_go_on_and_the_first_stage_is_the_run_without_a_second(tmp_path):
    alone = Run(**{**vars(RUN), "then": None})
    assert sweep(experiment(RUN, alone, steps=8, segment=2), tmp_path / "both", watch=Watch()) == 0
    first, second = ({t["knobs"]["seed"]: t["curve"] for t in r["trials"]} for r in _records(tmp_path / "both"))
    for seed in first:
        assert first[seed]["step"] == second[seed]["step"] == [2, 4, 6, 8]
        assert (
            first[seed]["loss"][:2] == second[seed]["loss"][:2] and first[seed]["loss"][2:] != second[seed]["loss"][2:]
        )


def _records(folder):
    found = load(folder).records
    return sorted(found, key=lambda r: "then" not in r["run"])


def test_a_sweep_that_ends_within_the_second_stage_gives_the_same_when_it_goes_on(tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert sweep(experiment(steps=8, segment=2), whole, watch=Watch()) == 0

    def end(label, done, total, loss):
        if done == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(experiment(steps=8, segment=2), cut, watch=Watch(end))
    assert trials(cut) == {}
    assert sweep(experiment(steps=8, segment=2), cut, watch=Watch()) == 0
    assert trials(cut) == trials(whole)


def test_the_length_of_segments_does_not_move_the_border(tmp_path):
    cell = resolve(RUN)
    assert [end for _, end in stages(cell, 10)] == [5, 10] and len(stages(resolve(Run()), 10)) == 1
    assert sweep(experiment(steps=10, segment=10), tmp_path / "one", watch=Watch()) == 0
    assert [t["curve"]["step"] for t in trials(tmp_path / "one").values()] == [[5, 10]] * 2


def test_what_goes_on_is_part_of_the_identity_in_one_form():
    one, same, other = (resolve(Run(then=text)) for text in ("0.9 nope", "0.90  nope", "0.9 rope"))
    name = lambda cell: plan.identity(cell, Knobs(), 100)  # noqa: E731
    assert name(one) == name(same) != name(other) and name(one) != name(resolve(Run()))
    assert plan.written(one)["revisions"].keys() >= {"RoPE", "NoPE"}
    line = {"id": "0" * 64, "run": store.plain(plan.written(one))}
    assert stages(plan.read_cell(line), 100)[-1] == (stages(one, 100)[-1][0]._replace(run=ANY), 100)
    (run,) = from_words([], ["then=0.9 nope", "scheme=rope"]).runs
    assert run.then == "0.9 nope"


@pytest.mark.parametrize("text", ["nope", "0.9", "1.5 nope", "0 nope", "nan nope", "0.9 nope("])
def test_what_is_no_share_and_scheme_is_refused(text):
    with pytest.raises(ValueError, match="then is .*; it is a share of the steps and a scheme|cannot be read"):
        Run(then=text)


def test_a_stage_without_steps_and_an_unknown_scheme_are_refused_before_anything_trains(tmp_path):
    with pytest.raises(ValueError, match="leaves no step of 4 on one side; train longer"):
        sweep(experiment(Run(**{**vars(RUN), "then": "0.1 nope"})), tmp_path / "one", watch=Watch())
    with pytest.raises(ValueError, match="No scheme is called 'npe'"):
        sweep(experiment(Run(**{**vars(RUN), "then": "0.5 npe"})), tmp_path / "one", watch=Watch())
