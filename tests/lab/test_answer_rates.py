"""The answer in words counts the learning rates that tuning seeds tried, task by task."""

from tests.lab import made
from tests.lab.seen import Published
from tests.lab.test_false_agreements import record, said


def tuned_at(*rates, seeds=(6, 7), task="copy", scheme="alibi"):
    """Tuning trials at these rates."""
    every = [made.trial(scheme, task, s, {16: 0.5}, lr=lr, role="tuning") for lr in rates for s in seeds]
    return made.record(scheme, "additive", task, every)


def test_the_answer_counts_the_rates_that_tuning_seeds_tried_on_each_task():
    """Tuning seeds tried other rates on one of two tasks; only the other is said to have had one."""
    few, wrong = record("alibi", (0.3,) * 6), Published("copy", "alibi", 0.8, "x")
    sort, also = record("alibi", (0.3,) * 6, task="sort"), Published("sort", "alibi", 0.8, "x")
    assert "All runs had one learning rate, 0.001, and" in said([wrong], made.results("x", [few]))
    assert "learning rate" not in said([wrong], made.results("x", [few, tuned_at(1e-3, 1e-2)]))
    both = made.results("x", [few, sort, tuned_at(1e-3, 1e-2)])
    assert "learning rate" not in said([wrong], both), "only tasks of what differs count"
    text = said([wrong, also], both)
    assert text.endswith("On sort all runs had one learning rate, 0.001, and others may change the verdicts there.")
    assert "All runs had one learning rate, 0.001, and" in said([wrong, also], made.results("x", [few, sort]))
    assert "All runs had one" in said([wrong], made.results("x", [few, tuned_at(1e-3)]))
