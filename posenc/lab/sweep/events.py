"""The log of this process in a run folder: what it did, line by line. Nothing is decided by what it says."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from posenc.lab.store import disk
from posenc.lab.store import folder as store
from posenc.lab.store.running import worker


class Events:
    """Adds lines to the log of this process. Training goes on without it where it cannot be written."""

    def __init__(self, folder: Path, note: Callable[[str], None]):
        self.folder, self.note, self._noted = folder, note, False

    def __call__(self, event: str, **details: Any) -> None:
        """Add a line; what keeps it from being written is noted once."""
        try:
            store.log(self.folder, worker(socket.gethostname(), os.getpid()), event, **details)
        except OSError as error:
            if not self._noted:
                self.note(f"The log cannot be written ({disk.reason(error)}); training goes on without it.")
            self._noted = True
