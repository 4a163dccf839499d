"""`posenc atlas --for counting`: which schemes do it, which do not, how sure that is, and what to take."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from posenc.lab.figures.style import short_share
from posenc.lab.results.atlas_cells import APART, AtlasCell, runs_named
from posenc.lab.results.statistics import HOLDS
from posenc.lab.spec import atlas, settings
from posenc.lab.spec.abilities import ABILITIES, TASKS, ability_of
from posenc.language.echo import plural
from posenc.language.modules import declarations

WIDTH = 100
"""Columns of a line."""
BEST = 3
"""Schemes that are recommended."""
ABOVE = 0.1
"""How far from the best baseline to 1 a scheme that is recommended is at 2 L, at least."""
COUNTED = {"last": "the last token", "beyond": "tokens beyond L", "accuracy": "all answer tokens"}
"""Metric to what its accuracy counts."""


def probes_for(name: str, model: str) -> tuple[str, tuple[str, ...]]:
    """Return what a name stands for, in words, and the probes of a model that ask for it.

    A name is that of an ability, of a probe, or of a task; a task without a probe has those of its ability. Raises
    `ValueError` for any other name, and for what the atlas does not ask of this model.
    """
    tasks, names = {name: probe.task.partition("(")[0] for name, probe in atlas.PROBES.items()}, declarations(TASKS)
    abilities = {probe: ability_of(task) for probe, task in tasks.items()}
    title, probes = name, [probe for probe, ability in abilities.items() if ability == name]
    probes = probes or [probe for probe, task in tasks.items() if name in (probe, task)]
    if not probes and name in names:
        ability = ability_of(name)
        title = f"{name}, a task of {ability} without a probe"
        probes = [probe for probe, of in abilities.items() if of == ability]
    if not probes and name not in (*ABILITIES, *names):
        raise settings.unknown("ability, task or probe", name, [*ABILITIES, *atlas.PROBES, *names])
    of_model = tuple(probe for probe in probes if model in atlas.PROBES[probe].models)
    if probes and not of_model:
        other = atlas.PROBES[probes[0]].models[0]
        raise ValueError(f"The atlas asks {', '.join(probes)} of {other}s alone; add --model {other}.")
    if not probes:
        raise ValueError(
            f"The atlas has no probe of {title}; it has {', '.join(dict.fromkeys(abilities.values()))}. `posenc"
            f" describe {name if name in names else 'TASK'}` names the experiments on a task."
        )
    return title, of_model


def answer(title: str, names: Sequence[str], cells: Sequence[AtlasCell], model: str) -> list[str]:
    """Return the lines of the answer, of at most `WIDTH` columns."""
    shown = [cell for cell in cells if cell.model == model and cell.probe in names]
    lines = _filled("", f"{title}, in {model}s. L: longest trained size; not learned: below .9 at a trained size.")
    if not shown:
        return [*lines, f"No record has {model}s on {', '.join(names)}; `posenc atlas SCHEME` trains one."]
    for name in names:
        if of_probe := [cell for cell in shown if cell.probe == name]:
            lines += _probe(name, of_probe, model)
    return [*lines, *_filled("Take: ", _taken(shown)), *_filled("How sure: ", _sureness(shown))]


def as_json(title: str, names: Sequence[str], cells: Sequence[AtlasCell], model: str) -> dict[str, Any]:
    """Return the same as values: every cell, with whether it was learned and its metric."""
    shown = [cell for cell in cells if cell.model == model and cell.probe in names]
    rows = [vars(c) | {"learned": c.learned, "metric": atlas.PROBES[c.probe].metric_in(model)} for c in shown]
    take = {name: [cell.row for cell in _best([c for c in shown if c.probe == name])] for name in names}
    return {"for": title, "model": model, "probes": [*names], "take": take, "cells": rows}


def _probe(name: str, cells: Sequence[AtlasCell], model: str) -> Iterator[str]:
    """The rows of one probe by how far they hold."""
    probe = atlas.PROBES[name]
    what, floor = COUNTED[probe.metric_in(model)], short_share(max(cell.floor for cell in cells))
    yield f"{name}: {probe.title}; accuracy of {what} at 2 L, best baseline {floor}"
    groups = {
        "at least .9 up to 4 L: ": [c for c in cells if (c.reach or 0) >= 4],
        "up to 2 L: ": [c for c in cells if 2 <= (c.reach or 0) < 4],
        "below .9 before 2 L: ": [c for c in cells if c.learned and (c.reach or 0) < 2],
    }
    for head, of_group in groups.items():
        if of_group:
            best = sorted(of_group, key=lambda c: (-c.twice, c.row))
            yield _listed(f"  {head}", [f"{_row(c)} {_below(c.twice)}" for c in best])
    if lost := sorted((c for c in cells if not c.learned), key=lambda c: (-c.trained, c.row)):
        yield _listed("  not learned (in training): ", [f"{_row(c)} {_below(c.trained)}" for c in lost])


def _below(share: float) -> str:
    """A share in two digits; one below .9 is not rounded up to it."""
    return short_share(share if share >= HOLDS or share < HOLDS - 0.005 else HOLDS - 0.01)


def _row(cell: AtlasCell) -> str:
    """A row by its name; a recurrent model is marked, since it has no attention to put a scheme in."""
    return f"{cell.row.upper()} (no attention)" if cell.row in atlas.RECURRENT else cell.row


def _listed(head: str, names: Sequence[str]) -> str:
    """As many names as a line takes, and how many more there are."""
    line, shown = head, 0
    for name in names:
        rest = len(names) - shown - 1
        longer = f"{line}{', ' * bool(shown)}{name}"
        if len(longer) + len(f", and {rest} more") * bool(rest) > WIDTH and shown:
            break
        line, shown = longer, shown + 1
    return line + f", and {len(names) - shown} more" * (shown < len(names))


def _best(cells: Sequence[AtlasCell]) -> list[AtlasCell]:
    """Return the schemes of a probe that hold furthest, or if no scheme holds to 2 L the most accurate there. Schemes
    near the best baseline and recurrent models are left out."""
    able = [c for c in cells if c.learned and c.above >= ABOVE and c.row not in atlas.RECURRENT]
    able.sort(key=lambda c: (-c.twice, c.row))
    furthest = max((c.reach or 0 for c in able), default=0)
    return [c for c in able if c.reach == furthest] if furthest >= 2 else able[:BEST]


def _taken(cells: Sequence[AtlasCell]) -> str:
    """Say what to take for each probe."""
    parts, probes = [], dict.fromkeys(cell.probe for cell in cells)
    shown = BEST if len(probes) < 3 else BEST - 1
    for probe in probes:
        best = _best([cell for cell in cells if cell.probe == probe])
        names = ", ".join(f"{cell.row} {_below(cell.twice)}" for cell in best[:shown])
        if not best:
            what = "no scheme, since none is clear of the best baseline at 2 L"
        elif (best[0].reach or 0) < 2:
            what = f"none holds to 2 L; the nearest are {names}"
        else:
            many = f"any of {len(best)}, such as " if len(best) > shown else ""
            what = f"{many}{names}, up to {best[0].reach:g} L"
        parts.append(f"for {probe}, {what}")
    return f"{'; '.join(parts)}."


def _sureness(cells: Sequence[AtlasCell]) -> str:
    runs = " or ".join(runs_named(*pair) for pair in sorted({(cell.seeds, cell.rates) for cell in cells}))
    best = [c for probe in {c.probe for c in cells} for c in _best([c for c in cells if c.probe == probe])]
    unsure = sorted({cell.row for cell in best if cell.rates_apart >= APART})
    named = ", ".join(unsure[:BEST]) + f" and {len(unsure) - BEST} more" * (len(unsure) > BEST)
    apart = f" Rates that tie in validation differ beyond L, by {short_share(APART)} or more: {named}."
    rows = plural(len({cell.row for cell in cells}), "row")
    return f"{rows}, medians of {runs}; so few seeds cannot rank rows that are close.{apart * bool(unsure)}"


def _filled(head: str, text: str) -> list[str]:
    """A paragraph in lines of at most `WIDTH` columns."""
    return textwrap.wrap(head + text, WIDTH, subsequent_indent=" " * min(len(head), 4), break_on_hyphens=False)
