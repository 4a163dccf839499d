"""Position coupling: what tasks offer, and rules that the tables of the authors do not show."""

import jax
import numpy as np
import pytest

from posenc.lab import tasks

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
