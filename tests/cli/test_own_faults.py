"""A scheme or task of the user's own that fails: it is said before it trains, by name, file and line, and the others
train."""

import json

import pytest

from posenc.lab.run.plan import examined
from posenc.lab.spec import modules
from posenc.lab.spec.experiment import from_words
from posenc.lab.store import folder as store

TINY = "width=8 depth=1 heads=2 hidden=8 batch=4 length=4 steps=2 sizes=4,12 rows=8 seeds=1".split()
SCHEME = """\
from posenc import Scheme

class {name}(Scheme, name="{low}"):
    "A scheme that may fail."
    reads = "distance"
    def bind(self, dims):
        {bind}
        return self
    def score(self, p, s, tile):
        {score}
        return s
"""
TASK = """\
from posenc.tasks import Layout, Sizes, Task, parse

class {name}(Task, name="{low}"):
    "Even pairs, that may fail."
    layout, alphabet, classes, sizes = Layout.CLASSIFY, 2, 2, Sizes(2, (2, 8), (12, 16))
    def tokens(self, n):
        return {tokens}
    def make(self, key, n, n_max):
        e = parse("even_pairs").make(key, n, n_max)
        {make}
        return e
    def answer(self, prompt):
        return [int(prompt[0] != prompt[-1])]
"""
SCHEMES = {
    "Boom": ({"score": "raise RuntimeError('boom')"}, "RuntimeError: boom (Boom.py, line 10)"),
    "Keyed": ({"score": "s = s + {}['slope']"}, "KeyError: 'slope' (Keyed.py, line 10)"),
    "Late": ({"bind": "raise RuntimeError('late')"}, "RuntimeError: late (Late.py, line 7)"),
    "Worded": ({"score": "raise ValueError('no such tile')"}, "no such tile (Worded.py, line 10)"),
    "Wide": ({"score": "s = s[None]"}, "(Wide.py, line 3)"),
}
TASKS = {
    "Below": ({"make": "e = e._replace(tokens=e.tokens - 3)"}, "tokens are from 0 up to vocab (Below.py, line 3)"),
    "Above": ({"make": "e = e._replace(tokens=e.tokens + 9)"}, "tokens are from 0 up to vocab (Above.py, line 3)"),
    "Target": (
        {"make": "e = e._replace(targets=e.targets + 7)"},
        "targets are from 0 up to classes (Target.py, line 3)",
    ),
    "Minus": ({"make": "e = e._replace(targets=e.targets - 1)"}, "targets are from 0 up to classes (Minus.py, line 3)"),
    "Weights": ({"make": "e = e._replace(weight=e.weight * float('nan'))"}, "weights are finite (Weights.py, line 3)"),
    "Nothing": (
        {"make": "e = e._replace(score=e.score & False)"},
        "no example has a scored place (Nothing.py, line 3)",
    ),
    "Short": ({"tokens": "min(n, 9) + 1"}, "an example has 13 tokens, but tokens(12) is 10 (Short.py, line 3)"),
    "Raises": ({"make": "raise RuntimeError('boom')"}, "RuntimeError: boom (Raises.py, line 10)"),
}


@pytest.fixture
def own(tmp_path, fresh, posenc):
    """`own("Boom")` writes Boom.py and returns how a command names its class."""

    def write(name):
        if name in SCHEMES or name == "Fine":
            text = SCHEME.format(
                name=name, low=name.lower(), **{"bind": "pass", "score": "pass", **SCHEMES.get(name, ({},))[0]}
            )
        else:
            usual = {"tokens": "n + 1", "make": "pass"}
            text = TASK.format(name=name, low=name.lower(), **(usual | TASKS.get(name, ({},))[0]))
        (tmp_path / f"{name}.py").write_text(text)
        return f"{name}:{name}"

    return write


def looked_at(schemes, task):
    experiment = from_words([f"scheme={','.join(schemes)}", f"task={','.join(task)}"], TINY)
    modules.load_for(experiment)
    return examined(experiment)


@pytest.mark.ci
def test_a_scheme_that_fails_is_said_and_the_others_are_left(own):
    texts = {own(name): why for name, (_, why) in SCHEMES.items()}
    found = looked_at(["rope", *texts], ["even_pairs"])
    assert [resolved.run.scheme for resolved in found.trainable[1]] == ["rope"]
    for (text, why), fault in zip(texts.items(), found.faults, strict=True):
        assert fault.startswith(f"{text} on even_pairs cannot run: ") and why in fault


def test_a_task_that_fails_is_said_and_the_others_are_left(own):
    fine, texts = own("Sound"), {own(name): why for name, (_, why) in TASKS.items()}
    found = looked_at(["rope"], ["even_pairs", fine, *texts])
    assert [resolved.run.task for resolved in found.trainable[1]] == ["even_pairs", fine]
    for (text, why), fault in zip(texts.items(), found.faults, strict=True):
        assert fault.startswith(f"rope on {text} cannot run: ") and why in fault


@pytest.mark.parametrize("name", ["Boom", "Late", "Raises", "Nothing"])
def test_one_that_would_train_alone_is_refused_before_it_trains(own, refuse, name):
    text = own(name)
    words = ("--scheme", text, "--task", "copy") if name in SCHEMES else ("--scheme", "rope", "--task", text)
    assert f"{name}.py, line " in refuse("run", *words)


def test_settings_that_no_scheme_could_have_are_refused_with_own_ones_too(own, refuse):
    said = refuse("run", "--scheme", own("Fine"), "--task", "even_pairs", "--sizes", "4000000")
    assert "one layer's scores" in said and ".py" not in said


@pytest.mark.ci
def test_a_group_that_fails_stops_no_other_and_hides_none(own, posenc):
    grid = [f"scheme=rope,{own('Boom')},{own('Late')}", f"task=even_pairs,{own('Raises')},{own('Nothing')}"]
    said = posenc("sweep", "--grid", *grid, "--set", *TINY, "--name", "r")
    assert said.code == 1 and "RuntimeError: boom (Boom.py, line 10)" in said.err
    rows = json.loads(posenc("table", "r", "--json").out)["rows"]
    outcomes = {(row["task"], row["scheme"]): row["outcomes"] for row in rows}
    assert outcomes["even_pairs", "rope"] == {"done": 1}
    assert {key for key, of in outcomes.items() if of == {"failed": 1}} == {
        ("even_pairs", "boom"), *((t, s) for t in ("raises", "nothing") for s in ("rope", "boom"))
    }  # fmt: skip
    why = {(row.task, row.scheme): row.error for row in store.status(store.find("r")).rows}
    assert why["even_pairs", "boom"] == "RuntimeError: boom (Boom.py, line 10)"
    assert "Raises.py, line 10" in why["raises", "rope"] and "no example has a scored place" in why["nothing", "rope"]
    again = posenc("work", "r", "--import", "Boom", "--import", "Raises", "--import", "Nothing", "--import", "Late")
    assert again.code == 1 and posenc("table", "r").code == posenc("report", "r").code == 0


def test_the_atlas_goes_on_without_a_scheme_that_fails(own, posenc):
    said = posenc("atlas", own("Fine"), own("Boom"), "--probes", "offset", "--dry-run")
    assert said.code == 0 and "boom has no cell on" in said.err and "Boom.py, line 10" in said.err, said
    assert "fine has no cell" not in said.err
