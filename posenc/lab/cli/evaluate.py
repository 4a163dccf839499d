"""`posenc evaluate`: trained models at other sizes, on another task, under other schemes, or group by group."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import arg

from posenc.lab.cli.options import File, First, Flag, Settings, Text
from posenc.lab.cli.output import bundle_path, figure_path, output_path, say, say_json
from posenc.lab.cli.read import filter_results, say_table, stored
from posenc.lab.spec import settings
from posenc.lab.spec.modules import load_named
from posenc.lab.store import disk


@dataclass(frozen=True)
class Evaluate:
    """Evaluate trained models again, without training: other sizes, another task, other schemes, group by group.

    posenc evaluate mine --scheme "rope,pi(factor=4.0),yarn(factor=4.0)" --sizes 64

    posenc evaluate flipflop --task "flip_flop(p=0.98)" --sizes 512 --rows 4096

    posenc evaluate mine --by digits_a,digits_b --png grid.png

    The run must have kept its parameters (`posenc sweep --keep`). Default: the task, sizes and rows of the run itself.
    """

    run: First
    """A run's name, or its folder."""
    scheme: Annotated[str | None, arg(metavar="SCHEME,...", help_behavior_hint="")] = None
    """Other schemes with the same parameters, such as yarn(factor=4.0) for models trained with rope."""
    task: Text = None
    """Another task, with the same tokens and layout."""
    sizes: Annotated[str | None, arg(metavar="INT,...|all", help_behavior_hint="")] = None
    """Sizes, 512,1024, or a range, 41:501 for all from 41 to 500. With all, every size of the task beyond training."""
    rows: Annotated[int | None, arg(metavar="INT", help_behavior_hint="")] = None
    """Examples of each size."""
    by: Annotated[str | None, arg(metavar="NAME,...", help_behavior_hint="")] = None
    """Group the examples by size, or by the strata that `posenc describe TASK` lists, such as digits_a,digits_b."""
    only: Settings = ()
    """Only these schemes, families, seeds or rates: scheme=rope,alibi."""
    bundle: File = None
    """Write the results to this file, which table, plot, compare and export can read; without --by."""
    csv: File = None
    """With --by: write the counts of every trial in every group to this file."""
    png: Annotated[File, arg(aliases=["-o"])] = None
    """With --by of one or two names: draw the groups in this file, .png, .svg or .pdf."""
    json: Flag = False
    """Print JSON."""

    def __call__(self) -> int:
        for option, value in (("--csv", self.csv), ("--png", self.png)):
            if value is not None and self.by is None:
                raise ValueError(f"{option} needs groups of examples; name them with --by, or leave it out.")
        if self.bundle is not None and self.by is not None:
            raise ValueError("--bundle holds whole sizes, but --by requests groups; use --csv, or leave out --by.")
        target = None if self.png is None else figure_path(self.png)
        path = None if self.csv is None else output_path(self.csv, "--csv", (".csv",))
        results = filter_results(stored(self.run), self.only)
        bundle = None if self.bundle is None else bundle_path(self.bundle, results.name)
        schemes = None if self.scheme is None else settings.several(self.scheme, "--scheme")
        load_named([self.task, *(schemes or ())])
        from posenc.lab import tasks

        requested: dict[str, Any] = {"rows": self.rows, "task": None if self.task is None else tasks.parse(self.task)}
        requested["schemes"] = schemes
        requested["sizes"] = None if self.sizes is None else settings.value("sizes", self.sizes)
        if self.by is None:
            return self._evaluate_sizes(results, requested, bundle)
        return self._grouped(results, requested, target, path)

    def _evaluate_sizes(self, results: Any, requested: dict[str, Any], bundle: Path | None) -> int:
        from posenc.lab.reuse.evaluate import ask
        from posenc.lab.store.records import write_bundle

        evaluation = ask(results, **requested)
        say_table(evaluation.shown(), "json" if self.json else "text")
        if bundle is not None:
            path = write_bundle(bundle, evaluation.name, evaluation.records, [])
            if not self.json:
                say(f"Wrote {path}.")
        return 0

    def _grouped(self, results: Any, requested: dict[str, Any], target: Path | None, path: Path | None) -> int:
        from posenc.lab.figures import grouped
        from posenc.lab.figures.exports import csv_of
        from posenc.lab.reuse.evaluate import groups

        by = settings.several(self.by or "", "--by")
        table = groups(results, by, **requested)
        left_out = sum(trial.outcome == "diverged" for record in results.records for trial in record.trials)
        if self.json:
            say_json({"by": by, "rows": table.to_dict("records"), "diverged": left_out})
        else:
            say(grouped.as_text(table, by, left_out))
        written = [] if path is None else [disk.write(path, csv_of(table).encode())]
        if target is not None:
            from posenc.lab.figures.files import render

            subject = f"run {results.name} by {', '.join(by)}"
            written.append(disk.write(target, render(grouped.draw(table, by), target.suffix[1:], target.stem, subject)))
        if written and not self.json:
            say(f"Wrote {', '.join(map(str, written))}.")
        return 0
