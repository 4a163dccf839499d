"""The tree keeps its shape: imports point one way, the library knows no laboratory, and reading needs no jax."""

import ast
import importlib
import pkgutil
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

import posenc

ROOT = Path(posenc.__file__).parent

# From the ground up; a module may import what stands on a lower line, and packages may import within themselves.
FLOORS = [
    "grammar masks rotation scaling orthogonal exact table bucket running distances slopes"
    " lab.disk lab.pyfile lab.lanes lab.quadrature models.draws show.style"
    " show.steps show.problem models.norm",
    "registry lab.claims lab.records lab.timing models.dropout models.inputs show.worksheet show.page show.paper",
    "models.kinds",
    "scheme lab.run lab.store lab.device lab.params",
    "schemes compose models.stems tasks.task lab.words lab.results lab.presets",
    "lab.suites",
    "coordinates parameters sides tasks lab.experiment lab.stats models.attentions models.shape",
    "belongs models.build",
    "naming cache model_types lab.toml lab.draws lab.published show.files show.captions show.task_card show.panels",
    "arguments kernels layer_types rope_parameters rope_writing show.tables show.grouped models.decoding"
    " show.panel_captions show.floor_lines",
    "admission show.figures",
    "prepared show.across show.errors",
    "attention huggingface models.layers",
    "multihead contract catalog foreign sharding models.ends",
    "nnx linen equinox models.averaging models.recurrent models.convolution models.stack",
    "models.transformer models.search",
    "models.encoder_decoder models.carry",
    "lab.train lab.generate lab.experiment_file",
    "lab.plan lab.worker lab.kept show.explain show.watched",
    "lab.estimate lab.bench lab.evaluate show.walk show.suite_card",
    "lab.sweep show.patterns show.gallery show.by_hand",
    "cli",
    "__main__",
]
LABORATORY = ("cli", "lab", "models", "show", "tasks")
WITHOUT_JAX = """posenc posenc.grammar posenc.registry posenc.models.kinds posenc.lab.run posenc.lab.store
posenc.lab.stats posenc.lab.results posenc.lab.toml posenc.show.figures posenc.show.tables posenc.show.captions
posenc.show.files posenc.show.across posenc.show.errors
posenc.cli posenc.cli.read posenc.cli.train posenc.cli.look posenc.cli.machine posenc.cli.extend
posenc.cli.listing posenc.cli.evaluate posenc.cli.reproduce posenc.lab.published posenc.lab.presets
posenc.lab.suites""".split()


def modules():
    return [m.name for m in pkgutil.walk_packages(posenc.__path__, "posenc.")]


def tree(name):
    path = ROOT.joinpath(*name.split(".")[1:])
    return ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8"))


def imported(name, *, deferred=True):
    """What a module imports, by full name; without `deferred`, only what is imported along with it."""
    whole = tree(name)
    nodes = list(ast.walk(whole)) if deferred else whole.body
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            every = {f"{node.module}.{alias.name}" for alias in node.names}
            known = every & set(modules())
            yield from known or {node.module}


def floor(name):
    """The line of FLOORS on which a module stands: its own, or that of its package."""
    words = name.removeprefix("posenc.").split(".")
    for n in range(len(words), 0, -1):
        for height, line in enumerate(FLOORS):
            if ".".join(words[:n]) in line.split():
                return height
    return None


def ours(name, **how):
    return {m for m in imported(name, **how) if m.startswith("posenc.")}


def package(name):
    return name.split(".")[1]


@pytest.mark.parametrize("name", modules())
def test_imports_point_down(name):
    if name in ("posenc.lab", "posenc.models", "posenc.show"):
        assert not ours(name), "a package's own file imports nothing of ours"
        return
    assert floor(name) is not None, f"{name} is new: say in FLOORS what may import it"
    inside = {"posenc.cli", "posenc.contract", "posenc.coordinates", "posenc.kernels", "posenc.schemes", "posenc.tasks"}
    for other in ours(name, deferred=False):
        if f"posenc.{package(name)}" in inside and package(other) == package(name):
            continue
        assert floor(other) < floor(name), f"{name} imports {other}, which stands no lower"


def test_no_module_imports_itself_by_way_of_others():
    graph = {name: ours(name, deferred=False) for name in modules()}
    done: set[str] = set()

    def walk(name, path):
        assert name not in path, f"a circle: {' → '.join([*path, name])}"
        if name not in done:
            for other in graph.get(name, ()):
                if other != name:
                    walk(other, [*path, name])
            done.add(name)

    for name in graph:
        walk(name, [])


@pytest.mark.parametrize("name", [m for m in modules() if package(m) not in (*LABORATORY, "__main__")])
def test_the_library_knows_no_laboratory(name):
    assert not {m for m in ours(name) if package(m) in LABORATORY}


@pytest.mark.parametrize("name", [m for m in modules() if package(m) not in (*LABORATORY, "__main__")])
def test_the_library_needs_jax_and_little_else(name):
    outside = {m.split(".")[0] for m in imported(name)} - set(sys.stdlib_module_names) - {"posenc"}
    more = {"nnx": {"flax"}, "linen": {"flax"}, "equinox": {"equinox"}, "multihead": {"einops"}}
    assert outside <= {"jax", "jaxtyping", "numpy"} | more.get(name.removeprefix("posenc."), set())


@pytest.mark.parametrize("name", [m for m in modules() if m.startswith("posenc.schemes.")])
def test_schemes_share_mathematics_and_never_one_another(name):
    assert ours(name) <= {"posenc.scheme"} | {f"posenc.{shared}" for shared in FLOORS[0].split()}


@pytest.mark.parametrize("name", modules())
def test_nothing_imports_what_stands_outside(name):
    assert not {m.split(".")[0] for m in imported(name)} & {"tests", "experiments", "benchmarks"}


def test_reading_needs_no_jax():
    program = f"""
import importlib, sys
for name in {WITHOUT_JAX}:
    importlib.import_module(name)
    assert "jax" not in sys.modules, name
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_every_module_imports_and_every_public_name_is_read():
    for name in modules():
        if not name.endswith("__main__"):
            importlib.import_module(name)
    public = {name: getattr(posenc, name) for name in posenc.__all__}
    assert not set(public) & {m.split(".")[1] for m in modules()}, "a public name is also the name of a module"
    assert set(public) <= set(dir(posenc))


def test_files_are_short():
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in ROOT.rglob("*.py")}
    assert statistics.median(lengths.values()) < 120
    assert not {path.name: n for path, n in lengths.items() if n > 400}
