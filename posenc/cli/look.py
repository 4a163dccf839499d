"""Commands that show what there is: `list`, `describe`, `cite`, `explain`."""

from __future__ import annotations

import ast
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from posenc.cli.options import File, Flag, docs
from posenc.cli.output import say, say_json, say_rows
from posenc.lab import disk, words
from posenc.lab.run import Run
from posenc.show.style import need_matplotlib

KINDS = ("schemes", "tasks", "models", "experiments", "coordinates", "stems")
Spec = Annotated[Positional[str], arg(metavar="SCHEME")]


@dataclass(frozen=True)
class Names:
    """What has a name: schemes, unless another kind is asked for."""

    kind: Annotated[Positional[str], arg(metavar="{schemes,tasks,models,experiments,coordinates,stems}")] = "schemes"
    """What to list."""
    json: Flag = False
    """Print one JSON array."""

    def __call__(self) -> int:
        makers = {"schemes": schemes, "tasks": tasks, "models": models, "experiments": experiments}
        makers |= {"coordinates": coordinates, "stems": stems}
        if self.kind not in makers:
            raise words.unknown("list", self.kind, KINDS)
        rows = makers[self.kind]()
        if self.json:
            say_json(rows)
            return 0
        columns = list(rows[0]) if rows else ["name"]
        say_rows(columns, [[_short(row[c]) for c in columns] for row in rows])
        return 0


@dataclass(frozen=True)
class Describe:
    """What a scheme is: idea, equation, where it enters attention, settings, parameters, sources."""

    scheme: Spec
    """A scheme's text: rope, "rope(base=500000.0) + alibi"."""
    width: int = 64
    """Features of the residual stream, for which parameters are counted."""
    heads: int = 4
    """Query heads."""
    head: int = 16
    """Features of one head."""
    trained: int = 40
    """The longest sequence trained on."""
    longest: int = 160
    """The size of tables."""
    json: Flag = False
    """Print JSON."""

    def __call__(self) -> int:
        from posenc.catalog import describe
        from posenc.scheme import Dims

        found = describe(self.scheme, Dims(self.width, self.heads, self.head, self.trained, self.longest))
        if self.json:
            say_json(found)
        else:
            say("\n\n".join(_described(part) for part in [found, *found.get("parts", ())]))
        return 0


@dataclass(frozen=True)
class Cite:
    """BibTeX of everything in a scheme."""

    scheme: Spec
    """A scheme's text: rope, "rope + alibi"."""
    json: Flag = False
    """Print a JSON array of entries."""

    def __call__(self) -> int:
        from posenc.catalog import cite

        found = cite(self.scheme)
        if self.json:
            say_json(found.split("\n\n"))
        else:
            say(found)
        return 0


@dataclass(frozen=True)
class Explain:
    """Where position enters, and what it does to scores: the matrix that a scheme induces, in numbers.

    Scores are shown against that of a token with itself, with parameters as at the start of training. With
    `--trained`, the attention pattern of a trained model instead. `explain all --png FILE` draws every scheme on one
    page.
    """

    scheme: Spec
    """A scheme's text: rope, "rope + alibi"."""
    len: int = 8
    """How many tokens."""
    causal: Flag = False
    """Under a causal mask, also where the scheme is defined in both directions."""
    trained: Annotated[str | None, arg(metavar="RUN", help_behavior_hint="")] = None
    """A run that kept its parameters (`posenc run --keep`)."""
    png: Annotated[File, arg(aliases=["-o"])] = None
    """Draw it in this file too: .png, .svg or .pdf."""
    json: Flag = False
    """Print JSON."""

    def __call__(self) -> int:
        target = None if self.png is None else _target(self.png)
        if self.scheme == "all":
            return _page(target)
        from posenc.show import explain

        if self.trained is not None:
            from posenc.show.patterns import trained

            shown, head = trained(self.trained, self.scheme, self.len), f"{self.scheme}, trained in {self.trained}"
        else:
            shown, head = explain.views(self.scheme, self.len, self.causal), f"{self.scheme}, {self.len} tokens"
        if self.json:
            matrices = [{"title": v.title, "matrix": v.matrix} for v in shown]
            say_json([{**m, "matrix": [[_finite(x) for x in row] for row in m["matrix"].tolist()]} for m in matrices])
        else:
            parts = [head, explain.diagram(self.scheme), *map(explain.as_text, shown)]
            say("\n\n".join(parts if shown else [*parts, "Nothing in the scores depends on position."]))
        if target is not None and shown:
            _drawn(explain.draw(shown, head), target, head)
        return 0


def _page(target: Path | None) -> int:
    """The gallery in a file."""
    if target is None:
        raise ValueError("Every scheme on a page is a figure; say where with --png FILE.")
    from posenc.show import gallery

    _drawn(gallery.draw(gallery.panels()), target, gallery.ABOUT)
    return 0


def schemes() -> list[dict[str, Any]]:
    """One row per scheme."""
    import posenc
    from posenc.catalog import summary

    return [summary(name) for name in posenc.names()]


def tasks() -> list[dict[str, Any]]:
    """One row per task."""
    from posenc import tasks

    found = [(name, tasks.parse(name)) for name in tasks.names()]
    return [
        {
            "name": name,
            "layout": t.layout.value,
            "metric": t.metric,
            "directions": sorted(t.directions),
            "idea": _idea(t),
        }
        for name, t in found
    ]


def coordinates() -> list[dict[str, Any]]:
    """One row per kind of coordinates."""
    import posenc
    from posenc.coordinates import COORDINATES

    found = [(name, COORDINATES.find(name)) for name in posenc.names("coordinates")]
    return [{"name": name, "use": f"rope @ {name}", "idea": _idea(cls)} for name, cls in found]


def stems() -> list[dict[str, Any]]:
    """One row per stem, the default included."""
    from posenc.models.stems import NONE, STEMS

    found = [(name, _idea(STEMS.find(name))) for name in STEMS.names()]
    return [{"name": name, "use": f"--stem {name}", "idea": idea} for name, idea in [(NONE, "No stem."), *found]]


def models() -> list[dict[str, Any]]:
    """One row per model, from what `Run` says of them."""
    said = dict(part.split(": ", 1) for part in docs(Run)["model"].rstrip(".").split("; "))
    kinds = words.fields(Run)["model"].__args__
    return [{"name": name, "idea": said.get(name, "")} for name in kinds]


def experiments() -> list[dict[str, Any]]:
    """One row per experiment file, read without running it."""
    from posenc.cli.read import experiment_folders
    from posenc.lab.experiment import header

    rows = []
    for path in sorted(p for folder in experiment_folders() for p in folder.glob("*.py") if p.name[0] != "_"):
        try:
            doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        except (SyntaxError, ValueError):
            doc = "cannot be read"
        found = header(doc)
        rows.append({"name": path.stem, "file": str(path), "claim": found.claim, "cost": found.cost})
    return rows


def _idea(thing: Any) -> str:
    doc = (thing if isinstance(thing, type) else type(thing)).__doc__ or ""
    return " ".join(doc.strip().split("\n\n")[0].split())


def _short(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) or "-" if isinstance(value, list) else str(value)


def _described(found: dict[str, Any]) -> str:
    count = found["parameters"]
    dims = count["dims"]
    sizes = f"(width {dims['width']}, {dims['heads']} heads, trained on {dims['trained']}, longest {dims['longest']})"
    lines = [found["scheme"], *([f"  {found['idea']}"] if "idea" in found else [])]
    lines += ["", *(f"      {line}" for line in found["equation"].splitlines()), ""] if found.get("equation") else []
    facts = {
        "enters at": ", ".join(found["enters"]) or "nowhere",
        "parameters": f"{count['each layer']} in each layer, {count['shared']} shared by all {sizes}",
        "direction": f"causal only: {found['causal only']}" if found["causal only"] else "causal and bidirectional",
        "kernel": found["kernel class"],
        "cache": found["cache"],
        **{k: found[k] for k in ("window", "layers", "coordinates", "refused at these dims") if found.get(k)},
    }
    if "idea" in found:
        told = ", ".join(f"{k}={v!r}" for k, v in found["settings"].items())
        facts |= {"settings": told or "none", "family": found["family"], "score reads": found["reads"]}
        facts |= {"beyond L": found["extrapolates"] or "unsaid", "checked": _proven(found["proof"])}
        facts |= {"cite": ", ".join(found["cite"]) or "nothing to cite"}
    lines += [f"  {name:<12} {_short(value)}" for name, value in facts.items()]
    notes = (textwrap.fill(n, 100, initial_indent="  ", subsequent_indent="  ") for n in found.get("notes", ()))
    return "\n\n".join(["\n".join(lines), *notes])


def _proven(proof: dict[str, Any]) -> str:
    """What the tests found, as the committed record has it."""
    said = []
    if golden := proof.get("golden"):
        said.append(f"{len(golden['cases'])} cases of {'; '.join(golden['sources'])} within {golden['largest']:.0e}")
    if oracle := proof.get("oracle"):
        said.append(f"its equation in float64 within {oracle['largest']:.0e}")
    if contract := proof.get("contract"):
        said.append(f"{contract['holds']} of {contract['applies']} properties that apply")
    return "; ".join(said) or "nothing is recorded"


def _target(text: str) -> Path:
    need_matplotlib()
    path = Path(text)
    if path.suffix not in (".png", ".svg", ".pdf") or path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"--png {text!r} is no file to draw; give .png, .svg or .pdf, in a folder that exists.")
    return path


def _drawn(figure: Any, path: Path, about: str) -> None:
    from posenc.show.files import drawn

    disk.write(path, drawn(figure, path.suffix[1:], path.stem, about))
    say(f"Drawn in {path}.")


def _finite(value: float) -> float | None:
    return None if value != value else round(value, 6)
