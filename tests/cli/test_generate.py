"""`posenc generate`: text that a kept model writes, its loss, what truly follows, and every refusal in one sentence."""

import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from posenc.lab.cli.watch import watching
from posenc.lab.models.interface import Inputs
from posenc.lab.reuse.continuing import go_on
from posenc.lab.reuse.kept import kept_trial, restored
from posenc.lab.run import plan
from posenc.lab.run.sweep import sweep
from posenc.lab.spec.experiment import Experiment, grid
from posenc.lab.spec.run import Plan, Run
from posenc.lab.store import folder as store
from posenc.lab.train import generate

pytestmark = pytest.mark.ci  # every test reads models that three sweeps keep; lab/test_generate.py has the law of draws

TEXT = "the cat sat on the mat and the dog sat on the log. " * 40
TINY = {"width": 16, "depth": 1, "heads": 2, "hidden": 16, "batch": 8}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with my.txt, and kept models of it and of other tasks in `runs`."""
    folder = tmp_path_factory.mktemp("generate")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        (folder / "my.txt").write_text(TEXT)
        text = grid(Run(model="decoder", length=16, **TINY), task=["text(file='my.txt')"], scheme=["rope", "fox"])
        rows = [Run(model="decoder", length=16, longest=64, scheme="learned", task="text(file='my.txt')", **TINY)]
        copy = [Run(model="decoder", task="copy(symbols=4)", length=4, **TINY)]
        pairs = [Run(model="encoder", task="even_pairs", length=4, **TINY)]
        for name, runs, steps in (("text", text, 80), ("rows", rows, 2), ("copy", copy, 2), ("pairs", pairs, 2)):
            plan = Plan(steps=steps, seeds=(0,), lr=(1e-2,), sizes=(runs[0].length,), rows=4)
            with watching() as watch:
                assert sweep(Experiment(name, tuple(runs), plan), folder / "runs" / name, keep=True, watch=watch) == 0
        yield folder


@pytest.fixture
def here(home, posenc, monkeypatch):
    monkeypatch.chdir(home)
    return home


def test_a_key_draws_one_text_and_temperature_0_takes_the_likeliest(here):
    drawn = [go_on("text", None, "the cat ", 40, 1.0, key) for key in (0, 0, 1)]
    texts = [writing.written.tokens for writing in drawn]
    assert texts[0] == texts[1] != texts[2] and len(texts[0]) == 40
    cold, frozen = (go_on("text", None, "the cat ", 40, heat, 5).written for heat in (1e-4, 0.0))
    coldest = go_on("text", None, "the cat ", 40, 1e-39, 5).written
    assert cold.tokens == frozen.tokens == coldest.tokens and frozen.loss < min(
        writing.written.loss for writing in drawn
    )


def test_a_text_fills_the_rows_of_a_table_and_no_more(here, refuse):
    """Of 65 rows a prompt of 4 tokens leaves 61, though programs have room for a multiple of 64."""
    for many in (60, 61):
        writing = go_on("rows", None, "the ", many, 0.0, 0)
        assert len(writing.written.tokens) == len(writing.true.tokens) == many
    for many in (62, 200):
        assert "--tokens at most 61" in refuse("generate", "rows", "--prompt", "the ", "--tokens", f"{many}")
    assert "serves no token" in refuse("generate", "rows", "--prompt", "the cat " * 9, "--tokens", "1")


def test_all_temperatures_and_lengths_of_prompts_share_a_program(here):
    go_on("text", "rope", "the", 20, 1.0, 0)
    before = generate._greedy._cache_size()
    go_on("text", "rope", "the dog sat", 30, 0.5, 3)
    assert generate._greedy._cache_size() == before


def test_the_loss_is_that_of_one_pass_over_the_true_text(here):
    writing = go_on("text", "fox", "the cat sat", 12, 1.0, 0)
    assert bytes(writing.true.tokens).decode() == TEXT[TEXT.index("the cat sat") + 11 :][:12]
    folder, line = kept_trial("text", "fox")
    resolved = plan.planned_run(line.run)
    tokens = np.array([[*b"the cat sat", *writing.true.tokens]], np.int32)
    entered = Inputs(jnp.asarray(tokens), jnp.ones(tokens.shape, bool))
    logits = np.asarray(restored(resolved, folder, line.id)(entered, jax.random.key(0)), np.float64)[0]
    chances = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    losses = [-math.log(chances[at - 1, tokens[0, at]]) for at in range(11, 23)]
    assert writing.true.loss == pytest.approx(np.mean(losses), rel=1e-4)
    assert writing.true.bits == pytest.approx(writing.true.loss / math.log(2))


def test_a_task_of_symbols_takes_them_as_they_are_shown(posenc, here):
    for prompt in ("3 1 2", "BOS 3 1 2 SEP"):
        said = posenc("generate", "copy", "--prompt", prompt, "--tokens", "9", "--json")
        assert said.code == 0, said.err
        shown = json.loads(said.out)
        assert shown["prompt"]["text"] == "BOS 3 1 2 SEP" and shown["true"]["text"] == "3 1 2 EOS"
        assert len(shown["written"]["tokens"]) <= 9 and shown["true"]["bits"] > 0


def test_without_a_prompt_it_is_the_beginning_of_a_test_row(posenc, here):
    said = posenc("generate", "text", "--tokens", "8")
    assert said.code == 0 and said.out.startswith("rope on text(file='my.txt'), seed 0, lr 0.01; temperature 1, key 0")
    assert "What truly follows (8 tokens, " in said.out and "The model goes on (8 tokens, " in said.out
    other = posenc("generate", "text", "--prompt", "zebra", "--tokens", "3", "--temperature", "0")
    assert other.code == 0 and "likeliest" in other.out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["text", "--tokens", "0"], "--tokens is 0"),
        (["text", "--temperature", "-1"], "--temperature is -1.0"),
        (["text", "--temperature", "nan"], "--temperature is nan"),
        (["text", "--key", "-1"], "--key is -1"),
        (["text", "--prompt", ""], "--prompt is empty"),
        (["text", "--scheme", "alibi"], "'alibi'"),
        (["copy", "--prompt", "3 7"], "'copy' has no symbol '7'."),
        (["copy", "--prompt", "3 EOS"], "'copy' has no symbol 'EOS'."),
        (["pairs"], "'encoder'"),
        (["none"], "'none'"),
    ],
)
def test_what_cannot_be_written_is_refused(refuse, here, words, says):
    assert says in refuse("generate", *words)


def test_a_character_that_a_text_has_not_is_refused(here):
    from posenc.lab.tasks import parse

    with pytest.raises(ValueError, match="The text 'my.txt' has no character 'ß'; write with those that it has."):
        parse("text(file='my.txt', characters=True)").tokenise("daß")
    assert parse("text(file='my.txt')").tokenise("ß") == [0xC3, 0x9F]


def test_a_run_without_kept_parameters_and_a_changed_text_are_refused(refuse, here):
    parameters = store.find("text") / "params"
    parameters.rename(parameters.with_name("away"))
    sentence = refuse("generate", "text")
    parameters.with_name("away").rename(parameters)
    assert "'text'" in sentence and "--keep" in sentence
    (here / "my.txt").write_text(TEXT + "more")
    sentence = refuse("generate", "text")
    (here / "my.txt").write_text(TEXT)
    assert "The text 'my.txt' has changed since" in sentence
