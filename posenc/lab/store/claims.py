"""Claims of workers: one file per claimed group, made by `O_CREAT | O_EXCL`, kept alive by a heartbeat.

A claim only saves work, results never depend on it. If two workers run one group, their records have one name. So a
claim may be stolen on evidence: at once if its process on this machine is gone, else after a minute without a
heartbeat. Ages are measured by the clock of the file system that the workers share.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from posenc.lab.store import disk

BEAT = 10.0
STALE = 60.0


@dataclass(frozen=True)
class Held:
    """A claim as a reader sees it. `age` counts seconds since its last heartbeat."""

    group: str
    host: str
    pid: int | None
    age: float
    stale: bool
    token: str = ""
    job: str | None = None
    """The job of a batch system."""


@dataclass
class Claim:
    """A group that is ours. `lost` turns true should another worker take it, because we were silent too long."""

    group: str
    path: Path
    token: str
    stop: threading.Event = field(default_factory=threading.Event)
    lost: bool = False
    beaten: float = field(default_factory=time.monotonic)

    def beat(self) -> None:
        """Show that we live; only ours is touched."""
        with contextlib.suppress(OSError):  # a folder that cannot be reached for a moment is tried at the next beat
            self.lost = self.lost or self._token() != self.token
            if not self.lost:
                os.utime(self.path)
                self.beaten = time.monotonic()

    def taken(self) -> bool:
        """Tell whether another worker has the group now. After a silence the file is read again, as the process may
        have been stopped together with the thread that beats."""
        if not self.lost and time.monotonic() - self.beaten > 2 * BEAT:
            self.beat()
        return self.lost

    def _token(self) -> str:
        try:
            return str(_parsed(disk.content(self.path)).get("token"))
        except (FileNotFoundError, ValueError):
            return ""

    def name_job(self, job: str) -> None:
        """Say in the claim which job does the work, unless another worker has it."""
        if self._token() == self.token:
            disk.write(self.path, _content_of(self.token, job))

    def keep(self) -> None:
        """Beat until told to stop."""
        while not self.stop.wait(BEAT):
            self.beat()


@contextlib.contextmanager
def claim(folder: Path, group: str) -> Iterator[Claim | None]:
    """Hold a group while the block runs; None where another worker holds it."""
    path = disk.inside(folder, "claims", group)
    own_claim = _take(path, group) or _steal(path, group)
    if own_claim is None:
        yield None
        return
    thread = threading.Thread(target=own_claim.keep, name=f"claim-{group}", daemon=True)
    thread.start()
    try:
        yield own_claim
    finally:
        own_claim.stop.set()
        thread.join()
        if _content(path).get("token") == own_claim.token:
            with contextlib.suppress(FileNotFoundError):
                path.unlink()


def held(folder: Path) -> tuple[Held, ...]:
    """All claims of a run folder, stale ones too, by group."""
    paths = [p for p in disk.part(folder, "claims") if disk.NAME.fullmatch(p.name) and not p.is_symlink()]
    files = [p for p in paths if p.is_file()]
    now = clock(disk.inside(folder, "claims"))
    return tuple(h for path in files if (h := _look(path, now)) is not None)


def _take(path: Path, group: str) -> Claim | None:
    """Make the file that is the claim; None where it exists. The system lets one of many succeed."""
    token = secrets.token_hex(8)
    with disk.guarded(path):
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        except FileExistsError:
            return None
        try:
            os.write(descriptor, _content_of(token))
        except OSError:
            path.unlink()
            raise
        finally:
            os.close(descriptor)
    return Claim(group, path, token)


def _steal(path: Path, group: str) -> Claim | None:
    """Replace a stale claim by ours. If several workers try, only the one that creates the marker file succeeds."""
    now = clock(path.parent)
    holder = _look(path, now)
    if holder is None:
        return _take(path, group)
    if not holder.stale:
        return None
    marker = path.with_name(f".{group}.{hashlib.sha256(holder.token.encode()).hexdigest()[:12]}.tmp")
    with contextlib.suppress(FileNotFoundError):
        if now - marker.stat().st_mtime > STALE:  # its maker died between marking and replacing
            marker.unlink()
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    except FileExistsError:
        return None
    try:
        if _content(path).get("token", "") != holder.token or not path.exists():  # stolen or given back meanwhile
            return None
        own_claim = Claim(group, path, secrets.token_hex(8))
        disk.write(path, _content_of(own_claim.token))
        return own_claim
    finally:
        marker.unlink(missing_ok=True)


def _content_of(token: str, job: str | None = None) -> bytes:
    who = {"host": socket.gethostname(), "where": _machine(), "pid": os.getpid(), "started": _started(os.getpid())}
    return json.dumps({**who, "job": job or os.environ.get("SLURM_JOB_ID"), "token": token}).encode()


def _look(path: Path, now: float) -> Held | None:
    try:
        with disk.opened(path) as file:  # age and content of one file, which another may be replacing
            age, content = max(0.0, now - os.fstat(file.fileno()).st_mtime), _parsed(file.read())
    except OSError:
        return None
    pid = content.get("pid") if isinstance(content.get("pid"), int) else None
    here = pid is not None and content.get("where") == _machine()
    gone = here and _started(pid) != content.get("started")
    host, token, job = str(content.get("host", "unknown")), str(content.get("token", "")), content.get("job")
    return Held(path.name, host, pid, age, gone or age > STALE, token, None if job is None else str(job))


def _content(path: Path) -> dict:
    try:
        return _parsed(disk.content(path))
    except OSError:
        return {}


def _parsed(content: bytes) -> dict:
    """Return the content of a claim; it is empty while its writer has not finished."""
    try:
        content = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def clock(folder: Path) -> float:
    """The time by the clock that stamps files in this folder, which may belong to another machine."""
    probe = folder / f".clock.{secrets.token_hex(6)}.tmp"
    try:
        probe.touch()
        return probe.stat().st_mtime
    except OSError:  # a reader may look at a folder that it cannot write
        return time.time()
    finally:
        with contextlib.suppress(OSError):
            probe.unlink()


def _machine() -> str:
    """Return the facts that separate machines: the name, the boot, and the space in which process ids hold."""
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


def _started(pid: int) -> str | None:
    """When a process started, in ticks since the boot; None once it is gone. A process id alone may be used again."""
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if state in "ZX" else rest[18]
    except OSError:
        pass
    if Path("/proc/self").exists():
        return None
    try:
        os.kill(pid, 0)
    except OSError:
        return None
    return "alive"
