"""The command line: `posenc quickstart`. Each command is a frozen dataclass in one of the modules beside this one.

Results go to stdout, progress and refusals to stderr. Nothing heavy is imported until a command needs it: help,
status, tables and figures start without jax.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

OK, FAILED, USAGE, NOTHING, DISK, PREEMPTED, STOPPED = 0, 1, 2, 3, 74, 75, 130

_GROUPS: dict[str, tuple[tuple[str, str, str, str], ...]] = {
    "Train": (
        ("quickstart", "train", "QuickStart", "train six schemes for a few minutes, tabulate and draw them"),
        ("run", "train", "One", "train one scheme on one task: --scheme alibi --task reverse_string --seeds 5"),
        ("sweep", "train", "Sweep", "train many: an experiment file, or --grid scheme=rope,alibi task=even_pairs"),
    ),
    "Read": (
        ("status", "read", "Status", "how far a run is, and what went wrong"),
        ("table", "read", "Tabulate", "accuracy by scheme and size: text, csv, md, latex, json"),
        ("compare", "read", "Compare", "two schemes, paired by seed: compare runs/mine rope alibi"),
        ("plot", "read", "Plot", "the figures of a run, or of a committed experiment"),
        ("export", "read", "Export", "every number of a run, as CSV or JSON"),
        ("evaluate", "evaluate", "Evaluate", "kept models asked anew: other sizes, another task, group by group"),
        ("reproduce", "reproduce", "Reproduce", "published values beside ours, with n, interval and verdict"),
    ),
    "Look": (
        ("list", "listing", "Names", "schemes, tasks, suites, models, experiments, presets, coordinates, stems"),
        ("describe", "look", "Describe", "what a scheme is, where it enters, what it costs; or what a task asks"),
        ("cite", "look", "Cite", 'BibTeX: cite "rope + alibi", cite copy'),
        ("explain", "look", "Explain", "where position enters, in numbers: explain rope; by hand: explain attention"),
    ),
    "Extend": (
        ("new", "extend", "New", "a scheme of your own that works, with its test: new scheme mine"),
        ("check", "extend", "Check", "what a scheme holds, ours or yours: check mine:Mine"),
        ("bench", "bench", "Bench", "the kernels that serve a scheme, timed side by side here"),
        ("doctor", "machine", "Doctor", "versions, devices, folders"),
    ),
}


class Preempted(BaseException):
    """The machine is wanted back, before anything was trained; the same command goes on."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit code. Every refusal is one sentence on stderr."""
    args = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in args or os.environ.get("POSENC_DEBUG", "") not in ("", "0")
    if hasattr(sys.stdout, "reconfigure"):  # a rule of "─" must not end a table on a terminal of ASCII or Latin-1
        sys.stdout.reconfigure(errors="replace")
    try:
        code = _dispatch([a for a in args if a != "--debug"])
        sys.stdout.flush()
        return code
    except SystemExit as end:  # tyro leaves this way once it has printed a command's help
        return end.code if isinstance(end.code, int) else OK
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except Preempted:
        print("Stopped before training; the same command goes on.", file=sys.stderr)
        return PREEMPTED
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return STOPPED
    except Exception as error:
        if debug:
            raise
        return _refuse(error)


def _dispatch(args: list[str]) -> int:
    homes = {name: (home, cls) for group in _GROUPS.values() for name, home, cls, _ in group}
    if args[:1] == ["help"]:
        args = [*args[1:], "--help"] if len(args) > 1 else []
    if not args or args[0] in ("-h", "--help"):
        print(_help())
        return OK
    if args[0] in ("-V", "--version"):
        from posenc import __version__

        print(f"posenc {__version__}")
        return OK
    name, *rest = args
    if name not in homes:
        from posenc.lab.spec.settings import unknown

        raise unknown("command", name, homes)
    home, cls = homes[name]
    from posenc.lab.cli.options import parse

    command = parse(getattr(importlib.import_module(f"posenc.lab.cli.{home}"), cls), rest, f"posenc {name}")
    return command()


def _help() -> str:
    lines = [
        "posenc: positional encodings for Transformers, compared honestly and fast.",
        "",
        "Start here:",
        "  posenc quickstart                     trains, prints a table, draws a figure; a few minutes on a laptop",
    ]
    for group, commands in _GROUPS.items():
        lines += ["", f"{group}:", *(f"  {name:<11} {said}" for name, _, _, said in commands)]
    lines += ["", "`posenc COMMAND --help` tells more of each; --version; --debug shows where an error arose."]
    return "\n".join(lines)


def _refuse(error: Exception) -> int:
    """Say what is wrong in one sentence, and choose the exit code."""
    from posenc.lab.spec.experiment import NothingMatches
    from posenc.lab.store.disk import DiskError

    told = error.strerror or str(error) if isinstance(error, DiskError) else str(error)
    sentence = " ".join("".join(c if c.isprintable() else " " for c in told).split())
    if isinstance(error, ValueError | TypeError | DiskError):
        code = DISK if isinstance(error, DiskError) else NOTHING if isinstance(error, NothingMatches) else USAGE
    elif isinstance(error, OSError):
        code, sentence = USAGE, f"{error.filename or 'A file'!s} cannot be used: {error.strerror or sentence}."
    else:
        code, sentence = FAILED, f"posenc failed: {type(error).__name__}: {sentence}; --debug shows where."
    print(sentence if len(sentence) < 2000 else sentence[:2000] + "...", file=sys.stderr)
    return code
