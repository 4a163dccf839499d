"""Who runs a sweep: workers of this machine, SLURM, or Ray; what cannot be is one sentence, and plans nothing."""

import pytest


def test_without_slurm_the_command_line_says_so_and_plans_nothing(posenc, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    said = posenc("sweep", "--grid", "scheme=rope", "--name", "mine", "--engine", "slurm")
    assert said.code == 2 and not (tmp_path / "runs").exists()
    assert said.err == "SLURM is not here: there is no sbatch on the path; submit from a machine that has it.\n"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--engine", "slurm", "--workers", "2"), "--workers is for this machine; say --slurm.workers N with"),
        (("--slurm.workers", "2"), "--slurm.workers is an option of --engine slurm; add that, or leave it out."),
        (("--workers", "0"), "--workers is '0'; give a number from 1 to 4096, or auto."),
        (("--workers", "two"), "--workers is 'two'; give a number from 1 to 4096, or auto."),
        (("--engine", "ray", "--workers", "2"), "--workers is for this machine; leave it out with --engine ray."),
        (("--ray.cpus", "2"), "--ray.cpus is an option of --engine ray; add that, or leave it out."),
        (("--ray.gpus", "1", "--engine", "slurm"), "--ray.gpus is an option of --engine ray; add that, or leave it"),
        (("--slurm.time", "1", "--engine", "ray"), "--slurm.time is an option of --engine slurm; add that, or leave"),
        (("--checkpoints", "x"), "--checkpoints is an option of --engine ray; add that, or leave it out."),
        (("--ray.cpus", "0", "--engine", "ray"), "--ray.cpus is 0; give a whole number from 1 up."),
        (("--ray.gpus", "-1", "--engine", "ray"), "--ray.gpus is -1; give a whole number from 0 up, or a part"),
        (("--ray.address", "here", "--engine", "ray"), "--ray.address is 'here'; give auto or HOST:PORT"),
        (("--engine", "pbs"), "invalid choice 'pbs' for argument '--engine'"),
        (("--slurm.workers", "x", "--engine", "slurm"), "--slurm.workers"),
        (("--slurm.nodes", "2"), "no option of `posenc sweep`"),
    ],
)
def test_engines_that_cannot_be_are_one_sentence(posenc, tmp_path, words, why):
    said = posenc("sweep", "--grid", "scheme=rope", "--name", "mine", *words)
    assert said.code == 2 and why.lower() in said.err.lower() and said.err.count("\n") == 1, said.err
    assert not (tmp_path / "runs").exists()


def test_without_ray_the_command_line_says_what_to_install(posenc, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    said = posenc("sweep", "--grid", "scheme=rope", "--name", "mine", "--engine", "ray")
    assert said.code == 2 and not (tmp_path / "runs").exists()
    assert said.err == "--engine ray needs Ray, which is not installed: pip install 'posenc[ray]'.\n"


def test_an_address_that_does_not_answer_is_one_sentence_before_anything_is_planned(posenc, tmp_path, monkeypatch):
    monkeypatch.setattr("posenc.lab.sweep.ray.cluster.check_installed", lambda: None)
    words = ("--engine", "ray", "--ray.address", "127.0.0.1:1")
    said = posenc("sweep", "--grid", "scheme=rope", "--name", "mine", *words)
    assert said.code == 2 and not (tmp_path / "runs").exists() and said.err.count("\n") == 1
    assert said.err.startswith("--ray.address 127.0.0.1:1 does not answer (Connection refused); give the HOST:PORT")


def test_a_dry_run_says_what_each_group_would_get_and_needs_no_cluster(posenc, tmp_path):
    words = (
        "--engine",
        "ray",
        "--ray.cpus",
        "2",
        "--ray.gpus",
        "0.5",
        "--checkpoints",
        "s3://bucket/ckpts",
        "--dry-run",
    )
    said = posenc("sweep", "--grid", "scheme=rope", "task=even_pairs", "--name", "mine", *words)
    assert said.code == 0 and not (tmp_path / "runs").exists()
    task = "one task of Ray for each group, with 2 CPUs and 0.5 GPUs; checkpoints below s3://bucket/ckpts/mine"
    assert task in said.out


def test_the_time_left_of_groups_that_train_elsewhere_follows_from_all_of_them(monkeypatch, capsys):
    from posenc.lab.cli import watch

    now = [0.0]
    monkeypatch.setattr(watch.time, "monotonic", lambda: now[0])
    seen = watch.Elsewhere()
    seen.begin(8, 0, None)
    assert seen.left() == ""
    for label in ("a", "b"):
        seen.group(label, 2)
    now[0] = 10.0
    seen.step("a", 10, 100, 1.0)
    now[0] = 20.0
    seen.step("a", 60, 100, 1.0)
    assert seen.left() == "; roughly 1 min 08 s left, and then evaluation", "6.8 trials at half of two in ten seconds"
    seen.finished("a", "done", 20.0)
    assert seen.left() == "; about 1 min 00 s left", "two trials in twenty seconds"
    assert "a: 2 trials" not in capsys.readouterr().err
