"""One batch of each task under a fixed key, so that no change of the data goes unseen.

    python -m tests.tasks.test_task_golden recall   writes tests/golden/tasks/recall.npz anew, a file for each module

Data that change are another task: raise its `revision` first, since old results are then no longer comparable.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

from posenc.lab import tasks
from tests.tasks.task_checks import drawn, every_text

GOLDEN = Path(__file__).parents[1] / "golden" / "tasks"
KEPT = ("tokens", "targets", "score", "valid")
READ = ("source", "source_valid")


def fixed(text):
    """Two rows under a fixed key, as they must stay, by the text and the revision of their task."""
    task = tasks.parse(text)
    top = task.sizes.largest or task.sizes.smallest + 9
    n = min(task.sizes.smallest + 8, top)
    batch = drawn(task, n, rows=2, n_max=task.sizes.below(min(n + 1, top)), seed=5)
    kept = KEPT if batch.source is None else KEPT + READ
    return golden_name(task, text), np.stack([getattr(batch, name) for name in kept]).astype(np.int16)


def golden_name(task, text):
    """The text and the revision of a task, and the digest of what it reads."""
    return " ".join([text, str(task.revision), *(digest[:8] for digest in task.texts.values())])


def family(text):
    """The module that a task is written in."""
    return type(tasks.parse(text)).__module__.rpartition(".")[2]


def test_a_fixed_key_gives_the_batch_it_always_gave(sampled):
    name, numbers = fixed(sampled)
    with np.load(GOLDEN / f"{family(sampled)}.npz") as golden:
        if name not in golden and tasks.parse(sampled).texts:
            pytest.skip("Another Python has other topics.")
        np.testing.assert_array_equal(numbers, golden[name], err_msg="raise the revision, then write the file anew")


def test_the_golden_files_hold_these_tasks_and_no_others():
    kept = {name for path in GOLDEN.glob("*.npz") for name in np.load(path).files}
    tops = {text: f"{text} {tasks.parse(text).revision}" for text in every_text()}
    reading = {top for text, top in tops.items() if tasks.parse(text).texts}
    assert kept - {name for name in kept if name.rpartition(" ")[0] in reading} == set(tops.values()) - reading
    assert {name.rpartition(" ")[0] for name in kept} >= reading


if __name__ == "__main__":
    for module in sys.argv[1:] or {family(text) for text in every_text()}:
        batches = dict(fixed(text) for text in every_text() if family(text) == module)
        np.savez_compressed(GOLDEN / f"{module}.npz", **batches)
        sys.stdout.write(f"{module}: {len(batches)} tasks\n")
