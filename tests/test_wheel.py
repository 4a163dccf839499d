"""The wheel, built and installed in fresh environments: the library by itself, and with the laboratory beside it.

An environment gets links to just those packages, of the ones that run these tests, which the wheel's own metadata
asks for: a dependency that is used and not declared is missing there.
"""

import os
import re
import subprocess
import sys
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = """
import jax, posenc
from posenc.huggingface import from_hf
dims = posenc.Dims(width=32, heads=4, head=8, trained=16)
for text in ("rope + alibi", "fox"):
    scheme = posenc.bind(posenc.parse(text), dims)
    params = posenc.init(scheme, jax.random.key(0), dims)
    q, x = jax.random.normal(jax.random.key(1), (1, 6, 4, 8)), jax.random.normal(jax.random.key(2), (1, 6, 32))
    whole = posenc.attend(scheme, params, q, q, q, x=x)
    cache = posenc.Cache.empty(scheme, params, dims, batch=1, capacity=8, dtype=q.dtype)
    first, cache = posenc.attend(scheme, params, q[:, :4], q[:, :4], q[:, :4], x=x[:, :4], cache=cache)
    last, cache = posenc.attend(scheme, params, q[:, 4:], q[:, 4:], q[:, 4:], x=x[:, 4:], cache=cache)
    both = jax.numpy.concatenate([first, last], 1)
    assert bool(jax.numpy.allclose(both, whole, atol=1e-5)), text
assert posenc.spec(from_hf({"model_type": "llama", "rope_theta": 5e5})).startswith("rope")
from posenc.tasks import integers, parse
assert parse("copy").name == "copy"
try:
    import posenc.nnx
except ModuleNotFoundError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    from hatchling.builders.wheel import WheelBuilder

    folder = tmp_path_factory.mktemp("wheels")
    return Path(next(iter(WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"]))))


@pytest.fixture(scope="module")
def alone(wheel, tmp_path_factory):
    """The library without extras."""
    return installed(wheel, tmp_path_factory.mktemp("alone"), ())


@pytest.fixture(scope="module")
def drawing(wheel, tmp_path_factory):
    """The laboratory, with what figures need."""
    return installed(wheel, tmp_path_factory.mktemp("drawing"), ("plot",))


def installed(wheel, folder, extras):
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(pip, check=True, capture_output=True)
    site = next((folder / "lib").glob("python*/site-packages"))
    (ours,) = metadata.distributions(name="posenc", path=[str(site)])
    for name in needed([Requirement(line) for line in ours.requires], extras):
        for file in {path.parts[0] for path in metadata.files(name) if path.parts[0] not in ("..", "__pycache__")}:
            source = Path(metadata.distribution(name).locate_file(file))
            if not (site / file).exists():
                (site / file).symlink_to(source)
    return python


def needed(requirements, extras):
    """Names of the distributions that these requirements ask for, and theirs in turn."""
    found, open_ = set(), [(r, e) for r in requirements for e in (*extras, "")]
    while open_:
        requirement, extra = open_.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        theirs = requirements if requirement.name == "posenc" else None
        if theirs is None:
            if (requirement.name, *sorted(requirement.extras)) in found:
                continue
            found.add((requirement.name, *sorted(requirement.extras)))
            theirs = [Requirement(line) for line in metadata.requires(requirement.name) or ()]
        open_ += [(r, e) for r in theirs for e in (*requirement.extras, "")]
    return {name for name, *_ in found}


def run(python, *words, cwd):
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "POSENC_RUNS")}
    return subprocess.run([str(python), *words], cwd=cwd, env=env, capture_output=True, text=True)


@pytest.mark.ci
def test_the_library_works_with_what_it_declares(alone, tmp_path):
    done = run(alone, "-c", LIBRARY, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "pip install 'posenc[lab]'" in done.stdout and done.stdout.count("\n") == 1


@pytest.mark.parametrize("command", ["list", "quickstart", "--help"])
def test_the_command_line_without_the_laboratory_says_what_to_install(alone, tmp_path, command):
    done = run(alone, "-m", "posenc", command, cwd=tmp_path)
    assert done.returncode == 2 and not done.stdout
    assert re.fullmatch(r"The command line .*must be installed: run `pip install 'posenc\[lab\]'`.*\n", done.stderr)


@pytest.mark.ci
def test_experiments_come_with_the_wheel(drawing, wheel, tmp_path):
    """Listed, compared with what was published, tabulated, drawn and rehearsed, away from any checkout."""
    listed = run(drawing, "-m", "posenc", "list", "experiments", cwd=tmp_path)
    names = {path.stem for path in (ROOT / "experiments").glob("*.py")}
    assert {line.split()[0] for line in listed.stdout.splitlines()[1:] if line[:1].isalpha()} == names, listed.stderr
    claims = run(drawing, "-m", "posenc", "reproduce", cwd=tmp_path)
    assert int(re.search(r"Published claims: (\d+)", claims.stdout)[1]) > 100, claims.stderr
    assert "rope" in run(drawing, "-m", "posenc", "table", "length", cwd=tmp_path).stdout
    drawn = run(drawing, "-m", "posenc", "plot", "length", cwd=tmp_path)
    assert drawn.returncode == 0, drawn.stderr
    committed = (ROOT / "experiments" / "figures" / "length.csv").read_bytes()
    assert (tmp_path / "figures" / "length.csv").read_bytes() == committed
    reported = run(drawing, "-m", "posenc", "report", "length", "-o", "r.html", cwd=tmp_path)
    assert reported.returncode == 0, reported.stderr
    planned = run(drawing, "-m", "posenc", "sweep", "length", "--dry-run", cwd=tmp_path)
    assert planned.returncode == 0 and "trials in" in planned.stdout, planned.stderr
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if "site" in name.split("/") or name.startswith(("docs/", "posenc/docs/"))]


@pytest.mark.nightly
def test_the_quick_start_runs_from_the_wheel(drawing, tmp_path):
    done = run(drawing, "-m", "posenc", "quickstart", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs" / "quickstart" / "length.svg").exists()
