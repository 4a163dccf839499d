"""One undisturbed sweep, to which all clusters are compared."""

import os

import pytest

from tests.cluster.sweeps import SIZES, posenc, trials


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sweeps")


@pytest.fixture(scope="session")
def whole(folder):
    posenc(os.environ, folder, "sweep", *SIZES, "--name", "whole")
    return trials(folder / "whole")[0]
