"""What a shell, a disk and other people's code do to a command: one sentence, the right exit code, nothing lost."""

import os
import subprocess
import sys
import textwrap

import pytest

from posenc.lab import cli
from posenc.lab.results.results import load


def run(command, folder):
    """A command of a shell, in a process of its own; `posenc` is this posenc, its output buffered as a user's is."""
    path = {**os.environ, "PY": sys.executable, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    path.pop("PYTHONUNBUFFERED", None)
    done = subprocess.run(
        ["bash", "-c", f'posenc() {{ "$PY" -m posenc "$@"; }}; {command}'],
        capture_output=True, text=True, cwd=folder, env=path, timeout=60,
    )  # fmt: skip
    assert "Traceback" not in done.stderr + done.stdout and "Exception ignored" not in done.stderr, done.stderr
    return done


def test_a_closed_standard_output_is_one_sentence(tmp_path):
    done = run("posenc list models >&-", tmp_path)
    assert done.returncode == 2 and "/dev/null" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.ci
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no full disk to try")
@pytest.mark.parametrize("words", ["list models", "--help", "list schemes --json"])
def test_a_full_standard_output_exits_as_other_full_disks_do(words, tmp_path):
    done = run(f"posenc {words} > /dev/full", tmp_path)
    assert done.returncode == 74
    assert "full" in done.stderr and done.stderr.count("\n") == 1


def test_a_closed_standard_error_leaves_the_exit_code(tmp_path):
    assert run("posenc list schems 2>&-", tmp_path).returncode == 2


@pytest.mark.ci
def test_ctrl_c_while_the_command_line_is_imported_is_a_stop(tmp_path):
    """A finder of modules that sends Ctrl-C stands where the imports are slow."""
    code = """
        import os, signal, sys
        class Slow:
            def find_spec(self, name, *about):
                if name == {name!r}:
                    os.kill(os.getpid(), signal.SIGINT)
        sys.meta_path.insert(0, Slow())
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started this with it ignored
        sys.argv = ["posenc", "describe", "rope"]
        from posenc.__main__ import main
        sys.exit(main())
    """
    for name in ("posenc.lab.cli", "jax", "posenc.schemes"):
        words = [sys.executable, "-c", textwrap.dedent(code.format(name=name))]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=env, timeout=60)
        assert (done.returncode, done.stderr, done.stdout) == (130, "Stopped.\n", ""), name


def test_an_import_that_turns_ctrl_c_into_another_error_is_a_stop(posenc, monkeypatch):
    def interrupted(args):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as stop:
            raise ImportError("numpy was interrupted") from stop

    monkeypatch.setattr(cli, "_dispatch", interrupted)
    assert posenc("list")[::2] == (130, "Stopped.\n")


STOPS = {
    "its body": "class Stop(BaseException): pass\nraise Stop('so')\n",
    "runs": "class Stop(BaseException): pass\ndef runs(): raise Stop('so')\n",
    "an exit": "import sys\nsys.exit(0)\n",
    "an exit of runs": "import sys\ndef runs(): sys.exit(0)\n",
    "a generator's": "def runs(): raise StopIteration('so')\n",
}


@pytest.mark.parametrize("name", STOPS)
def test_an_experiment_may_raise_anything_and_is_named(refuse, tmp_path, name):
    (tmp_path / "mine.py").write_text(STOPS[name])
    assert refuse("sweep", "mine.py").startswith("'mine.py', line")


def test_ctrl_c_inside_an_experiment_is_a_stop(posenc, tmp_path):
    (tmp_path / "mine.py").write_text("raise KeyboardInterrupt\n")
    assert posenc("sweep", "mine.py")[::2] == (130, "Stopped.\n")


def test_a_module_of_the_users_may_raise_anything(refuse, tmp_path, fresh):
    (tmp_path / "mine.py").write_text(STOPS["its body"])
    assert "mine.py', line 2, cannot be used: Stop: so" in refuse("describe", "mine:Mine")


class Stop(BaseException):
    pass


@pytest.mark.parametrize("error", [Stop("so"), ZeroDivisionError("so")], ids=repr)
def test_an_error_of_ours_is_one_line_and_no_bad_command(posenc, monkeypatch, error):
    def stopped(text):
        raise error

    monkeypatch.setattr("posenc.catalog.schemes.cite", stopped)
    said = posenc("cite", "rope")
    assert said.code == 1
    assert said.err == f"posenc failed: {type(error).__name__}: so; add --debug for the traceback.\n"


LONG = "x" * 3000
SAID = {
    "a name with a dash": (["run", "--name=-lead"], "'-lead' cannot be a name here"),
    "the same apart": (["run", "--name", "-lead"], "'-lead' cannot be a name here"),
    "a setting with a dash": (["sweep", "--grid", "scheme=rope", "--set=-x=3"], "--set was given '-x=3', which"),
    "a window alone": (["describe", "window(0)"], "'window(0)' does not stand alone, but beside a scheme"),
    "a window to cite": (["cite", "window(4)"], "'window(4)' does not stand alone, but beside a scheme"),
    "coordinates alone": (["describe", "offset(3)"], "'offset(3)' does not stand alone, but after @: 'rope @ offset'"),
    "a width": (["run", "--width", "10000000", "--dry-run"], "width is 10000000; hidden is four times that"),
    "a length": (["run", "--length", "10000000", "--dry-run"], "length is 10000000; longest is four times that"),
    "a superscript": (["run", "--seeds", "²"], "seeds takes a whole number, not '²'"),
    "a count of 5,000 digits": (["run", "--seeds", "9" * 5000], "seeds takes a whole number, not '999"),
    "steps of 5,000 digits": (["run", "--steps", "9" * 5000], "steps takes a whole number, not '999"),
    "steps of 100 digits": (["run", "--steps", "9" * 100], "'steps' of 'Plan' is 999"),
    "a long scheme": (["run", "--scheme", LONG], "No scheme is called 'xxx"),
    "a long command": ([LONG], "No command is called 'xxx"),
    "a long option": (["run", f"--{LONG}", "1"], "No option of `posenc run` is called '--xxx"),
    "a long run": (["status", LONG], "xxx...' cannot be used: File name too long"),
    "a long name": (["run", "--name", LONG], "'xxx"),
    "a long choice": (["sweep", "--grid", "scheme=rope", "--only", LONG], "--only takes NAME=VALUE, such as width=64"),
    "a comment": (["run", "--scheme", "rope # + alibi"], "it has a comment, '# + alibi'"),
    "many parts": (["run", "--scheme", "+".join(["rope"] * 500)], "A sum has at most 32"),
}  # fmt: skip


@pytest.mark.parametrize("name", SAID)
def test_the_sentence_names_what_was_given_and_cuts_what_is_long(refuse, name):
    words, sentence = SAID[name]
    refusal = refuse(*words)
    assert sentence in refusal and "xxx" * 21 not in refusal and "9" * 61 not in refusal


def test_workers_of_thousands_of_digits_are_refused(refuse, runs):
    sentence = refuse("work", "mine", "--workers", "0" * 4999 + "1")
    assert "--workers is '000" in sentence and len(sentence) < 200


@pytest.mark.timeout(10)
def test_names_of_thousands_of_parts_are_refused_at_once(refuse, tmp_path):
    (tmp_path / "mine.toml").write_text("a." * 20_000 + "a = 1\n")
    assert "256 dots" in refuse("sweep", "mine.toml")


@pytest.mark.timeout(20)
def test_a_pipe_among_the_experiments_is_passed_over(posenc, tmp_path):
    (tmp_path / "experiments").mkdir()
    os.mkfifo(tmp_path / "experiments" / "zebra.py")
    said = posenc("list", "experiments")
    assert said.code == 0 and "zebra" not in said.out


def test_evaluation_of_a_run_whose_plan_lacks_its_trials_is_a_sentence(posenc, runs):
    for trial in load("mine").trials():
        (runs / "params" / trial).mkdir(parents=True)
        (runs / "params" / trial / "manifest.json").write_text("{}")
    (runs / "plan.jsonl").write_text("")
    said = posenc("evaluate", "mine")
    assert said.code == 2 and "'mine'" in said.err and "plan.jsonl" in said.err
