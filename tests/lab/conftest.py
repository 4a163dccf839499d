"""What tests of interrupted sweeps share."""

import threading
from types import SimpleNamespace

import pytest

from posenc.lab.run import saving
from tests.lab.interrupted import resumed
from tests.lab.test_sweep import trials


@pytest.fixture(scope="session")
def uninterrupted(tmp_path_factory):
    """What an uninterrupted sweep records, by the texts of its runs."""
    known = {}

    def recorded(*runs):
        if runs not in known:
            folder = tmp_path_factory.mktemp("runs") / "whole"
            resumed(folder, *runs)
            known[runs] = trials(folder)
        return known[runs]

    return recorded


@pytest.fixture
def at_once(monkeypatch):
    """Checkpoints are written before training goes on, so that tests know which there are."""

    class Done(threading.Thread):
        def start(self):
            self.run()

        def join(self, timeout=None):
            pass

        def is_alive(self):
            return False

    monkeypatch.setattr(saving, "threading", SimpleNamespace(Thread=Done))
