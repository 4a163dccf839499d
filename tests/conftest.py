"""Strict settings for every test: no silent broadcasting of ranks, and two host devices as a sweep has."""

import gc
import os
import platform
import sys
from pathlib import Path

import jax
import pytest

from posenc.lab.train import device
from tests import night
from tests.effort import share_contexts, try_little

try_little()
share_contexts()
gc.set_threshold(100_000, 20, 100)  # jax keeps much, and by default it is all walked again and again
DEVICES = 2
jax.config.update("jax_num_cpu_devices", DEVICES)
jax.config.update("jax_numpy_rank_promotion", "raise")


LAB = tuple(
    f"tests/{name}"
    for name in ("lab/", "cli/", "site/", "models/", "show/", "tasks/", "test_committed", "test_experiment")
)
"""Where the laboratory is tested, for `-m "not lab"`."""


KEPT_BYTES = 2**30
HOME = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"


def kept_programs():
    """Where compiled programs are kept between sessions: apart for each machine, since they hold its instructions."""
    return Path(HOME) / "posenc-tests" / f"{platform.node()}-{jax.__version__}"


def pytest_configure(config):
    """Once in a session, drop the programs unused for longest beyond a gigabyte."""
    if hasattr(config, "workerinput"):
        return
    files = sorted(((f.stat().st_mtime, f) for f in kept_programs().rglob("*") if f.is_file()), reverse=True)
    total = 0
    for _, file in files:
        total += file.stat().st_size
        if total > KEPT_BYTES:
            file.unlink(missing_ok=True)


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(config, items):
    for item in items:
        if item.nodeid.startswith(LAB):
            item.add_marker(pytest.mark.lab)
    if os.environ.get("POSENC_REGENERATE"):
        config.option.markexpr = ""  # what writes a page again may wait for `.ci/run` otherwise
    elif not (config.getoption("record") or config.getoption("unverified")):
        night.spread(items)


@pytest.fixture(scope="session", autouse=True)
def two_devices():
    """A command in this process takes the host devices that there are, whatever the number of cores: once jax has
    started, another number is an error."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device, "cores", lambda: DEVICES)
        yield


@pytest.fixture(scope="session", autouse=True)
def compiled_once():
    """Workers, processes that tests start, and later sessions share what they compile, in a folder of the tests: what
    the user's own sweeps compiled is neither read nor written."""
    os.environ["XDG_CACHE_HOME"] = str(kept_programs())
    folder = device.cache()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.01)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """No module of this test's folder, and no name that it registered, is left behind. `fresh()` forgets them at once,
    as another process would know none of them."""
    from posenc.coordinates import COORDINATES
    from posenc.core.scheme import SCHEMES
    from posenc.lab.tasks.task import TASKS

    registries = SCHEMES, COORDINATES, TASKS
    known = {registry.kind: set(registry.names()) for registry in registries}
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # two edits within a second have one time stamp

    def forget():
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
                del sys.modules[name]
        for registry in registries:
            for name in set(registry._classes) - known[registry.kind]:
                del registry._classes[name]

    yield forget
    forget()


@pytest.fixture
def x64():
    """Float64 for oracles and finite differences, switched off again."""
    with jax.enable_x64(True):
        yield
