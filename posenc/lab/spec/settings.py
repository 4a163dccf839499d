"""Words of the command line and of TOML files as settings: `scheme=rope,alibi`, `seeds=5`, `hidden=None`. No jax.

Commas separate values at the top level only: inside brackets, parentheses and quotes they belong to the value, so
that `scheme=rope(base=1e4),[rope, nope]` is two schemes.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Union

from posenc.lab.spec.run import SUITE, THEN, WITH, Plan, Run
from posenc.language.echo import cut, echoed, offer

MANY = 100_000
_CLOSES = {"(": ")", "[": "]", "{": "}"}
DIRECTIONS = ("direction", "directions", "causal", "bidirectional")
"""Names that other libraries have for the direction, which a model decides here."""
_GOES_ON = re.compile(rf"{THEN.removeprefix(', ')}|{WITH.removeprefix(', ')}|length\s*=")
"""How the text after a comma within `then`, or within the label of a run, begins."""


def split(text: str, separator: str = ",") -> list[str]:
    """The values in a list, stripped: `split("f(a, b), c")` is `["f(a, b)", "c"]`.

    >>> split("rope(base=1e4), [rope, nope]")
    ['rope(base=1e4)', '[rope, nope]']
    """
    parts, start, quote, closing, skip = [], 0, "", [], False
    for n, c in enumerate(text):
        if skip:
            skip = False
        elif quote:
            skip = c == "\\"
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in _CLOSES:
            closing.append(_CLOSES[c])
        elif closing and c == closing[-1]:
            closing.pop()
        elif c == separator and not closing:
            parts.append(text[start:n].strip())
            start = n + 1
    return [*parts, text[start:].strip()]


def pair(text: str, option: str) -> tuple[str, str]:
    """The name and the value in `name=value`, as an option such as `--set` takes them."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip().isidentifier():
        raise ValueError(f"{option} takes NAME=VALUE, such as width=64, not {echoed(text)}.")
    return name.strip(), value.strip()


def texts(words: Iterable[str], option: str) -> dict[str, str]:
    """Name to text of what an option such as `--set` takes, each name once."""
    by_name: dict[str, str] = {}
    for word in words:
        name, text = pair(word, option)
        if name in by_name:
            raise ValueError(f"{option} gives {name} twice; give it once.")
        by_name[name] = text
    return by_name


def several(text: str, name: str) -> list[str]:
    """The values of one axis, at least one, none of them empty: `then=0.9 nope,0.9 pi, length=64` has two."""
    values = joined(split(text)) if name == "then" else split(text)
    if not all(values):
        has = "no value" if len(values) == 1 else "an empty value"
        raise ValueError(f"{name}={cut(text)} has {has}; write one or more, such as {name}=a,b.")
    return values


def joined(values: Iterable[str]) -> list[str]:
    """Values that were split at commas, whole again where a text of schemes in turn has commas of its own.

    >>> joined(["rope", "then pi", "length=64", "yarn", "trained with rope"])
    ['rope, then pi, length=64', 'yarn, trained with rope']
    """
    merged: list[str] = []
    for value in values:
        if merged and _GOES_ON.match(value):
            merged[-1] += f", {value}"
        else:
            merged.append(value)
    return merged


def is_suite(task: Any) -> bool:
    """Tell whether this names a suite and not a task."""
    return isinstance(task, str) and task.strip().startswith(SUITE)


def expanded(name: str, values: Iterable[Any]) -> list[Any]:
    """The values of an axis with the tasks of a suite in its place, each task once: `task=suite:probes,copy`.

    Suites are looked up only where one is named: that needs the tasks, hence jax.
    """
    values = list(values)
    if name != "task" or not any(map(is_suite, values)):
        return values
    from posenc.lab import tasks

    suite_names, names = tasks.suites(), []
    for entry in values:
        if not is_suite(entry):
            names.append(entry)
            continue
        suite = entry.strip().removeprefix(SUITE).strip()
        if suite not in suite_names:
            raise unknown("suite", suite, suite_names, "`posenc list suites` has all")
        names += [task for task in tasks.suite(suite) if task not in [*names, *values]]
    return names


def unknown(kind: str, name: str, names: Iterable[str], see: str = "") -> ValueError:
    """The refusal of a name, which offers the nearest and tells others, or how to `see` all where these are many."""
    return ValueError(f"No {kind} is called {echoed(name)}.{offer(name, names, see)}")


def unknown_setting(whose: str, name: str, names: Iterable[str], write: str = "model=") -> ValueError:
    """The refusal of a setting; of a direction it says what has one, and how to `write` that."""
    if name in DIRECTIONS:
        return ValueError(
            f"No setting of {whose} is called {name!r}; the model has a direction: write {write}decoder for a causal"
            f" one, where a token sees those before it, or {write}encoder for one that sees both ways."
        )
    return unknown(f"setting of {whose}", name, names, "`posenc run --help` has all")


def owner(name: str) -> type[Run] | type[Plan]:
    """Return `Run` or `Plan`, the owner of a setting; an unknown one is refused."""
    for cls in (Run, Plan):
        if name in cls.__dataclass_fields__:
            return cls
    raise unknown_setting("a run or a plan", name, [*fields(Run), *fields(Plan)])


def fields(cls: type) -> dict[str, Any]:
    """The settings of a dataclass and their types."""
    hints = typing.get_type_hints(cls)
    return {f.name: hints[f.name] for f in dataclasses.fields(cls)}


def typed(texts: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of `Run` and those of `Plan` among some texts by name."""
    by_owner: dict[type, dict[str, Any]] = {Run: {}, Plan: {}}
    for name, text in texts.items():
        by_owner[owner(name)][name] = value(name, text)
    return by_owner[Run], by_owner[Plan]


def value(name: str, setting: Any) -> Any:
    """A setting in its own type: texts are read, everything else is left for `Run` and `Plan` to check."""
    hint = fields(owner(name))[name]
    kinds = typing.get_args(hint) if typing.get_origin(hint) in (Union, types.UnionType) else (hint,)
    if name in ("seeds", "tuning") and isinstance(setting, str | int) and not isinstance(setting, bool):
        return () if name == "tuning" and str(setting).strip() in ("", "0") else seeds(str(setting), name)
    if isinstance(setting, list):
        return tuple(setting)
    if not isinstance(setting, str):
        return (setting,) if any(typing.get_origin(k) is tuple for k in kinds) and setting is not None else setting
    if types.NoneType in kinds and setting in ("None", "none"):
        return None
    if any(setting in typing.get_args(kind) for kind in kinds if typing.get_origin(kind) is Literal):
        return setting
    return _read(name, setting, kinds[0])


def _read(name: str, text: str, kind: Any) -> Any:
    if typing.get_origin(kind) is tuple:
        inner = typing.get_args(kind)[0]
        return tuple(v for part in several(text, name) for v in _span(name, part, inner))
    if kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            what = "a whole number" if kind is int else "a number"
            raise ValueError(f"{name} takes {what}, not {echoed(text)}.") from None
    return text


def _span(name: str, text: str, kind: type) -> Iterable[Any]:
    """One number, or `a:b` for the whole numbers from a up to b, which is left out."""
    if kind is not int or ":" not in text:
        return (_read(name, text, kind),)
    first, _, last = text.partition(":")
    low, high = _read(name, first or "0", int), _read(name, last, int)
    if not 0 < high - low <= MANY:
        raise ValueError(f"{name}={cut(text)} spans {max(high - low, 0)} numbers; from 1 to {MANY} are taken.")
    return range(low, high)


def seeds(text: str, name: str = "seeds") -> tuple[int, ...]:
    """Return the seeds of a text. "5" is 0 to 4, "3,5,7" are those three, and "2:5" is 2, 3, 4.

    >>> seeds("3")
    (0, 1, 2)
    """
    text = text.strip()
    if text.removeprefix("-").isdecimal():
        if not 0 < (count := _read(name, text, int)) <= MANY:
            raise ValueError(
                f"{name} is {cut(text)}; it is how many, from 1 to {MANY}, or a list such as 3,5,7 or 0:5."
            )
        return tuple(range(count))
    return _read(name, text, tuple[int, ...])
