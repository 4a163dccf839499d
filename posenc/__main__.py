"""`posenc` and `python -m posenc`: the command line, where the laboratory's packages are installed."""

from __future__ import annotations

import importlib.util
import sys

NEEDED = ("tyro", "rich", "scipy", "flax", "optax", "orbax")
"""What the extra `lab` installs."""


def main() -> int:
    """Run the command line, or say in one sentence what to install."""
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
        return 130


if __name__ == "__main__":
    sys.exit(main())
