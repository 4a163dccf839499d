"""Run every package that is installed, and store what it gives: `python -m tests.coming_over.record`.

The numbers of packages that are not installed stay as they are.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from tests.coming_over.lines import LINES

STORED = Path(__file__).with_name("stored.npz")


def key(line: tuple) -> str:
    """The name of a line's numbers."""
    return f"{line[0]}: {line[1]}"


def main() -> None:
    found = dict(np.load(STORED)) if STORED.exists() else {}
    for line in LINES:
        try:
            found[key(line)] = np.asarray(line.theirs(), np.float32)
        except ModuleNotFoundError as error:
            print(f"{key(line)}: {error}", file=sys.stderr)
            continue
        print(key(line), found[key(line)].shape)
    np.savez_compressed(STORED, **{name: found[name] for name in map(key, LINES) if name in found})


if __name__ == "__main__":
    main()
