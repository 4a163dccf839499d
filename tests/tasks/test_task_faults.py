"""The checks can fail: each fault below, planted in a sound batch or in the code, breaks one of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from posenc.lab import tasks
from posenc.lab.tasks.task import TASKS
from tests.planting import Fault
from tests.planting import plant as plant  # a fixture
from tests.tasks.facts import LAWS, PLANTED
from tests.tasks.task_checks import (
    agrees_with_its_oracle,
    does_not_leak,
    drawn,
    is_well_formed,
    moves_without_a_change,
    p_value,
    rows,
    same_examples,
    sampler,
)

SIZES = {"reverse_string": 6, "copy": 6, "token_k_back(k=3)": 12, "s2s_reverse": 6}


def without_its_end(batch):
    last = batch.valid.sum(axis=1) - 2
    score = batch.score & (np.arange(batch.score.shape[1])[None, :] != last[:, None])
    return batch._replace(score=score)


def backwards(batch):
    """The answer in the other direction, in slots and in text alike."""
    targets = batch.targets.copy()
    for row, score in zip(targets, batch.score, strict=True):
        row[score] = row[score][::-1]
    return batch._replace(targets=targets)


WRONG = {
    "rolled": lambda batch: batch._replace(targets=np.roll(batch.targets, 1, axis=1)),
    "without_its_end": without_its_end,
    "backwards": backwards,
    # the answer written into the slots it is asked for in
    "told": lambda batch: batch._replace(tokens=np.where(batch.score, batch.targets, batch.tokens)),
    "padding_shown": lambda batch: batch._replace(valid=np.ones_like(batch.valid)),
    "padding_scored": lambda batch: batch._replace(score=batch.score | ~batch.valid),
    "class_out_of_range": lambda batch: batch._replace(targets=batch.targets + 1),
    "prompt_too_long": lambda batch: batch._replace(prompt=batch.valid),
    "source_unpadded": lambda batch: batch._replace(source_valid=np.ones_like(batch.source_valid)),
}
FAULTS = [
    ("token_k_back(k=3)", "rolled", agrees_with_its_oracle),
    ("reverse_string", "rolled", agrees_with_its_oracle),
    ("reverse_string", "backwards", agrees_with_its_oracle),
    ("copy", "backwards", agrees_with_its_oracle),
    ("copy", "without_its_end", agrees_with_its_oracle),
    ("copy", "without_its_end", does_not_leak),
    ("copy", "rolled", does_not_leak),
    ("copy", "prompt_too_long", does_not_leak),
    ("reverse_string", "told", does_not_leak),
    ("reverse_string", "prompt_too_long", does_not_leak),
    ("reverse_string", "padding_shown", is_well_formed),
    ("reverse_string", "padding_scored", is_well_formed),
    ("reverse_string", "class_out_of_range", is_well_formed),
    ("s2s_reverse", "backwards", agrees_with_its_oracle),
    ("s2s_reverse", "source_unpadded", agrees_with_its_oracle),
    ("s2s_reverse", "source_unpadded", is_well_formed),
    ("s2s_reverse", "rolled", does_not_leak),
    ("s2s_reverse", "told", does_not_leak),
    ("s2s_reverse", "prompt_too_long", does_not_leak),
]


@pytest.mark.parametrize(("planted", "fault", "check"), FAULTS)
def test_a_planted_fault_is_caught(planted, fault, check):
    draw = sampler(planted)
    batch = draw(SIZES[planted])
    check(draw.task, batch)
    with pytest.raises(AssertionError):
        check(draw.task, WRONG[fault](batch))


def test_drawing_row_by_row_is_caught(monkeypatch):
    """Drawn as [B, L] instead of [L, B], the examples change with the padding."""

    def by_row(key, batch, length, high):
        return jax.random.randint(key, (batch, length), 0, high, jnp.int32)

    sound = [drawn(tasks.parse("reverse_string"), 5, rows=8, n_max=m) for m in (5, 8)]
    same_examples(*sound)
    monkeypatch.setattr("posenc.lab.tasks.strings.integers", by_row)
    with pytest.raises(AssertionError):
        same_examples(*(drawn(tasks.parse("reverse_string"), 5, rows=8, n_max=m) for m in (5, 8)))


def test_a_rule_that_reads_what_does_not_matter_is_caught(plant, monkeypatch):
    """Examples and oracle agree, and both read the second symbol for the first."""
    plant(
        Fault("posenc.lab.tasks.automata:EvenPairs.make", "x[:, 0]", "x[:, 1]", "even_pairs", "moves_without_a_change")
    )
    monkeypatch.setattr(TASKS.find("even_pairs"), "answer", lambda self, prompt: [int(prompt[1] != prompt[-1])])
    task = tasks.parse("even_pairs")
    batch = drawn(task, 12, rows=50)
    agrees_with_its_oracle(task, batch)
    with pytest.raises(AssertionError):
        moves_without_a_change(task, batch)


def holds(text, check):
    """One check, at a size with some room behind it."""
    task = tasks.parse(text)
    if check == "law":
        n, law, bound = LAWS[text]
        found = [tuple(prompt) for prompt, _ in rows(drawn(task, n, rows=20_000, seed=11))]
        assert p_value(found, law(bound)) > 1e-9
        return
    n = task.sizes.smallest + 8
    see = {"oracle": agrees_with_its_oracle, "leak": does_not_leak, "form": is_well_formed}[check]
    see(task, drawn(task, n, rows=200, n_max=n + 4))


FAULTS = {one: Fault(f"posenc.lab.tasks.{one[1]}", *one[2:4], one[0], one[4]) for one in PLANTED}


@pytest.mark.parametrize(("planted", "where", "old", "new", "check"), FAULTS)
def test_a_fault_in_a_task_is_caught(plant, planted, where, old, new, check):
    plant(FAULTS[planted, where, old, new, check])
    with pytest.raises(AssertionError):
        holds(planted, check)


@pytest.mark.guard
def test_every_task_has_a_fault_of_its_own(name):
    assert any(tasks.parse(text).name == name for text, *_ in PLANTED)
