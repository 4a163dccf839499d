"""Trained models under another scheme: as computed by hand, and refused where it has other parameters."""

import dataclasses
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from einops import rearrange

import posenc
from posenc.core.scheme import Dims
from posenc.lab.cli.read import filter_results
from posenc.lab.models.carry import differences, moved
from posenc.lab.results.results import load
from posenc.lab.reuse.evaluate import ask, groups
from posenc.lab.reuse.kept import abstract
from posenc.lab.run.sweep import sweep
from posenc.lab.spec.experiment import Experiment, grid
from posenc.lab.spec.run import Plan, Run
from posenc.lab.store import checkpoints, records
from posenc.lab.tasks import parse
from posenc.lab.tasks.measure import evaluation_key
from posenc.lab.train import training
from posenc.naming import bind
from tests.lab.test_sweep import Watch

TASK, LENGTH, ROWS = "token_k_back(k=1, symbols=4)", 8, 32
BASE = Run(task=TASK, model="decoder", width=16, depth=2, heads=2, hidden=16, batch=8, length=LENGTH, longest=16)
SIZES = (LENGTH, 24)
"""The second is further than the tables of the run would hold."""


SWEPT = pytest.mark.ci  # evaluates models that a sweep keeps


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One model for each of two schemes, kept."""
    where = tmp_path_factory.mktemp("runs") / "kept"
    plan = Plan(steps=40, seeds=(0,), lr=(1e-2,), sizes=(LENGTH, 16), rows=ROWS)
    assert sweep(Experiment("kept", grid(BASE, scheme=["rope", "t5"]), plan), where, keep=True, watch=Watch()) == 0
    return where


def models(folder, scheme):
    return load(folder).only(scheme=scheme)


def asked(folder, *schemes, of="rope", sizes=SIZES):
    """Label to the counts at each size."""
    found = ask(models(folder, of), schemes=schemes, sizes=sizes)
    return {r.label: {n: r.trials[0].evaluations[n]["correct"] for n in sizes} for r in found.records}


def by_hand(folder, text, of="rope", sizes=SIZES):
    """The same from the stored arrays, the equations of a decoder and `posenc.attend`: how many tokens are right."""
    (trial,) = models(folder, of).trials()
    p, task = checkpoints.restore(folder, trial), parse(TASK)
    dims = Dims(width=16, heads=2, head=8, trained=LENGTH, longest=16)
    bound = bind(posenc.parse(text), dims)
    layers = bound.layers if text.startswith("[") else (bound,)
    tied = next(iter(p["tied"].values())) if of == "t5" else {}
    params = ({}, tied) if " + " in text else tied

    def norm(x, scale):
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * scale

    def logits(tokens):
        x = p["embedding"][np.asarray(tokens)].astype(float)
        for n in range(2):
            block = jax.tree.map(lambda a, n=n: a[n], p["blocks"]["0"])
            h = norm(x, block["scales"][0])
            q = rearrange(h @ block["attention"]["query"], "b t (h d) -> b t h d", h=2)
            k, v = rearrange(h @ block["attention"]["key_value"], "b t (s h d) -> s b t h d", s=2, h=2)
            mixed = np.asarray(posenc.attend(layers[n % len(layers)], params, *(jnp.float32(a) for a in (q, k, v))))
            x = x + rearrange(mixed, "b t h d -> b t (h d)") @ block["attention"]["out"]
            x = x + np.maximum(norm(x, block["scales"][1]) @ block["up"], 0) @ block["down"]
        return norm(x, p["scale"]) @ p["readout"]

    found = {}
    for n in sizes:
        batch = task.sample(evaluation_key(task, n), n, batch=ROWS, n_max=n)
        said = np.argmax(logits(batch.tokens), -1)
        found[n] = int(((said == batch.targets) & batch.score).sum())
    return found


OTHERS = ["yarn(factor=4.0)", "dynamic_ntk", "self_extend(group=2)", "log_n + rope", "nope", "[rope, nope]"]


@SWEPT
def test_a_model_under_another_scheme_is_as_computed_by_hand(folder):
    found = asked(folder, *OTHERS)
    assert list(found) == [f"{posenc.spec(posenc.parse(text))}, trained with rope" for text in OTHERS]
    for text, counts in zip(OTHERS, found.values(), strict=True):
        assert counts == by_hand(folder, text), text
    assert len({counts[24] for counts in found.values()}) > 4, "schemes that answer alike show nothing"
    (learned,) = asked(folder, "log_n + t5", of="t5").values()
    assert learned == by_hand(folder, "log_n + t5", of="t5") != by_hand(folder, "t5", of="t5")


@SWEPT
def test_under_its_own_scheme_a_model_is_evaluated_as_ever(folder):
    results = load(folder)
    plain, own = ask(results.only(scheme="rope")), ask(results.only(scheme="rope"), schemes=["rope(base=1e4)"])
    assert own.records == plain.records
    told = [t.evaluations for r in results.only(scheme="rope").records for t in r.trials]
    assert [t.evaluations for r in own.records for t in r.trials] == told


@SWEPT
def test_a_factor_of_1_changes_nothing(folder):
    once = asked(folder, "rope", "pi(factor=1.0)", "ntk(factor=1.0)", "yarn(factor=1.0)")
    assert len(once) == 4 and len({tuple(counts.items()) for counts in once.values()}) == 1
    assert asked(folder, "pi(factor=4.0)") != asked(folder, "pi(factor=2.0)")


@SWEPT
def test_what_is_left_open_counts_from_the_length_trained_on(folder):
    results = models(folder, "rope")
    for open_, filled, asked_for in (
        ("dynamic_ntk", "dynamic_ntk(original={})", 24),
        ("log_n + rope", "log_n(trained={}) + rope", 24),
        ("rerope", "rerope(window={})", 3),
    ):
        texts = [filled.format(LENGTH if open_ != "rerope" else 1), filled.format(asked_for)]
        (found,) = ask(results, schemes=[open_], sizes=(24,)).records
        right, wrong = (ask(results, schemes=[text], sizes=(24,)).records[0] for text in texts)
        assert found.run["under"] == right.run["under"] != wrong.run["under"]
        assert found.trials[0].evaluations == right.trials[0].evaluations != wrong.trials[0].evaluations


@SWEPT
@pytest.mark.parametrize(
    ("of", "schemes", "says"),
    [
        ("rope", ["t5"], r"'t5'.*'rope'.*t5 \(shared\)"),
        ("rope", ["pi", "kerple"], r"kerple \(layer 1, layer 2\)"),
        ("rope", ["rope(frequencies='learned')"], r"rope \(layer 1, layer 2\).*then='0.9 rope"),
        ("t5", ["rope"], r"'rope'.*'t5'.* no t5"),
        ("t5", ["kerple"], r"kerple \(layer 1, layer 2\).* no t5"),
        ("t5", ["t5(buckets=8)"], r"t5 \(shared\).*shape"),
        ("t5", ["[t5, nope, t5]"], "A depth|depth=2"),
        ("rope", ["yran"], "'yran'"),
        ("rope", ["pi", "pi(factor=4.0)"], r"'pi\(factor=4.0\)'"),
        ("rope", ["yarn("], "read"),
        ("rope", ["rope @ random_sorted(16)"], "."),
    ],
)
def test_a_scheme_with_other_parameters_is_refused_before_any_model_is_read(folder, of, schemes, says, monkeypatch):
    monkeypatch.setattr("posenc.lab.reuse.evaluate.restored_under", None)
    with pytest.raises((ValueError, TypeError), match=says):
        ask(models(folder, of), schemes=schemes, sizes=SIZES)


@SWEPT
def test_other_settings_of_the_same_class_take_its_parameters(folder):
    ((label, counts),) = asked(folder, "t5(reach=20)", of="t5").items()
    assert label == "t5(reach=20), trained with t5" and counts == by_hand(folder, "t5(reach=20)", of="t5")


@SWEPT
def test_results_under_another_scheme_are_results_like_any_other(folder, tmp_path):
    results = models(folder, "rope")
    found = ask(results, schemes=["rope", "pi", "yarn"], sizes=SIZES)
    ids = [t for r in found.records for t in r.ids]
    assert len(set(ids)) == 3 and not set(ids) & set(results.trials())
    again = load(records.write_bundle(tmp_path / "u.json", "u", found.records, []))
    assert {r.scheme for r in again.rows()} == {"rope", "pi, trained with rope", "yarn, trained with rope"}
    assert {r.family for r in again.rows()} == {"rotary"} and {r.trained_to for r in again.rows()} == {LENGTH}
    some = filter_results(again, ("scheme=yarn, trained with rope,rope",))
    assert {r.scheme for r in some.rows()} == {"rope", "yarn, trained with rope"}
    later = dataclasses.replace(results, records=(dataclasses.replace(results.records[0], label="rope, then nope"),))
    assert ask(later, schemes=["pi"], sizes=(24,)).records[0].label == "pi, trained with rope, then nope"


@SWEPT
def test_groups_under_another_scheme_are_its_whole(folder):
    results = models(folder, "rope")
    rows = [*groups(results, ["size"], schemes=["rope", "pi"], sizes=SIZES).itertuples()]
    found = {(r.scheme, r.size): r.correct for r in rows}
    whole = asked(folder, "rope", "pi")
    assert found == {(label, n): counts[n] for label, counts in whole.items() for n in SIZES}
    shown = ask(results, schemes=["rope"], sizes=SIZES).shown().rows()
    ours = {row.size: (row.metric, row.value) for row in shown}
    assert {r.size: (r.metric, r.value) for r in rows if r.scheme == "rope"} == ours, "by the metric of tables"


@pytest.mark.ci
@pytest.mark.parametrize(
    ("model", "task", "trained", "other", "says"),
    [
        ("encoder_decoder", "s2s_copy", "rope", "yarn", ()),
        ("encoder_decoder", "s2s_copy", "rope", "kerple", "needs .*kerple|needs .*position"),
        ("lstm", "even_pairs", "sinusoidal", "nope", ()),
        ("lstm", "even_pairs", "learned", "nope", r"has no tied.*learned"),
    ],
)
def test_models_that_are_no_transformers_are_compared_by_paths(model, task, trained, other, says):
    heads = {} if model == "lstm" else {"heads": 2, "hidden": 16}
    cell = training.resolve(Run(task=task, model=model, scheme=trained, width=16, depth=1, length=8, **heads))
    under = training.under(cell, other)
    found = differences(abstract(cell), abstract(under))
    if says == ():
        whole = jax.tree.map(lambda a: np.random.default_rng(a.size).normal(size=a.shape), abstract(cell))
        again = moved(whole, abstract(under))
        assert found == () and jax.tree.structure(again) == jax.tree.structure(abstract(under))
        assert all(map(np.array_equal, *map(jax.tree.leaves, (jax.tree.map(jnp.float32, whole), again))))
    else:
        (text,) = found
        assert re.match(says, text), text


@SWEPT
def test_the_run_under_another_scheme_keeps_its_length(folder):
    cell = training.resolve(dataclasses.replace(BASE, scheme="rope"))
    longer = training.under(cell, "yarn", 16)
    assert longer.run.length == 16 and longer.scheme.original == LENGTH and longer.shape.dims.trained == LENGTH
    assert training.under(longer, "log_n").scheme.trained == LENGTH
