"""A sweep in a process of its own, to be killed: `python -m tests.lab.swept FOLDER '{"steps": 400}'`.

It prints a line for each event, `step rope · even_pairs|40`, after which a test sends its signal. `fault` names what
goes wrong at once, before a signal of any other process could arrive in time.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
SETTINGS = {
    "schemes": ["rope"],
    "seeds": [0, 1],
    "steps": 400,
    "segment": 20,
    "then": None,
    "devices": 2,
    "every": 0.2,
    "pause": 0.02,
    "fault": None,
    "stale": None,
    "clock": 0.0,
    "keep": False,
    "report": None,
}


def experiment(given):
    from posenc.lab.spec.experiment import Experiment, grid
    from posenc.lab.spec.run import Plan, Run

    base = Run(task="even_pairs", width=8, depth=1, heads=2, hidden=8, batch=4, length=4, then=given["then"])
    plan = Plan(
        steps=given["steps"], seeds=tuple(given["seeds"]), sizes=(4, 8), rows=8, segment=given["segment"], lr=(3e-3,)
    )
    return Experiment("swept", grid(base, scheme=given["schemes"]), plan)


class Told:
    """Prints every event, and takes its time at every segment, since these models train too fast to be killed."""

    def __init__(self, pause):
        self.pause = pause

    def __getattr__(self, name):
        def told(*about):
            print(f"{name} {'|'.join(map(str, about))}", flush=True)
            if name == "step":
                time.sleep(self.pause)

        return told


def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)


def inject(fault):
    """Replace what a fault concerns. Each is the real thing until the moment that it names."""
    import orbax.checkpoint as ocp

    from posenc.lab.store import checkpoints, logs

    write, save = os.write, ocp.PyTreeCheckpointer.save
    if fault == "kill in a save":  # arrays are written, the manifest is not
        ocp.PyTreeCheckpointer.save = lambda *given, **how: (save(*given, **how), die())
    elif fault == "stop in a save":  # the second; Orbax raises so where what it has written of one vanishes
        saves = iter(range(1, 1000))

        def save_after_stop(self, path, *given, **how):
            if next(saves) == 2:
                os.kill(os.getpid(), signal.SIGSTOP)
                time.sleep(0.5)  # threads stop a little later
                if not path.parent.exists():
                    raise ValueError(f'NOT_FOUND: Error writing "state/0.0" in OCDBT database at local file "{path}"')
            return save(self, path, *given, **how)

        ocp.PyTreeCheckpointer.save = save_after_stop
    elif fault == "kill in a record":
        half = lambda file, content: (write(file, content[: len(content) // 2]), die())  # noqa: E731
        logs.os.write = lambda file, *it: (half if bytes(*it).startswith(b'{"schema"') else write)(file, *it)
    elif fault == "kill after a record":
        checkpoints.drop_group = die
    elif fault is not None:
        raise ValueError(fault)


def main(folder, options):
    import jax

    given = SETTINGS | json.loads(options)
    jax.config.update("jax_num_cpu_devices", given["devices"])
    cache = Path(os.environ["XDG_CACHE_HOME"]) / "posenc" / "xla"
    jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.01)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    from posenc.lab.run import progress
    from posenc.lab.run.sweep import sweep
    from posenc.lab.store import claims
    from posenc.lab.store.disk import DiskError

    inject(given["fault"])
    if given["stale"]:
        claims.STALE, claims.BEAT = given["stale"], given["stale"] / 6
    if given["clock"]:
        now = time.time
        time.time = lambda: now() + given["clock"]
    if given["report"]:
        progress.EVERY = given["report"]
    told = Told(given["pause"])
    try:
        return sweep(experiment(given), Path(folder), keep=given["keep"], save_every=given["every"], watch=told)
    except DiskError as error:
        print(error.strerror, file=sys.stderr)
        return 74


class Swept:
    """Such a process, as a test sees it."""

    def __init__(self, folder, **options):
        command = [sys.executable, "-m", "tests.lab.swept", str(folder), json.dumps(options)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
        self.lines = []

    def until(self, *starts):
        """Read until a line that starts with one of these; returns it, or None at the end."""
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if line.startswith(starts):
                return self.lines[-1]
        return None

    def step(self, at):
        """Read until the current group has done so many steps."""
        while (line := self.until("step ")) and int(line.split("|")[1]) < at:
            pass
        return line

    def send(self, number):
        self.process.send_signal(number)

    def end(self):
        """Wait for the end; returns the exit code."""
        self.until("no line starts like this")
        self.errors = self.process.stderr.read()
        code = self.process.wait(60)
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    def went_on(self):
        """The steps from which groups went on."""
        return [int(line.split("goes on from step ")[1].rstrip(".")) for line in self.lines if "goes on from" in line]

    def steps(self):
        """Group to the steps that it did here."""
        found = {}
        for line in self.lines:
            if line.startswith("step "):
                label, at, *_ = line.removeprefix("step ").split("|")
                found.setdefault(label, []).append(int(at))
        return found


def run(folder, **options):
    """Run one to its end. Returns it, with its exit code as `code`."""
    swept = Swept(folder, **options)
    swept.code = swept.end()
    return swept


@contextlib.contextmanager
def small_disk(place, size):
    """A disk of so many bytes, real; None where this user may not mount one."""
    place.mkdir()
    mount = shutil.which("mount")
    if mount is None or subprocess.run([mount, "-t", "tmpfs", "-o", f"size={size}", "none", place]).returncode:
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
