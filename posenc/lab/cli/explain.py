"""`posenc explain`: the matrices that a scheme induces, or attention computed by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from tyro.conf import Positional, arg

from posenc.lab.cli.options import CommandForm, File, First, Flag, Forms, Text
from posenc.lab.cli.output import figure_path, output_path, say, say_json
from posenc.lab.spec.modules import load_named
from posenc.lab.store import disk

Png = Annotated[File, arg(aliases=["-o"])]


@dataclass(frozen=True)
class ExplainScheme:
    """Show what a scheme does to attention scores: where it enters, and the matrix that it induces, in numbers.

    A score is shown relative to the score of a token with itself, with the parameters that training starts from. With
    `--trained`: the attention weights of a trained model.
    """

    scheme: Annotated[Positional[str], arg(metavar="SCHEME")]
    """A scheme's text: rope, or "rope + alibi"."""
    len: int = 8
    """Number of tokens."""
    causal: Flag = False
    """Use a causal mask, also for a scheme that is defined in both directions."""
    trained: Annotated[str | None, arg(metavar="RUN", help_behavior_hint="")] = None
    """A run that kept its parameters (`posenc run --keep`)."""
    png: Png = None
    """Draw the matrices in this file too: .png, .svg or .pdf."""
    json: Flag = False
    """Print JSON."""

    def __call__(self) -> int:
        target = None if self.png is None else figure_path(self.png)
        load_named([self.scheme])
        from posenc.lab.explain import induced

        if self.trained is not None:
            if self.causal:
                raise ValueError(
                    "--causal has no effect with --trained: the trained model fixes its mask; leave it out."
                )
            from posenc.lab.explain.patterns import trained

            shown, head = trained(self.trained, self.scheme, self.len), f"{self.scheme}, trained in {self.trained}"
        else:
            shown, head = induced.views(self.scheme, self.len, self.causal), f"{self.scheme}, {self.len} tokens"
        if self.json:
            matrices = [{"title": v.title, "matrix": v.matrix} for v in shown]
            say_json([{**m, "matrix": [[_finite(x) for x in row] for row in m["matrix"].tolist()]} for m in matrices])
        else:
            parts = [head, induced.diagram(self.scheme), *map(induced.as_text, shown)]
            say("\n\n".join(parts if shown else [*parts, "The scores do not depend on position."]))
        if target is not None and shown:
            _write_figure(induced.draw(shown, head), target, head, self.json)
        return 0


@dataclass(frozen=True)
class ExplainAll:
    """The matrix of every scheme, on one page."""

    png: Png = None
    """The file to draw: .png, .svg or .pdf."""

    def __call__(self) -> int:
        if self.png is None:
            raise ValueError("`posenc explain all` draws a figure; name its file with --png FILE.")
        target = figure_path(self.png)
        from posenc.lab.explain import gallery

        _write_figure(gallery.draw(gallery.panels()), target, gallery.ABOUT)
        return 0


@dataclass(frozen=True)
class ExplainPatterns:
    """Show what trained heads look at. For each scheme of a kept run it draws the head with the most weight on the
    answer's token, a fixed number of positions back."""

    run: First
    """A run that trained token_k_back and kept its parameters (`posenc sweep FILE --keep`)."""
    len: int = 16
    """Number of tokens."""
    png: Png = None
    """The file to draw: .png, .svg or .pdf."""

    def __call__(self) -> int:
        target = None if self.png is None else figure_path(self.png)
        from posenc.lab.explain import diagonals

        scheme_diagonals = diagonals.diagonals(self.run, self.len)
        lines = [
            f"{diagonal.scheme}: layer {diagonal.layer}, head {diagonal.head}, {diagonal.share:.2f}; "
            f"all heads {diagonal.sum:.2f}"
            for diagonal in scheme_diagonals
        ]
        say("\n".join([diagonals.caption(scheme_diagonals), *lines]))
        if target is not None:
            _write_figure(diagonals.draw(scheme_diagonals), target, diagonals.caption(scheme_diagonals))
        return 0


@dataclass(frozen=True)
class ExplainAliases:
    """Show which distances beyond training a head confuses with the one that it finds, under RoPE and its relatives. It
    also shows from which positions of a longer row they are in view. It is arithmetic of frequencies, without training.

    `explain aliases "rope(base=10.0)"` shows another base.
    """

    scheme: Annotated[Positional[str], arg(metavar="SCHEME")] = "rope"
    """A scheme's text: rope, or "rope(base=10.0)"."""
    back: int = 3
    """How many positions back the head finds a token."""
    length: int = 16
    """Tokens of the longest row trained on."""
    len: int = 64
    """Tokens of the longer row."""
    head: int = 16
    """Features of a head."""
    within: float = 0.25
    """The largest gap of an alias, above 0 and below 1."""
    causal: Flag = False
    """Use a causal mask."""
    png: Png = None
    """Draw the scores by distance in this file too: .png, .svg or .pdf."""
    json: Flag = False
    """Print JSON."""

    def __call__(self) -> int:
        target = None if self.png is None else figure_path(self.png)
        load_named([self.scheme])
        from posenc.lab.explain import alias_figure, aliases

        if not 0 < self.within < 1:
            raise ValueError(f"--within is {self.within}; a gap is a share of the margin, above 0 and below 1.")
        frequencies = aliases.frequencies(self.scheme, self.head, self.length)
        head = aliases.widest_head(frequencies, self.back, self.length, self.causal)
        if not self.back < self.len <= aliases.FURTHEST:
            raise ValueError(f"--len is {self.len}; take from {self.back + 1} to {aliases.FURTHEST} tokens.")
        title = (
            f"{self.scheme}, heads of {self.head} features, the token {self.back} positions back, rows of up to"
            f" {self.length} tokens, {'causal' if self.causal else 'both directions'}"
        )
        if self.json:
            say_json({"scheme": self.scheme, **aliases.as_json(head, self.len, self.within)})
        else:
            say(f"{title}\n\n{aliases.as_text(head, self.len, self.within)}")
        if target is not None:
            _write_figure(alias_figure.draw({self.scheme: head}, self.len, self.within), target, title, self.json)
        return 0


@dataclass(frozen=True)
class ExplainAttention:
    """Attention computed by hand, from embeddings to output, with the small numbers that introductions use.

    `--scheme rope` shows the same with that scheme beside it; `--blank` prints a worksheet, `--solution` its solution.
    """

    form: Annotated[str, arg(metavar="{single,multi-head,masked,cross,additive}")] = "single"
    """The form of attention."""
    causal: Flag = False
    """Use a causal mask."""
    scheme: Text = None
    """Compute the same with this scheme too, and mark the numbers that it changes."""
    blank: Flag = False
    """Print a worksheet, with boxes to fill in."""
    solution: Flag = False
    """Print the solution of the worksheet; with --blank, print both."""
    seed: Annotated[int | None, arg(metavar="INT", help_behavior_hint="")] = None
    """Draw small numbers from this seed. Without it the numbers of introductions are taken, for a worksheet seed 0."""
    html: File = None
    """Write an HTML page too, which needs no network and prints each sheet on paper of its own."""
    json: Flag = False
    """Print JSON."""

    def __call__(self) -> int:
        path = None if self.html is None else output_path(self.html, "--html", (".html",))
        load_named([self.scheme])
        from posenc.lab.explain import by_hand, problem, worksheet

        if self.blank or self.solution or self.seed is not None:
            posed = problem.random_problem(self.form, self.causal, self.seed or 0)
        else:
            posed = problem.introduced(self.form, self.causal)
        kinds = [True] * self.blank + [False] * (self.solution or not self.blank)
        sheets = [by_hand.sheet(posed, self.scheme, blank=blank) for blank in kinds]
        if self.json:
            say_json([worksheet.as_json(sheet) for sheet in sheets])
        else:
            say("\n\n\n".join(map(worksheet.as_text, sheets)))
        if path is not None:
            disk.write(path, worksheet.as_html(sheets).encode())
            if not self.json:
                say(f"Wrote {path}.")
        return 0


_LITERAL = {
    "attention": CommandForm(ExplainAttention, "attention", literal=True),
    "patterns": CommandForm(ExplainPatterns, "patterns", literal=True),
    "aliases": CommandForm(ExplainAliases, "aliases", literal=True),
    "all": CommandForm(ExplainAll, "all", literal=True),
}
_SCHEME = CommandForm(ExplainScheme, "SCHEME")
EXPLAIN = Forms((_SCHEME, *_LITERAL.values()), lambda text: _LITERAL.get(text, _SCHEME))


def _write_figure(figure: Any, path: Any, subject: str, quiet: bool = False) -> None:
    from posenc.lab.figures.files import render

    disk.write(path, render(figure, path.suffix[1:], path.stem, subject))
    if not quiet:  # JSON alone is on stdout
        say(f"Wrote {path}.")


def _finite(value: float) -> float | None:
    return None if value != value else round(value, 6)
