"""Commands that show what a scheme, a task, a model or attention is: `describe`, `cite`, `explain`."""

from __future__ import annotations

import dataclasses
import shlex
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from posenc.lab.cli import cards
from posenc.lab.cli.options import File, Flag, Text
from posenc.lab.cli.output import brief, say, say_json
from posenc.lab.figures.style import need_matplotlib
from posenc.lab.store import disk

Spec = Annotated[Positional[str], arg(metavar="SCHEME or TASK")]
Described = Annotated[Positional[str], arg(metavar="{SCHEME,TASK,SUITE,MODEL,PRESET}")]


@dataclass(frozen=True)
class Describe:
    """What a scheme, a task, a suite, a model or a published setting is.

    Of a scheme: idea, equation, where it enters attention, settings, parameters, sources. Of a task: a worked example,
    what the oracle answers, floors, sizes, settings, what it offers to schemes, sources. Of a suite: how its tasks
    train unless you say otherwise. Of a model: idea and source, settings, what it reads, where position may enter. Of
    a preset: source, settings, what it leaves out.
    """

    what: Described
    """A scheme's text, rope or "rope(base=500000.0) + alibi", a task's, "token_k_back(k=3)", suite:quick, a model's,
    lstm, or the name of a preset, ruoss; preset:mqar where a scheme or a task has that name too."""
    width: int = 64
    """Of a scheme: features of the residual stream, for which parameters are counted."""
    heads: int = 4
    """Of a scheme: query heads."""
    head: int = 16
    """Of a scheme: features of one head."""
    trained: int = 40
    """Of a scheme: the longest sequence trained on."""
    longest: int = 160
    """Of a scheme: the size of tables."""
    size: Annotated[int | None, arg(metavar="INT", help_behavior_hint="")] = None
    """Of a task: the size of its example; a small one, unless given."""
    json: Flag = False
    """Print JSON."""

    def __call__(self) -> int:
        kind = cards.kind_of(self.what)
        self._check(kind)
        if kind == "task":
            return self._task()
        if kind != "scheme":
            return self._card(kind)
        from posenc.catalog import describe
        from posenc.core.scheme import Dims

        found = describe(self.what, Dims(self.width, self.heads, self.head, self.trained, self.longest))
        if self.json:
            say_json(found)
        else:
            say("\n\n".join(_described(part) for part in [found, *found.get("parts", ())]))
        return 0

    def _check(self, kind: str) -> None:
        """Refuse options that are of another kind of thing."""
        for f in dataclasses.fields(self)[1:]:
            whose = {"size": "task", "json": kind}.get(f.name, "scheme")
            if whose != kind and getattr(self, f.name) != f.default:
                raise ValueError(f"--{f.name} is of a {whose}; leave it out for the {kind} {self.what!r}.")

    def _card(self, kind: str) -> int:
        card, as_text = cards.makers(kind)
        found = card(self.what)
        if self.json:
            say_json(found)
        else:
            say(as_text(found))
        return 0

    def _task(self) -> int:
        from posenc.lab.explain import task_card

        found = task_card.card(self.what, self.size)
        floors = task_card.counted(self.what)
        if self.json:
            say_json({**found, "floors": floors})
        else:
            say(task_card.as_text(found, floors))
        return 0


@dataclass(frozen=True)
class Cite:
    """BibTeX of everything in a scheme, or of a task."""

    what: Spec
    """A scheme's text, rope or "rope + alibi", or a task's: copy."""
    json: Flag = False
    """Print a JSON array of entries."""

    def __call__(self) -> int:
        kind = cards.kind_of(self.what)
        if kind not in ("scheme", "task"):
            said = f"posenc describe {shlex.quote(self.what)}"
            raise ValueError(f"{self.what!r} is a {kind}, of which no BibTeX is kept; `{said}` names its source.")
        if kind == "task":
            from posenc.lab.explain.task_card import cite
        else:
            from posenc.catalog import cite

        found = cite(self.what)
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

    `explain attention` computes self-attention by hand, from embeddings to output, with the numbers of introductions;
    `--scheme rope` sets the same under a scheme beside it, `--blank` prints a worksheet and `--solution` its solution.
    """

    what: Annotated[Positional[str], arg(metavar="{SCHEME,all,attention}")]
    """A scheme's text: rope, "rope + alibi"; or all schemes; or attention itself, by hand."""
    len: Annotated[int | None, arg(metavar="INT", help_behavior_hint="")] = None
    """How many tokens, of a scheme; 8 unless given."""
    causal: Flag = False
    """Under a causal mask, also where the scheme is defined in both directions."""
    trained: Annotated[str | None, arg(metavar="RUN", help_behavior_hint="")] = None
    """A run that kept its parameters (`posenc run --keep`)."""
    form: Annotated[str | None, arg(metavar="{single,multi-head,masked,cross,additive}", help_behavior_hint="")] = None
    """Of attention: which form; single, unless given."""
    scheme: Text = None
    """Of attention: the same under this scheme, with what it changed marked."""
    blank: Flag = False
    """Of attention: a worksheet with boxes to fill in."""
    solution: Flag = False
    """Of attention: the worksheet solved; with --blank, both."""
    seed: Annotated[int | None, arg(metavar="INT", help_behavior_hint="")] = None
    """Of attention: small numbers of this seed, and not those of introductions; of a worksheet 0, unless given."""
    html: File = None
    """Of attention: write it as a page, for a browser and without a network, in this file too."""
    png: Annotated[File, arg(aliases=["-o"])] = None
    """Draw it in this file too: .png, .svg or .pdf."""
    json: Flag = False
    """Print JSON."""

    def __call__(self) -> int:
        target = None if self.png is None else target_of(self.png)
        if self.what == "attention":
            return self._attention(target)
        for option in ("form", "scheme", "blank", "solution", "seed", "html"):
            if (given := getattr(self, option)) is not None and given is not False:
                raise ValueError(f"--{option} is of `posenc explain attention`; leave it out for {self.what!r}.")
        if self.what == "all":
            return _page(target)
        from posenc.lab.explain import induced

        length = 8 if self.len is None else self.len
        if self.trained is not None:
            from posenc.lab.explain.patterns import trained

            shown, head = trained(self.trained, self.what, length), f"{self.what}, trained in {self.trained}"
        else:
            shown, head = induced.views(self.what, length, self.causal), f"{self.what}, {length} tokens"
        if self.json:
            matrices = [{"title": v.title, "matrix": v.matrix} for v in shown]
            say_json([{**m, "matrix": [[_finite(x) for x in row] for row in m["matrix"].tolist()]} for m in matrices])
        else:
            parts = [head, induced.diagram(self.what), *map(induced.as_text, shown)]
            say("\n\n".join(parts if shown else [*parts, "Nothing in the scores depends on position."]))
        if target is not None and shown:
            _drawn(induced.draw(shown, head), target, head, self.json)
        return 0

    def _attention(self, target: Path | None) -> int:
        """Attention by hand, as text or JSON, and where asked for as a figure and a page."""
        from posenc.lab.explain import by_hand, page, paper, problem, worksheet

        for option in ("len", "trained"):
            if getattr(self, option) is not None:
                raise ValueError(f"--{option} is of a scheme; leave it out for attention, which has tokens of its own.")
        path = None if self.html is None else _place(self.html, "--html", (".html",))
        form, paged = self.form or "single", self.blank or self.solution
        if paged or self.seed is not None:
            given = problem.drawn(form, self.causal, self.seed or 0)
        else:
            given = problem.introduced(form, self.causal)
        kinds = [True] * self.blank + [False] * (self.solution or not self.blank)
        sheets = [by_hand.sheet(given, self.scheme, blank=blank) for blank in kinds]
        if self.json:
            say_json([worksheet.as_json(one) for one in sheets])
        else:
            say("\n\n\n".join(map(worksheet.as_text, sheets)))
        if target is not None:
            _drawn(paper.draw(sheets[0]), target, sheets[0].title, self.json)
        if path is not None:
            disk.write(path, page.page(sheets).encode())
            if not self.json:
                say(f"Written to {path}.")
        return 0


def _page(target: Path | None) -> int:
    """The gallery in a file."""
    if target is None:
        raise ValueError("Every scheme on a page is a figure; say where with --png FILE.")
    from posenc.lab.explain import gallery

    _drawn(gallery.draw(gallery.panels()), target, gallery.ABOUT)
    return 0


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
    lines += [f"  {name:<12} {brief(value)}" for name, value in facts.items()]
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


def target_of(text: str) -> Path:
    need_matplotlib()
    return _place(text, "--png", (".png", ".svg", ".pdf"))


def _place(text: str, option: str, endings: tuple[str, ...]) -> Path:
    """Where a file may be written."""
    path = Path(text)
    if path.suffix not in endings or path.is_dir() or not path.parent.is_dir():
        *most, last = endings
        kinds = f"{', '.join(most)} or {last}" if most else last
        what = "draw" if most else "write"
        raise ValueError(f"{option} {text!r} is no file to {what}; give {kinds}, in a folder that exists.")
    return path


def _drawn(figure: Any, path: Path, about: str, quiet: bool = False) -> None:
    from posenc.lab.figures.files import drawn

    disk.write(path, drawn(figure, path.suffix[1:], path.stem, about))
    if not quiet:  # JSON alone is on stdout
        say(f"Drawn in {path}.")


def _finite(value: float) -> float | None:
    return None if value != value else round(value, 6)
