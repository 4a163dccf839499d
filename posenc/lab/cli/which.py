"""`posenc which`: the schemes that were measured at an ability, from all committed records. It needs no jax."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional, arg

from posenc.lab.cli.options import Flag
from posenc.lab.cli.output import say, say_json, say_rows, tie, wrap
from posenc.lab.spec import settings
from posenc.lab.spec.abilities import ABILITIES, tasks_with
from posenc.language.echo import plural
from posenc.language.modules import declarations

if TYPE_CHECKING:
    from posenc.lab.results.ability_scores import AbilityScore

LEGEND = (
    "A score is the share right at about twice the longest size trained on, the median over n runs: 0 at the highest"
    " floor, 1 where all is right. Where each token is answered, it counts the places beyond training, in older records"
    " the last token. Not learned: with the lowest median at a size trained on, which is below {least:g}."
)


@dataclass(frozen=True)
class Which:
    """The schemes that were measured at an ability, how far above the floors they are beyond training, and what is
    open; from all committed records."""

    ability: Annotated[Positional[str | None], arg(metavar="ABILITY", help_behavior_hint="")] = None
    """What a task needs of positions: counting. Default: list the abilities."""
    json: Flag = False
    """Print JSON: every score with its spread."""

    def __call__(self) -> int:
        if self.ability is None:
            rows = [{"ability": name, "is": idea, "tasks": list(tasks_with(name))} for name, idea in ABILITIES.items()]
            if self.json:
                say_json(rows)
            else:
                say_rows(
                    ("ability", "tasks", "what is asked for"), [(r["ability"], len(r["tasks"]), r["is"]) for r in rows]
                )
            return 0
        if self.ability not in ABILITIES:
            raise settings.unknown("ability", self.ability, ABILITIES)
        from posenc.lab.results.ability_scores import ability_scores

        scores = ability_scores(self.ability)
        if self.json:
            say_json(_as_json(self.ability, scores))
        else:
            say(wrap("\n\n".join(_paragraphs(self.ability, scores))))
        return 0


def gaps(ability: str, scores: Sequence[AbilityScore]) -> tuple[list[str], list[str]]:
    """The tasks of an ability and the schemes that no record has at it."""
    tasks = {score.task.partition("(")[0] for score in scores}
    schemes = set[str]().union(*(score.schemes for score in scores))
    return [name for name in tasks_with(ability) if name not in tasks], sorted(set(declarations("schemes")) - schemes)


def _as_json(ability: str, scores: Sequence[AbilityScore]) -> dict[str, Any]:
    tasks, schemes = gaps(ability, scores)
    rows = [dataclasses.asdict(score) | {"learned": score.learned} for score in scores]
    without = {"tasks without a record": tasks, "schemes without a record": schemes}
    return {"ability": ability, "is": ABILITIES[ability], "scores": rows, **without}


def _paragraphs(ability: str, scores: Sequence[AbilityScore]) -> Iterator[str]:
    """What is asked for, the scores by task, what they are, and what is open."""
    from posenc.lab.results.statistics import HOLDS

    yield f"{ability}: {ABILITIES[ability]}"
    for _, group in itertools.groupby(scores, lambda s: (s.task, s.experiment, s.trained, s.size)):
        yield "\n".join(_block(tuple(group)))
    if scores:
        yield LEGEND.format(least=HOLDS)
    yield "\n".join(["Open:", *(f"  {line}" for line in _open(ability, scores))])


def _block(group: Sequence[AbilityScore]) -> Iterator[str]:
    """The schemes of one experiment on one task, the best first."""
    first, runs = group[0], {score.right.n for score in group}
    models = Counter(score.model for score in group)
    usual = next((model for model, n in models.items() if 2 * n > len(group)), None)
    low, high = first.trained
    trained = f"trained on {low} to {high}" if low < high else f"trained on {high}"
    floor = "" if first.floor is None else f"; floor {first.floor:.2f}"
    n = f"; n = {min(runs)}" if len(runs) == 1 else ""
    other = " if no other model is named" if len(models) > 1 else ""
    model = f", {usual}{other}" if usual else ""
    yield f"{first.task}{model}, {trained}, at {first.size} ({first.experiment}{n}{floor})"

    def name(score: AbilityScore) -> str:
        named = score.model == usual or any(setting.startswith("model=") for setting in score.settings)
        notes = [*([] if named else [score.model]), *score.settings, *([f"n = {score.right.n}"] * (len(runs) > 1))]
        return f"{score.scheme} ({', '.join(notes)})" if notes else score.scheme

    unlearned = [score for score in group if score.learned is False]
    lines = {
        "": [f"{_score(s)} {name(s)}" for s in group if s.learned],
        "sizes trained on not evaluated: ": [f"{_score(s)} {name(s)}" for s in group if s.learned is None],
        "not learned: ": [f"{name(s)} {s.trained_right:.2f}" for s in unlearned],
        "loss still fell: ": [name(s) for s in group if s.falling],
        "share right by learning rate, of rates that tie in validation: ": [
            _by_rate(name(s), s) for s in group if s.by_rate
        ],
    }
    yield from (f"  {head}{'; '.join(map(tie, names))}" for head, names in lines.items() if names)


def _by_rate(name: str, score: AbilityScore) -> str:
    return f"{name} {', '.join(f'{right:.2f} at {rate:g}' for rate, right in sorted(score.by_rate.items()))}"


def _score(score: AbilityScore) -> str:
    return "–" if score.score is None else f"{score.score:.2f}"


def _open(ability: str, scores: Sequence[AbilityScore]) -> Iterator[str]:
    """What the records leave undecided."""
    from posenc.lab.results.results import grouped
    from posenc.lab.results.statistics import LEAST

    tasks, schemes = gaps(ability, scores)
    if tasks:
        yield f"{plural(len(tasks), 'task')} in no record: {', '.join(tasks)}."
    yield f"{len(schemes)} of {len(declarations('schemes'))} schemes have no record for {ability}."
    by_task = grouped((score.task, score) for score in scores)
    if unlearned := [task for task, of in by_task.items() if all(score.learned is False for score in of)]:
        yield f"Learned by no scheme at the sizes trained on: {', '.join(unlearned)}."
    few = sorted({score.experiment for score in scores if score.right.n < LEAST})
    if few:
        yield f"Fewer than {LEAST} runs, which order no two schemes: {', '.join(few)}."
    if experiments := sorted({score.experiment for score in scores}):
        yield f"Claims and verdicts: posenc reproduce {' '.join(experiments)}"
