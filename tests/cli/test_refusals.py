"""Every bad command line is answered by one sentence on stderr and exit 2, and nothing is written."""

import subprocess
import sys

import pytest

RUN = ("run", "--task", "reverse_string", "--scheme")
BAD = {
    "setting": [*RUN, "rope(bass=3)"],
    "base zero": [*RUN, "rope(base=0)"],
    "base negative": [*RUN, "rope(base=-1.0)"],
    "base one": [*RUN, "rope(base=1)"],
    "code": [*RUN, "__import__('os').system('x')"],
    "open bracket": [*RUN, "rope("],
    "empty scheme": [*RUN, ""],
    "text for a number": [*RUN, "rope(base='x')"],
    "fraction": [*RUN, "rope(fraction=2.0)"],
    "odd head": [*RUN, "rope", "--width", "6", "--heads", "2"],
    "window of none": [*RUN, "rope + window(0)"],
    "window alone": [*RUN, "window(4)"],
    "two windows": [*RUN, "rope + window(4) + window(5)"],
    "depth no multiple": [*RUN, "[rope, nope]", "--depth", "3"],
    "input in a list": [*RUN, "[learned, nope]"],
    "causal only": [*RUN, "fox", "--model", "encoder"],
    "buckets": [*RUN, "t5(buckets=3)"],
    "coordinates": [*RUN, "rope @ random_sortd(64)"],
    "limit": [*RUN, "rope @ random_sorted(0)"],
    "task setting": ["run", "--task", "token_k_back(k=0)"],
    "task code": ["run", "--task", "copy + copy"],
    "steps negative": ["run", "--steps", "-5"],
    "steps text": ["run", "--steps", "many"],
    "steps fraction": ["run", "--steps", "2.5"],
    "steps true": ["run", "--steps", "True"],
    "no seeds": ["run", "--seeds", "0"],
    "seeds empty": ["run", "--seeds", ""],
    "seeds twice": ["run", "--seeds", "3,3"],
    "seeds large": ["run", "--seeds", "4294967296,1"],
    "seeds backwards": ["run", "--seeds", "5:2"],
    "seeds many": ["run", "--seeds", "99999999999"],
    "heads": ["run", "--width", "30", "--heads", "4"],
    "no heads": ["run", "--heads", "0"],
    "heads negative": ["run", "--heads", "-1"],
    "heads fraction": ["run", "--heads", "2.5"],
    "length": ["run", "--length", "0"],
    "longest": ["run", "--length", "40", "--longest", "20"],
    "shortest": ["run", "--length", "4", "--shortest", "9"],
    "rate negative": ["run", "--lr", "-1"],
    "rate nan": ["run", "--lr", "nan"],
    "rate twice": ["run", "--lr", "1e-3,0.001"],
    "sizes": ["run", "--sizes", "0"],
    "rows": ["run", "--rows", "0"],
    "clip": ["run", "--clip", "0"],
    "warmup": ["run", "--warmup", "2"],
    "segment": ["run", "--steps", "10", "--segment", "3"],
    "model": ["run", "--model", "encodr"],
    "dtype": ["run", "--dtype", "float64"],
    "lanes": ["run", "--lanes", "sideways"],
    "name": ["run", "--name", "../x"],
    "name absolute": ["run", "--name", "/x"],
    "name long": ["run", "--name", "x" * 300],
    "option": ["run", "--bogus", "1"],
    "option twice": ["run", "--steps", "3", "--steps", "4"],
    "option without value": ["run", "--steps"],
    "one too many": ["run", "rope"],
    "no file": ["sweep", "no_such_file.py"],
    "no toml": ["sweep", "no_such_file.toml"],
    "nothing to sweep": ["sweep"],
    "file and grid": ["sweep", "a.py", "--grid", "scheme=rope"],
    "grid name": ["sweep", "--grid", "scheme=rope,ropee", "task=reverse_string", "--seeds", "1", "--name", "x"],
    "grid empty": ["sweep", "--grid", "scheme=", "task=reverse_string", "--name", "x"],
    "grid gap": ["sweep", "--grid", "scheme=rope,,alibi"],
    "grid twice": ["sweep", "--grid", "scheme=rope,rope"],
    "grid axis twice": ["sweep", "--grid", "scheme=rope", "scheme=alibi"],
    "grid no value": ["sweep", "--grid", "rope"],
    "grid of steps": ["sweep", "--grid", "steps=1,2"],
    "set twice": ["sweep", "--grid", "scheme=rope", "--set", "width=32", "width=64"],
    "set and grid": ["sweep", "--grid", "scheme=rope", "--set", "scheme=alibi"],
    "seeds and set": ["sweep", "--grid", "scheme=rope", "--seeds", "3", "--set", "seeds=4"],
    "only unknown": ["sweep", "--grid", "scheme=rope", "--only", "color=red"],
    "a million": ["sweep", "--grid", "scheme=rope,alibi", "--seeds", "90000"],
    "save": ["sweep", "--grid", "scheme=rope", "--save", "nowhere/x.toml"],
    "save no toml": ["sweep", "--grid", "scheme=rope", "--save", "x.py"],
    "status": ["status", "no/such/run"],
    "status nothing": ["status"],
    "table": ["table", "no/such/run"],
    "table format": ["table", "no/such/run", "--format", "xml"],
    "plot": ["plot", "no/such"],
    "plot file": ["plot", "no_such.py"],
    "plot figure": ["plot", "mine", "--figure", "pie"],
    "export": ["export", "no/such/run"],
    "compare": ["compare", "no/such/run", "rope", "alibi"],
    "compare nothing": ["compare"],
    "compare with all at a size": ["compare", "mine", "rope", "--size", "8"],
    "compare with all by a metric": ["compare", "mine", "rope", "--metric", "last"],
    "metric of a bundle": ["export", "mine", "--bundle", "x.json", "--metric", "last"],
    "metric of an experiment's figure": ["plot", "first_look", "--metric", "last"],
    "compare an unknown one with all": ["compare", "mine", "nonsense"],
    "describe": ["describe", "nonsense"],
    "cite": ["cite", "nonsense"],
    "explain": ["explain", "nonsense"],
    "explain one": ["explain", "rope", "--len", "1"],
    "explain many": ["explain", "rope", "--len", "100000"],
    "explain pattern": ["explain", "[rope, nope]"],
    "explain drawn": ["explain", "rope", "--png", "nowhere/x.png"],
    "explain trained": ["explain", "rope", "--trained", "no/such"],
    "command": ["frobnicate"],
    "help of nothing": ["help", "frobnicate"],
}


@pytest.mark.parametrize("words", BAD.values(), ids=BAD)
def test_a_bad_command_line_gets_one_sentence_and_writes_nothing(refuse, words):
    sentence = refuse(*words)
    assert len(sentence) > 20 and sentence.rstrip()[-1] in ".?`", sentence


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([*RUN, "ropee"], "Did you mean 'rope'?"),
        (["run", "--task", "revers_string"], "Did you mean 'reverse_string'?"),
        (["run", "--step", "3"], "Did you mean '--steps'?"),
        (["swep"], "Did you mean 'sweep'?"),
        (["sweep", "--grid", "sceme=rope"], "Did you mean 'scheme'?"),
        (["sweep", "--grid", "scheme=rope", "--set", "widht=3"], "Did you mean 'width'?"),
        (["list", "schems"], "Did you mean 'schemes'?"),
        (["plot", "x", "--figure", "lenght"], "Did you mean 'length'?"),
        ([*RUN, "alibi(base=3.0)"], "'base' is a setting of "),
        (
            [*RUN, "learned", "--length", "5", "--longest", "5", "--sizes", "9"],
            "give a larger longest, the size of tables.\n",  # which all know, whatever class has it
        ),
        (["run", "--set", "steps=10", "scheme=rope(base=3)"], "write --steps 10 --scheme 'rope(base=3)'."),
        (["run", "--set=steps=10"], "write --steps 10."),
        (["run", "--direction", "causal"], "write --model decoder for"),
        (["sweep", "--steps", "10"], "write --set steps=10."),
        (["sweep", "--scheme=rope"], "write --grid scheme=rope."),
        (["sweep", "--grid", "scheme=rope", "--set", "direction=causal"], "write model=decoder for"),
        (["sweep", "--grid", "causal=True"], "write model=decoder for"),
    ],
)
def test_the_sentence_has_the_nearest_name_or_how_it_is_written_here(refuse, words, says):
    assert says in refuse(*words)


@pytest.mark.parametrize(
    ("words", "cut"),
    [
        (
            ["describe", "ropee"],
            "Known: rope, mrope, rerope, carope, vo_rope and 51 more; `posenc list schemes` has all.",
        ),
        (["run", "--task", "revers_string"], "more; `posenc list tasks` has all."),
        (["run", "--step", "3"], "more; `posenc run --help` has all."),
        (["run", "--preset", "rouss"], "Known: ruoss, "),
        (["plot", "x", "--figure", "lenght"], "Known: length, heatmap, error, place, excess, curves, steps, seeds, "),
    ],
)
def test_a_long_list_of_names_is_cut_at_the_five_nearest(refuse, words, cut):
    sentence = refuse(*words)
    assert cut in sentence and sentence.count(", ") <= 11 and len(sentence) < 260


def test_an_output_path_that_is_a_file_is_refused_before_training(posenc, tmp_path):
    (tmp_path / "runs").write_text("")
    said = posenc("run", "--scheme", "nope", "--length", "4", "--name", "x")
    assert said.code == 2 and "is a file" in said.err


def test_debug_shows_where_an_error_arose(posenc):
    with pytest.raises(ValueError, match="'ropee'"):
        posenc("describe", "ropee", "--debug")


def test_control_characters_in_a_name_never_reach_the_terminal(posenc):
    assert "\x1b" not in posenc("describe", "ro\x1b[31mpe").err


@pytest.mark.parametrize("words", [["run", "--scheme", "ropee"], ["frobnicate"], ["status", "no/such"]])
def test_the_same_holds_for_a_process_of_its_own(words, tmp_path, left):
    done = subprocess.run([sys.executable, "-m", "posenc", *words], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and not done.stdout and len(done.stderr.splitlines()) == 1
    assert left() == []
