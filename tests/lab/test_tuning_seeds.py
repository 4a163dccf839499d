"""A sweep that tunes and is asked for more seeds: whoever trains, none is lost, and none both tunes and is reported."""

from collections import Counter

import pytest

from posenc.lab.results.standing import finished, standing
from posenc.lab.run import sweep as sweeping
from posenc.lab.run.sweep import rehearse
from posenc.lab.store import folder as store
from tests.lab.retuned import HIGH, asked, at, cluster, reported, sweep, workers
from tests.lab.retuned import folder as folder  # fixtures
from tests.lab.retuned import recorder as recorder
from tests.lab.test_sweep import Watch


@pytest.mark.parametrize("engine", [workers, cluster])
def test_seeds_of_a_later_command_reach_those_who_see_the_folder_alone(folder, engine):
    sweeping.plan_experiment(asked(seeds=(2, 3)), folder)
    before = (folder / "plan.jsonl").read_bytes()
    sweeping.plan_experiment(asked(seeds=(2, 3, 4, 5)), folder)
    assert (folder / "plan.jsonl").read_bytes().startswith(before), "a line once written never changes"
    assert standing(folder).undecided == 4
    assert engine(folder) == 0 and reported(folder) == at(HIGH, 2, 3, 4, 5)
    assert finished(folder)


@pytest.mark.parametrize(("most", "sizes"), [(None, [6]), (2, [2, 2, 2]), (5, [3, 3])])
def test_groups_of_the_second_stage_are_as_large_as_the_command_says(folder, most, sizes):
    """Workers know the sizes of the tuning groups alone, here one of four trials."""
    experiment = asked(seeds=(2, 3, 4, 5, 6, 7))
    assert sweeping.sweep(experiment, folder, group_size=most, watch=Watch()) == 0
    groups = Counter(line.group for line in store.read_plan(folder) if not line.tuning)
    assert sorted(groups.values()) == sizes
    sweeping.plan_experiment(experiment, folder / "w")
    assert workers(folder / "w") == 0
    assert max(Counter(line.group for line in store.read_plan(folder / "w")).values()) == 4


def test_seeds_that_come_after_all_is_done_are_trained_by_workers_too(folder):
    assert sweep(folder)[0] == 0
    sweeping.plan_experiment(asked(seeds=(4, 5)), folder)
    assert reported(folder) == at(HIGH, 2, 3)
    assert workers(folder) == 0 and reported(folder) == at(HIGH, 2, 3, 4, 5)
    assert len(list(folder.glob("sweep*.toml"))) == 2, "each command's experiment is kept"


def test_a_rehearsal_counts_both_stages_where_the_plan_is_lost(folder):
    assert sweep(folder)[0] == 0
    for path in folder.glob("*.jsonl"):
        path.unlink()
    assert rehearse(asked(), folder)["done"] == 6 and rehearse(asked(seeds=(2, 3, 4)), folder)["done"] == 6
    before = sorted((folder / "records").iterdir())
    assert sweep(folder)[0] == 0 and sorted((folder / "records").iterdir()) == before and finished(folder)


def test_seeds_of_each_command_add_to_those_before(folder):
    plan = folder / "plan.jsonl"
    for seeds, reports in (((2, 3), (2, 3)), ((3, 4), (2, 3, 4)), ((5,), (2, 3, 4, 5)), ((2, 5), (2, 3, 4, 5))):
        before = plan.read_bytes() if plan.exists() else b""
        sweeping.plan_experiment(asked(seeds=seeds), folder)
        assert {line.reports for line in store.read_plan(folder)} == {reports}
        assert (plan.read_bytes() == before) is (seeds == (2, 5)), "nothing new adds nothing"
