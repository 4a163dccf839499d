"""Ray without a cluster: versions, what travels, and what fits."""

import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from posenc.lab.run import ray
from posenc.lab.train import device


def test_machines_that_train_one_sweep_have_equal_sources_and_libraries(tmp_path):
    here = device.software()
    assert {"posenc", "jax", "flax", "posenc's sources"} <= here.keys()
    for name in ("a.py", "sub/b.py", "experiments/c.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    before = device.software(tmp_path)
    (tmp_path / "experiments" / "c.py").write_text("2")
    assert device.software(tmp_path) == before, "a wheel holds the experiments, a checkout has them beside posenc"
    (tmp_path / "sub" / "b.py").write_text("2")
    assert device.software(tmp_path) != before


WITHOUT_POSENC = """
import pickle, sys, types
ray = sys.modules["ray"] = types.ModuleType("ray")
ray.__path__, ray.wait = sys.argv[1:], lambda posts, timeout: None
train, Mailbox = pickle.load(sys.stdin.buffer)
mailbox = Mailbox()
print(train({"token": "a"}, types.SimpleNamespace(post=types.SimpleNamespace(remote=mailbox.post))))
print(mailbox.collect(), mailbox.collect())
"""


class Parts:
    """Ray, as far as it is given what it carries; it leaves that as it is."""

    def remote(self, **options):
        return lambda part: SimpleNamespace(remote=lambda: part) if isinstance(part, type) else part

    def get_runtime_context(self):
        return SimpleNamespace(get_node_id=lambda: "0" * 56)


def test_what_ray_carries_needs_python_alone_and_names_a_node_without_posenc():
    cloudpickle = pytest.importorskip("ray").cloudpickle
    command = [sys.executable, "-I", "-S", "-c", WITHOUT_POSENC, str(Path(cloudpickle.__file__).parents[1])]
    parts = cloudpickle.dumps(ray.remote_parts(Parts(), 1, 0))
    done = subprocess.run(command, input=parts, capture_output=True, cwd="/")
    answer, events = done.stdout.decode().splitlines()
    assert "'refused'" in answer and "No module named 'posenc'" in answer
    assert events == f"[('a', ('started', {socket.gethostname()!r}))] []", "each event once"


def test_a_group_without_its_gpu_is_refused():
    parcel = {"software": device.software(), "gpus": 1}
    with pytest.raises(ray.Refused, match="GPU"):
        ray.train(parcel, print, print)


def test_nodes_train_as_many_groups_as_their_cores_and_gpus_allow():
    capacity = lambda cpus, gpus=0, **has: ray.capacity([{"Alive": True, "Resources": has}] * 2, cpus, gpus)  # noqa: E731
    assert (capacity(3, CPU=8.0), capacity(2, 1, CPU=8.0, GPU=1.0), capacity(1, 0.25, CPU=8.0, GPU=1.0)) == (4, 2, 8)
    assert (capacity(1, 1, CPU=8.0), capacity(1)) == (0, 0)
    assert ray.capacity([{"Alive": False, "Resources": {"CPU": 8.0}}], 1, 0) == 0


def test_neither_ray_nor_jax_is_imported_before_a_node_is_confined():
    program = "import sys, posenc.lab.cli.train, posenc.lab.run.ray; print({'ray', 'jax'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted on Linux")
def test_a_confined_process_has_the_threads_devices_and_gpus_of_its_group():
    program = """
import contextlib, os
from posenc.lab.train import device
device.confine(1, False, None)
import jax
jax.devices()
names = []
for task in os.listdir("/proc/self/task"):
    with contextlib.suppress(OSError):  # a thread that has ended
        names.append(open(f"/proc/self/task/{task}/comm").read())
print(jax.device_count(), os.environ["CUDA_VISIBLE_DEVICES"], sum("XLAEigen" in name for name in names))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "1  1\n"
