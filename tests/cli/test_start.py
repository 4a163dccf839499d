"""Help, version and the reading commands start at once: no jax, and nothing that the command does not need."""

import os
import subprocess
import sys

import pytest

from posenc import __version__
from posenc.lab.cli import _GROUPS
from tests.lab import made

COMMANDS = [name for group in _GROUPS.values() for name, *_ in group]
LOADED = """
import sys
from posenc.lab.cli import main
code = main({words!r})
heavy = [name for name in ("jax", "flax", "matplotlib", "tyro", "rich", "scipy", "numpy") if name in sys.modules]
print(code, *heavy, file=sys.stderr)
"""
SHORT = """\
posenc: positional encodings for Transformers, compared honestly and fast.

Start here:
  posenc quickstart                     trains, prints a table, draws a figure; a few minutes on a laptop
"""


def loaded(words, folder):
    script = LOADED.format(words=list(words))
    here = {name: value for name, value in os.environ.items() if name != "POSENC_RUNS"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=folder, env=here)
    code, *heavy = done.stderr.splitlines()[-1].split()
    return int(code), set(heavy)


def test_help_starts_with_the_quick_start_and_names_every_command(posenc):
    for words in ([], ["--help"], ["-h"], ["help"]):
        said = posenc(*words)
        assert said.code == 0 and said.out.startswith(SHORT) and not said.err
        assert all(f"\n  {name} " in said.out for name in COMMANDS)
        assert all(len(line) <= 120 for line in said.out.splitlines())


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(posenc, command):
    said = posenc(command, "--help")
    assert said.code == 0 and said.out.startswith(f"usage: posenc {command}") and not said.err
    assert posenc("help", command).out == said.out


def test_the_version_is_the_package_s(posenc):
    assert posenc("--version") == (0, f"posenc {__version__}\n", "")


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["frobnicate"]])
def test_help_and_version_load_nothing_heavy(words, tmp_path):
    assert loaded(words, tmp_path)[1] == set()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("reading")
        patch.chdir(folder)
        patch.delenv("POSENC_RUNS", raising=False)
        made.filled("mine", [made.rope(), made.rope(label="alibi", family="linear")])
    return folder


@pytest.mark.ci
@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["status", "mine"], {"tyro"}),
        (["table", "runs/mine"], {"tyro", "numpy"}),
        (["export", "mine"], {"tyro", "numpy", "pandas"}),
        (["compare", "mine", "rope", "alibi"], {"tyro", "numpy"}),
        (["plot", "mine", "--figure", "length"], {"tyro", "numpy", "matplotlib"}),
        (["sweep", "--help"], {"tyro", "rich", "numpy"}),
        (["list", "experiments"], {"tyro"}),
        (["atlas", "--for", "counting"], {"tyro", "numpy"}),
        (["reproduce"], {"tyro", "numpy", "scipy"}),
    ],
)
def test_reading_needs_no_jax(words, extra, finished):
    code, heavy = loaded(words, finished)
    assert code == 0 and heavy <= extra


def test_python_m_posenc_is_the_same(tmp_path):
    for module in ("posenc", "posenc.lab.cli"):
        done = subprocess.run([sys.executable, "-m", module, "--version"], capture_output=True, text=True, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, f"posenc {__version__}\n")
