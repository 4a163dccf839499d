"""The whole site, made once in a session, where the extra `docs` is installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "site"))


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The folder of the site, as `mkdocs build` writes it."""
    for module in ("mkdocs", "material", "mkdocstrings", "mathjax"):
        pytest.importorskip(module, reason=f"{module} comes with the extra `docs`")
    target = tmp_path_factory.mktemp("site") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "-f", str(ROOT / "mkdocs.yml"), "-d", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"})
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr
    return target
