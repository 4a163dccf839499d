"""The rows and probes of the atlas: every scheme of the registry has a row or a reason for none, and all can run."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc.lab import tasks
from posenc.lab.spec import atlas
from posenc.lab.tasks import spec
from posenc.language import grammar
from posenc.language.modules import declarations
from posenc.naming import parse
from tests.test_equivalences import DIMS, L, attend, differ, same, tokens


def test_every_scheme_has_a_row_or_a_reason_for_none():
    texts = {text for model in atlas.MODELS for text in atlas.rows(model)}
    named = {name for text in texts for name in atlas.names_in(text)}
    assert named | atlas.WITHOUT == set(declarations("schemes")) and named.isdisjoint(atlas.WITHOUT)
    assert {*atlas.EQUAL.values()} <= texts
    assert {*atlas.IN_THE_PLANE} == {name for name in atlas.WITHOUT if parse(name).axes == 2}


@pytest.mark.usefixtures("x64")
def test_what_stands_for_another_row_equals_it_on_a_line():
    """M-RoPE at RoPE's base, with the index on all axes; the table of Abacus at the index."""
    q, k, v = tokens()
    same(attend("mrope(base=10000.0)", q, k, v), attend(atlas.EQUAL["mrope"], q, k, v))
    x, table = np.random.default_rng(0).normal(size=(2, L, DIMS.width)), np.random.default_rng(1)
    table = jnp.asarray(table.normal(size=(1024, DIMS.width)))

    def embed(text):
        scheme = posenc.bind(posenc.parse(text), DIMS)
        params = jax.tree.map(lambda leaf: table[: len(leaf)], posenc.init(scheme, jax.random.key(0), DIMS))
        return np.asarray(posenc.embed(scheme, params, x, positions=np.arange(L)))

    same(embed("abacus"), embed(atlas.EQUAL["abacus"]))
    differ(embed("abacus"), x)


def test_encoders_leave_out_what_declares_that_it_does_not_serve_them():
    for name in declarations("schemes"):
        assert atlas.causal_only(name) == ("bidirectional" in parse(name).limits), name
    assert set(atlas.rows("decoder")) - set(atlas.rows("encoder")) == set(
        filter(atlas.causal_only, atlas.rows("decoder"))
    )
    rows = {model: {*atlas.rows(model)} for model in atlas.MODELS}
    assert all(
        atlas.has_row(row, model) == (row in of) for model, of in rows.items() for row in set.union(*rows.values())
    )
    assert [atlas.has_row("lstm", model) for model in atlas.MODELS] == [True, False]


def test_rows_are_texts_in_their_shortest_form_and_each_is_trained_once():
    for model in atlas.MODELS:
        rows = atlas.rows(model)
        assert len(set(rows)) == len(rows) and all(grammar.write(grammar.read(text)) == text for text in rows)


def test_tasks_of_probes_are_texts_in_their_shortest_form():
    """As records call them."""
    for probe in atlas.PROBES.values():
        assert spec(tasks.parse(probe.task)) == probe.task


def test_runs_differ_in_scheme_and_model_alone_on_one_probe():
    for probe in atlas.PROBES:
        runs = [run for model in atlas.MODELS for run in atlas.runs(atlas.rows(model), model, [probe])]
        alike = {dataclasses.replace(run, scheme="nope", model="decoder", hidden=None) for run in runs}
        assert len(alike) == 1 and len(set(runs)) == len(runs)
        assert {run.model for run in runs} == set(atlas.PROBES[probe].models)


def test_recurrent_models_stand_in_the_place_of_a_scheme():
    (run,) = atlas.runs(["lstm"], "decoder", ["offset"])
    assert (run.model, run.scheme, run.hidden) == ("lstm", "nope", None)
