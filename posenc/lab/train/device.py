"""The machine: host devices and the compilation cache, settled before jax starts, and what is here afterwards."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import posenc
from posenc import __version__

LIBRARIES = ("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy")


def prepare(devices: int | None = None) -> str:
    """Set up the command line, before anything touches a device: `devices` host devices, by default one for each core,
    and kept compilations.

    The cache is private to its user, since a shared one is trusted code. A library import never calls this. Returns why
    compilations are not kept, or nothing.
    """
    import jax

    jax.config.update("jax_num_cpu_devices", devices or cores())
    folder = cache()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        return f"Compilations are not kept, since {str(folder)!r} cannot be made: {error.strerror}."
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return ""


def confine(devices: int, gpu: bool, memory: float | None) -> str:
    """Set up one of several processes on a machine. It has one thread and host device for each of its cores. It takes
    the GPUs that the system gave it, or none, and of each the share `memory`."""
    os.environ["NPROC"] = str(devices)  # the threads of XLA, which takes all cores else
    if not gpu:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    elif memory is not None:
        os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = f"{memory:.3f}"
    return prepare(devices)


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory() -> int:
    """Return the bytes that one device can hold: its own if it has some, else the machine's. It is 0 if both are
    unknown."""
    import jax

    own = jax.local_devices()[0].memory_stats() or {}
    if "bytes_limit" in own:
        return own["bytes_limit"]
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # no such question on this system
        return 0


def cache() -> Path:
    """Return the folder of compiled programs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "posenc" / "xla"


def cached() -> str:
    """How many programs are kept and how large they are, in words, and how to drop them."""
    sizes = [kept.stat().st_size for kept in cache().glob("*-cache")]
    return f"{len(sizes)} programs, {sum(sizes) / 2**20:,.0f} MiB; to empty it, remove this folder"


def named() -> str:
    """The devices in words: "cpu x2"."""
    import jax

    devices = jax.devices()
    return f"{devices[0].device_kind} x{len(devices)}"


def describe() -> dict[str, Any]:
    """Versions and devices, as records keep them."""
    import flax
    import jax

    return {
        "posenc": __version__,
        "commit": commit(),
        "python": platform.python_version(),
        "jax": jax.__version__,
        "flax": flax.__version__,
        "device": named(),
        "platform": jax.devices()[0].platform,
    }


def software(home: Path = Path(posenc.__file__).parent) -> dict[str, str]:
    """Return what machines that train one sweep must share: versions of posenc and its libraries, the digest of its
    files.

    The experiments do not count, which a wheel holds with the package and a checkout beside it.
    """
    digest = hashlib.sha256()
    for path in sorted(home.rglob("*.py")):
        name = path.relative_to(home)
        if name.parts[0] != "experiments":
            digest.update(f"{name.as_posix()}\n".encode() + hashlib.sha256(path.read_bytes()).digest())
    sources = {"posenc": __version__, "posenc's sources": digest.hexdigest()[:10]}
    return sources | {name: version(name) for name in LIBRARIES}


def commit() -> str | None:
    """The commit of the sources that run, with a plus where files differ from it; None outside a checkout."""
    here = Path(__file__).resolve().parent
    try:
        described = subprocess.run(
            ["git", "-C", str(here), "describe", "--always", "--dirty=+", "--abbrev=10", "--exclude=*"],
            capture_output=True,
            text=True,
            timeout=10,
        )
        tracked = subprocess.run(
            ["git", "-C", str(here), "ls-files", "--error-unmatch", "device.py"], capture_output=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return described.stdout.strip() or None if described.returncode == tracked.returncode == 0 else None
