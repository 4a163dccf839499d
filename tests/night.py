"""What runs by day, what `.ci/run` adds (`-m "ci and not nightly"`), and what waits for the night (`-m nightly`).

A test runs by day unless a marker at the test says otherwise: `ci` waits for every `.ci/run`, `nightly` for the night.
Beside these markers there is one rule, and no test is named for it. The cases of a test in a family (`FAMILIES`) make
one claim of many schemes, tasks, models or settings, through the same code. The hash of a case's id decides its day:

    number = SHA-256(id)           by day: number mod 16 = 0, and of each test the case of the lowest number
    turn = ⌊number / 16⌋ mod 7      by `.ci/run`: turn = today's, the days of the calendar mod 7
                                   at night: all others

So each case meets `.ci/run` within seven days, and every night. A test of a family that is marked `ci` has no case by
day, but its turns. `POSENC_TURN=3` runs the cases of turn 3 again on any day. Tests that share the sampler of a task
(`draw`) have its id in the place of theirs, so that what a day compiles serves all of them.

What alone guards a fault runs by day, whatever its family: planted faults, refusals, tests marked `guard`, and the
tests of one case that test_published_bugs.py names. Golden data and equations are in no family. Planted faults that
try a check are members of a family that says so (`faults`). Inside one file `by_day` keeps chosen cases; the contract
has a rule of its own, tests/contract/covering.py.
"""

import datetime
import hashlib
import os
from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import pytest

TURNS = 7
TURN = int(os.environ.setdefault("POSENC_TURN", str(datetime.date.today().toordinal() % TURNS))) % TURNS
"""Today's turn. The workers of a session inherit it, so that one that begins before midnight ends as it began."""
SIXTEENTH = 16
FAULTS = {"planted", "fault", "faults", "noticed", "caught", "refused", "refuses"}
"""Words in the name of a test that is the only guard of what it plants or gives."""


class Family(NamedTuple):
    """Files whose tests repeat one claim over many cases."""

    guard: str  # what protects by day what the cases in turn do
    alone: bool = False  # tests of one case are members too
    faults: bool = False  # planted faults are too: they try a check, and other data guard the code


CONTRACT = "the covering schemes hold the whole contract, and by `--unverified` each whose code changed"
BATCHES = "oracles judge worked examples of every task, its planted fault is caught, and the cases kept"
EQUATIONS = "models/test_models.py: the equations of the cases kept, and refusals"
ONE_EACH = "the case kept of each framework, and kernels/test_equal.py"
FAMILIES = {
    "contract/test_attention.py": Family(CONTRACT),
    "contract/test_decoding.py": Family(CONTRACT),
    "contract/test_validation.py": Family(CONTRACT),
    "faults/": Family(
        "the contract on every scheme, and the faults kept; that all still quote the source", faults=True
    ),
    "huggingface/test_recorded.py": Family("the cases kept, spread over all models, and huggingface/test_reading.py"),
    "importers/": Family("the cases kept, and the adapters"),
    "kernels/test_blocks.py": Family("the hooks and masks kept, and the faults kept", faults=True),
    "kernels/test_planted.py": Family("kernels/test_equal.py, and the faults kept", faults=True),
    "kernels/": Family("the cases kept, and the covering schemes of the contract"),
    "lab/test_draws.py": Family("the cases kept, and every task's batch"),
    "lab/test_generate.py": Family("cached decoding of the contract"),
    "lab/test_placed.py": Family("resolving and rehearsing every such run"),
    "lab/test_stages.py": Family("the spelling kept, and lab/test_sweep.py"),
    "lab/test_train.py": Family("the cases kept, and lab/test_sweep.py"),
    "models/": Family(EQUATIONS),
    "schemes/": Family(
        "each scheme's equation (oracles/), in every setting by .ci/run, its authors' numbers (golden/) and, where its"
        " code changed, the whole contract by `--unverified` in each .ci/run",
        alone=True,
    ),
    "show/test_by_hand.py": Family("oracles, and the forms kept"),
    "tasks/test_arithmetic.py": Family(BATCHES),
    "tasks/test_chomsky.py": Family(BATCHES),
    "tasks/test_coupling.py": Family(BATCHES),
    "tasks/test_long_addition.py": Family(BATCHES),
    "tasks/test_rasp.py": Family(BATCHES),
    "tasks/test_recall.py": Family(BATCHES),
    "tasks/test_shifted.py": Family(BATCHES),
    "tasks/test_task_examples.py": Family(BATCHES),
    "tasks/test_task_faults.py": Family("golden batches of every task, and the faults kept", faults=True),
    "tasks/test_task_floors.py": Family("records hold their floors, and the cases kept"),
    "tasks/test_task_laws.py": Family(BATCHES),
    "tasks/test_task_measure.py": Family("sums are counted by hand, and oracles judge every task"),
    "test_adapter": Family(ONE_EACH),
    "test_bfloat16.py": Family("the contract's properties of half precision"),
    "test_committed_figures.py": Family("the cases kept, and show/test_figures.py"),
    "test_distances.py": Family("the schemes kept, and lab/test_train.py draws positions"),
    "test_docs_commands.py": Family("cli/ runs every command, and test_docs.py reads every page"),
    "test_foreign.py": Family(ONE_EACH),
    "test_other_libraries.py": Family(ONE_EACH),
    "test_segment_scans.py": Family("the contract's documents and padding"),
    "test_stems.py": Family("golden/, and the equation of every stem"),
}
"""Where the tests of a family begin, and what guards by day the cases that take turns."""


def number(nodeid: str) -> int:
    """What decides the day of a test: the same on every machine."""
    return int(hashlib.sha256(nodeid.encode()).hexdigest()[:12], 16)


def day_id(item: Any) -> str:
    """The id whose number decides: of the test, or of the sampler that it shares."""
    if "draw" in getattr(item, "fixturenames", ()):
        return f"{item.nodeid.partition('::')[0]}[{item.callspec.params['text']}]"
    return item.nodeid


def family_of(file: str, families: dict[str, Family] = FAMILIES) -> Family | None:
    """The family that a file of this folder is in."""
    return next((family for place, family in families.items() if file.startswith(place)), None)


def move(
    items: Iterable[Any],
    families: dict[str, Family] = FAMILIES,
    guards: Collection[str] = (),
    turn: int = TURN,
) -> None:
    """Mark the cases of families that do not run by day: `ci` where it is their turn, `nightly` where not.

    `guards` are tests as test_published_bugs.py writes them, file::name.
    """
    tests = defaultdict(list)
    for item in items:
        if not item.get_closest_marker("nightly"):
            tests[item.nodeid.partition("[")[0].removeprefix("tests/")].append(item)
    for test, cases in tests.items():
        file, name = test.partition("::")[0], test.rpartition("::")[2]
        family, several = family_of(file, families), "[" in cases[0].nodeid
        if family is None or cases[0].get_closest_marker("guard"):
            continue
        if FAULTS & set(name.split("_")) and not family.faults:
            continue
        if not several and (not family.alone or f"{file}::{name}" in guards or cases[0].get_closest_marker("ci")):
            continue
        lowest = min(number(day_id(case)) for case in cases) if several else None
        for case in cases:
            value = number(day_id(case))
            if not case.get_closest_marker("ci") and (value % SIXTEENTH == 0 or value == lowest):
                continue
            case.add_marker(getattr(pytest.mark, "ci" if value // SIXTEENTH % TURNS == turn else "nightly"))


def by_day(cases: Iterable[Any], daily: Collection[Any]) -> list[Any]:
    """All cases, for `parametrize`: the daily ones as they are, the rest left to the night. A tuple is one of several
    arguments."""
    late = lambda case: pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.nightly)  # noqa: E731
    return [case if case in daily else late(case) for case in cases]
