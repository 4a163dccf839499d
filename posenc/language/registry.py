"""Registries: the table behind schemes, coordinates and tasks, and the settings that a text may give, without jax.

A class enters by its class statement. Another package enters by an entry point, loaded only when its name is looked up
or all names are listed. `mine:Mine` is a class of a module that the caller has imported. Settings are dataclass fields.
Each value is converted to its field's type, so that `rope(base=500000)` and `rope(base=500000.0)` are one thing.
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
import types
import typing
from typing import Any, Literal, Union

from posenc.language import modules
from posenc.language.echo import echoed, offer
from posenc.language.grammar import Call


class Registry:
    """The named classes of one kind. `package` is imported on first use and registers what we ship."""

    def __init__(self, kind: str, package: str, group: str | None = None):
        self.kind, self.package, self.group = kind, package, group
        self.broken: dict[str, str] = {}
        self._classes: dict[str, type] = {}
        self._digests: dict[str, str] = {}

    def add(self, name: str, cls: type) -> None:
        """Enter a class. A name that is taken is refused."""
        if not name.isidentifier():
            raise ValueError(f"{name!r} cannot name a {self.kind}; a name is an identifier such as 'rope'.")
        taken = self._classes.get(name)
        if taken is not None and (taken.__module__, taken.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(f"The name {name!r} is taken by {taken.__module__}.{taken.__qualname__}; choose another.")
        self._classes[name] = cls
        self._digests.pop(name, None)
        digest = modules.digest(cls)  # now, since the file may be edited after its module was imported
        if digest and not self._plugins(name):
            self._digests[name] = digest

    def names(self) -> list[str]:
        """All names, those of other packages included."""
        importlib.import_module(self.package)
        for entry in self._plugins():
            self._load(entry)
        return sorted(self._classes)

    def imported(self) -> set[str]:
        """The modules of classes that come from a file of the user's, not from a package."""
        return {cls.__module__ for name, cls in self._classes.items() if name in self._digests}

    def find(self, name: str) -> type:
        """The class of a name, or of `mine:Mine`. Raises a `ValueError` that offers the nearest."""
        importlib.import_module(self.package)
        if ":" in name:
            return self._of_module(name)
        if name not in self._classes:
            for entry in self._plugins(name):
                self._load(entry)
        if name in self._classes:
            return self._classes[name]
        if name in self.broken:
            raise ValueError(f"The {self.kind} {name!r} comes from a package that fails to load: {self.broken[name]}.")
        kinds = self.kind.rpartition(" ")[2].removesuffix("s")
        hint = offer(name, self.names(), f"`posenc list {kinds}s` has all")
        raise ValueError(f"No {self.kind} is called {echoed(name)}.{hint}")

    def source(self, cls: type) -> tuple[str, str] | None:
        """Return the origin of a class, "mine:Mine", and the SHA-256 of that file when it was imported.

        Classes of posenc or of an installed package have no such origin: `revision` separates their versions.
        """
        name = getattr(cls, "name", "")
        is_registered = name in self._digests and self._classes.get(name) is cls
        return (f"{cls.__module__}:{cls.__name__}", self._digests[name]) if is_registered else None

    def make(self, call: Call) -> Any:
        """The object that `name(settings)` stands for."""
        cls = self.find(call.name)
        fields = [f.name for f in dataclasses.fields(cls) if f.init]
        has = f"it has {', '.join(fields)}" if fields else "it has none"
        if len(call.positional) > len(fields):
            raise ValueError(f"{call.name!r} was given {len(call.positional)} settings; {has}.")
        settings = dict(zip(fields, call.positional, strict=False))
        for key, value in call.settings:
            if key not in fields:
                raise ValueError(f"{call.name!r} has no setting {echoed(key)}; {has}.{self._owners(key)}")
            if key in settings:
                raise ValueError(f"The setting {key!r} of {call.name!r} is given twice.")
            settings[key] = value
        return cls(**settings)

    def _owners(self, setting: str) -> str:
        owners = [n for n, c in sorted(self._classes.items()) if setting in {f.name for f in dataclasses.fields(c)}]
        return f" {setting!r} is a setting of {', '.join(owners)}." if owners else ""

    def _of_module(self, text: str) -> type:
        """The class `mine:Mine`, if no installed package has another one of its name."""
        cls = modules.class_of(text, self.kind, self._classes)
        for entry in self._plugins(cls.name):
            if entry.value.partition(":")[0].partition(".")[0] != cls.__module__.partition(".")[0]:
                raise ValueError(f"{text!r} is named {cls.name!r}, as is {entry.value!r} of a package; rename it.")
        return cls

    def _plugins(self, name: str | None = None):
        if self.group is None:
            return ()
        from importlib.metadata import entry_points  # which takes long to import, and few commands need it

        return entry_points(group=self.group) if name is None else entry_points(group=self.group, name=name)

    def _load(self, entry) -> None:
        if entry.name in self._classes or entry.name in self.broken:
            return
        try:
            entry.load()
        except BaseException as error:  # another package may fail in any way; it is listed as broken
            if not modules.foreign(error):
                raise
            self.broken[entry.name] = f"{type(error).__name__}: {error}"


def settings(thing: Any) -> dict[str, Any]:
    """Every setting of an object, defaults written out."""
    return {f.name: getattr(thing, f.name) for f in dataclasses.fields(thing) if f.init}


def later(default: Any) -> Any:
    """A setting that a class got after results of it were recorded.

    At this default the class does what it did without, so identities leave it out: those of old results stay.
    """
    return dataclasses.field(default=default, metadata={"later": True})


def identity(thing: Any) -> dict[str, Any]:
    """The settings that make an object what it is: all of them, but for later ones at their default."""
    late = {f.name: f.default for f in dataclasses.fields(thing) if f.metadata.get("later")}
    return {name: value for name, value in settings(thing).items() if name not in late or value != late[name]}


def call(thing: Any, name: str) -> Call:
    """The shortest call that makes an equal object: settings at their default are left out."""
    changed = [
        (f.name, getattr(thing, f.name))
        for f in dataclasses.fields(thing)
        if f.init and getattr(thing, f.name) != f.default
    ]
    return Call(name, (), tuple(changed))


def convert(thing: Any, below: int = 2**63) -> None:
    """Bring every setting of a frozen dataclass to its field's type, in place; meant for `__post_init__`.

    Whole numbers of `below` and more are refused, since no array holds them.
    """
    name = getattr(type(thing), "name", type(thing).__name__)
    hints = typing.get_type_hints(type(thing))
    for f in dataclasses.fields(thing):
        value = getattr(thing, f.name)
        try:
            converted = _converted(value, hints[f.name])
        except TypeError:
            raise ValueError(
                f"The setting {f.name!r} of {name!r} takes {_kind(hints[f.name])}, not {echoed(value)}."
            ) from None
        for number in converted if isinstance(converted, tuple) else (converted,):
            if isinstance(number, int) and abs(number) >= below:
                raise ValueError(f"The setting {f.name!r} of {name!r} is {echoed(number)}; it is below {below}.")
        object.__setattr__(thing, f.name, converted)


def _converted(value: Any, hint: Any) -> Any:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if origin is Literal:
        if any(value == a and type(value) is type(a) for a in args):
            return value
    elif origin in (Union, types.UnionType):
        for a in args:
            try:
                return _converted(value, a)
            except TypeError:
                continue
    elif origin is tuple and isinstance(value, tuple | list):
        kinds = [args[0]] * len(value) if args[-1] is Ellipsis else args
        if len(kinds) == len(value):
            return tuple(_converted(v, k) for v, k in zip(value, kinds, strict=True))
    elif hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        return _finite(value)
    elif isinstance(hint, type) and isinstance(value, hint) and (hint is bool or not isinstance(value, bool)):
        return value
    raise TypeError


def _finite(value: int | float) -> float:
    """A whole number may be too large for a float; no setting is infinite or no number."""
    if abs(value) > sys.float_info.max or value != value:
        raise TypeError
    return float(value)


def _kind(hint: Any) -> str:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return " or ".join(repr(a) for a in args)
    if origin in (Union, types.UnionType):
        return " or ".join(_kind(a) for a in args)
    if origin is tuple:
        return f"a tuple of {_kind(args[0])}"
    return {int: "a whole number", float: "a number", str: "a string", bool: "True or False", type(None): "None"}.get(
        hint, str(hint)
    )
