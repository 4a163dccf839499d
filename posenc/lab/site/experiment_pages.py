"""The pages of experiments: a table of claims, and one page for each experiment file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from posenc.lab.cli import claims
from posenc.lab.results.published import count_seen
from posenc.lab.results.verdicts import count_verdicts
from posenc.lab.site import length_charts, tags
from posenc.lab.site.shelf import Shelved
from posenc.lab.site.tags import Link, SitePage

COLUMNS = ("task", "scheme", "measure", "claim", "our runs", "n", "floor", "verdict", "reason", "seen", "source")


def experiment_pages(shelf: Sequence[Shelved]) -> Iterator[SitePage]:
    """The table, then the page of each experiment."""
    rows = [
        (Link(s.name, f"{s.name}.html"), s.experiment.header.claim, _verdicts(s, "published"), _verdicts(s, "ours"))
        for s in shelf
    ]
    about = "One file for each claim: its source, how our setting differs, the command, the result, and verdicts."
    table = tags.table(("experiment", "claim", "verdicts on what was published", "on our own"), rows, "Experiments")
    yield tags.page("experiments/index.md", "Experiments", tags.paragraph(about), table, hide=tags.WIDE)
    yield from map(_page, shelf)


def _verdicts(shelved: Shelved, origin: str) -> str:
    return claims.verdicts(count_verdicts(shelved.verdicts)[origin])


def _page(shelved: Shelved) -> SitePage:
    name, head = shelved.name, shelved.experiment.header
    command = head.command or f"posenc sweep experiments/{shelved.experiment.source}"
    seen = claims.sightings(count_seen(shelved.experiment.published))
    rows = [("source", head.source), ("setting", head.setting), ("cost", head.cost), ("variation", head.variation)]
    rows.append(("numbers seen in", "" if seen == "none" else seen))
    rows.append(("tasks", tuple(Link(task, f"../tasks/{task}.html") for task in sorted(shelved.tasks))))
    charts = length_charts.length_charts(shelved.experiment, shelved.results)
    provenance = shelved.results.provenance() if shelved.results else {}
    rows += [(name, ", ".join(provenance[name])) for name in ("commit", "device", "jax") if provenance.get(name)]
    return tags.page(
        f"experiments/{name}.md",
        name,
        f"# {name}",
        tags.paragraph(head.claim, "idea"),
        _figure(shelved),
        length_charts.section(charts) if charts else "",
        "## Result",
        tags.paragraphs(
            head.result[:1].upper() + head.result[1:] or "Not run yet: the repository has no record of it."
        ),
        tags.paragraph(shelved.answer),
        "## Verdicts",
        *_table(shelved),
        "## Setting",
        tags.facts(rows),
        "## Command",
        tags.paragraph(command) if " then " in command else tags.block(command, "sh", wrap=True),
        tags.block(f"posenc table {name}\nposenc plot {name}\nposenc reproduce {name}", "sh", wrap=True)
        if shelved.results
        else "",
        hide=tags.WIDE,
    )


def _figure(shelved: Shelved) -> str:
    """Its committed figure, in the words of its caption."""
    if shelved.figure is None:
        return ""
    caption = shelved.figure.with_suffix(".caption.txt")
    words = " ".join(caption.read_text(encoding="utf-8").split()) if caption.is_file() else ""
    text = f"Results of {shelved.name}, described below" if words else f"Results of {shelved.name}"
    return tags.picture(f"../assets/figures/{shelved.figure.name}", text, words, "figure", wide=True)


def _table(shelved: Shelved) -> Iterator[str]:
    """Each claim beside our runs, with its verdict and the reason."""
    if not shelved.verdicts:
        yield tags.paragraph("It is compared with no published value.")
        return
    for origin, title in claims.CALLED.items():
        lines = [claims.row(finding) for finding in shelved.verdicts if finding.published.origin == origin]
        columns = [c for c in COLUMNS if any(line[c] not in ("", "–") for line in lines)]
        if lines:
            yield tags.table(columns, [[line[c] for c in columns] for line in lines], title)
    yield tags.paragraph(claims.why_open(shelved.verdicts))
    yield '<p><a href="../guides/experiments.html#verdicts">What the verdicts mean</a></p>'
