"""The plan of a run folder: which trials it is to hold, in which groups. `plan.jsonl` has lines of three kinds:

    {"sha256", "shared"}             what trials share, once for each SHA-256: the run, steps, sizes, …
    {"id", "group", "knobs", "run"}  a trial, which names what it shares by that SHA-256
    {"trials", "reports"}            seeds that a later command reports, and the tuning trials that choose their rate

A line once written never changes. Version 0.2.0 kept the first kind in `runs.jsonl` and the last in `reports.jsonl`,
which are read before `plan.jsonl`; new lines go to `plan.jsonl` alone.
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
from posenc.lab.store.logs import check_version
from posenc.lab.store.records import canonical, checksum
from posenc.lab.store.schema import (
    OLDER,
    AddedSeeds,
    KnobRecord,
    PlannedTrial,
    TrialLine,
    planned,
    read_line,
    written,
)

PLAN, OF_0_2, PLANNING = "plan.jsonl", ("runs.jsonl", "reports.jsonl"), "planning"
OWN = ("id", "group", "knobs")
"""Keys that a trial shares with no other."""
RESTORE = "restore the file, or plan again"


def write_plan(folder: Path, lines: Sequence[PlannedTrial], experiment: str = "") -> list[PlannedTrial]:
    """Append the trials that are not planned yet, and return them. Add the seeds that a tuning trial reports beyond
    those that it is planned with.

    The text of the experiment that adds them is kept too: the first as sweep.toml, then sweep-2.toml, sweep-3.toml, …
    """
    lines = [_checked(line, f"line {number} of the new plan") for number, line in enumerate(lines, 1)]
    check_version(folder)
    with _planning(folder):
        runs, old = _read(folder)
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
        _check_rates(old, lines, added)
        if added or seeds or not old:
            _keep_experiment(folder, experiment.encode())
            _append(disk.inside(folder, PLAN), _new_lines(added, seeds, set(runs)))
    return added


def _new_lines(
    added: Sequence[PlannedTrial], seeds: Mapping[tuple[int, ...], Sequence[str]], present: set[str]
) -> Iterator[str]:
    """The lines of new trials, what they share before them, and of new seeds. `present` are the runs that are there."""
    for line in added:
        content = written(line)
        shared = canonical({key: value for key, value in content.items() if key not in OWN})
        if (sum := checksum(shared)) not in present:
            present.add(sum)
            yield f'{{"sha256":"{sum}","shared":{shared}}}'
        yield canonical({key: content[key] for key in OWN} | {"run": sum})
    for reports, trials in seeds.items():
        yield canonical(written(AddedSeeds(tuple(trials), reports)))


def _append(path: Path, lines: Iterable[str]) -> None:
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
    if not disk.inside(folder, PLAN).exists():
        raise ValueError(f"{str(folder)!r} holds no {PLAN}, so it is not a run folder; `posenc sweep` makes one.")
    return _read(folder)[1]


def _read(folder: Path) -> tuple[dict[str, PlannedTrial], list[PlannedTrial]]:
    """Return what trials share, by its SHA-256, and the planned trials; both are empty in a folder without a plan."""
    runs, lines = dict[str, PlannedTrial](), dict[str, tuple[PlannedTrial, str]]()
    seeds: list[tuple[AddedSeeds, str]] = []
    for content, where in _contents(folder):
        if "shared" in content:
            runs[content.get("sha256")] = _shared(content, where)
        elif "trials" in content:
            seeds.append((read_line(AddedSeeds, content, where, RESTORE), where))
        else:
            line = _line(content, where, runs)
            if line.id in lines:
                again = f"{where.capitalize()} plans the trial {line.id[:12]} again"
                raise ValueError(f"{again}, as {lines[line.id][1]} does; remove one of them.")
            lines[line.id] = line, where
    for added, where in seeds:
        for id in added.trials:
            line, place = lines.get(id, (None, ""))
            if line is None or line.reports is None:
                raise ValueError(f"{where} names the trial {id[:12]}, which is not planned for tuning; {RESTORE}.")
            lines[id] = replace(line, reports=tuple(dict.fromkeys((*line.reports, *added.reports)))), place
    return runs, [line for line, _ in lines.values()]


def run_key(text: str, steps: int, knobs: KnobRecord) -> tuple:
    """Return what the trials of one run have in common: its settings as canonical JSON, and all but seed, rate and
    role."""
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
    return {seed for line in of_run for seed in line.reports or ()}


def _shared(content: dict[str, Any], where: str) -> PlannedTrial:
    """Return the shared part of trials, as a planned trial with knobs that stand for any."""
    shared = content["shared"]
    if not isinstance(shared, dict) or content.get("sha256") != checksum(canonical(shared)):
        raise ValueError(f"{where} does not match its checksum, so it was damaged or edited; {RESTORE}.")
    any_one = {"id": "any", "group": "any", "knobs": {"seed": 0, "lr": 0.0}}
    return planned(PlannedTrial, shared | any_one, where, RESTORE)


def _contents(folder: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the content of each line of a plan, and its place."""
    for path in (disk.inside(folder, name) for name in (*OF_0_2, PLAN)):
        texts = disk.content(path).decode("utf-8", errors="replace").splitlines() if path.exists() else []
        for number, text in enumerate(texts, 1):
            where, content = f"line {number} of {str(path)!r}", None
            with contextlib.suppress(ValueError, RecursionError):
                content = msgspec.json.decode(text)
            if not isinstance(content, dict):
                raise ValueError(f"{where} is not a JSON object; restore the file, or plan again in a new folder.")
            yield content, where


def _line(content: dict[str, Any], where: str, runs: Mapping[str, PlannedTrial]) -> PlannedTrial:
    """A planned trial, with what it shares."""
    if isinstance(content.get("run"), dict):
        raise ValueError(f"{where} holds its run itself, {OLDER}.")
    line = read_line(TrialLine, content, where, RESTORE)
    if (shared := runs.get(line.run)) is None:
        raise ValueError(f"{where} names a run that no line before it has; {RESTORE}.")
    if more := sorted(content.keys() - vars(line).keys()):
        raise ValueError(f"{where} has {more[0]!r} beside the run that it names; {RESTORE}.")
    return replace(shared, id=line.id, group=line.group, knobs=line.knobs)


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


def _check_rates(old: Sequence[PlannedTrial], new: Sequence[PlannedTrial], added: Sequence[PlannedTrial]) -> None:
    """A folder tunes once: refuse other rates and seeds to choose among, and trials at rates that are not among them.

    A seed that would choose and be reported then is one trial in two roles, which `_same` refuses.
    """
    before = {_choice(line) for line in old if line.tuning}
    requested = {_choice(line) for line in new if line.tuning}
    grid = before or requested
    others = {line.knobs.lr for line in (added if before else (*old, *added))} - {rate for rate, _ in grid}
    if grid and (others or (requested and requested != grid)):
        now = _listed(requested) if requested and requested != grid else ", ".join(f"{r:g}" for r in sorted(others))
        raise ValueError(f"Learning rates are chosen here among {_listed(grid)}, not among {now}; use a new --name.")


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
