"""posenc agrees with the numbers of the original implementations, case by case.

`pytest tests/golden --golden DIR` runs the files of another folder. A case there of a family that posenc does not cover
is reported as not covered: it neither passes nor fails. Of the files kept here every case is covered.
"""

import functools
import hashlib
import json
from pathlib import Path

import jax
import numpy as np
import pytest

from posenc.catalog.schemes import RECORD
from tests.golden.case import Arrays, Case, Check, NotCovered, load
from tests.golden.run import adapter, agree
from tests.night import by_day
from tests.recording import unchanged

HERE = Path(__file__).parent
INDEX = json.loads((HERE / "index.json").read_text())
KEPT = [HERE / name for name in sorted(INDEX)]


def pytest_generate_tests(metafunc):
    if "case" in metafunc.fixturenames:
        asked = metafunc.config.getoption("golden")
        files = sorted(Path(asked).glob("*.npz")) if asked else KEPT
        if not files:
            raise pytest.UsageError(f"There are no golden files, *.npz, in {asked}.")
        families = [load(path) for path in files]
        every = asked or metafunc.config.getoption("record")
        metafunc.parametrize(
            "case",
            [one for family in families for one in (family if every else early(family))],
            ids=lambda case: f"{case.family}-{case.id}",
        )


@functools.cache
def recorded():
    """The cases that the record names; of each scheme two; of a scheme whose code is not that of its record one."""
    kept = {name: of["golden"]["cases"] for name, of in json.loads(RECORD.read_text()).items() if "golden" in of}
    known = {case for cases in kept.values() for case in cases}
    two = {cases[len(cases) * n // 2] for cases in kept.values() for n in range(2)}
    return known, two, {kept[name][0] for name in kept.keys() - unchanged()}


def early(family):
    """By day one case of every changed scheme, and those that no record names yet; of every scheme two in each .ci/run,
    and the rest at night. By day oracles prove the equations of all, and tests/test_record.py that the record is of
    their code."""
    known, two, day = recorded()
    for case in family:
        name = f"{case.family}-{case.id}"
        late = pytest.mark.ci if name in two else pytest.mark.nightly
        yield case if name in day or name not in known else pytest.param(case, marks=late)


def test_posenc_agrees_with_the_reference(case, record_property, request):
    try:
        found = agree(case)
    except NotCovered as reason:
        assert request.config.getoption("golden"), f"{case.family}-{case.id} is kept here and not covered: {reason}"
        record_property("golden_not_covered", [case.family, case.id, str(reason)])
        return
    record_property("golden", [found.schemes, f"{case.family}-{case.id}", case.source, found.largest])


def test_the_index_holds_every_file_of_cases():
    found = [path.name for path in HERE.glob("*.npz") if "meta" in np.load(path, allow_pickle=False)]
    assert sorted(found) == sorted(INDEX)


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_a_file_is_the_one_that_was_recorded(path):
    said, data = INDEX[path.name], path.read_bytes()
    assert (len(data), hashlib.sha256(data).hexdigest()) == (said["bytes"], said["sha256"]), f"{path.name} was changed"
    arrays = {f"{c.id}/{n}": a for c in load(path) for n, a in c.arrays.items()}
    recorded = {f"{c}/{n}": a for c, ns in said["cases"].items() for n, a in ns.items()}
    assert {k: {"dtype": str(a.dtype), "shape": list(a.shape)} for k, a in arrays.items()} == recorded


@pytest.mark.parametrize(
    "name", by_day([path.stem for path in KEPT], ("alibi", "attention", "rotary", "cope", "stems"))
)
def test_numbers_that_are_slightly_off_are_noticed(name):
    for check in _checks(load(HERE / f"{name}.npz")[0]):
        wrong = np.array(check.theirs)
        if wrong.size:
            wrong.flat[-1] += max(1, 3 * check.tolerance * np.abs(wrong).max())
            with pytest.raises(AssertionError):
                check._replace(theirs=wrong).verify()


def _checks(case):
    try:
        with jax.enable_x64(case.double):
            return list(adapter(case.family).compare(case))
    except NotCovered:
        return []


def test_a_shape_that_would_broadcast_is_no_agreement():
    with pytest.raises(AssertionError, match="our shape"):
        Check("out", np.zeros((1, 3)), np.zeros(3), 1e-5).verify()


def test_nan_is_no_agreement():
    with pytest.raises(AssertionError):
        Check("out", np.array([np.nan]), np.zeros(1), 1e-5).verify()


def test_an_array_that_nobody_looked_at_is_noticed():
    case = load(HERE / "alibi.npz")[0]
    more = case._replace(arrays=Arrays({**case.arrays, "other": np.zeros(1)}))
    with pytest.raises(AssertionError, match="other"):
        agree(more)


def test_a_family_without_an_adapter_is_not_covered():
    with pytest.raises(NotCovered, match="no adapter"):
        agree(Case("nobody_wrote_this", "c0", {}, Arrays({})))
