"""Three tiers of tests: by day, with every `.ci/run` (`-m "ci and not nightly"`), and at night (`-m nightly`).

A test runs by day unless it is marked `ci` or `nightly`, or its file stands in `DEAR`, which waits for `.ci/run`.
A test in `MANY` makes one claim of many schemes, tasks or models through the same code. Of its cases the 1st, 17th,
33rd … run by day, the 5th, 13th, 21st … with `.ci/run`, and the others at night. Where such a test waits for `.ci/run`,
its 1st, 9th, 17th … run there. Refusals and tests marked `guard` run all their cases. Tests that share the sampler of a
task (`draw`) choose the same tasks.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any

import pytest

DEAR = (
    "contract/test_decoding.py",
    "contract/test_number_types.py",
    "contract/test_out_of_range.py",
    "huggingface/test_recorded.py",
    "importers/",
    "kernels/test_blocks.py",
    "kernels/test_export.py",
    "kernels/test_weighting.py",
    "lab/test_checkpoints.py",
    "lab/test_generate.py",
    "lab/test_hostile.py",
    "lab/test_logs.py",
    "lab/test_names.py",
    "lab/test_placed.py",
    "lab/test_ray_driver.py",
    "lab/test_resuming.py",
    "lab/test_saving.py",
    "lab/test_tuning_rates.py",
    "models/test_transformer.py",
    "tasks/test_sources.py",
    "tasks/test_task_floors.py",
    "tasks/test_task_measure.py",
    "test_adapters.py",
    "test_bfloat16.py",
    "test_committed_figures.py",
    "test_coordinates",
    "test_distances.py",
    "test_equivalences.py",
    "test_foreign.py",
)
"""Where the paths of files begin that are too dear by day."""
MANY = (
    "contract/test_attention.py",
    "contract/test_decoding.py",
    "contract/test_validation.py",
    "faults/",
    "huggingface/test_recorded.py",
    "importers/",
    "kernels/",
    "lab/test_draws.py",
    "lab/test_generate.py",
    "lab/test_placed.py",
    "lab/test_stages.py",
    "lab/test_train.py",
    "models/",
    "schemes/",
    "show/test_by_hand.py",
    "tasks/test_arithmetic.py",
    "tasks/test_chomsky.py",
    "tasks/test_coupling.py",
    "tasks/test_long_addition.py",
    "tasks/test_recall.py",
    "tasks/test_shifted.py",
    "tasks/test_task_examples.py",
    "tasks/test_task_f",
    "tasks/test_task_laws.py",
    "tasks/test_task_measure.py",
    "test_adapter",
    "test_bfloat16.py",
    "test_committed_figures.py",
    "test_distances.py",
    "test_docs_commands.py",
    "test_foreign.py",
    "test_other_libraries.py",
    "test_segment_scans.py",
    "test_stems.py",
)
"""Where the paths of such tests begin."""


def spread(items: Iterable[Any]) -> None:
    """Mark the tests and cases that do not run by day."""
    dear, many = (tuple(f"tests/{place}" for place in places) for places in (DEAR, MANY))
    tests = defaultdict(list)
    for item in items:
        test = item.nodeid.partition("[")[0]
        if item.get_closest_marker("nightly"):
            continue
        if item.nodeid.startswith(dear):
            item.add_marker(pytest.mark.ci)
        if item.nodeid.startswith(many) and item.nodeid != test:
            tests[test].append(item)
    for test, cases in tests.items():
        if cases[0].get_closest_marker("guard") or "refuse" in test:
            continue
        whose = [c.callspec.params["text"] if "draw" in c.fixturenames else c.nodeid for c in cases]
        number = {key: n for n, key in enumerate(dict.fromkeys(whose))}
        for case, key in zip(cases, whose, strict=True):
            late = case.get_closest_marker("ci") is not None
            if late or number[key] % 16:
                soon = number[key] % 8 == (0 if late else 4)
                case.add_marker(pytest.mark.ci if soon else pytest.mark.nightly)


def by_day(cases: Iterable[Any], daily: Collection[Any]) -> list[Any]:
    """All cases, for `parametrize`: the daily ones as they are, the rest left to the night. A tuple is one of several
    arguments."""
    late = lambda case: pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.nightly)  # noqa: E731
    return [case if case in daily else late(case) for case in cases]
