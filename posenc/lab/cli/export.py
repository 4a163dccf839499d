"""`posenc export`: the table of a run for other programs, or its records as one file. No jax."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import arg

from posenc.lab.cli.options import File, First, Flag, Metric
from posenc.lab.cli.output import as_json, bundle_path, output_path, report, say
from posenc.lab.cli.read import not_empty, stored
from posenc.lab.store import disk

if TYPE_CHECKING:
    from posenc.lab.results.results import Results

Format = Literal["csv", "json", "parquet", "tensorboard"]
ENDINGS = (".csv", ".json", ".parquet")


@dataclass(frozen=True)
class Export:
    """The table of a run: one line per trial, size and metric, as `posenc.load` has it, or per trial and point of its
    loss curve. Or all its records as one small file to commit."""

    run: First
    """A run, its folder, a bundle, or an experiment (its name or file) whose record is committed."""
    format: Annotated[Format | None, arg(metavar="{csv,json,parquet,tensorboard}", help_behavior_hint="")] = None
    """CSV with a header, a JSON array of objects, a Parquet file with a column for every setting, or a folder of event
    files for TensorBoard. Default: as the name of the file ends, or csv."""
    json: Flag = False
    """Stands for --format json."""
    out: Annotated[File, arg(aliases=["-o"])] = None
    """Write to this file, NAME.csv, NAME.json or NAME.parquet, not the terminal; of tensorboard, a new folder."""
    metric: Metric = None
    what: Literal["sizes", "curves"] = "sizes"
    """Export the evaluations at each size, or the loss along training."""
    bundle: File = None
    """Write the records of a run to one file, which every reading command accepts instead of the run."""

    def __call__(self) -> int:
        not_empty(self.bundle, "--bundle", "a file")
        not_empty(self.out, "--out", "a file")
        if self.bundle is not None:
            return self._bundle(self.bundle)
        if self.what == "curves" and self.metric is not None:
            raise ValueError("--what curves writes the loss of training batches, so leave --metric out.")
        if self.format == "tensorboard":
            return self._events()
        path = None if self.out is None else output_path(self.out, "--out", ENDINGS)
        form = "json" if self.json else self.format or (path.suffix[1:] if path else "csv")
        if path is not None and path.suffix != f".{form}":
            raise ValueError(f"--out {str(path)!r} does not end in .{form}, the format; make the two agree.")
        if path is None and form == "parquet":
            raise ValueError("--format parquet writes bytes; give --out NAME.parquet too.")
        results = stored(self.run)
        content = self._content(results, form)
        if path is None:
            sys.stdout.write(content.decode())
        else:
            disk.write(path, content)
            say(str(path))
        report(results.problems)
        return 0

    def _content(self, results: Results, form: str) -> bytes:
        """The table, or the loss curves, in a format."""
        from posenc.lab.figures.exports import csv_of, curves
        from posenc.lab.results.table import frame_of, table

        rows = frame_of(curves(results)) if self.what == "curves" else table(results)
        if self.what == "curves" and not len(rows):
            raise ValueError(f"The records of {results.name!r} hold no loss along training; export its sizes.")
        if self.metric is not None:
            rows = rows[rows.metric == self.metric]
            if not len(rows):
                raise ValueError(f"The records of {results.name!r} did not count {self.metric!r}; leave --metric out.")
        if form == "parquet":
            if importlib.util.find_spec("pyarrow") is None:
                raise ValueError("Parquet files need pyarrow; pip install pyarrow, or export .csv.")
            return rows.to_parquet()
        if form == "json":
            return as_json(rows.astype(object).where(rows.notna(), None).to_dict("records")).encode()
        return csv_of(rows).encode()

    def _events(self) -> int:
        """Write event files, a folder for each trial."""
        from posenc.lab.figures.exports import write_events

        if self.json or self.what == "curves":
            raise ValueError("--format tensorboard writes losses and evaluations; leave --json and --what out.")
        if self.out is None:
            raise ValueError("--format tensorboard writes a folder; give --out FOLDER, and `tensorboard --logdir` it.")
        results = stored(self.run).shown(self.metric)
        write_events(results, Path(self.out))
        say(f"{self.out}: {len(results.trials())} trials; `tensorboard --logdir {self.out}` shows them.")
        report(results.problems)
        return 0

    def _bundle(self, name: str) -> int:
        """Write the records to one file."""
        from posenc.lab.store import folder as store

        if self.out is not None:
            raise ValueError("--bundle and --out each name a file; give one of them.")
        if self.metric is not None:
            raise ValueError("--bundle writes the records with all their counts, so leave --metric out.")
        folder = store.find(self.run)
        say(str(store.bundle(folder, bundle_path(name, folder.resolve().name))))
        return 0
