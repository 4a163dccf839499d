"""A command line as one frozen dataclass. Tyro reads fields and their docstrings, and every error is one sentence.

Options are checked before tyro sees them. The message of an unknown one suggests the nearest, and repeated ones are
merged. `--set a=1 --set b=2` is `--set a=1 b=2`; an option of one value that is typed twice is an error.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import inspect
import io
import itertools
import re
import shlex
import textwrap
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import tyro

from posenc.lab.spec import settings
from posenc.lab.spec.run import Plan, Run
from posenc.language.echo import echoed

# Help omits a default of None, False or an empty tuple, which would tell the reader nothing.
Name = Annotated[str | None, tyro.conf.arg(metavar="NAME", help_behavior_hint="")]
Text = Annotated[str | None, tyro.conf.arg(metavar="TEXT", help_behavior_hint="")]
File = Annotated[str | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="")]
Settings = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE ...", help_behavior_hint="")]
Flag = Annotated[bool, tyro.conf.arg(help_behavior_hint="")]
Measured = Literal["accuracy", "exact", "last", "beyond", "nats", "bits"] | None
METRICS = "{accuracy,exact,last,beyond,nats,bits}"
Metric = Annotated[
    Measured,
    tyro.conf.arg(
        metavar=METRICS,
        help_behavior_hint="",
        help="The share of answer tokens, whole answers, last answer tokens, or answer tokens beyond training that are"
        " right; or their mean loss in nats or bits. Default: as figures show it, of answers at every token those"
        " beyond training, or the last where records lack them.",
    ),
]
First = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="RUN")]


@dataclass(frozen=True)
class CommandForm:
    """One form of a command: its class, and how its command line starts, such as "attention" or "SCHEME"."""

    cls: type
    start: str
    literal: bool = False
    """True if `start` is typed literally; it is then removed before the class reads the other arguments."""


@dataclass(frozen=True)
class Forms:
    """A command in several forms, each with its options; the first argument selects the form."""

    forms: tuple[CommandForm, ...]
    choose: Callable[[str], CommandForm]
    """The form that a first argument selects."""

    def parse(self, args: list[str], prog: str) -> Any:
        """The command that `args` describe, in the form that their first positional argument selects."""
        wants_help, first = bool(HELP & set(args)), self._first(args)
        if first is None:
            for form in self.forms if wants_help else ():
                with contextlib.suppress(SystemExit):
                    parse(form.cls, ["--help"], f"{prog} {form.start}" if form.literal else prog)
            if wants_help:
                raise SystemExit(0)
            raise ValueError(f"`{prog}` needs {' or '.join(f.start for f in self.forms)}. `{prog} --help` shows how.")
        at, text = first
        form = self.choose(text)
        if form.literal:
            args, prog = [*args[:at], *args[at + 1 :]], f"{prog} {form.start}"
        for flag in (a.partition("=")[0].replace("_", "-") for a in args if a.startswith("--") and a not in HELP):
            others = [f for f in self.forms if flag in _options(f.cls)]
            if others and form not in others:
                whose = " or ".join(f.start for f in others)
                raise ValueError(f"{flag} is an option for {whose}, and {text!r} ignores it; leave it out.")
        return parse(form.cls, args, prog)

    def _first(self, args: Sequence[str]) -> tuple[int, str] | None:
        """The first positional argument and its place; an option that is not a flag takes the argument after it."""
        flags = {"-h"} | {
            name for f in self.forms for name, hint in _options(f.cls).items() if typing.get_args(hint)[:1] == (bool,)
        }
        skip = False
        for at, arg in enumerate(args):
            if not skip and not arg.startswith("-"):
                return at, arg
            skip = not skip and arg.startswith("-") and "=" not in arg and arg.replace("_", "-") not in flags | HELP
        return None


HELP = {"-h", "--help"}
MANY = 10**6
"""Arguments that a command with several of a kind takes."""


def parse(cls: type | Forms, args: list[str], prog: str) -> Any:
    """The command that `args` describe. Raises `ValueError`; `--help` prints and exits by `SystemExit`."""
    if isinstance(cls, Forms):
        return cls.parse(args, prog)
    tidied = args if HELP & set(args) else _tidied(cls, args, prog)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed):
            return tyro.cli(cls, args=tidied, prog=prog, config=(tyro.conf.FlagCreatePairsOff,))
    except SystemExit as end:
        if not end.code:
            raise
        raise ValueError(f"{_sentence(cls, printed.getvalue(), prog)} `{prog} --help` shows how.") from None


def training() -> list[tuple[str, Any, Any]]:
    """An option for each setting of `Run` and `Plan`, as `dataclasses.make_dataclass` takes them.

    Each is read as text, so that the command line, `--set` and TOML files convert values in one way, and is None if it
    was not typed, so that a preset can fill it.
    """
    made = []
    for cls in (Run, Plan):
        helps, hints = docs(cls), settings.fields(cls)
        for f in dataclasses.fields(cls):
            usual = f.default if isinstance(f.default, str) or f.default is None else as_typed(f.default)
            hint = "" if usual in (None, "") else f"(default: {usual})"
            arg = tyro.conf.arg(metavar=_metavar(hints[f.name]), help=helps.get(f.name), help_behavior_hint=hint)
            made.append((f.name, Annotated[str | None, arg], dataclasses.field(default=None)))
    return made


def docs(cls: type) -> dict[str, str]:
    """The docstrings under the fields of a dataclass, by field."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    by_field = {}
    for field, text in itertools.pairwise(getattr(tree, "body", ())):
        match field, text:
            case ast.AnnAssign(ast.Name(name)), ast.Expr(ast.Constant(str() as doc)):
                by_field[name] = " ".join(inspect.cleandoc(doc).split())
    return by_field


def _options(cls: type) -> dict[str, Any]:
    """Each option of a command as it is typed, `--dry-run`, with its type hint."""
    hints = typing.get_type_hints(cls, include_extras=True)
    return {f"--{_typed(name, hint)}": hint for name, hint in hints.items() if not _positional(hint)}


def _typed(name: str, hint: Any) -> str:
    """An option as it is typed, without its dashes: its own name if it has one, such as slurm.workers."""
    own = [note.name for note in getattr(hint, "__metadata__", ()) if getattr(note, "name", None)]
    return own[0] if own else name.replace("_", "-")


def _tidied(cls: type, args: list[str], prog: str) -> list[str]:
    """Return the arguments with every option once, followed by all its values, in whatever order they were typed."""
    options, short = _options(cls), _short(cls)
    many = {name: typing.get_origin(_without_notes(hint)) is tuple for name, hint in options.items()}
    values: dict[str, list[str]] = {"": []}
    at = ""
    for number, arg in enumerate(args):
        flag, equals, value = arg.partition("=")
        if flag.startswith("--") or flag in short:
            at = short.get(flag, flag.replace("_", "-"))
            if at not in many:
                raise _unknown_option(prog, args[number:], many)
            if at in values and not many[at]:
                raise ValueError(f"{at} is typed twice; it takes one value.")
            values.setdefault(at, [])
            values[at] += [value] if equals else []
        elif at and _is_full(options[at], values[at], arg, _lacks(cls, values[""], arg)):
            values[""].append(arg)
        else:
            values[at].append(arg)
    positional = values.pop("")
    if not positional and at and many[at] and len(values[at]) > 1 and _positionals(cls, needed=True) == 1:
        positional = [values[at].pop()]  # `check --only G18 rope`
    return positional + [arg for flag, texts in values.items() for arg in _joined(flag, texts, many[flag])]


def _short(cls: type) -> dict[str, str]:
    """Each short name of an option, such as -o, and the option."""
    notes = ((name, note) for name, hint in _options(cls).items() for note in getattr(hint, "__metadata__", ()))
    return {alias: name for name, note in notes for alias in getattr(note, "aliases", None) or ()}


def _positionals(cls: type, needed: bool = False) -> int:
    """How many positional arguments a command takes at most, or needs."""
    hints = typing.get_type_hints(cls, include_extras=True)
    fields = [f for f in dataclasses.fields(cls) if _positional(hints[f.name])]
    if needed:
        return sum(f.default is dataclasses.MISSING for f in fields)
    return sum(MANY if "tuple[" in str(hints[f.name]) else 1 for f in fields)


def _lacks(cls: type, positional: Sequence[str], text: str) -> bool:
    """Tell whether a command takes a text beside these positional arguments, or an optional one that is a file."""
    needs = len(positional) < _positionals(cls, needed=True)
    return needs or (len(positional) < _positionals(cls) and (text.endswith((".py", ".toml")) or bool(positional)))


def _is_full(hint: Any, texts: Sequence[str], text: str, positionals_left: bool) -> bool:
    """Tell whether an option with these values leaves a further text to the positional arguments."""
    kind = _without_notes(hint)
    if typing.get_origin(kind) is not tuple:
        return kind is bool or bool(texts)
    return hint == Settings and "=" not in text and positionals_left


def _unknown_option(prog: str, args: Sequence[str], options: Iterable[str]) -> ValueError:
    """The refusal of the first of these arguments; where a setting is typed as another command takes it, how this one
    does."""
    options, (flag, equals, value), *rest = list(options), args[0].partition("="), *args[1:]
    after = [value] * bool(equals) + list(itertools.takewhile(lambda arg: not arg.startswith("--"), rest))
    has = {**settings.fields(Run), **settings.fields(Plan)}
    if flag in ("--set", "--grid") and "--steps" in options:
        pairs = [text.partition("=") for text in after]
        typed = [f"--{name} {shlex.quote(value)}" for name, _, value in pairs if f"--{name}" in options]
        written = " ".join(typed) or "--steps 10"
        return ValueError(f"`{prog}` has an option for each setting and no {flag}; write {written}.")
    name = flag.lstrip("-").replace("-", "_")
    if name in has and "--set" in options:
        value = next(iter(after), "VALUE")
        way = "--grid" if name in ("scheme", "task") else "--set"
        return ValueError(f"`{prog}` takes settings by --grid and --set; write {way} {shlex.quote(f'{name}={value}')}.")
    if name in settings.DIRECTIONS and "--model" in options:
        return settings.unknown_setting("a run", name, options, "--model ")
    return settings.unknown(f"option of `{prog}`", flag, options, f"`{prog} --help` has all")


def _joined(flag: str, texts: list[str], many: bool) -> list[str]:
    """An option and its values as tyro reads them. It takes a text that starts with a dash for an option of its own."""
    if many and (dashed := next((text for text in texts if text.startswith("-")), None)):
        raise ValueError(f"{flag} was given {echoed(dashed)}, which is neither an option nor a value of one.")
    return [f"{flag}={texts[0]}"] if len(texts) == 1 and not many else [flag, *texts]


def _without_notes(hint: Any) -> Any:
    return typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint


def _positional(hint: Any) -> bool:
    return "Positional" in map(repr, getattr(hint, "__metadata__", ()))


def _sentence(cls: type, box: str, prog: str) -> str:
    """The text of the frame that tyro prints, as a sentence."""
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).strip("│ \t") for line in box.splitlines()]
    inside = list(filter(None, (line for line in lines if not line.startswith(("╭", "╰")))))
    end = next((n for n, line in enumerate(inside) if line.startswith("─")), len(inside))
    text = " ".join(inside[:end]) or "The arguments cannot be parsed"
    if text.startswith("Missing from"):
        hints = typing.get_type_hints(cls, include_extras=True).values()
        needed = [m.metavar for h in hints if _positional(h) for m in h.__metadata__ if getattr(m, "metavar", None)]
        text = f"`{prog}` needs {' '.join(needed)}"
    return text if text.endswith(".") else f"{text}."


def as_typed(value: Any) -> str:
    """A setting as it is typed after its option."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _metavar(hint: Any) -> str:
    written = str(hint)
    named = re.findall(r"'(\w+)'", written)
    if "tuple" in written:
        return "|".join(["INT,..." if "int" in written else "FLOAT,...", *named])
    if "Literal" in written:
        return "{" + ",".join(named) + "}"
    return next((kind.upper() for kind in ("int", "float") if kind in written), "TEXT")
