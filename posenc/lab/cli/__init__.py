"""The command line: `posenc quickstart`. Each command is a frozen dataclass in a module of this package.

Results go to stdout, progress and errors to stderr. Nothing heavy is imported until a command needs it: help, status,
tables and figures start without jax.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import sys
from collections.abc import Sequence

OK, FAILED, USAGE, NOTHING, DISK, PREEMPTED, STOPPED = 0, 1, 2, 3, 74, 75, 130

_GROUPS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "Train": (
        ("quickstart", "train.QuickStart", "train six schemes for a few minutes, print a table and draw a figure"),
        ("run", "train.One", "train one scheme on one task: --scheme alibi --task reverse_string --seeds 6"),
        ("sweep", "train.Sweep", "train many: an experiment file, or --grid scheme=rope,alibi task=even_pairs"),
        ("work", "work.Work", "join the work on a planned run: work runs/mine --workers 4"),
    ),
    "Read": (
        ("status", "status.Status", "progress of a run, and its errors; --watch looks again and again"),
        ("clean", "status.Clean", "remove what no longer serves: checkpoints of recorded groups, dead claims"),
        ("table", "read.Tabulate", "accuracy by scheme and size: text, csv, md, latex, html, json"),
        ("compare", "compare.Compare", "a scheme with another, or with all: compare runs/mine rope alibi"),
        ("plot", "plot.Plot", "figures of a run or an experiment, also in the size of a paper: --venue icml"),
        ("report", "report.WriteReport", "one HTML file of a run to send to somebody: report runs/mine -o report.html"),
        ("export", "export.Export", "every number of a run, as CSV, JSON or Parquet, or for TensorBoard"),
        ("evaluate", "evaluate.Evaluate", "trained models on other sizes, on another task, or group by group"),
        ("generate", "generate.Generate", "what a kept model writes after a prompt, beside the true continuation"),
        ("reproduce", "reproduce.Reproduce", "published values beside ours, with n, interval and verdict"),
    ),
    "Look": (
        ("list", "listing.Names", "schemes, tasks, suites, models, experiments, presets, coordinates, stems"),
        (
            "atlas",
            "atlas.Atlas",
            "which schemes do what, and how far: atlas --for counting, atlas rope fox",
        ),
        (
            "describe",
            "describe.DESCRIBE",
            "one scheme, task, suite, model, preset or experiment: describe rope, describe copy",
        ),
        ("cite", "describe.Cite", 'BibTeX: cite "rope + alibi", cite copy'),
        ("explain", "explain.EXPLAIN", "what a scheme does to scores: explain rope; by hand: explain attention"),
    ),
    "Extend": (
        ("new", "extend.New", "a file with a working scheme or task, and its test: new scheme mine, new task mine"),
        ("check", "extend.Check", "test a scheme or a task: check rope, check mine:Mine"),
        ("bench", "bench.Bench", "time the kernels that can run a scheme on this machine"),
        ("doctor", "machine.Doctor", "versions, devices, folders"),
    ),
}
"""The commands, each with the class that carries it out and what it does."""

_TRAINING = ("quickstart", "run", "sweep", "work", "atlas")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit code. Every error is one sentence on stderr."""
    args = list(sys.argv[1:] if argv is None else argv)
    if sys.stderr is None:  # it was closed: its number must not become that of a file that is written
        sys.stderr = open(os.devnull, "w")
    if sys.stdout is None:
        print("Standard output is closed; let it go to a terminal, a file or /dev/null.", file=sys.stderr)
        return USAGE
    from posenc.lab.run.signals import Preempted

    debug = "--debug" in args or os.environ.get("POSENC_DEBUG", "") not in ("", "0")
    if hasattr(sys.stdout, "reconfigure"):  # a rule of "─" must not end a table on a terminal of ASCII or Latin-1
        sys.stdout.reconfigure(errors="replace")
    try:
        try:
            code = _dispatch([a for a in args if a != "--debug"])
        except SystemExit as end:  # tyro exits this way after it has printed the help of a command
            code = end.code if isinstance(end.code, int) else OK
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        _drop_output()
        return OK
    except Preempted:
        print("Stopped; the same command goes on.", file=sys.stderr)
        return PREEMPTED
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return STOPPED
    except BaseException as error:  # code of the user's may raise anything
        if debug:
            raise
        if _interrupted(error):
            print("Stopped.", file=sys.stderr)
            return STOPPED
        code = _refuse(error)
        try:
            sys.stdout.flush()
        except OSError:  # the sentence said so
            _drop_output()
        return code


def _drop_output() -> None:
    """Discard what cannot be written. It stays in the stream's buffer, and Python would fail to write it once more as
    it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _interrupted(error: BaseException | None) -> bool:
    """Tell whether Ctrl-C is behind an error: a module that is interrupted as it is imported may raise another one."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def listening(words: Sequence[str]) -> contextlib.AbstractContextManager[None]:
    """For the process of a command that trains: signals end it with an exit code of its own."""
    if not set(words[:1]) & set(_TRAINING):
        return contextlib.nullcontext()
    from posenc.lab.run import signals

    return signals.listening()


def _dispatch(args: list[str]) -> int:
    homes = {name: home for group in _GROUPS.values() for name, home, _ in group}
    if args[:1] == ["help"]:
        args = [*args[1:], "--help"] if len(args) > 1 else []
    if not args or args[0] in ("-h", "--help"):
        print(_help())
        return OK
    if args[0] in ("-V", "--version"):
        from posenc import __version__

        print(f"posenc {__version__}")
        return OK
    from posenc.lab.spec import modules

    (name, *rest), imports = modules.taken(args)
    if name not in homes:
        from posenc.lab.spec.settings import unknown

        raise unknown("command", name, homes, "`posenc --help` has all")
    if imports:
        from posenc.lab.cli.machine import start

        start()  # what a module computes as it is imported needs devices
        for module in imports:
            modules.load(module)
    from posenc.lab.cli.options import parse

    home, _, cls = homes[name].rpartition(".")
    return parse(getattr(importlib.import_module(f".{home}", __name__), cls), rest, f"posenc {name}")()


def _help() -> str:
    lines = [
        "posenc: positional encodings for Transformers, compared honestly and fast.",
        "",
        "Start here:",
        "  posenc quickstart                     trains, prints a table, draws a figure; a few minutes on a laptop",
    ]
    for group, commands in _GROUPS.items():
        lines += ["", f"{group}:", *(f"  {name:<11} {summary}" for name, _, summary in commands)]
    lines += [
        "",
        "`posenc COMMAND --help` shows the options of a command; --version; --debug prints the traceback of an error.",
        "`mine:Mine` is class Mine of mine.py in this folder; --import mine imports it for a run that names it.",
    ]
    return "\n".join(lines)


def _refuse(error: BaseException) -> int:
    """Print an error as one sentence and return its exit code."""
    from posenc.lab.spec.experiment import NothingMatches
    from posenc.lab.store.disk import DiskError
    from posenc.language.echo import echoed

    message = error.strerror or str(error) if isinstance(error, DiskError) else str(error)
    sentence = " ".join("".join(c if c.isprintable() else " " for c in message).split())
    if isinstance(error, ValueError | TypeError | DiskError):
        code = DISK if isinstance(error, DiskError) else NOTHING if isinstance(error, NothingMatches) else USAGE
    elif isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        code = DISK
        sentence = f"{error.filename or 'Standard output'!s} cannot be written: the disk is full; free some space."
    elif isinstance(error, OSError):
        shown = error.filename or "A file"
        shown = echoed(shown) if error.errno == errno.ENAMETOOLONG else shown
        code, sentence = USAGE, f"{shown!s} cannot be used: {error.strerror or sentence}."
    else:
        code, sentence = FAILED, f"posenc failed: {type(error).__name__}: {sentence}; add --debug for the traceback."
    print(sentence if len(sentence) < 2000 else sentence[:2000] + "...", file=sys.stderr)
    return code
