"""Groups of at most so many trials: planned once, equal in every number, and what is planned keeps its groups."""

import dataclasses

import pytest

from posenc.lab.run.sweep import plan_experiment, sweep
from posenc.lab.spec.experiment import Experiment, grid
from posenc.lab.store import folder as store
from tests.lab.test_sweep import BASE, PLAN, Watch, trials


def experiment(seeds):
    return Experiment("tiny", grid(BASE, scheme=["rope"]), dataclasses.replace(PLAN, seeds=tuple(range(seeds))))


def groups(folder):
    """The trials of each group, in the order of the plan."""
    found = {}
    for line in store.read_plan(folder):
        found.setdefault(line.group, []).append(line.id)
    return found


@pytest.mark.parametrize(("seeds", "most", "sizes"), [
    (5, None, [5]), (5, 5, [5]), (5, 9, [5]), (5, 2, [1, 2, 2]), (5, 1, [1] * 5), (6, 4, [3, 3]), (1, 1, [1]),
])  # fmt: skip
def test_a_group_has_at_most_so_many_trials_and_a_name_of_its_own(tmp_path, seeds, most, sizes):
    plan_experiment(experiment(seeds), tmp_path / "x", most)
    found = groups(tmp_path / "x")
    assert sorted(map(len, found.values())) == sizes
    assert all(name == store.digest(ids) for name, ids in found.items())


def test_what_is_planned_keeps_its_groups_and_new_trials_form_new_ones(tmp_path):
    folder = tmp_path / "x"
    plan_experiment(experiment(3), folder)
    before = groups(folder)
    plan_experiment(experiment(3), folder, 1)
    assert groups(folder) == before
    plan_experiment(experiment(6), folder, 2)
    after = groups(folder)
    assert before.items() < after.items() and sorted(map(len, after.values())) == [1, 2, 3]
    plan_experiment(experiment(6), folder)
    assert groups(folder) == after


@pytest.mark.ci
def test_trials_are_equal_however_their_groups_are_cut(tmp_path):
    """On a CPU: every number, as JSON."""
    found = {}
    for most in (1, 2, None):
        watch = Watch()
        assert sweep(experiment(3), tmp_path / str(most), group_size=most, watch=watch) == 0
        assert len(watch.labels()) == {1: 3, 2: 2, None: 1}[most]
        found[most] = {id: store.canonical(vars(t) | {"knobs": 0}) for id, t in trials(tmp_path / str(most)).items()}
    assert len(found[1]) == 3 and found[1] == found[2] == found[None]
