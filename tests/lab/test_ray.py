"""Ray without a cluster: what is requested, whether an address answers, cores, versions, and what travels."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import posenc
from posenc.lab.sweep.ray import cluster, node, pinning, same, settings, task
from posenc.lab.sweep.ray.settings import Ray
from posenc.lab.sweep.signals import Stopped


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"cpus": 0}, "--ray.cpus is 0; give a whole number from 1 up."),
        ({"cpus": -2}, "--ray.cpus is -2; give a whole number from 1 up."),
        ({"gpus": -1}, "--ray.gpus is -1; give a whole number from 0 up, or a part of 1 such as 0.5."),
        ({"gpus": 1.5}, "--ray.gpus is 1.5; give a whole number from 0 up, or a part of 1 such as 0.5."),
        ({"gpus": float("nan")}, "--ray.gpus is nan; give a whole number from 0 up, or a part of 1 such as 0.5."),
        ({"address": "here"}, "--ray.address is 'here'; give auto or HOST:PORT, as `ray start --head` prints."),
        ({"address": "ray://a"}, "--ray.address is 'ray://a'; give auto or HOST:PORT, as `ray start --head` prints."),
        ({"address": "a:0"}, "--ray.address is 'a:0'; give auto or HOST:PORT, as `ray start --head` prints."),
        ({"address": "a:70000"}, "--ray.address is 'a:70000'; give auto or HOST:PORT, as `ray start --head` prints."),
        ({"checkpoints": ""}, "--checkpoints is empty; give a folder or URL that all nodes see, or leave it out."),
        ({"checkpoints": "ftp://a/b"}, "--checkpoints is 'ftp://a/b'; give a folder, or a URL of gs://, s3://, az://."),
    ],
)  # fmt: skip
def test_what_cannot_be_requested_is_one_sentence(given, why):
    with pytest.raises(ValueError) as refused:
        Ray(**given)
    assert str(refused.value) == why


def test_addresses_are_host_and_port():
    assert settings.parsed("head-1.local:6379") == ("head-1.local", 6379)
    assert settings.parsed("[::1]:6379") == ("::1", 6379)
    assert Ray(gpus=0.5, cpus=4, address="10.0.0.1:1").gpus == 0.5


def served(answer):
    """The address of a server that sends this to whoever connects; None stays silent."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        line, _ = listener.accept()
        with contextlib.suppress(OSError), listener, line:
            if answer is not None:
                line.sendall(answer)
            line.recv(1000)
            line.recv(1000)

    threading.Thread(target=serve, daemon=True).start()
    return f"127.0.0.1:{listener.getsockname()[1]}"


def test_only_a_server_that_speaks_as_ray_does_is_joined():
    settings.check_answers(served(bytes((0, 0, 24, 4, 0, 0, 0, 0, 0)) + bytes(24)))
    for answer, why in (
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "answers, but is not the head of a Ray cluster"),
        (b"", "does not answer within 0.3 s"),
        (None, "does not answer within 0.3 s"),
    ):
        with pytest.raises(ValueError, match=why):
            settings.check_answers(served(answer), 0.3)
    with pytest.raises(ValueError, match=r"--ray.address 127.0.0.1:1 does not answer \(Connection refused\); give the"):
        settings.check_answers("127.0.0.1:1")
    with pytest.raises(ValueError, match=r"--ray.address no.host.invalid:1 does not answer \("):
        settings.check_answers("no.host.invalid:1")


@pytest.mark.parametrize(
    ("free", "count", "wanted"),
    [({0, 1, 2}, 2, [0, 1]), ({2}, 2, [2, 0]), (set(), 1, [0]), ({0, 1, 2}, 9, [0, 1, 2]), ({1, 2}, 1, [1])],
)
def test_a_process_takes_free_cores_first_and_no_more_than_it_needs(free, count, wanted):
    asked = []
    assert pinning.chosen([0, 1, 2], count, lambda core: asked.append(core) or core in free) == wanted
    assert len(asked) <= 3 and not set(asked) - {0, 1, 2}


PINS = """
import os, sys
from posenc.lab.sweep.ray.pinning import pin
print(pin(1), *os.sched_getaffinity(0), flush=True)
sys.stdin.readline()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="cores are pinned on Linux")
def test_processes_that_live_together_have_cores_of_their_own_and_leave_them_at_their_end(monkeypatch):
    def start():
        return subprocess.Popen([sys.executable, "-c", PINS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def core(process):
        count, *own = map(int, process.stdout.readline().split())
        assert count == len(own) == 1
        return own[0]

    first, second = start(), start()
    cores = core(first), core(second)
    many = len(os.sched_getaffinity(0))
    assert len({*cores}) == min(2, many)
    first.kill()
    first.wait()
    third = start()
    assert core(third) == cores[0]
    for process in (second, third):
        process.kill()
        process.wait()
    for process in (first, second, third):
        process.stdin.close()
        process.stdout.close()


def test_a_node_must_have_the_same_sources_and_libraries(tmp_path):
    here = same.facts()
    assert {"posenc", "jax", "flax", same.SOURCES} <= here.keys() and same.difference(here, dict(here)) == ""
    assert same.difference(here, here | {"jax": "0.1"}) == f"has jax 0.1, and the driver has {here['jax']}"
    assert same.difference(here, {k: v for k, v in here.items() if k != "flax"}).startswith("has flax missing, and")
    for name in ("a.py", "sub/b.py", "experiments/c.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    before = same.sources(tmp_path)
    (tmp_path / "experiments" / "c.py").write_text("2")
    assert same.sources(tmp_path) == before, "a wheel holds the experiments, a checkout has them beside posenc"
    (tmp_path / "sub" / "b.py").write_text("2")
    assert same.sources(tmp_path) != before


def test_what_ray_carries_needs_python_alone_and_names_a_node_without_posenc():
    program = "import sys; exec(sys.stdin.read()); print(train({'sender': 'a'}, None))"
    source = Path(task.__file__).read_text()
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], input=source, capture_output=True, text=True, cwd="/"
    )
    assert "'refused'" in done.stdout and "cannot import posenc (No module named 'posenc'); install" in done.stdout


def test_the_mailbox_hands_over_each_event_once_and_says_when_to_stop():
    mailbox = task.Mailbox()
    assert mailbox.post("a", [("note", "1")]) is False and mailbox.post("b", []) is False
    assert mailbox.collect() == [("a", ("note", "1"))] and mailbox.collect() == []
    mailbox.stop()
    assert mailbox.post("c", []) is True


def test_a_node_greets_before_it_trains_sends_each_newest_step_once_and_stops_when_asked(monkeypatch):
    monkeypatch.setattr(node, "PAUSE", 0.01)
    posted, stop = [], [False]

    def post(events):
        posted.append(events)
        return stop[0]

    heard = SimpleNamespace(check=lambda: None)
    with node.Relay(post, heard) as relay:
        assert posted[0] == [("started", socket.gethostname())]
        relay.check()
        for at in (1, 2, 3):
            relay.step("rope", at, 3, 0.5)
        relay.note("goes on")
        time.sleep(0.2)
    events = [event for events in posted[1:] for event in events]
    steps = [event[1] for event in events if event[0] == "step"]
    assert ("note", "goes on") in events and steps == sorted({*steps}) and steps[-1] == 3
    stop[0] = True
    with node.Relay(post, heard) as relay, pytest.raises(Stopped):
        relay.check()


def test_a_group_without_its_gpu_is_refused():
    with pytest.raises(node.Refused, match="has a GPU for the group, but its jax finds none"):
        node._settle({"gpus": 1, "cpus": 1}, None)


@pytest.mark.parametrize(
    ("resources", "how", "groups"),
    [
        ({"CPU": 8.0}, Ray(cpus=3), 2),
        ({"CPU": 8.0, "GPU": 1.0}, Ray(cpus=2, gpus=1), 1),
        ({"CPU": 8.0, "GPU": 1.0}, Ray(gpus=0.25), 4),
        ({"CPU": 8.0}, Ray(gpus=1), 0),
        ({}, Ray(), 0),
    ],
)
def test_a_node_trains_as_many_groups_as_its_cores_and_gpus_allow(resources, how, groups):
    assert cluster._fitting(resources, how) == groups


MISMATCH = """Version mismatch: The cluster was started with:
    Ray: 2.9.0
    Python: 3.11.7
This process on 10.0.0.1 was started with:
    Ray: 2.60.0
    Python: 3.11.7
"""


def test_what_ray_says_in_many_lines_is_one_sentence():
    assert cluster._refusal("a:1", MISMATCH) == (
        "Ray at a:1 is of another version: The cluster was started with: Ray: 2.9.0 Python: 3.11.7 and this process on "
        "10.0.0.1 was started with: Ray: 2.60.0 Python: 3.11.7; install the same on both."
    )
    said = cluster._refusal("a:1", "no\n  node here")
    assert said.startswith("Ray at a:1 cannot be joined from ") and "no node here; run the driver on a node" in said


def test_ray_is_imported_by_nothing_but_a_sweep_on_it():
    program = "import sys, posenc.lab.cli.train, posenc.lab.sweep.ray.driver; print('ray' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n" and posenc.__version__
