"""`posenc` and `python -m posenc`: the command line, where the laboratory's packages are installed."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
import threading

from posenc.lab.run.signals import COMPILES, INTERRUPTED

NEEDED = ("tyro", "rich", "scipy", "flax", "optax", "orbax")
"""Packages that the extra `lab` installs."""


def main() -> int:
    """Run the command line, or say in one sentence what to install; returns the exit code.

    A signal ends the process here: claims are released and sentences printed, and threads of XLA that still compile
    would crash an interpreter that is taken down around them.
    """
    code = run()
    if code == INTERRUPTED or any(thread.name == COMPILES for thread in threading.enumerate()):
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
                stream.flush()
        os._exit(code)
    return code


def run() -> int:
    """The command line as far as its exit code."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        print(
            f"The command line trains and draws, for which {', '.join(missing)} must be installed: run"
            " `pip install 'posenc[lab]'`, or 'posenc[plot]' for figures too.",
            file=sys.stderr,
        )
        return 2
    try:
        from posenc.lab.cli import listening
        from posenc.lab.cli import main as command

        with listening(sys.argv[1:]):
            return command()
    except KeyboardInterrupt:  # while the command line itself was imported
        print("Stopped.", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
