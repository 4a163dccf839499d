"""The tree keeps its shape: imports point one way, the library knows no laboratory, and reading needs no jax."""

import ast
import collections
import functools
import importlib
import pkgutil
import statistics
import subprocess
import sys
from pathlib import Path

import posenc

ROOT = Path(posenc.__file__).parent

# From the ground up: a package, or a module at the root, imports from lower lines and from itself.
ORDER = """
language numerics
core
schemes coordinates attention
naming
huggingface adapters contract catalog sharding
nnx linen equinox
lab.metrics lab.compiling
lab.tasks lab.models lab.store
lab.spec
lab.results lab.train
lab.run lab.figures
lab.reuse
lab.explain
lab.report
lab.cli tasks models
__main__
"""
LEVEL = {name: level for level, line in enumerate(ORDER.split("\n")) for name in line.split()}
LABORATORY = ("lab", "models", "tasks", "__main__")
WITHOUT_JAX = """
posenc language.grammar language.registry catalog catalog.card lab.models.kinds lab.spec.run lab.spec.toml
lab.spec.presets lab.spec.suites lab.store.folder lab.results.statistics lab.results.results lab.results.verdicts
lab.figures.figures lab.figures.tables lab.figures.captions lab.figures.exports lab.figures.across
lab.cli lab.cli.read lab.cli.train lab.cli.describe lab.cli.explain lab.cli.plot lab.cli.machine lab.cli.extend
lab.cli.listing lab.cli.evaluate lab.cli.reproduce lab.cli.status lab.figures.venues
lab.figures.rows lab.figures.curves lab.figures.claims
lab.results.words lab.cli.atlas_for lab.results.table lab.spec.committed
lab.report.vega lab.report.sections lab.report.charts lab.cli.report
""".split()


@functools.cache
def modules():
    return [m.name for m in pkgutil.walk_packages(posenc.__path__, "posenc.")]


@functools.cache
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


def package(name):
    """The package or root module of ORDER that a module belongs to."""
    words = name.split(".")[1:]
    return ".".join(words[:2] if words[0] == "lab" else words[:1])


def ours(name, **how):
    return {m for m in imported(name, **how) if m.startswith("posenc.")}


def test_imports_point_down():
    every = [m for m in modules() if m != "posenc.lab"]
    assert not {package(m) for m in every} - set(LEVEL), "these packages are new: add them to ORDER"
    below = lambda one, other: LEVEL[package(other)] < LEVEL[package(one)] or package(other) == package(one)  # noqa: E731
    assert not [(one, other) for one in every for other in ours(one) if not below(one, other)]  # within functions too


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


def root(name):
    return name.split(".")[1]


LIBRARY = [m for m in modules() if root(m) not in LABORATORY]


def test_the_library_knows_no_laboratory():
    assert not [(name, m) for name in LIBRARY for m in ours(name) if root(m) in LABORATORY]


def outside(name):
    return {m.split(".")[0] for m in imported(name)} - set(sys.stdlib_module_names) - {"posenc"}


def test_the_library_needs_jax_and_little_else():
    allowed = {"jax", "jaxtyping", "numpy", "einops"}
    more = {"posenc.nnx": {"flax"}, "posenc.linen": {"flax"}, "posenc.equinox": {"equinox"}}
    assert not {name: found for name in LIBRARY if (found := outside(name) - allowed - more.get(name, set()))}


def test_schemes_share_mathematics_and_never_one_another():
    shared = {"posenc.core.scheme", "posenc.core.masks", "posenc.core.distances"}
    shared |= {m for m in modules() if m.startswith("posenc.numerics.")}
    schemes = [m for m in modules() if m.startswith("posenc.schemes.")]
    assert len(schemes) > 40 and not {name: more for name in schemes if (more := ours(name) - shared)}


def test_only_one_file_calls_lapack():
    """Two of its batches at once wait for each other for ever; that file calls it for one matrix after another."""
    called = {
        m for m in modules() for node in ast.walk(tree(m)) if isinstance(node, ast.Attribute) and _decomposes(node)
    }
    assert called == {"posenc.numerics.orthogonal"}


def _decomposes(node):
    """Whether this is a function of jax's linear algebra, of which norms alone are plain sums."""
    *path, name = ast.unparse(node).split(".")
    return path[:1] in (["jnp"], ["jax"]) and path[-1] == "linalg" and name != "norm"


def test_nothing_imports_what_stands_outside():
    assert not [name for name in modules() if outside(name) & {"tests", "experiments", "benchmarks"}]


def test_reading_needs_no_jax():
    program = f"""
import importlib, sys
for name in {WITHOUT_JAX}:
    importlib.import_module(f"posenc.{{name}}".replace("posenc.posenc", "posenc"))
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


FACES = {"posenc.nnx", "posenc.linen", "posenc.equinox"}
"""They give one thing under the same name, each to its framework."""


def test_no_two_classes_share_a_name():
    where: dict[str, list[str]] = {}
    for name in modules():
        for node in ast.walk(tree(name)):
            if isinstance(node, ast.ClassDef) and name not in FACES:
                where.setdefault(node.name, []).append(name)
    assert len(where) > 100
    assert not {name: places for name, places in where.items() if len(places) > 1}


NO_NOUNS = set("found one every given known whole some about how drawn chosen counted turned asked told said".split())
PUBLIC = {"given": 3, "about": 3, "counted": 1}
"""Arguments and fields that users write: of `posenc.place`, of an experiment file, of a drawing."""


def test_names_are_nouns():
    """Arguments, locals and fields are named by what they hold, not by a participle or a pronoun."""
    names = collections.Counter(
        name
        for module in modules()
        for node in ast.walk(tree(module))
        for name in [node.arg if isinstance(node, ast.arg) else getattr(node, "id", "")]
        if name in NO_NOUNS and (isinstance(node, ast.arg) or isinstance(node.ctx, ast.Store))
    )
    assert names == PUBLIC
