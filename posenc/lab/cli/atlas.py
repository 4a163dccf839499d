"""`posenc atlas`: rows of the atlas side by side. A scheme without a row is trained on the same tasks."""

from __future__ import annotations

import dataclasses
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from posenc.lab.cli import FAILED, OK, USAGE
from posenc.lab.cli.atlas_for import answer, probes_for
from posenc.lab.cli.atlas_for import as_json as answer_as_json
from posenc.lab.cli.options import Flag, Name, Text
from posenc.lab.cli.output import clean, say, say_json, say_rows
from posenc.lab.figures.style import short_share
from posenc.lab.results.atlas_cells import AtlasCell, atlas_cells, recorded_cells, runs_named
from posenc.lab.spec import atlas, settings
from posenc.lab.spec.experiment import Experiment
from posenc.lab.spec.run import Plan, Run
from posenc.lab.store import disk

LEGEND = (
    "Three numbers: the median share right at L, 2 L and 4 L, where L is the longest size trained on; of text the last"
    " token, in encoders all beyond training, of recall and copies every answer. Then how far it holds, with 0.9 or"
    " more at every size, unless the sizes trained on were not learned. Floor: the best guess at 2 L. Difference: from"
    " the first, at 2 L."
)


@dataclass(frozen=True)
class Atlas:
    """Compare schemes on the tasks of the atlas, from the records that come with posenc. A scheme without a row, such
    as one of your own, is trained on the tasks first. Its row is printed under that of a control, which is trained
    where no record has it.

    posenc atlas rope fox

    posenc atlas mine:Mine --probes offset,copy

    posenc atlas --for counting
    """

    schemes: Annotated[Positional[tuple[str, ...]], arg(metavar="SCHEME ...")] = ()
    """Schemes; or lstm or gru, models without attention. Default: list the probes."""
    model: Literal["decoder", "encoder"] = "decoder"
    """The model around them."""
    probes: Text = None
    """These probes alone, NAME,NAME. Default: all that the model has."""
    what: Annotated[str | None, arg(name="for", metavar="NAME", help_behavior_hint="")] = None
    """An ability, a task or a probe: which schemes do it, which do not, how sure that is, and what to take."""
    control: str = "rope"
    """The row above that of a scheme that is trained."""
    seeds: Annotated[str, arg(metavar="TEXT")] = "1"
    """The number of seeds to train, or the seeds themselves, such as 3:6. Each trains at two learning rates."""
    name: Name = None
    """Trained rows go to runs/NAME. Default: atlas_rows."""
    dry_run: Flag = False
    """Print what would be trained and how long it would take."""
    json: Flag = False
    """Print JSON: every cell."""

    def __call__(self) -> int:
        if self.model == "encoder" and (recurrent := [text for text in self.schemes if text in atlas.RECURRENT]):
            raise ValueError(f"{recurrent[0]} is a model of its own and stands beside decoders; leave --model out.")
        names = self._probes()
        if self.what is not None:
            if self.probes is not None:
                raise ValueError("--for and --probes both choose probes; give one of them.")
            title, names = probes_for(self.what, self.model)
            if not self.schemes:
                arguments = (title, names, recorded_cells(), self.model)
                say_json(answer_as_json(*arguments)) if self.json else say("\n".join(answer(*arguments)))
                return OK
        if not self.schemes:
            self._list(names)
            return OK
        cells = {(c.row, c.probe): c for c in recorded_cells() if c.model == self.model and c.probe in names}
        rows = [*map(atlas.row_of, self.schemes)]
        if not {*rows} <= _measured(cells):
            rows = _as_labelled(rows)
            if not {*rows} <= _measured(cells):
                rows = list(dict.fromkeys([*_as_labelled([atlas.row_of(self.control)]), *rows]))
            if new := [row for row in rows if row not in _measured(cells)]:
                control = rows[0]
                lacking = [name for name in names if control not in new and (control, name) not in cells]
                code, trained = self._train(new, names, control, lacking)
                if code not in (OK, FAILED) or self.dry_run:
                    return code
                cells = {(c.row, c.probe): c for c in trained} | cells
        for text in self.schemes:
            if (row := atlas.row_of(text)) != text:
                print(clean(f"{text} stands in the atlas as {row}."), file=sys.stderr)
        self._show([*dict.fromkeys(rows)], names, cells)
        return OK

    def _probes(self) -> tuple[str, ...]:
        """The probes asked for, in the order of the atlas."""
        possible = [name for name, probe in atlas.PROBES.items() if self.model in probe.models]
        wanted = possible if self.probes is None else settings.several(self.probes, "--probes")
        for name in wanted:
            if name not in atlas.PROBES:
                raise settings.unknown("probe", name, atlas.PROBES)
            if name not in possible:
                raise ValueError(f"The probe {name!r} is not one of {self.model}s; take {', '.join(possible)}.")
        return tuple(name for name in possible if name in wanted)

    def _list(self, names: Sequence[str]) -> None:
        measured = Counter(cell.probe for cell in recorded_cells() if cell.model == self.model)
        rows = [
            (name, probe.title, probe.task, f"{probe.shortest} to {probe.length}", probe.steps, measured[name])
            for name, probe in ((name, atlas.PROBES[name]) for name in names)
        ]
        columns = ("probe", "what is asked for", "task", "trained on", "steps", f"rows measured in {self.model}s")
        if self.json:
            say_json([dict(zip(columns, row, strict=True)) for row in rows])
        else:
            say_rows(columns, rows)

    def _train(
        self, rows: Sequence[str], names: Sequence[str], control: str, lacking: Collection[str]
    ) -> tuple[int, list[AtlasCell]]:
        """Train what the probes ask of some rows, and the control on those that it lacks. Return the exit code, and the
        model's cells that the run folder then has."""
        from posenc.lab.cli.train import TrainOptions, carry_out
        from posenc.lab.results.results import load

        name, codes, seeds = self.name or "atlas_rows", [], settings.value("seeds", self.seeds)
        for steps in sorted({atlas.PROBES[probe].steps for probe in names}):
            plan, runs = dataclasses.replace(atlas.PLAN, steps=steps, seeds=seeds), list[Run]()
            for probe in (probe for probe in atlas.probes(steps) if probe in names):
                own = list(_possible(atlas.runs(rows, self.model, [probe]), plan))
                above = [control] if own and probe in lacking else []
                runs += [*atlas.runs(above, self.model, [probe]), *own]
            if runs:
                options = TrainOptions(name=name, dry_run=self.dry_run)
                codes.append(carry_out(Experiment(name, tuple(runs), plan), options, table=False))
        if not codes:
            return USAGE, []
        cells = [] if self.dry_run else atlas_cells(load(disk.root() / name))
        return max(codes), [cell for cell in cells if cell.model == self.model]

    def _show(self, rows: Sequence[str], names: Sequence[str], cells: Mapping[tuple[str, str], AtlasCell]) -> None:
        shown = [cells[row, name] for name in names for row in rows if (row, name) in cells]
        if self.json:
            say_json([dataclasses.asdict(cell) | {"learned": cell.learned} for cell in shown])
            return
        columns, measured = ["probe", "baseline"], {cell.probe for cell in shown}
        for n, row in enumerate(rows):
            columns += [row, "holds"] + ["difference"] * (n > 0)
        wanted = [name for name in names if self.probes or name in measured]
        say_rows(columns, [[name, *_line([cells.get((row, name)) for row in rows])] for name in wanted])
        runs = {row: {(c.seeds, c.rates) for c in shown if c.row == row} for row in rows}
        parts = (f"{row} {' or '.join(runs_named(*n) for n in sorted(of))}" for row, of in runs.items() if of)
        say(f"{self.model.capitalize()}s; {'; '.join(parts)}. {LEGEND}")


def _measured(cells: Iterable[tuple[str, str]]) -> set[str]:
    return {row for row, _ in cells}


def _as_labelled(texts: Sequence[str]) -> list[str]:
    """Rows as records call them; the modules of one's own schemes are imported."""
    from posenc.lab.cli.machine import start
    from posenc.lab.run.plan import shortest
    from posenc.lab.spec.modules import load_named

    start()
    load_named(texts)
    return list(dict.fromkeys(text if text in atlas.RECURRENT else shortest(text) for text in texts))


def _possible(runs: Iterable[Run], plan: Plan) -> Iterator[Run]:
    """The runs that can be trained; why another cannot is said on stderr."""
    from posenc.lab.run.plan import rehearsed
    from posenc.lab.spec import own

    for run in runs:
        try:
            rehearsed(run, plan)
        except Exception as error:
            where = own.place_of(error)
            if not isinstance(error, ValueError) and not where:
                raise
            end = f" ({where})" if where else ""
            print(clean(f"{run.scheme} has no cell on {run.task}: {own.described(error)}{end}."), file=sys.stderr)
        else:
            yield run


def _line(cells: Sequence[AtlasCell | None]) -> list[str]:
    """A probe's floor, then for each row its numbers, how far it holds, and the difference from the first row."""
    first, floors = cells[0], [cell.floor for cell in cells if cell]
    line = [short_share(floors[0]) if floors else "–"]
    for n, cell in enumerate(cells):
        numbers = [] if cell is None else [cell.once, cell.twice, cell.four]
        line += ["–", "–"] if cell is None else [" ".join(map(short_share, numbers)), cell.held]
        if n:
            comparable = first is not None and cell is not None and (first.learned or cell.learned)
            line.append(f"{cell.twice - first.twice:+.2f}" if comparable else "–")
    return line
