"""`posenc atlas --for counting`: which schemes do it, which do not, how sure that is, and what to take."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from posenc.lab.figures.style import short_share
from posenc.lab.results.atlas_cells import APART, AtlasCell, runs_named
from posenc.lab.spec import atlas, settings
from posenc.lab.spec.abilities import ABILITIES, TASKS, ability_of
from posenc.language.echo import plural
from posenc.language.modules import declarations

WIDTH = 100
"""Columns of a line."""
BEST = 3
"""Schemes that are recommended."""
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
    return {"for": title, "model": model, "probes": [*names], "take": [row for row, _ in _ranked(shown)], "cells": rows}


def _probe(name: str, cells: Sequence[AtlasCell], model: str) -> Iterator[str]:
    """The rows of one probe by how far they hold."""
    probe = atlas.PROBES[name]
    what, floor = COUNTED[probe.metric_in(model)], short_share(max(cell.floor for cell in cells))
    yield f"{name}: {probe.title}; accuracy of {what} at 2 L, best baseline {floor}"
    groups = {
        "at least .9 up to 4 L: ": [c for c in cells if (c.reach or 0) >= 4],
        "up to 2 L: ": [c for c in cells if 2 <= (c.reach or 0) < 4],
        "not up to 2 L: ": [c for c in cells if c.learned and (c.reach or 0) < 2],
    }
    for head, of_group in groups.items():
        if of_group:
            best = sorted(of_group, key=lambda c: (-c.twice, c.row))
            yield _listed(f"  {head}", [f"{_row(c)} {_below(c.twice)}" for c in best])
    if lost := sorted((c for c in cells if not c.learned), key=lambda c: (-c.trained, c.row)):
        yield _listed("  not learned: ", [f"{_row(c)} {_below(c.trained)}" for c in lost])


def _below(share: float) -> str:
    """A share cut to two digits, so that .896 is not shown as .90, which it does not reach."""
    return short_share(math.floor(100 * share + 1e-9) / 100)


def _row(cell: AtlasCell) -> str:
    """A row by its name; a recurrent model is no scheme."""
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


def _ranked(cells: Sequence[AtlasCell]) -> list[tuple[str, float]]:
    """The schemes that were learned on every probe, best first, with how far each holds on all of them, in L."""
    probes = {cell.probe for cell in cells}
    by_row: dict[str, list[AtlasCell]] = {}
    for cell in cells:
        by_row.setdefault(cell.row, []).append(cell)
    rows = {r: of for r, of in by_row.items() if {c.probe for c in of} == probes and all(c.learned for c in of)}
    reach = {row: min(cell.reach or 0 for cell in of) for row, of in rows.items() if row not in atlas.RECURRENT}
    order = sorted(reach, key=lambda row: (-reach[row], -min(cell.above for cell in rows[row]), row))
    return [(row, reach[row]) for row in order]


def _taken(cells: Sequence[AtlasCell]) -> str:
    ranked, several = _ranked(cells), len({cell.probe for cell in cells}) > 1
    if not ranked:
        return "no scheme learned all of these." if several else "no scheme learned it."
    least: Mapping[str, float] = {row: min(cell.twice for cell in cells if cell.row == row) for row, _ in ranked[:BEST]}
    each = ", ".join(f"{row} ({_below(least[row])} at 2 L)" for row in least)
    furthest = f"{ranked[0][1]:g} L" if ranked[0][1] > 1 else "L"
    on_all = " on each probe" if several else ""
    limit = "" if ranked[0][1] >= 2 else " No scheme holds .9 up to 2 L, so train on the lengths that you need."
    return f"{each}; the first holds .9 up to {furthest}{on_all}.{limit}"


def _sureness(cells: Sequence[AtlasCell]) -> str:
    runs = " or ".join(runs_named(*pair) for pair in sorted({(cell.seeds, cell.rates) for cell in cells}))
    unsure = len({cell.row for cell in cells if cell.learned and cell.rates_apart >= APART})
    apart = f" Of {plural(unsure, 'row')}, rates that tie in validation differ by {short_share(APART)} or more."
    rows = plural(len({cell.row for cell in cells}), "row")
    return f"{rows}, medians of {runs}; so few seeds cannot rank rows that are close.{apart * (unsure > 0)}"


def _filled(head: str, text: str) -> list[str]:
    """A paragraph in lines of at most `WIDTH` columns."""
    return textwrap.wrap(head + text, WIDTH, subsequent_indent=" " * min(len(head), 4), break_on_hyphens=False)
