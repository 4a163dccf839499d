"""Where committed experiments are, for tests that hold records against arithmetic."""

from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "experiments"
