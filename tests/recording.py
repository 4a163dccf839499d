"""The pytest options `--record` and `--unverified`: what the tests found of each scheme, kept beside the registry.

pytest tests/contract tests/oracles tests/golden --record        # `posenc describe` shows it
pytest tests/contract tests/oracles --unverified -k "contract or equation"   # schemes older than their record alone

What a session did not run of a scheme stays as it was recorded, with the hash of the code that it was found of. Where
anything fails nothing is written.
"""

import ast
import functools
import hashlib
import importlib
import inspect
import json
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path

KINDS = ("golden", "oracle", "contract")
ENGINE = ("attention", "core", "numerics", "contract")
SHARED = ("posenc.numerics.", "posenc.core.masks", "posenc.core.distances")


def pytest_addoption(parser):
    parser.addoption(
        "--record", action="store_true", help="write what the tests find of each scheme (posenc/contract/verified.json)"
    )
    parser.addoption(
        "--unverified",
        action="store_true",
        help="hold the schemes to the whole contract, and to their equations in all settings, whose code or engine "
        "changed since they were recorded, and no others",
    )


def pytest_terminal_summary(terminalreporter, config):
    if not config.getoption("record"):
        return
    from posenc.catalog.schemes import RECORD

    if terminalreporter.stats.get("failed") or terminalreporter.stats.get("error"):
        terminalreporter.write_line("recorded: nothing, for some tests failed")
        return
    before = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    found = collected(terminalreporter.stats)
    RECORD.write_text(json.dumps(merged(before, found), indent=1) + "\n", encoding="utf-8")
    terminalreporter.write_line(f"recorded: {len(found)} schemes, in {RECORD.name}")


def collected(stats):
    """Every property that tests recorded, by scheme and kind."""
    found = defaultdict(lambda: defaultdict(list))
    for report in (r for reports in stats.values() for r in reports if getattr(r, "when", "") == "call" and r.passed):
        for kind, (named, *said) in ((k, v) for k, v in report.user_properties if k in KINDS):
            for name in [named] if isinstance(named, str) else named:
                if name:
                    found[name][kind].append(said)
    return found


def merged(before, found):
    """The record of every scheme that there is: what was found now, else what was recorded."""
    import posenc

    whole = {}
    for name in posenc.names():
        now = {kind: SUMS[kind](said) | {"code": digest(name)} for kind, said in found.get(name, {}).items()}
        if "contract" in now:
            now["contract"]["engine"] = engine()
        whole[name] = {**before.get(name, {}), **now}
    return whole


def stale():
    """Names of schemes whose code, engine or jax is not that of their record."""
    import posenc
    from posenc.catalog.schemes import RECORD

    kept = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    found, now = {name: kept.get(name, {}).get("contract", {}) for name in posenc.names()}, engine()
    return [name for name, of in found.items() if (of.get("code"), of.get("engine")) != (digest(name), now)]


@functools.cache
def unchanged():
    """Names of schemes that hold the contract in the code that their record is of."""
    from posenc.catalog.schemes import RECORD

    kept = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    return {name for name, of in kept.items() if of.get("contract", {}).get("code") == digest(name)}


@functools.cache
def engine():
    """The first letters of the hash of what runs every scheme: the sources of attention, the core, numerics and the
    contract, and the version of jax."""
    import posenc

    root = Path(posenc.__file__).parent
    files = sorted(path for folder in ENGINE for path in (root / folder).rglob("*.py"))
    whole = hashlib.sha256(version("jax").encode())
    for path in files:
        whole.update(path.relative_to(root).as_posix().encode() + read(path.read_text(encoding="utf-8"))[0].encode())
    return whole.hexdigest()[:16]


@functools.cache
def read(source):
    """The code of a source, and the names of all that it imports from modules."""
    tree = ast.parse(source)
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return code(tree), {n.module for n in nodes} | {f"{n.module}.{a.name}" for n in nodes for a in n.names}


def code(tree):
    """The syntax tree of a source without comments, layout and strings that only document: words change no number."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            if isinstance(of := getattr(node, name, None), list):
                setattr(
                    node, name, [n for n in of if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))]
                )
    return ast.dump(tree)


def digest(name):
    """The first letters of the hash of a scheme's file and of the mathematics that it shares with others, so that a
    record that is older than these is noticed."""
    import posenc
    from posenc.core.scheme import SCHEMES

    root = Path(posenc.__file__).parents[1]
    sources, open_ = {}, [SCHEMES.find(name).__module__]
    while open_:
        module = importlib.import_module(open_.pop())
        if module.__name__ in sources:
            continue
        sources[module.__name__], named = read(inspect.getsource(module))
        open_ += sorted(n for n in named if n.startswith(SHARED) and (root / f"{n.replace('.', '/')}.py").exists())
    return hashlib.sha256("".join(sources[n] for n in sorted(sources)).encode()).hexdigest()[:16]


def _golden(said):
    cases, sources, largest = zip(*said, strict=True)
    return {"cases": sorted(cases), "sources": sorted(set(sources)), "largest": _rounded(max(largest))}


def _oracle(said):
    return {"settings": len(said), "largest": _rounded(max(figure for (figure,) in said))}


def _contract(said):
    applies = [s for s in said if s[1] is not None]
    gradient = [s[2] for s in said if s[0] == "gradients_are_those_of_the_function" and s[2] is not None]
    counts = {"properties": len(said), "applies": len(applies), "holds": sum(s[1] is True for s in applies)}
    return counts | {"gradient": _rounded(max(gradient)) if gradient else None}


SUMS = {"golden": _golden, "oracle": _oracle, "contract": _contract}


def _rounded(figure):
    return float(f"{figure:.1e}")
