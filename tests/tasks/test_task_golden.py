"""Worked examples by hand, and one batch of each task under a fixed key, so that no change of the data goes unseen.

    python tests/tasks/test_task_golden.py          writes tests/golden/tasks.npz anew

Data that change are another task: raise its `revision` first, since old results are then no longer comparable.
"""

import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from task_checks import drawn, every_text

from posenc import tasks
from posenc.tasks.layout import prompted, slots, tagged

GOLDEN = Path(__file__).parents[1] / "golden" / "tasks.npz"
KEPT = ("tokens", "targets", "score", "valid")
a, b, c, M = 0, 1, 2, 3

EXAMPLES = [
    ("even_pairs", [0, 1, 0, 1, 0, 0, 1], [1]),
    ("parity_check", [1, 0, 1, 0, 1, 0, 0], [1]),
    ("cycle_navigation", [2, 0, 1, 0, 0], [3]),
    ("modular_arithmetic", [1, 5, 2, 7, 3], [2]),
    ("modular_arithmetic", [0, 6, 2, 7, 2], [1]),
    ("reverse_string", [0, 1, 1], [1, 1, 0]),
    ("duplicate_string", [1, 0], [1, 0, 1, 0]),
    ("missing_duplicate_string", [0, 1, 1, 0, 0, 2, 1, 0], [1]),
    ("missing_duplicate_string", [2, 0, 0, 0, 3], [0]),
    ("odds_first", [0, 0, 1, 1, 0, 1, 0, 1], [0, 1, 1, 1, 0, 1, 0, 0]),
    ("odds_first(order='as_described')", [0, 0, 1, 1, 0, 1, 0, 1], [0, 1, 0, 0, 0, 1, 1, 1]),
    ("bucket_sort", [1, 0, 2, 4, 1], [0, 1, 1, 2, 4]),
    ("copy", [102, 7, 7, 42, 101], [7, 7, 42, 103]),
    ("copy(hints=4, symbols=10)", [16, 11, 7, 12, 2, 15], [11, 7, 12, 2, 17]),
    ("copy(variant='random_twice')", [103, 7, 42, 102], [7, 42, 100, 7, 42, 104]),
    ("copy(variant='repeat')", [102, 9, 9, 9, 101], [9, 9, 9, 103]),
    ("copy(variant='repeat_twice')", [102, 9, 9, 101], [9, 9, 9, 9, 103]),
    ("copy(variant='substitute')", [103, 5, 6, 100, 5, 5, 102], [6, 6, 104]),
    ("associative_recall", [82, 5, 70, 9, 66, 5, 81], [70, 83]),
    ("flip_flop", [2, 1, 4, 0, 3, 1, 4, 1, 2, 0, 3, 0], [1, 0]),
    ("token_at_index(indices=2, symbols=3)", [c, a, b, b, 3 + 1], [a]),
    ("index_of_token(indices=3, symbols=3)", [c, a, M, b], [2]),
    ("token_k_back", [c, a, b], [c, a]),
    ("token_k_back(k=2)", [c, a, b, b], [c, a]),
    ("pointer_back(reach=2, symbols=3)", [c, a, b, 3 + 1], [a]),
    ("distance(reach=3, symbols=3)", [a, M, c, b, M, a], [3 - 1]),
    ("before(symbols=3)", [c, 4, a, 3], [0]),
    ("before(symbols=3)", [3, 4, a, c], [1]),
    ("same_order(symbols=3)", [a, b, c, M, a, c, b], [0]),
    ("same_order(symbols=3)", [a, b, c, M, a, b, c], [1]),
    ("fill_blank", [5, 7, 31, 20], [30]),
    ("fill_blank", [31, 7, 30, 31], [5, 20]),
    ("count_symbol(symbols=3)", [M, b, M, c], [2]),
]


@pytest.mark.parametrize(("shown", "prompt", "answer"), EXAMPLES)
def test_worked_examples(shown, prompt, answer):
    assert tasks.parse(shown).answer(prompt) == answer


def test_every_task_has_a_worked_example(name):
    assert any(tasks.parse(shown).name == name for shown, _, _ in EXAMPLES)


def ints(*rows):
    return jnp.array(rows, jnp.int32)


def shown(batch):
    return (
        batch.tokens[0].tolist(),
        batch.targets[0].tolist(),
        "".join("x" if s else "-" for s in batch.score[0]),
        "".join("p" if p else "v" if v else "." for p, v in zip(batch.prompt[0], batch.valid[0], strict=True)),
    )


def test_the_layout_of_slots():
    task, three = tasks.parse("reverse_string"), jnp.array([3], jnp.int32)
    batch = slots(task, three, 8, ints([0, 1, 1]), three, ints([1, 1, 0]), three)
    assert shown(batch) == ([0, 1, 1, 2, 2, 2, 3, 3], [0, 0, 0, 1, 1, 0, 0, 0], "---xxx--", "pppvvv..")


def test_the_layout_of_tokens():
    task, three = tasks.parse("token_k_back"), jnp.array([3], jnp.int32)
    score = jnp.array([[False, True, True, True]])
    batch = tagged(task, three, ints([2, 0, 1, 1]), three, ints([9, 2, 0, 1]), score)
    assert shown(batch) == ([2, 0, 1, 16], [0, 2, 0, 0], "-xx-", "ppp.")


def test_the_layout_of_a_language_model():
    task, two = tasks.parse("copy(symbols=5)"), jnp.array([2], jnp.int32)
    batch = prompted(task, two, 8, ints([4, 3]), two, ints([4, 3]), two)
    pad, sep, bos, eos = 5, 6, 7, 8
    tokens, targets = [bos, 4, 3, sep, 4, 3, eos, pad], [4, 3, sep, 4, 3, eos, pad, pad]
    assert shown(batch) == (tokens, targets, "---xxx--", "ppppvvv.")


def fixed(text):
    """Two rows under a fixed key, as they must stay, by the text and the revision of their task."""
    task = tasks.parse(text)
    top = task.sizes.largest or task.sizes.smallest + 9
    n = min(task.sizes.smallest + 8, top)
    batch = drawn(task, n, rows=2, n_max=min(n + 1, top), seed=5)
    return f"{text} {task.revision}", np.stack([getattr(batch, name) for name in KEPT]).astype(np.int16)


def test_a_fixed_key_gives_the_batch_it_always_gave(text):
    name, numbers = fixed(text)
    with np.load(GOLDEN) as golden:
        np.testing.assert_array_equal(numbers, golden[name], err_msg="raise the revision, then write the file anew")


def test_the_golden_file_holds_these_tasks_and_no_others():
    with np.load(GOLDEN) as golden:
        assert set(golden.files) == {f"{text} {tasks.parse(text).revision}" for text in every_text()}


if __name__ == "__main__":
    GOLDEN.parent.mkdir(exist_ok=True)
    np.savez_compressed(GOLDEN, **dict(map(fixed, every_text())))
    sys.stdout.write(f"{GOLDEN.stat().st_size} bytes for {len(every_text())} tasks\n")
