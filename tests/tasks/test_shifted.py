"""A shifted task is its task, later in the text; its text is complete."""

import jax
import numpy as np
import pytest

from posenc.lab import tasks
from tests.tasks.task_checks import drawn

KEY = jax.random.key(3)


@pytest.mark.parametrize(("shown", "size"), [("token_k_back(k=3)", 9), ("copy(symbols=5)", 4), ("even_pairs", 5)])
@pytest.mark.parametrize("offset", [0, 1, 7])
def test_examples_are_those_of_the_task_moved_back(shown, size, offset):
    inner, view = tasks.parse(shown), tasks.parse(f"shifted(task={shown!r}, size={size})")
    plain = inner.sample(KEY, size, batch=4, n_max=size)
    moved = view.sample(KEY, offset, batch=4, n_max=7)
    length, fill = inner.tokens(size), inner.alphabet
    tokens = np.asarray(moved.tokens)[:, offset : offset + length]
    np.testing.assert_array_equal(np.where(tokens > fill, tokens - 1, tokens), plain.tokens)
    assert (np.asarray(moved.tokens)[:, :offset] == fill).all() and (tokens != fill).all()
    for name in ("score", "weight", "valid", "prompt"):
        np.testing.assert_array_equal(getattr(moved, name)[:, offset : offset + length], getattr(plain, name))
    for name, ids in plain.coords.items():
        np.testing.assert_array_equal(moved.coords[name][:, offset : offset + length], ids)
        assert not np.asarray(moved.coords[name])[:, :offset].any()
    asked = np.asarray(moved.targets)[np.asarray(moved.score)]
    np.testing.assert_array_equal(np.where(asked > fill, asked - 1, asked), plain.targets[np.asarray(plain.score)])


def test_the_text_of_the_task_within_has_every_setting():
    short, long = "shifted(task='token_k_back(3)', size=8)", "shifted(task='token_k_back(k=3, symbols=16)', size=8)"
    assert tasks.parse(short) == tasks.parse(long) and tasks.spec(tasks.parse(short)) == long
    assert tasks.spec(tasks.parse("shifted")) == "shifted"
    quoted = tasks.parse("shifted(task=\"copy(variant='repeat')\", size=8)")
    assert tasks.parse(tasks.spec(quoted)) == quoted


def test_a_task_that_changes_changes_its_view(monkeypatch):
    monkeypatch.setattr(type(tasks.parse("copy")), "revision", 7)
    assert tasks.parse("shifted(task='copy', size=8)").revision == 7


def test_an_offset_is_legal_from_none_on():
    assert drawn(tasks.parse("shifted"), 0, rows=2).valid.sum() == 64
