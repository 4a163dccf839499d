"""`work`: join the work on a planned run, with one worker or several, on this machine. The parent imports no jax."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import arg

from posenc.lab.cli.options import First, Flag, Text
from posenc.lab.spec import modules
from posenc.lab.store import disk
from posenc.language.echo import echoed

AUTO = "auto"
Workers = Annotated[str | None, arg(metavar="N|auto", help_behavior_hint="")]


@dataclass(frozen=True)
class Work:
    """Train what is left of a planned run, beside any other workers that see its folder. Run the command again to
    resume."""

    run: First
    """A run's name, or its folder, as `posenc sweep` made it."""
    workers: Workers = None
    """The number of processes, each with its own cores or GPU; auto is one for each GPU, or for every two cores."""
    keep: Flag = False
    """Keep the trained parameters."""
    lanes: Annotated[Literal["map", "vmap"] | None, arg(metavar="{map,vmap}", help_behavior_hint="")] = None
    """How the trials of one program run. Default: by device."""
    save_every: Text = None
    """Seconds between two checkpoints (default: 300), also by POSENC_SAVE_EVERY."""

    def __call__(self) -> int:
        folder, interval = disk.find(self.run), save_every(self.save_every)
        if not (folder / "plan.jsonl").is_file():
            raise ValueError(f"{str(folder)!r} holds no plan.jsonl, so nothing is planned; `posenc sweep` plans.")
        disk.check_writable(folder)
        if self.workers is not None:
            from posenc.lab.cli.engines import Team

            return Team(number(self.workers)).train(folder, Training(self.keep, self.lanes, interval))
        from posenc.lab.cli.machine import start
        from posenc.lab.cli.watch import watching

        start()
        from posenc.lab.run.worker import work

        with watching() as watch:
            return work(folder, keep=self.keep, lanes=self.lanes, save_every=interval, watch=watch)


def number(typed: str) -> int | None:
    """How many workers; None for auto. Raises `ValueError`."""
    return None if typed == AUTO else whole_number(typed, "--workers", f"a number from 1 to 4096, or {AUTO}", 4096)


def whole_number(typed: str, option: str, wanted: str, most: int) -> int:
    """Return the number from 1 to `most` that was typed. Raises `ValueError`."""
    if not typed.isascii() or not typed.isdecimal() or len(typed) > len(str(most)) or not 1 <= int(typed) <= most:
        raise ValueError(f"{option} is {echoed(typed)}; give {wanted}.")
    return int(typed)


def save_every(typed: str | None) -> float:
    """The seconds between two checkpoints: as typed, or of POSENC_SAVE_EVERY, or the default."""
    from posenc.lab.store.checkpoints import EVERY

    source, text = "--save-every", typed
    if text is None:
        source, text = "POSENC_SAVE_EVERY", os.environ.get("POSENC_SAVE_EVERY") or str(EVERY)
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ValueError(f"{source} is {text!r}; give a number of seconds above 0, such as 300.")
    return seconds


@dataclass(frozen=True)
class Training:
    """Options of training, whichever engine starts the workers."""

    keep: bool
    lanes: str | None
    save_every: float
    """Seconds between two checkpoints."""

    def command(self, folder: Path) -> list[str]:
        """The command of one worker of a run folder, as its parent or a job script starts it."""
        from posenc.lab.run.team import command

        options = ["--keep"] * self.keep + (["--lanes", self.lanes] if self.lanes else [])
        imports = [word for module in modules.imported() for word in (modules.OPTION, module)]
        return command(["work", str(folder.absolute()), *options, "--save-every", f"{self.save_every:g}", *imports])
