"""The plan of a run folder: which trials it is to hold, in which groups.

    plan.jsonl     for each trial its id, its group, its knobs, and the SHA-256 of what it shares with others
    runs.jsonl     what trials share, once for each SHA-256: the run, steps, sizes, …
    reports.jsonl  seeds that later commands add to those reported, with the tuning trials that choose their rate

A line once written never changes. The runs are written before the plan that names them, and read after it, so that a
reader finds every one. Added seeds are written after the plan and read before it, so that a reader finds their trials.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from posenc.lab.store import disk
from posenc.lab.store.claims import claim
from posenc.lab.store.reading import check_version
from posenc.lab.store.records import canonical, checksum
from posenc.lab.store.schema import (
    OLDER,
    AddedSeeds,
    KnobRecord,
    PlannedTrial,
    TrialLine,
    planned,
    read,
    read_line,
    written,
)

PLAN, RUNS, REPORTS, PLANNING = "plan.jsonl", "runs.jsonl", "reports.jsonl", "planning"
OWN = ("id", "group", "knobs")
"""What a trial shares with no other; all else of a planned trial stands in runs.jsonl."""
RESTORE = "restore the file, or plan again"


def write_plan(folder: Path, lines: Sequence[PlannedTrial], experiment: str = "") -> list[PlannedTrial]:
    """Append the trials that are not planned yet, and return them. A line once written never changes; the seeds that
    a tuning trial reports beyond those of its line are appended to reports.jsonl.

    The text of the experiment that adds them is kept too: the first as sweep.toml, then sweep-2.toml, sweep-3.toml, …
    """
    lines = [_checked(line, f"line {number} of the new plan") for number, line in enumerate(lines, 1)]
    check_version(folder)
    with _planning(folder):
        old = read_plan(folder) if disk.inside(folder, PLAN).exists() else []
        by_id, groups = {line.id: line for line in old}, {line.group for line in old}
        added, seeds = [], dict[tuple[int, ...], list[str]]()
        for line in lines:
            if line.id in by_id:
                _same(line, by_id[line.id])
                if further := tuple(seed for seed in line.reports or () if seed not in by_id[line.id].reports):
                    seeds.setdefault(further, []).append(line.id)
            elif line.group in groups:
                raise ValueError(f"The group {line.group!r} is fixed; new trials form new groups.")
            else:
                added.append(line)
                by_id[line.id] = line
        _check_roles(old, [line for line in lines if line.tuning] if added or seeds else [])
        _check_rates(old, lines, {line.knobs.lr for line in added})
        if added or seeds or not old:
            _keep_experiment(folder, experiment.encode())
            _append(folder, added)
            _append_seeds(folder, seeds)
    return added


def _append(folder: Path, added: Sequence[PlannedTrial]) -> None:
    plan, runs, lines = disk.inside(folder, PLAN), disk.inside(folder, RUNS), []
    runs_of, fresh = _runs(runs), {}
    for line in added:
        content = written(line)
        shared = canonical({key: value for key, value in content.items() if key not in OWN})
        if (sum := checksum(shared)) not in runs_of:
            fresh[sum] = f'{{"sha256":"{sum}","shared":{shared}}}'
        lines.append(canonical({key: content[key] for key in OWN} | {"run": sum}))
    if fresh:
        _extend(runs, fresh.values())
    _extend(plan, lines)


def _append_seeds(folder: Path, seeds: Mapping[tuple[int, ...], Sequence[str]]) -> None:
    lines = [canonical(written(AddedSeeds(tuple(trials), reports))) for reports, trials in seeds.items()]
    if lines:
        _extend(disk.inside(folder, REPORTS), lines)


def _extend(path: Path, lines: Iterable[str]) -> None:
    before = disk.content(path) if path.exists() else b""
    parting = b"\n" * (bool(before) and not before.endswith(b"\n"))
    disk.write(path, before + parting + "".join(f"{line}\n" for line in lines).encode())


def _keep_experiment(folder: Path, text: bytes) -> None:
    names = itertools.chain(["sweep.toml"], (f"sweep-{n}.toml" for n in itertools.count(2)))
    path = next(p for name in names if not (p := disk.inside(folder, name)).exists() or disk.content(p) == text)
    if text and not path.exists():
        disk.write(path, text)


def read_plan(folder: Path) -> list[PlannedTrial]:
    """The planned trials, in the order in which they were planned."""
    path = disk.inside(folder, PLAN)
    if not path.exists():
        raise ValueError(f"{str(folder)!r} holds no plan.jsonl, so it is not a run folder; `posenc sweep` makes one.")
    seeds, content = _added_seeds(disk.inside(folder, REPORTS)), list(_contents(path))
    place = disk.inside(folder, RUNS)
    runs = _runs(place)
    lines = [_line(line, where, runs, place) for line, where in content]
    first: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if (before := first.setdefault(line.id, number)) != number:
            again = f"Line {number} of {str(path)!r} plans the trial {line.id[:12]} again"
            raise ValueError(f"{again}, as line {before} does; remove one of them.")
    return _with_added(lines, seeds)


def run_key(text: str, steps: int, knobs: KnobRecord) -> tuple:
    """What the trials of one run have in common: its settings as canonical JSON, and all but seed, rate and role."""
    return text, steps, knobs.weight_decay, knobs.warmup, knobs.clip


def by_run(lines: Iterable[PlannedTrial]) -> list[list[PlannedTrial]]:
    """The planned trials of each run, which differ in seed, learning rate and role alone."""
    lines, texts, groups = list(lines), {}, {}
    for line in lines:
        if (text := texts.get(id(line.run))) is None:
            text = texts[id(line.run)] = canonical(line.run)
        groups.setdefault(run_key(text, line.steps, line.knobs), []).append(line)
    return list(groups.values())


def reported(of_run: Iterable[PlannedTrial]) -> set[int]:
    """The seeds that train at the rate which the tuning trials of a run choose."""
    of_run = list(of_run)
    return {seed for line in of_run for seed in line.reports or ()} - _tuning_seeds(of_run)


def _tuning_seeds(of_run: Iterable[PlannedTrial]) -> set[int]:
    return {line.knobs.seed for line in of_run if line.tuning}


def _added_seeds(path: Path) -> dict[str, tuple[tuple[int, ...], str]]:
    """Tuning trial to the seeds that later commands added to those it reports, and the last line that says so."""
    seeds_of: dict[str, tuple[tuple[int, ...], str]] = {}
    for content, where in _contents(path):
        try:
            added = read(AddedSeeds, content)
        except ValueError as error:
            raise ValueError(f"{where} cannot be used: {error}; {RESTORE}.") from None
        for id in added.trials:
            seeds_of[id] = (*seeds_of.get(id, ((), ""))[0], *added.reports), where
    return seeds_of


def _with_added(lines: Sequence[PlannedTrial], seeds: Mapping[str, tuple[tuple[int, ...], str]]) -> list[PlannedTrial]:
    """Planned trials with the seeds that were added to those they report."""
    tuning = {line.id for line in lines if line.tuning}
    for id, (_, where) in seeds.items():
        if id not in tuning:
            raise ValueError(f"{where} names the trial {id[:12]}, which {PLAN} does not plan for tuning; {RESTORE}.")
    return [
        replace(line, reports=tuple(dict.fromkeys((*line.reports, *seeds[line.id][0])))) if line.id in seeds else line
        for line in lines
    ]


def _runs(path: Path) -> dict[str, PlannedTrial]:
    """What trials share, by its SHA-256, as planned trials with knobs that stand for any."""
    shared_runs = {}
    for content, where in _contents(path):
        shared = content.get("shared") if isinstance(content, dict) else None
        if not isinstance(shared, dict) or content.get("sha256") != checksum(canonical(shared)):
            raise ValueError(f"{where} does not match its checksum, so it was damaged or edited; {RESTORE}.")
        any_one = {"id": "any", "group": "any", "knobs": {"seed": 0, "lr": 0.0}}
        shared_runs[content["sha256"]] = planned(PlannedTrial, shared | any_one, where, RESTORE)
    return shared_runs


def _contents(path: Path) -> Iterator[tuple[Any, str]]:
    """What each line of a file says, and where it stands; nothing where there is no file."""
    texts, of = disk.content(path).decode("utf-8", errors="replace").splitlines() if path.exists() else [], str(path)
    for number, text in enumerate(texts, 1):
        where = f"line {number} of {of!r}"
        try:
            yield msgspec.json.decode(text), where
        except (ValueError, RecursionError):
            raise ValueError(f"{where} is not JSON; restore the file, or plan again in a new folder.") from None


def _line(content: Any, where: str, runs: Mapping[str, PlannedTrial], place: Path) -> PlannedTrial:
    """A planned trial of plan.jsonl, with what it shares."""
    if isinstance(content, dict) and isinstance(content.get("run"), dict):
        raise ValueError(f"{where} holds its run itself, {OLDER}.")
    line = read_line(TrialLine, content, where, RESTORE)
    if (shared := runs.get(line.run)) is None:
        raise ValueError(f"{where} names a run that {str(place)!r} lacks; restore that file, or plan again.")
    if twice := sorted(line.other.keys() & vars(shared).keys()):
        raise ValueError(f"{where} has {twice[0]!r} beside the run that it names; {RESTORE}.")
    own = {"id": line.id, "group": line.group, "knobs": line.knobs, "other": shared.other | line.other}
    return PlannedTrial(**vars(shared) | own)


def _checked(line: PlannedTrial, where: str) -> PlannedTrial:
    """The line as it will be read. Raises `ValueError` for one that could not be."""
    return planned(PlannedTrial, json.loads(canonical(written(line))), where, RESTORE)


@contextlib.contextmanager
def _planning(folder: Path, patience: float = 10.0):
    """Only one process plans at a time; the others wait a little."""
    end = time.monotonic() + patience
    while True:
        with claim(folder, PLANNING) as held_claim:
            if held_claim is not None:
                yield
                return
        if time.monotonic() > end:
            raise ValueError(f"Another process plans in {str(folder)!r}; wait a minute and run again.")
        time.sleep(0.05)


def _check_roles(old: Sequence[PlannedTrial], new: Sequence[PlannedTrial]) -> None:
    """Refuse a seed that a run of the new tuning trials both tunes by and reports, be it by two commands."""
    ids = {line.id for line in new}
    for of_run in by_run([*old, *new]) if new else ():
        if ids.isdisjoint(line.id for line in of_run):
            continue
        seeds = {seed for line in of_run for seed in (line.reports if line.tuning else (line.knobs.seed,))}
        if both := sorted(seeds & _tuning_seeds(of_run)):
            raise ValueError(
                f"The seed {both[0]} of {of_run[0].label} on {of_run[0].task} is planned here both to choose learning "
                "rates (tuning) and to be reported (seeds); give other seeds, or use a new --name."
            )


def _check_rates(old: Sequence[PlannedTrial], new: Sequence[PlannedTrial], added: set[float]) -> None:
    """A folder tunes once: refuse other rates and seeds to choose among, and trials that are added at other rates."""
    grids = [{_choice(line) for line in of_run} for of_run in by_run(line for line in old if line.tuning)]
    requested = {_choice(line) for line in new if line.tuning}
    rates = {rate for grid in grids for rate, _ in grid}
    if grids and (added - rates or (requested and requested not in grids)):
        now = _listed(requested) if requested else ", ".join(f"{rate:g}" for rate in sorted(added))
        raise ValueError(
            f"Learning rates are chosen here among {_listed(grids[0])}, not among {now}; use a new --name."
        )


def _choice(line: PlannedTrial) -> tuple[float, int]:
    return line.knobs.lr, line.knobs.seed


def _listed(grid: set[tuple[float, int]]) -> str:
    """Rates and tuning seeds, such as "0.001, 0.01 (tuning seeds 0, 1)"."""
    rates, seeds = ({values[n] for values in grid} for n in range(2))
    return f"{', '.join(f'{rate:g}' for rate in sorted(rates))} (tuning seeds {', '.join(map(str, sorted(seeds)))})"


def _same(new: PlannedTrial, old: PlannedTrial) -> None:
    """A trial keeps its line: other sizes, rows, segments or roles are another question, which needs another folder."""
    if new.tuning != old.tuning:
        roles = {True: "choose a learning rate (tuning)", False: "be reported (seeds)"}
        raise ValueError(
            f"Trial {new.id[:12]} ({new.label} on {new.task}, seed {new.knobs.seed}) is planned here to "
            f"{roles[old.tuning]}, not to {roles[new.tuning]}; use a new --name."
        )
    pairs = [("sizes", [*old.sizes], [*new.sizes]), ("rows", old.rows, new.rows), ("segment", old.segment, new.segment)]
    for key, before, now in pairs:
        if before != now:
            raise ValueError(
                f"Trial {new.id[:12]} ({new.label} on {new.task}) is planned here with {key} {before}, not {now}; "
                "use a new --name."
            )
