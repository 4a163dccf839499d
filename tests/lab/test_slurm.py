"""SLURM: the job script holds the options that were given and no others."""

import shlex
import subprocess

import pytest

from posenc.lab.run.slurm import Slurm, script, submitted

COMMAND = ["/usr/bin/python3", "-m", "posenc", "work", "/runs/mine"]


def directives(text):
    return [line.removeprefix("#SBATCH ") for line in text.splitlines() if line.startswith("#SBATCH")]


def test_the_script_asks_for_what_was_asked_and_nothing_else(tmp_path):
    how = Slurm(workers=20, time=60, partition="low", cpus=4, gpus=1, extra="--account=lab --mem=8G")
    assert directives(script(how, tmp_path / "mine", COMMAND)) == [
        "--job-name=posenc-mine", "--array=0-19", "--partition=low", "--time=60", "--cpus-per-task=4", "--gpus=1",
        "--signal=TERM@120", f'--output="{tmp_path}/mine/slurm-%A_%a.log"', "--requeue", "--open-mode=append",
        "--account=lab", "--mem=8G",
    ]  # fmt: skip
    names = [line.partition("=")[0] for line in directives(script(Slurm(), tmp_path, COMMAND))]
    assert names == ["--job-name", "--array", "--output", "--requeue", "--open-mode"]


@pytest.mark.parametrize(("minutes", "seconds"), [(1, 12), (5, 60), (10, 120), (600, 120)])
def test_a_worker_hears_of_the_end_in_time_to_save(minutes, seconds):
    assert Slurm(time=minutes).notice == seconds


@pytest.mark.parametrize("name", ["$(touch x)", "a; touch x", "a b", "`touch x`", "100%", "it's"])
def test_a_folder_of_any_name_runs_nothing(tmp_path, name):
    """The shell sees the words of the command as they are; of the script's lines only the command names the folder."""
    folder = tmp_path / name / "mine"
    folder.mkdir(parents=True)
    command = ["echo", "work", str(folder)]
    path = tmp_path / "job.sh"
    path.write_text(script(Slurm(), folder, command).replace("srun --ntasks=1 ", ""))
    done = subprocess.run(["bash", path], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout == f"work {folder}\n" and done.returncode == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([name, "job.sh"])
    (output,) = (line for line in directives(path.read_text()) if line.startswith("--output"))
    assert shlex.split(output) == [f"--output={folder}/slurm-%A_%a.log".replace("100%", "100%%")]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"workers": 0}, "--slurm.workers is 0; give a whole number from 1 up."),
        ({"time": -5}, "--slurm.time is -5; give a whole number from 1 up."),
        ({"gpus": -1}, "--slurm.gpus is -1; give a whole number from 0 up."),
        ({"partition": "a b"}, "--slurm.partition is 'a b'; give the name of a partition."),
        ({"partition": "$(x)"}, "--slurm.partition is '$(x)'; give the name of a partition."),
        ({"extra": "lab"}, "--slurm.extra has 'lab'; write options of sbatch with =, such as --account=lab."),
        ({"extra": "--a=1\nrm"}, "--slurm.extra has 'rm'; write options of sbatch with =, such as --account=lab."),
        (
            {"extra": "--a=1\n--b=2"},
            "--slurm.extra has a line break or an unprintable character; write it in one line.",
        ),
        ({"extra": "'"}, '--slurm.extra is "\'", which is not words: No closing quotation.'),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_sentence(said, why):
    with pytest.raises(ValueError) as told:
        Slurm(**said)
    assert str(told.value) == why


@pytest.fixture
def sbatch(tmp_path, monkeypatch):
    """`sbatch(script)`: a program of this name on the path."""
    place = tmp_path / "bin"
    place.mkdir()
    monkeypatch.setenv("PATH", str(place))

    def make(text):
        (place / "sbatch").write_text(f"#!/bin/sh\n{text}\n")
        (place / "sbatch").chmod(0o755)

    return make


def test_the_script_is_kept_and_its_job_is_named(tmp_path, sbatch):
    sbatch(f'echo "$@" > {tmp_path}/given; echo "4711;cluster"')
    folder = tmp_path / "mine"
    folder.mkdir()
    assert submitted(Slurm(), folder, COMMAND) == "4711"
    assert (tmp_path / "given").read_text().split() == ["--parsable", str(folder / "slurm.sh")]
    assert (folder / "slurm.sh").read_text() == script(Slurm(), folder, COMMAND)


def test_what_sbatch_refuses_is_repeated(tmp_path, sbatch):
    sbatch("echo 'sbatch: error: invalid partition' >&2; exit 1")
    with pytest.raises(ValueError, match="slurm.sh': sbatch: error: invalid partition$"):
        submitted(Slurm(), tmp_path, COMMAND)
