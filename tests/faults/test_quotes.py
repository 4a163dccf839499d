"""Every fault that some test plants still quotes the source, which costs nothing to find out."""

import importlib

import pytest

from tests.planting import find_place

HOMES = """
faults.test_planted kernels.test_blocks kernels.test_planted kernels.test_unplaced kernels.test_windows
schemes.test_shares tasks.test_task_faults test_rotate
"""


@pytest.mark.guard
@pytest.mark.parametrize("home", HOMES.split())
def test_every_fault_quotes_the_source(home):
    faults = importlib.import_module(f"tests.{home}").FAULTS.values()
    assert [fault for fault in faults if fault.old not in find_place(fault.where).source] == []
