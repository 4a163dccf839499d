"""Every committed number stays: n, median, low and high of all cells, and the verdict on each claim.

`POSENC_REGENERATE=1 pytest tests/lab/test_frozen.py -n0` writes frozen.json.gz anew, where a number is meant to change.
"""

import gzip
import json
import math
import os
from pathlib import Path

import pytest

from posenc.lab.results.results import load
from posenc.lab.results.statistics import cells, summary
from posenc.lab.results.verdicts import findings
from posenc.lab.spec import committed
from posenc.lab.spec.experiment_file import from_file

FROZEN = Path(__file__).with_name("frozen.json.gz")
BUNDLES = sorted(path.name for path in (committed.folders()[0] / "records").glob("*.json*"))
REGENERATE = "POSENC_REGENERATE" in os.environ


@pytest.fixture(scope="module")
def frozen():
    kept = json.loads(gzip.decompress(FROZEN.read_bytes())) if FROZEN.exists() else {"cells": {}, "verdicts": {}}
    before = json.dumps(kept)
    yield kept
    if REGENERATE and json.dumps(kept) != before:
        FROZEN.write_bytes(gzip.compress(json.dumps(kept).encode(), mtime=0))


def same(frozen, kind, name, found):
    if REGENERATE:
        frozen[kind][name] = found
    kept = frozen[kind][name]
    words = lambda rows: [[part for part in row if not isinstance(part, float)] for row in rows]  # noqa: E731
    numbers = lambda rows: [part for row in rows for part in row if isinstance(part, float)]  # noqa: E731
    assert words(found) == words(kept)
    assert numbers(found) == pytest.approx(numbers(kept), rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("bundle", BUNDLES)
def test_every_cell_has_the_number_that_it_had(frozen, bundle):
    found = []
    for cell in cells(load(committed.folders()[0] / "records" / bundle).shown()):
        for size, values in cell.values.items():
            if values:
                of = summary(values)
                numbers = (float(f"{number:.12g}") for number in (of.median, of.low, of.high))
                found.append([cell.task, cell.scheme, size, of.n, *numbers])
    same(frozen, "cells", bundle, found)


def test_there_are_as_many_cells_as_ever(frozen):
    assert sum(map(len, frozen["cells"].values())) == 12176 and not any(
        math.isnan(number) for cells in frozen["cells"].values() for cell in cells for number in cell[3:]
    )


@pytest.mark.parametrize("name", sorted(committed.files()))
def test_every_claim_has_the_verdict_that_it_had(frozen, name):
    path = committed.files()[name]
    experiment, record = from_file(path, yes=True), committed.record_of(path)
    results = load(record) if record.is_file() else None
    found = findings(experiment.published, results, experiment.header.attempted)
    same(frozen, "verdicts", name, [[finding.verdict, finding.cause] for finding in found])
