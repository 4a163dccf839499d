"""What tests of interrupted sweeps share."""

import threading
from types import SimpleNamespace

import pytest

from posenc.lab.run import plan, saving, trainer
from posenc.lab.run.sweep import sweep
from tests.lab.interrupted import resumed
from tests.lab.test_sweep import BASE, Watch, experiment, trials


@pytest.fixture(scope="session", autouse=True)
def programs_stay():
    """A sweep drops the programs of a scheme when the next begins, for memory; here the next test has them again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "forget_programs", lambda *steps: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def traced_once():
    """A sweep traces its runs before it plans them; here each run of the smallest kind is traced by the first."""
    known, real = {}, plan.rehearsed

    def rehearsed(run, of):
        if (run.task, run.width) != (BASE.task, BASE.width) or ":" in f"{run.scheme}{run.then}":  # of a file, edited
            return real(run, of)
        key = run, of.sizes, of.steps
        if key not in known:
            known[key] = real(run, of)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "rehearsed", rehearsed)
        yield


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """The folder in which runs are made and found."""
    monkeypatch.setenv("POSENC_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """The sweep of two schemes that most tests are about, done and with its parameters. To be copied, not changed."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    assert sweep(experiment(), folder, keep=True, watch=Watch()) == 0
    return folder


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
