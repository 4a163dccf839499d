"""Commands for a scheme of your own: `new` writes one that works, `check` says what a scheme holds."""

from __future__ import annotations

import importlib
import importlib.util
import keyword
import re
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from posenc.lab.cli import FAILED, OK
from posenc.lab.cli.options import Flag
from posenc.lab.cli.output import say, say_json
from posenc.lab.spec.experiment_file import pointing

SCHEME = '''\
"""{cls}: a penalty per head that grows with distance. Make it yours."""

from __future__ import annotations

import jax.numpy as jnp

from posenc import Scheme


class {cls}(Scheme, name="{name}"):
    """A learned penalty per head, linear in distance (whose idea, {year}, §1).

        s_ij - r_h |p_i - p_j|

    Say what the settings do, what the parameters start from, and where this departs from the authors' code.

    ```bibtex
    @misc{{{name}{year},
      title = {{What it is called}},
      author = {{Who had the idea}},
      year = {{{year}}},
    }}
    ```
    """

    start: float = 0.1
    """What r is before training."""

    family = "linear"  # whose colour it takes in figures
    reads = "distance"  # score adds what depends on tile.distance alone
    samples = ({{"start": 1.0}},)  # settings that the contract may be run on, beside the defaults

    def validate(self):
        if self.start < 0:
            raise ValueError(f"{name!r} starts from a penalty of at least 0, not {{self.start}}; make it larger.")

    def init_head(self, key, dims):
        return {{"r": jnp.asarray(self.start, jnp.float32)}}

    def score(self, p, s, tile):
        return s - p["r"].astype(s.dtype) * jnp.abs(tile.distance).astype(s.dtype)
'''

TEST = '''\
"""{cls} holds what every scheme must, under its defaults and its samples."""

import posenc
import pytest

from {name} import {cls}


@pytest.mark.parametrize("settings", [{{}}, *{cls}.samples], ids=str)
def test_it_holds_the_contract(settings):
    report = posenc.check({cls}(**settings))
    assert report.ok, str(report)
'''

HINT = """\
{file} is a scheme that works, and {test} tests it.
  posenc check {name}:{cls}
  python -c 'import {name}, posenc; print(posenc.parse("{name} + rope"))'
In a package of yours, this makes `posenc run --scheme {name}` find it:
  [project.entry-points."posenc.schemes"]
  {name} = "your_package.{name}\""""


@dataclass(frozen=True)
class New:
    """Write a scheme that works and passes the contract, with its test, in this folder: a place to start from."""

    kind: Annotated[Positional[str], arg(metavar="scheme")]
    """What to write; schemes are what there is."""
    name: Annotated[Positional[str], arg(metavar="NAME")]
    """Its name: small letters, digits and _."""

    def __call__(self) -> int:
        if self.kind != "scheme":
            raise ValueError(f"`posenc new` writes a scheme, not {self.kind!r}: posenc new scheme mine.")
        if not re.fullmatch("[a-z][a-z0-9_]*", self.name) or keyword.iskeyword(self.name):
            raise ValueError(f"{self.name!r} cannot name a scheme; take small letters, digits and _, such as 'mine'.")
        import posenc

        if self.name in posenc.names():
            raise ValueError(f"The name {self.name!r} is taken; choose another.")
        cls = "".join(word.capitalize() for word in self.name.split("_"))
        files = {Path(f"{self.name}.py"): SCHEME, Path(f"test_{self.name}.py"): TEST}
        if there := [str(path) for path in files if path.exists()]:
            raise ValueError(f"{there[0]!r} is there already; move it away, or choose another name.")
        if self.name in sys.stdlib_module_names or importlib.util.find_spec(self.name):
            raise ValueError(f"{self.name}.py would stand in the way of the module {self.name!r}; choose another name.")
        for path, text in files.items():
            path.write_text(text.format(cls=cls, name=self.name, year=2026), encoding="utf-8")
        file, test = files
        say(HINT.format(file=file, test=test, name=self.name, cls=cls))
        return OK


@dataclass(frozen=True)
class Check:
    """Run the contract on a scheme, ours or yours, and say which property holds: exit code 1 where one fails."""

    scheme: Annotated[Positional[str], arg(metavar="SCHEME")]
    """A scheme's text, such as "rope + alibi", or module:Class, found as Python would find it from this folder."""
    only: tuple[str, ...] = ()
    """Properties, by name or number: G7, the_future_is_unseen."""
    samples: Flag = False
    """Check the class under each of its samples too."""
    json: Flag = False
    """Print one JSON array, a report for each setting."""

    def __call__(self) -> int:
        from posenc.contract import check
        from posenc.naming import parse

        scheme = imported(self.scheme) if ":" in self.scheme else parse(self.scheme)
        every = [scheme]
        if self.samples:
            every += [type(scheme)(**settings) for settings in getattr(scheme, "samples", ())]
        reports = []
        for one in every:
            reports.append(check(one, only=self.only or None))
            if not self.json:
                say(reports[-1])
        if self.json:
            said = [{"scheme": r.scheme, "ok": r.ok, "findings": [_flat(f) for f in r.findings]} for r in reports]
            say_json(said)
        return OK if all(r.ok for r in reports) else FAILED


def imported(text: str) -> Any:
    """The scheme at `module:Class`, built by its defaults; an object is taken as it is.

    The module is as trusted as any program that is started.
    """
    module, _, name = text.partition(":")
    if not module or not name:
        raise ValueError(f"{text!r} names no scheme; write module:Class, such as mine:Mine.")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        spec = importlib.util.find_spec(module)
    except ImportError as fault:
        raise ValueError(f"The module {module!r} cannot be found: {fault}.") from None
    if spec is None:
        raise ValueError(f"There is no module {module!r}, looked for from this folder on; give module:Class.")
    with pointing(Path(spec.origin or module)):
        found = getattr(importlib.import_module(module), name, None)
    if found is None:
        raise ValueError(f"The module {module!r} has no {name!r}; give the class of a scheme.")
    from posenc.core.compose import normal_form
    from posenc.core.scheme import Scheme

    if isinstance(found, type):
        if not issubclass(found, Scheme):
            raise ValueError(f"{text!r} is a class, but no posenc.Scheme; derive it from posenc.Scheme.")
        found = found()
    normal_form(found)
    return found


def _flat(finding: Any) -> dict[str, Any]:
    return {"property": finding.name, "number": finding.tag, **asdict(finding.outcome)}
