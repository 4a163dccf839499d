"""Position coupling: what tasks offer, and rules that the tables of the authors do not show."""

import jax
import numpy as np
import pytest

from posenc.lab import tasks
from posenc.lab.tasks import coupling

KEY = jax.random.key(0)


def offered(text, name, n=4, n_max=6):
    batch = tasks.parse(text).sample(KEY, n, batch=2, n_max=n_max)
    return np.asarray(batch.coords[name]), batch


@pytest.mark.ci
@pytest.mark.parametrize("named", ["reverse_string", "duplicate_string", "copy", "copy(variant='repeat')", "reverse"])
def test_tokens_that_are_equal_by_the_task_share_a_number_and_padding_has_none(named):
    ids, batch = offered(named, "coupled")
    assert not ids[~np.asarray(batch.valid)].any() and ids.dtype == np.int32
    tokens, targets, prompt = (np.asarray(a) for a in (batch.tokens, batch.targets, batch.prompt))
    text_like = np.asarray(batch.score) & (targets < tasks.parse(named).alphabet)
    # a language model predicts the next token, whose number counts
    shift = 1 if tasks.parse(named).layout is tasks.Layout.LM else 0
    for row in range(2):
        known = {int(ids[row, i]): tokens[row, i] for i in np.nonzero(prompt[row])[0] if ids[row, i]}
        for i in np.nonzero(text_like[row])[0]:
            assert known[int(ids[row, i + shift])] == targets[row, i]


def test_the_numbers_of_reversing_are_those_of_the_paper():
    np.testing.assert_array_equal(offered("reverse_string", "coupled")[0][0], [1, 2, 3, 4, 4, 3, 2, 1, 0, 0, 0, 0])
    np.testing.assert_array_equal(offered("copy", "coupled")[0][0], [0, 2, 3, 4, 5, 1, 2, 3, 4, 5, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(offered("reverse", "coupled")[0][0], [0, 1, 2, 3, 4, 5, 4, 3, 2, 1, 0, 0, 0, 0, 0])


def test_a_prompt_offers_the_separator_that_ends_it():
    separator, batch = offered("copy", "separator")
    np.testing.assert_array_equal(separator == 1, np.asarray(batch.tokens) == tasks.parse("copy").special("SEP"))
    assert separator.sum() == 2


@pytest.mark.parametrize("reverse_input", [False, True])
@pytest.mark.parametrize("reverse_output", [False, True])
def test_digits_of_equal_weight_share_a_number(reverse_input, reverse_output):
    """653 + 49 = 702, written plainly and from the units on."""
    ways = {"reverse_input": reverse_input, "reverse_output": reverse_output}
    ids = np.asarray(coupling.addition(np.arange(10), 3, 2, 3, **ways))
    a, b, c = ids[:3], ids[4:6], ids[7:]
    plain = lambda digits, turned: digits[::-1] if turned else digits  # noqa: E731
    assert plain(a, reverse_input).tolist() == [4, 3, 2] and plain(b, reverse_input).tolist() == [3, 2]
    assert plain(c, reverse_output).tolist() == [4, 3, 2]
    assert ids[3] == 1 and ids[6] == (1 if reverse_output else 5)


def test_rules_are_traced_with_lengths_of_each_row():
    rule = jax.jit(lambda n: coupling.copied(np.arange(7)[None, :], n[:, None]))
    np.testing.assert_array_equal(rule(np.array([3, 2]))[0], [2, 3, 4, 1, 2, 3, 4])
    np.testing.assert_array_equal(rule(np.array([3, 2]))[1][:5], [2, 3, 1, 2, 3])
