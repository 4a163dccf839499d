"""What Ray carries to the nodes by value, since posenc may be missing there or be another: it needs Python alone.

A node asks the mailbox of the driver whether to stop, and leaves there what happens; its answer is the task's result.
All that travels is plain: texts, numbers, dicts and arrays.
"""

from __future__ import annotations

from typing import Any


class Mailbox:
    """What nodes tell the driver while they train. It runs on the driver's node, and ends with the driver."""

    def __init__(self):
        self._events: list[tuple[str, tuple]] = []
        self._stop = False

    def post(self, sender: str, events: list[tuple]) -> bool:
        """Leave events; returns whether the sender is to stop."""
        self._events += [(sender, event) for event in events]
        return self._stop

    def collect(self) -> list[tuple[str, tuple]]:
        """The events since the last time, each with its sender."""
        found, self._events = self._events, []
        return found

    def stop(self) -> None:
        """All are to stop, also those that start later."""
        self._stop = True


def train(parcel: dict[str, Any], mailbox: Any) -> dict[str, Any]:
    """Train the group of a parcel on this node; returns the answer."""
    import socket

    try:
        from posenc.lab.sweep.ray.node import answer
    except ImportError as error:
        why = f"cannot import posenc ({error}); install it there, as on the driver's machine"
        return {"kind": "refused", "host": socket.gethostname(), "why": why}
    import ray

    def post(events: list[tuple]) -> bool:
        try:
            return ray.get(mailbox.post.remote(parcel["sender"], events))
        except ray.exceptions.RayError:  # the driver is gone: what is trained here is saved
            return True

    return answer(parcel, post)
