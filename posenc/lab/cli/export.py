"""`posenc export`: every number of a run for other programs, or its records as one file. Only `--recount` needs jax."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import arg

from posenc.lab.cli.options import File, First, Flag, Metric
from posenc.lab.cli.output import as_json, bundle_path, output_path, report, say
from posenc.lab.cli.read import not_empty, results_of, stored
from posenc.lab.store import disk

if TYPE_CHECKING:
    from posenc.lab.results.results import Results

Format = Literal["csv", "json", "parquet", "tensorboard"]
ENDINGS = (".csv", ".json", ".parquet")


@dataclass(frozen=True)
class Export:
    """Every number of a run: one row per trial and size, or per trial and point of its loss curve. Or all its records
    as one small file to commit."""

    run: First
    """A run, its folder, a bundle, or an experiment (its name or file) whose record is committed."""
    format: Annotated[Format | None, arg(metavar="{csv,json,parquet,tensorboard}", help_behavior_hint="")] = None
    """CSV with a header, a JSON array of objects, a Parquet file in which every setting is a column too, or a folder of
    event files with losses and evaluations that TensorBoard reads. Default: as the name of the file ends, or csv."""
    json: Flag = False
    """The same as --format json."""
    out: Annotated[File, arg(aliases=["-o"])] = None
    """Write to this file, NAME.csv, NAME.json or NAME.parquet, not the terminal; of tensorboard, a new folder."""
    metric: Metric = None
    what: Literal["sizes", "curves"] = "sizes"
    """What was evaluated at each size, or the loss along training."""
    bundle: File = None
    """Write the records of a run to one file, which every reading command accepts instead of the run."""
    recount: Flag = False
    """With --bundle: count the floors of its tasks again, as this version does."""

    def __call__(self) -> int:
        not_empty(self.bundle, "--bundle", "a file")
        not_empty(self.out, "--out", "a file")
        if self.bundle is not None:
            return self._bundle(self.bundle)
        if self.recount:
            raise ValueError("--recount writes a bundle with new floors, so give --bundle FILE too.")
        if self.what == "curves" and self.metric is not None:
            raise ValueError("--what curves writes the loss of training batches, so leave --metric out.")
        if self.format == "tensorboard":
            return self._events()
        path = None if self.out is None else output_path(self.out, "--out", ENDINGS)
        form = "json" if self.json else self.format or (path.suffix[1:] if path else "csv")
        if path is not None and path.suffix != f".{form}":
            raise ValueError(f"--out {str(path)!r} does not end in .{form}, the format; make the two agree.")
        if path is None and form == "parquet":
            raise ValueError("--format parquet is no text; give --out NAME.parquet too.")
        results = results_of(self.run, self.metric)
        content = self._content(results, form)
        if path is None:
            sys.stdout.write(content.decode())
        else:
            disk.write(path, content)
            say(str(path))
        report(results.problems)
        return 0

    def _content(self, results: Results, form: str) -> bytes:
        """The rows in a format."""
        from posenc.lab.figures.exports import EVERY, as_csv, as_parquet, curves, listed
        from posenc.lab.results.frame import flat

        rows = curves(results) if self.what == "curves" else (flat if form == "parquet" else listed)(results)
        if self.what == "curves" and not rows:
            raise ValueError(f"The records of {results.name!r} hold no loss along training; export its sizes.")
        if form == "parquet":
            return as_parquet(rows)
        text = as_json(rows) if form == "json" else as_csv(rows, () if self.what == "curves" else EVERY)
        return text.encode()

    def _events(self) -> int:
        """Write event files, a folder for each trial."""
        from posenc.lab.figures.exports import write_events

        if self.json or self.what == "curves":
            raise ValueError("--format tensorboard writes losses and evaluations; leave --json and --what out.")
        if self.out is None:
            raise ValueError("--format tensorboard writes a folder; give --out FOLDER, and `tensorboard --logdir` it.")
        results = results_of(self.run, self.metric)
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
        if self.recount:
            path = self._recounted(name)
        else:
            folder = store.find(self.run)
            path = store.bundle(folder, bundle_path(name, folder.resolve().name))
        say(str(path))
        return 0

    def _recounted(self, name: str) -> Path:
        """The same with floors as this version counts them."""
        from posenc.lab.results.recount import recounted
        from posenc.lab.store import records

        results = stored(self.run)
        if results.problems:
            raise ValueError(f"{self.run!r} has records that cannot be used: {results.problems[0]}")
        path, recount = bundle_path(name, results.name), recounted(results)
        group_records = (*recount.records, *recount.tuning)
        return records.write_bundle(path, results.name, group_records, results.unfinished)
