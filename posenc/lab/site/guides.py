"""The guides of `docs/` as pages, and what the command line says of abilities and of attention by hand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from posenc.lab.cli import which
from posenc.lab.explain import by_hand, problem, worksheet
from posenc.lab.results.ability_scores import AbilityScore
from posenc.lab.site import tags
from posenc.lab.site.tags import Link, SitePage
from posenc.lab.spec.abilities import ABILITIES

ELSEWHERE = {
    "../README.md": "../index.md",
    "../CONTRIBUTING.md": "code.md",
    "../CHANGELOG.md": "changes.md",
}
"""Targets of links outside the guides, and the pages that stand for them here."""
FORMS = {"single": "Self-attention", "masked": "Masked", "multi-head": "Two heads", "cross": "Cross-attention"}


def guide_pages(folder: Path) -> Iterator[SitePage]:
    """Each guide, its links turned to the pages of the site."""
    for path in sorted(folder.glob("*.md")):
        yield SitePage(f"guides/{path.name}", localized(path.read_text(encoding="utf-8")))
    if (changes := folder.parent / "CHANGELOG.md").is_file():  # a wheel has none
        yield SitePage("guides/changes.md", localized(changes.read_text(encoding="utf-8").replace("](docs/", "](")))
    yield by_hand_page()


def localized(text: str) -> str:
    """A guide with links to pages of the site; names of files that have no page stand as they are."""

    def local(match: re.Match[str]) -> str:
        shown, target = match[1], match[2]
        file, _, heading = target.partition("#")
        if figure := re.fullmatch(r"\.\./experiments/figures/([\w-]+\.svg)", file):
            return f"[{shown}](../assets/figures/{figure[1]})"
        if experiment := re.fullmatch(r"\.\./experiments/(\w+)\.py", file):
            return f"[{shown}](../experiments/{experiment[1]}.md)"
        if file in ELSEWHERE:
            return f"[{shown}]({ELSEWHERE[file]})"
        return match[0] if not file.startswith("../") else shown

    return re.sub(r"\[([^\]]*)\]\(([^)\s]+)\)", local, re.sub(r"<!--.*?-->\n?", "", text, flags=re.DOTALL))


def which_page(scores: dict[str, Sequence[AbilityScore]]) -> SitePage:
    """The scores by ability, as `posenc which` has them."""
    parts = ["# Scores by ability"]
    parts.append(
        tags.paragraph(
            "Every scheme that a committed record has at an ability, the best of a task first. A score is the share"
            " right at about twice the longest size trained on: 0 at the highest floor, 1 where all is right. L has the"
            " least at a size trained on, in brackets where that counts as not learned, so that 2 L tells nothing."
        )
    )
    for ability, idea in ABILITIES.items():
        parts += [f"## {ability.capitalize()}", tags.paragraph(f"{idea[:1].upper()}{idea[1:]}.")]
        rows = [
            (
                Link(s.task, f"tasks/{s.task.partition('(')[0]}.html"),
                s.scheme,
                s.model,
                "–" if s.score is None else f"{s.score:.2f}",
                f"{s.right.median:.2f}",
                _trained(s),
                s.right.n,
                Link(s.experiment, f"experiments/{s.experiment}.html"),
            )
            for s in scores[ability]
        ]
        columns = ("task", "scheme", "model", "score", "2 L", "L", "n", "experiment")
        parts.append(tags.table(columns, rows, ability) if rows else tags.paragraph("No committed record has it."))
        tasks, schemes = which.gaps(ability, scores[ability])
        open_ = [f"Tasks in no record: {', '.join(tasks)}."] * bool(tasks)
        parts.append(tags.paragraph(" ".join([*open_, f"{len(schemes)} schemes have no record here."]), "note"))
    return tags.page("which.md", "Scores by ability", *parts, hide=("navigation",))


def _trained(score: AbilityScore) -> str:
    """The share right at sizes trained on, in brackets where that is too little."""
    right = "–" if score.trained_right is None else f"{score.trained_right:.2f}"
    return right if score.learned else f"({right})"


def by_hand_page() -> SitePage:
    """Attention by hand, each form in numbers, as `posenc explain attention` prints it."""
    parts = ["# Attention by hand", tags.paragraph("Every number from embeddings to output, on three tokens.")]
    for form, name in FORMS.items():
        sheet = by_hand.sheet(problem.introduced(form, False), None, blank=False)
        parts += [f"## {name}", tags.paragraph(sheet.about), tags.block(worksheet.as_text(sheet))]
    sheet = by_hand.sheet(problem.introduced("single", False), "rope + alibi", blank=False)
    parts += ["## With rope + alibi", tags.block(worksheet.as_text(sheet))]
    return tags.page("guides/by-hand.md", "Attention by hand", *parts)
