"""A command line as one frozen dataclass: tyro reads fields and their docstrings; every refusal is one sentence.

Flags are looked at before tyro sees them, so that an unknown one gets the nearest, and a repeated one is not lost:
`--set a=1 --set b=2` is `--set a=1 b=2`, and a flag of one value that is given twice is refused.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import inspect
import io
import itertools
import re
import textwrap
import typing
from typing import Annotated, Any

import tyro

from posenc.lab.spec import settings
from posenc.lab.spec.run import Plan, Run

# A default of None, False or nothing says nothing, so help leaves it out.
Name = Annotated[str | None, tyro.conf.arg(metavar="NAME", help_behavior_hint="")]
Text = Annotated[str | None, tyro.conf.arg(metavar="TEXT", help_behavior_hint="")]
File = Annotated[str | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="")]
Settings = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE ...", help_behavior_hint="")]
Flag = Annotated[bool, tyro.conf.arg(help_behavior_hint="")]
First = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="RUN")]


def parse(cls: type, args: list[str], prog: str) -> Any:
    """The command that `args` describe. Raises `ValueError`; `--help` prints and leaves by `SystemExit`."""
    tidied = args if {"-h", "--help"} & set(args) else _tidied(cls, args, prog)
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.cli(cls, args=tidied, prog=prog, config=(tyro.conf.FlagCreatePairsOff,))
    except SystemExit as end:
        if not end.code:
            raise
        raise ValueError(f"{_sentence(cls, said.getvalue(), prog)} `{prog} --help` shows how.") from None


def training() -> list[tuple[str, Any, Any]]:
    """A flag for each setting of `Run` and `Plan`, as `dataclasses.make_dataclass` takes them.

    Each is read as text, so that the command line, `--set` and TOML files convert and refuse alike, and is None where
    nothing was said, so that a preset fills what is left open.
    """
    made = []
    for cls in (Run, Plan):
        told, hints = docs(cls), settings.fields(cls)
        for f in dataclasses.fields(cls):
            usual = f.default if isinstance(f.default, str) or f.default is None else _plain(f.default)
            hint = "" if usual is None else f"(default: {usual})"
            arg = tyro.conf.arg(metavar=_metavar(hints[f.name]), help=told.get(f.name), help_behavior_hint=hint)
            made.append((f.name, Annotated[str | None, arg], dataclasses.field(default=None)))
    return made


def docs(cls: type) -> dict[str, str]:
    """The docstrings that stand under the fields of a dataclass."""
    whole = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    said = {}
    for field, text in itertools.pairwise(getattr(whole, "body", ())):
        match field, text:
            case ast.AnnAssign(ast.Name(name)), ast.Expr(ast.Constant(str() as doc)):
                said[name] = " ".join(inspect.cleandoc(doc).split())
    return said


def _tidied(cls: type, args: list[str], prog: str) -> list[str]:
    """The same arguments, every flag once, with all values given to it."""
    hints, bare = typing.get_type_hints(cls, include_extras=True), typing.get_type_hints(cls)
    options = [name for name, hint in hints.items() if not _positional(hint)]
    many = {f"--{n.replace('_', '-')}": typing.get_origin(bare[n]) is tuple for n in options}
    given: dict[str, list[str]] = {"": []}
    at = ""
    for word in args:
        flag, equals, value = word.partition("=")
        if flag.startswith("--"):
            at = flag.replace("_", "-")
            if at not in many:
                raise settings.unknown(f"option of `{prog}`", flag, many)
            if at in given and not many[at]:
                raise ValueError(f"{at} is given twice; give it once.")
            given.setdefault(at, [])
            given[at] += [value] if equals else []
        else:
            given[at].append(word)
    return given.pop("") + [word for flag, values in given.items() for word in (flag, *values)]


def _positional(hint: Any) -> bool:
    return "Positional" in map(repr, getattr(hint, "__metadata__", ()))


def _sentence(cls: type, box: str, prog: str) -> str:
    """What tyro says in a frame, as a sentence."""
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).strip("│ \t") for line in box.splitlines()]
    inside = list(filter(None, (line for line in lines if not line.startswith(("╭", "╰")))))
    end = next((n for n, line in enumerate(inside) if line.startswith("─")), len(inside))
    text = " ".join(inside[:end]) or "These arguments cannot be read"
    if text.startswith("Missing from"):
        hints = typing.get_type_hints(cls, include_extras=True).values()
        needed = [m.metavar for h in hints if _positional(h) for m in h.__metadata__ if getattr(m, "metavar", None)]
        text = f"`{prog}` needs {' '.join(needed)}"
    return text if text.endswith(".") else f"{text}."


def _plain(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _metavar(hint: Any) -> str:
    said = str(hint)
    named = re.findall(r"'(\w+)'", said)
    if "tuple" in said:
        return "|".join(["INT,..." if "int" in said else "FLOAT,...", *named])
    if "Literal" in said:
        return "{" + ",".join(named) + "}"
    return next((kind.upper() for kind in ("int", "float") if kind in said), "TEXT")
