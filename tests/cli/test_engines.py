"""Who runs a sweep: workers of this machine, or SLURM; what cannot be is one sentence, and plans nothing."""

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
        (("--engine", "pbs"), "invalid choice 'pbs' for argument '--engine'"),
        (("--slurm.workers", "x", "--engine", "slurm"), "--slurm.workers"),
        (("--slurm.nodes", "2"), "no option of `posenc sweep`"),
    ],
)
def test_engines_that_cannot_be_are_one_sentence(posenc, tmp_path, words, why):
    said = posenc("sweep", "--grid", "scheme=rope", "--name", "mine", *words)
    assert said.code == 2 and why.lower() in said.err.lower() and said.err.count("\n") == 1, said.err
    assert not (tmp_path / "runs").exists()
