"""Many workers of one run, as processes that start at one moment: `python -m tests.lab.crowd FOLDER WORKERS`.

Training is a stand-in that takes milliseconds and writes the record it is given; claims, records and the loop are the
real ones. Each worker prints what it ran, and how many groups were free whenever it waited.
"""

import json
import os
import sys
import time
from pathlib import Path

from posenc.lab.run import trainer, worker
from posenc.lab.store import folder as store
from tests.lab import made
from tests.lab.test_sweep import Watch


def work(folder, began):
    os.environ["JAX_PLATFORMS"] = "cpu"
    ran, free = [], []

    def trained(self, group, home, finish):
        ran.append(group.name)
        time.sleep(0.005)
        seeds = [line.knobs.seed for line in group.lines]
        made.write_record(folder, made.rope(seeds))
        return "done"

    def waited(seconds, check):
        busy = {claim.group for claim in store.held(folder)}  # before records, which come before a claim goes
        free.append(len({line.group for line in plan} - busy - made.recorded(folder).keys()))
        time.sleep(0.01)

    trainer.Trainer.train, trainer.device.describe, worker._wait = trained, dict, waited
    plan = store.read_plan(folder)
    recorded = store.Recorded(folder)
    groups = worker.begin_anywhere(worker.waiting(folder, plan, recorded.ids(), keep=False))
    code = worker.Worker(folder, lambda line: None, "map", False, 1e9, Watch()).carry_out(groups, recorded)
    print(json.dumps({"code": code, "ran": ran, "free": free}) + "\n", end="", flush=True)  # one write, as others print


def main(folder, workers):
    began, children = time.time() + 1.5, []
    for _ in range(int(workers)):
        if not (pid := os.fork()):
            work(Path(folder), began)
            sys.stdout.flush()
            os._exit(0)
        children.append(pid)
    return max(os.waitpid(pid, 0)[1] for pid in children)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
