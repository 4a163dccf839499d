"""Who runs a sweep: workers of this machine, SLURM, or Ray; what cannot be is one sentence, and plans nothing."""

import contextlib
import socket
import threading

import pytest

from posenc.lab.cli import engines
from posenc.lab.cli.engines import RayEngine

SWEEP = ("sweep", "--grid", "scheme=rope", "--name", "mine")


def test_without_slurm_the_command_line_says_so_and_plans_nothing(refuse, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "sbatch" in refuse(*SWEEP, "--engine", "slurm")


def test_without_ray_the_command_line_says_what_to_install(refuse, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install 'posenc[ray]'" in refuse(*SWEEP, "--engine", "ray")


def test_an_address_that_does_not_answer_is_one_sentence_before_anything_is_planned(refuse, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: True)
    sentence = refuse(*SWEEP, "--engine", "ray", "--ray.address", "127.0.0.1:1")
    assert "127.0.0.1:1" in sentence and "Connection refused" in sentence


def test_a_dry_run_says_what_each_group_would_get_and_needs_no_cluster(posenc, tmp_path):
    words = "--engine ray --ray.cpus 2 --ray.gpus 0.5 --checkpoints s3://bucket/ckpts --dry-run --set task=even_pairs"
    said = posenc(*SWEEP, *words.split())
    assert said.code == 0 and not (tmp_path / "runs").exists()
    task = "one task of Ray for each group, with 2 CPUs and 0.5 GPUs; checkpoints below s3://bucket/ckpts/mine"
    assert task in said.out


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"cpus": 0}, "--ray.cpus is 0"),
        ({"cpus": -2}, "--ray.cpus is -2"),
        ({"gpus": -1}, "--ray.gpus is -1"),
        ({"gpus": 1.5}, "--ray.gpus is 1.5"),
        ({"gpus": float("nan")}, "--ray.gpus is nan"),
        *[({"address": text}, f"--ray.address is {text!r}") for text in ("here", "ray://a", "a:0", "a:70000")],
        ({"checkpoints": ""}, "--checkpoints is empty"),
        ({"checkpoints": "ftp://a/b"}, "--checkpoints is 'ftp://a/b'"),
    ],
)
def test_what_cannot_be_requested_is_one_sentence(given, named):
    with pytest.raises(ValueError, match=named):
        RayEngine(**given)


def test_addresses_are_host_and_port():
    assert engines.host_and_port("head-1.local:6379") == ("head-1.local", 6379)
    assert engines.host_and_port("[::1]:6379") == ("::1", 6379)
    assert RayEngine(gpus=0.5, cpus=4, address="10.0.0.1:1").gpus == 0.5


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
    engines.check_answers(served(bytes((0, 0, 24, 4, 0, 0, 0, 0, 0)) + bytes(24)))
    for answer, why in (
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "answers, but is not the head of a Ray cluster"),
        (b"", "does not answer within 0.3 s"),
        (None, "does not answer within 0.3 s"),
    ):
        with pytest.raises(ValueError, match=why):
            engines.check_answers(served(answer), 0.3)
    with pytest.raises(ValueError, match=r"no\.host\.invalid:1"):
        engines.check_answers("no.host.invalid:1")


def test_what_ray_says_in_many_lines_is_one_sentence():
    text = engines.refusal("a:1", "Version mismatch:\n    Ray: 2.9.0\n  Python: 3.11.7\n")
    assert (
        text.startswith("Ray at a:1 cannot be joined from ")
        and ": Version mismatch: Ray: 2.9.0 Python: 3.11.7; run" in text
    )
    assert engines.refusal("auto", "Could not find any running Ray instance.").startswith("No Ray cluster")
