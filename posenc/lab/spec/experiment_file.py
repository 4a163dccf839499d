"""Experiments from files, and the heads of these files.

An experiment file is a claim, in Python. It has a docstring and `runs()`. It may have `plan`, claims in `published`,
and `figure(results)`, which draws results by `metric`. Figures call tasks by its `titles`, lines by its `names`, and
sizes by its `counted`.

    \"\"\"ALiBi keeps its accuracy beyond the lengths trained on.

    Source: Press et al. (2022), Figure 4.
    Setting: what is smaller here than there.
    Cost: 2 minutes on 2 cores.
    Command: posenc sweep experiments/first_look.py
    Variation: --only scheme=rope,alibi
    Result: what the last recorded run showed, in paragraphs where it is long.
    \"\"\"
"""

from __future__ import annotations

import re
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

from posenc.lab.spec import toml
from posenc.lab.spec.experiment import Experiment, Header, check_many
from posenc.lab.spec.modules import pointing
from posenc.lab.spec.run import Plan

_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
_WORDS = ("titles", "names", "counted")
_PARTS = ("source", "setting", "cost", "command", "variation", "result")


def from_file(path: str | Path, yes: bool = False) -> Experiment:
    """The experiment in a `.py` or `.toml` file. Python in it is run, so it is as trusted as any program."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"There is no experiment file at {str(path)!r}; `posenc list experiments` names those here.")
    if path.suffix == ".toml":
        return toml.read(path, yes)
    if path.suffix != ".py":
        raise ValueError(f"{str(path)!r} is not an experiment file; its name must end in .py or .toml.")
    module = executed(path)
    if not callable(getattr(module, "runs", None)):
        raise ValueError(f"{str(path)!r} has no function runs(); an experiment file returns its runs from one.")
    if hasattr(module, "preset"):
        raise ValueError(
            f"{str(path)!r} sets preset, which only .toml files may; in Python start from"
            " `posenc.lab.spec.presets.PRESETS`."
        )
    with pointing(path):
        made = Experiment(
            path.stem,
            tuple(module.runs()),
            getattr(module, "plan", Plan()),
            path.name,
            header(module.__doc__ or "", path),
            getattr(module, "figure", None),
            {name: getattr(module, name) for name in _WORDS if hasattr(module, name)},
            getattr(module, "metric", None),
            tuple(getattr(module, "published", ())),
        )
    check_many(made.trials, yes)
    return made


def header(doc: str, path: Path | None = None) -> Header:
    """The parts of an experiment file's docstring: the claim first, then `Source:`, `Cost:` and so on.

    A part ends with its paragraph, but for the result, which may have many and keeps an empty line between them. Where
    the file has a page beside it, as in the repository, the reading there is the result.
    """
    lines: dict[str, list[str]] = {"claim": []}
    part = "claim"
    for line in doc.strip().splitlines():
        label, colon, rest = line.strip().partition(":")
        if colon and label.lower() in _PARTS:
            part, line = label.lower(), rest
        elif not line.strip() and part != "result":
            part = ""
        if part:
            lines.setdefault(part, []).append(line.strip())
    parts = {name: _paragraphs(text) for name, text in lines.items()}
    return Header(**parts | ({"result": read} if path is not None and (read := _reading(path)) else {}))


def _reading(path: Path) -> str:
    """The reading on the page of an experiment file, without its links; empty where it has none."""
    page = path.with_suffix(".md")
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    return _LINK.sub(r"\1", text.partition("\n## Reading\n")[2].partition("\n## ")[0].strip())


def _paragraphs(lines: list[str]) -> str:
    """Lines as paragraphs, each of one line, with an empty line between them."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in "\n".join(lines).split("\n\n"))


def executed(path: Path) -> ModuleType:
    """The module in a file. It is as trusted as any program that is started."""
    name = f"posenc_experiment_{re.sub(r'[^A-Za-z0-9_]', '_', path.stem)}"
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module  # where dataclasses of the file look up their types
    try:
        with pointing(path):
            SourceFileLoader(name, str(path)).exec_module(module)
    finally:
        del sys.modules[name]
    return module
