"""Ray without a cluster: versions, what travels, what fits, and what Ray says."""

import subprocess
import sys
from pathlib import Path

import pytest

from posenc.lab.sweep import ray
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


def test_what_ray_carries_needs_python_alone_and_names_a_node_without_posenc():
    cloudpickle = pytest.importorskip("ray").cloudpickle
    program = (
        "import sys, pickle, types; ray = sys.modules['ray'] = types.ModuleType('ray'); ray.__path__ = sys.argv[1:]"
    )
    program += "; box, train = pickle.load(sys.stdin.buffer); print(train({}, None), box().collect())"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, str(Path(cloudpickle.__file__).parents[1])],
        input=cloudpickle.dumps(ray.remote_parts()), capture_output=True, cwd="/",
    )  # fmt: skip
    assert b"'refused'" in done.stdout and b"cannot import posenc (No module named 'posenc'); inst" in done.stdout, done


def test_the_mailbox_hands_over_each_event_once():
    mailbox = ray.remote_parts()[0]()
    mailbox.post("a", ("note", "1"))
    assert mailbox.collect() == [("a", ("note", "1"))] and mailbox.collect() == []


def test_a_group_without_its_gpu_is_refused():
    with pytest.raises(ray.Refused, match="has a GPU for the group, but its jax finds none"):
        ray.prepare(1, 1, print)


@pytest.mark.parametrize(
    ("resources", "cpus", "gpus", "groups"),
    [
        ({"CPU": 8.0}, 3, 0, 2),
        ({"CPU": 8.0, "GPU": 1.0}, 2, 1, 1),
        ({"CPU": 8.0, "GPU": 1.0}, 1, 0.25, 4),
        ({"CPU": 8.0}, 1, 1, 0),
        ({}, 1, 0, 0),
    ],
)
def test_a_node_trains_as_many_groups_as_its_cores_and_gpus_allow(resources, cpus, gpus, groups):
    assert ray.capacity(resources, {"CPU": cpus, "GPU": gpus}) == groups


MISMATCH = """Version mismatch: The cluster was started with:
    Ray: 2.9.0
    Python: 3.11.7
This process on 10.0.0.1 was started with:
    Ray: 2.60.0
    Python: 3.11.7
"""


def test_what_ray_says_in_many_lines_is_one_sentence():
    assert ray.refusal("a:1", MISMATCH) == (
        "Ray at a:1 is of another version: The cluster was started with: Ray: 2.9.0 Python: 3.11.7 and this process on "
        "10.0.0.1 was started with: Ray: 2.60.0 Python: 3.11.7; install the same on both."
    )
    said = ray.refusal("a:1", "no\n  node here")
    assert said.startswith("Ray at a:1 cannot be joined from ") and "no node here; run the driver on a node" in said


def test_ray_is_imported_by_nothing_but_a_sweep_on_it():
    program = "import sys, posenc.lab.cli.train, posenc.lab.sweep.ray; print('ray' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
