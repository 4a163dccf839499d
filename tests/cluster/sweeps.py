"""The sweep that all clusters run, and what it recorded."""

import collections
import json
import subprocess
import sys
import time

GRID = "--grid scheme=rope,alibi,t5,nope task=reverse_string --seeds 2 --save-every 1 --set width=16 depth=1 heads=2"
SIZES = f"{GRID} hidden=16 batch=8 length=8 rows=16 steps=4000 segment=50".split()


def posenc(env, folder, *words):
    """What a command prints that ends well."""
    done = subprocess.run(
        [sys.executable, "-m", "posenc", *words],
        env={**env, "POSENC_RUNS": str(folder)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def trials(run):
    """Each trial as JSON, and how often the most frequent one was recorded."""
    found, times = {}, collections.Counter()
    lines = [line for path in (run / "records").iterdir() for line in path.read_text().splitlines()]
    for line in lines:
        for trial in json.loads(line)["trials"]:
            found[trial["id"]] = json.dumps([trial["evaluations"], trial["validation"], trial["curve"]], sort_keys=True)
            times[trial["id"]] += 1
    return found, max(times.values())


def until(true, seconds):
    """Wait until it is true; raises `TimeoutError`."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise TimeoutError(f"not so after {seconds} s")
        time.sleep(0.1)
