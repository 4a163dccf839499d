"""Commands for your schemes and tasks: `new` writes one that works, `check` tests one."""

from __future__ import annotations

import importlib.util
import keyword
import re
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from posenc.lab.cli import FAILED, OK, cards, templates
from posenc.lab.cli.options import Flag
from posenc.lab.cli.output import say, say_json
from posenc.lab.spec import modules

PREFIXES = ("suite", "preset")
"""Names that mean something else before a colon: `suite:probes`."""
TEXTS = {
    "scheme": (templates.SCHEME, templates.SCHEME_TEST),
    "task": (templates.TASK, templates.TASK_TEST),
}
USE = {
    "scheme": 'posenc.parse("{name} + rope")',
    "task": 'posenc.tasks.parse("{name}(k=3)")',
}
SWEEP = {
    "scheme": "posenc sweep --grid scheme=alibi,{name}:{cls} task=before --seeds 6",
    "task": "posenc sweep --grid task={name}:{cls} scheme=rope,alibi --set length=16 --seeds 6",
}
HINT = """\
{file} is a {kind} that works, and {test} tests it.
  posenc check {name}:{cls}
  {sweep}
  python -c 'import {name}, {package}; print({use})'
In a package of yours, this entry point lets every command find it as {name}, from any folder:
  [project.entry-points."posenc.{kind}s"]
  {name} = "your_package.{name}\""""


@dataclass(frozen=True)
class New:
    """Write a file with a working scheme or task, and a file that tests it, into this folder, for you to change."""

    kind: Annotated[Positional[str], arg(metavar="{scheme,task}")]
    """Kind of file to write."""
    name: Annotated[Positional[str], arg(metavar="NAME")]
    """Its name: small letters, digits and _."""

    def __call__(self) -> int:
        if self.kind not in TEXTS:
            raise ValueError(f"`posenc new` writes a scheme or a task, not {self.kind!r}: posenc new scheme mine.")
        if not re.fullmatch("[a-z][a-z0-9_]*", self.name) or keyword.iskeyword(self.name):
            raise ValueError(
                f"{self.name!r} cannot name a {self.kind}; use small letters, digits and _, such as 'mine'."
            )
        import posenc
        from posenc.lab import tasks

        if self.name in {*posenc.names(), *tasks.names(), *PREFIXES}:
            raise ValueError(f"The name {self.name!r} is taken; choose another.")
        cls = "".join(word.capitalize() for word in self.name.split("_"))
        files = {Path(f"{self.name}.py"): TEXTS[self.kind][0], Path(f"test_{self.name}.py"): TEXTS[self.kind][1]}
        if there := [str(path) for path in files if path.exists()]:
            raise ValueError(f"{there[0]!r} exists already; move it away, or choose another name.")
        if self.name in sys.stdlib_module_names or importlib.util.find_spec(self.name):
            raise ValueError(f"{self.name}.py would hide the module {self.name!r}; choose another name.")
        for path, text in files.items():
            path.write_text(text.format(cls=cls, name=self.name, year=2026), encoding="utf-8")
        file, test = files
        package = {"scheme": "posenc", "task": "posenc.tasks"}[self.kind]
        names = {"name": self.name, "cls": cls}
        use, sweep = USE[self.kind].format(**names), SWEEP[self.kind].format(**names)
        say(HINT.format(kind=self.kind, file=file, test=test, use=use, sweep=sweep, package=package, **names))
        return OK


@dataclass(frozen=True)
class Check:
    """Test a scheme or a task, ours or yours, property by property; exit code 1 if one fails.

    A scheme runs the contract of schemes. A task is sampled some thousand times: its oracle must answer each example
    as sampled; sizes, keys, padding, floors and its text are checked too.
    """

    what: Annotated[Positional[str], arg(metavar="SCHEME or TASK")]
    """A text, such as "rope + alibi" or copy, or mine:Mine for class Mine of mine.py in this folder. An object of a
    module, mine:thing, is taken as it is."""
    only: tuple[str, ...] = ()
    """Properties, by name, or of schemes by number: G7, the_future_is_unseen."""
    samples: Flag = False
    """Check the class with each of its `samples` too."""
    json: Flag = False
    """Print one JSON array, a report for each setting."""

    def __call__(self) -> int:
        subject, check = self._subject()
        instances = [subject]
        if self.samples:
            instances += [type(subject)(**settings) for settings in getattr(subject, "samples", ())]
        reports = []
        for instance in instances:
            reports.append(check(instance, only=self.only or None))
            if not self.json:
                say(reports[-1])
        if self.json:
            say_json([{"scheme": r.scheme, "ok": r.ok, "findings": [_flat(f) for f in r.findings]} for r in reports])
        return OK if all(r.ok for r in reports) else FAILED

    def _subject(self) -> tuple[Any, Callable[..., Any]]:
        """The scheme or task to check, and the function that checks it."""
        from posenc.lab import tasks
        from posenc.lab.tasks import checks

        if re.fullmatch(r"[\w.]+:\w+", self.what):
            subject = attribute(self.what)
        elif cards.kind_of(self.what) == "task":
            subject = tasks.parse(self.what)
        else:
            from posenc.naming import parse

            subject = parse(self.what)
        if isinstance(subject, tasks.Task):
            return subject, checks.check
        from posenc.contract import check

        return subject, check


def attribute(text: str) -> Any:
    """Return the object `module:Class`. A scheme or task, which needs no name here, is built with its defaults."""
    module, _, name = text.partition(":")
    value = getattr(modules.load(module), name, None)
    if value is None:
        raise ValueError(f"The module {module!r} has no {name!r}; give the class of a scheme or task.")
    from posenc.core.compose import normal_form
    from posenc.core.scheme import Scheme
    from posenc.lab.tasks.task import Task

    if isinstance(value, type):
        if not issubclass(value, Scheme | Task):
            raise ValueError(f"{text!r} must be a class derived from posenc.Scheme or from posenc.tasks.Task.")
        value = value()
    if not isinstance(value, Task):
        normal_form(value)
    return value


def _flat(finding: Any) -> dict[str, Any]:
    return {"property": finding.name, "number": finding.tag, **asdict(finding.outcome)}
