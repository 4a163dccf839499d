"""One undisturbed sweep, to which all clusters are compared."""

import os

import pytest

from tests.cluster import slurm
from tests.cluster.sweeps import SIZES, posenc, trials


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sweeps")


@pytest.fixture(scope="session")
def whole(folder):
    posenc(os.environ, folder, "sweep", *SIZES, "--name", "whole")
    return trials(folder / "whole")[0]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    """The environment of a SLURM of two nodes."""
    try:
        with slurm.running(tmp_path_factory.mktemp("slurm")) as env:
            yield env
    except slurm.Missing as why:
        pytest.skip(str(why))
