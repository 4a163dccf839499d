"""Attention by hand: the numbers of introductions, an independent computation in float64, and every scheme's oracle."""

import importlib
import math

import jax
import numpy as np
import pytest

import posenc
from posenc.core.compose import normal_form
from posenc.lab.explain import by_hand, watched
from posenc.lab.explain.problem import FORMS, HEAD, TOP, introduced, random_problem
from posenc.lab.explain.steps import number, numbers
from tests.night import by_day

FOUR = 5e-5
"""Numbers of four digits."""


def matrices(sheet):
    """(step, label) to matrix."""
    return {(step.name, m.label): m for step in sheet.steps for m in step.matrices}


def value(sheet, step, label):
    return matrices(sheet)[step, label].values


def test_the_numbers_of_introductions_come_out():
    sheet = by_hand.sheet(introduced())
    np.testing.assert_array_equal(value(sheet, "embeddings", "X"), [[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]])
    np.testing.assert_array_equal(value(sheet, "matrices", "W_k"), [[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]])
    np.testing.assert_array_equal(value(sheet, "matrices", "W_q"), [[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]])
    np.testing.assert_array_equal(value(sheet, "matrices", "W_v"), [[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]])
    np.testing.assert_array_equal(value(sheet, "projections", "Q")[0], [1, 0, 2])
    np.testing.assert_array_equal(value(sheet, "scores", "Q Kᵀ")[0], [2, 4, 4])
    weights, out = value(sheet, "undivided", "A = softmax(Q Kᵀ)"), value(sheet, "undivided", "A V")
    np.testing.assert_allclose(weights[0], [0.0634, 0.4683, 0.4683], atol=FOUR)
    np.testing.assert_allclose(out[0], [1.9366, 6.6831, 1.5951], atol=FOUR)
    np.testing.assert_array_equal(np.array([0, 0.5, 0.5]) @ value(sheet, "projections", "V"), [2, 7, 1.5])


def computed(problem):
    """Attention in loops of plain Python, from the problem's numbers alone: weights and outputs by head, and W_o's."""
    every = []
    for h in range(len(problem.query)):
        q, k, v = (
            [[sum(t[f] * w[f][c] for f in range(len(t))) for c in range(len(w[0]))] for t in tokens.tolist()]
            for tokens, w in (
                (problem.x, problem.query[h].tolist()),
                (problem.sources, problem.key[h].tolist()),
                (problem.sources, problem.value[h].tolist()),
            )
        )
        head = []
        for i, query in enumerate(q):
            seen = k[: i + 1] if problem.causal else k
            if problem.vector is None:
                s = [sum(a * b for a, b in zip(query, key, strict=True)) / math.sqrt(len(query)) for key in seen]
            else:
                v_a = problem.vector.tolist()
                s = [sum(w * math.tanh(a + b) for w, a, b in zip(v_a, query, key, strict=True)) for key in seen]
            e = [math.exp(one) for one in s]
            a = [one / sum(e) for one in e] + [0.0] * (len(k) - len(e))
            head.append((a, [sum(w * one[c] for w, one in zip(a, v, strict=True)) for c in range(len(v[0]))]))
        every.append(head)
    beside = [[c for head in every for c in head[i][1]] for i in range(len(problem.x))]
    if problem.output is None:
        return every, None
    wide = range(problem.output.shape[1])
    return every, [[sum(a * w for a, w in zip(row, problem.output[:, c], strict=True)) for c in wide] for row in beside]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", [None, 0, 7])
def test_every_form_equals_a_computation_of_its_own(form, seed):
    problem = introduced(form) if seed is None else random_problem(form, seed=seed)
    sheet = by_hand.sheet(problem)
    heads, joined = computed(problem)
    for h, head in enumerate(heads):
        end = "" if len(heads) == 1 else f", head {h + 1}"
        for name, label, which in (("softmax", "A", 0), ("output", "O", 1)):
            expected = np.array([row[which] for row in head])
            np.testing.assert_allclose(value(sheet, name, label + end), expected, rtol=0, atol=1e-12)
    if joined is not None:
        np.testing.assert_allclose(value(sheet, "output projection", "[O₁ O₂] W_o"), joined, rtol=0, atol=1e-12)


ORACLES = ["rope", "alibi", "shaw", "fox", "vo_rope", "stick_breaking", "dape", "learned", "tupe", "deberta"]


@pytest.mark.parametrize("name", by_day(posenc.names(), ORACLES))
def test_under_a_scheme_attention_equals_the_scheme_s_oracle(name):
    oracle = importlib.import_module(f"tests.oracles.{name}")
    problem = introduced("multi-head")
    with jax.enable_x64(True):
        try:
            ours = by_hand._suited(problem, name)
        except ValueError as error:
            assert "width" in str(error) or "pair" in str(error), "refused for its sizes and nothing else"
            return
        problem, hooks, positions = ours.problem, normal_form(ours.scheme).scheme, np.arange(3)
        positions = positions if hooks.axes == 1 else np.stack([positions] * hooks.axes, -1)
        params = jax.tree.map(np.asarray, ours.params)
    if hasattr(oracle, "embed"):
        expected = oracle.embed(ours.scheme, params["layer"], problem.x, positions)
        np.testing.assert_allclose(ours.x, expected, rtol=0, atol=1e-9)
    if hasattr(oracle, "attend"):
        q, k, v = (ours.arrays[n] for n in "qkv")
        heads = [jax.tree.map(lambda a, h=h: a[h], params["heads"]) for h in range(2)]
        heads = [{**params["layer"], **own} for own in heads]
        seen = np.tri(3, dtype=bool) if problem.causal else np.ones((3, 3), bool)
        expected = oracle.attend(ours.scheme, heads, q, k, v, ours.x, positions, seen)
        np.testing.assert_allclose(ours.arrays["out"].swapaxes(0, 1), expected, rtol=0, atol=1e-9)


def test_a_sheet_under_two_schemes_marks_where_each_acts_and_what_it_changed():
    sheet = by_hand.sheet(introduced(), "rope + alibi")
    acting = {step.name: step.by for step in sheet.steps if step.by}
    assert acting == {"query and key": "rope", "score": "alibi"}
    changed = {(step.name, m.label): m.changed for step in sheet.steps for m in step.matrices}
    assert not changed["projections", "Q"].any() and not changed["matrices", "W_q"].any()
    turned = changed["query and key", "Q with position"]
    assert not turned[0].any() and turned[1:].all(), "position 0 is not turned"
    assert not np.diagonal(changed["scores", "Q Kᵀ"]).any(), "RoPE leaves a token's score with itself"
    assert changed["output", "O"][:, :3].all()


@pytest.mark.parametrize(
    ("scheme", "acts"),
    [
        ("sinusoidal", {"input"}),
        ("vo_rope", {"query and key", "value", "output hook"}),
        ("shaw", {"query and key", "score", "value_bias"}),
        ("t5", {"scale", "score"}),
        ("stick_breaking", {"weights"}),
        ("nope", set()),
    ],
)
def test_every_place_where_position_enters_has_a_step(scheme, acts):
    sheet = by_hand.sheet(introduced(), scheme)
    assert {step.name for step in sheet.steps if step.by} == acts
    if not acts:
        assert "changes nothing" in sheet.about
    else:
        assert any(m.changed.any() for step in sheet.steps if step.by for m in step.matrices)


def test_steps_that_miss_what_attention_does_are_refused(monkeypatch):
    monkeypatch.setattr(watched, "finish", lambda scheme, params, mixed, info: 1.001 * mixed)
    with pytest.raises(RuntimeError, match="away from posenc.attend"):
        by_hand.sheet(introduced())


def test_wider_heads_say_the_same():
    problem = introduced("multi-head")
    wide = problem.wide(8)
    assert wide.query.shape == (2, 4, 8) and wide.output.shape == (16, 4)
    scores = [(p.x @ p.query) @ (p.x @ p.key).swapaxes(1, 2) for p in (problem, wide)]
    np.testing.assert_array_equal(*scores)
    ends = [np.concatenate(list(p.x @ p.value), 1) @ p.output for p in (problem, wide)]
    np.testing.assert_array_equal(*ends)


@pytest.mark.parametrize("form", FORMS)
def test_worksheets_hold_small_whole_numbers_that_suit_a_pencil(form):
    for seed in range(20):
        problem = random_problem(form, seed=seed)
        assert problem.sources.shape == (4, 6) and problem.query.shape[1:] == (6, HEAD)
        arrays = [problem.x, problem.sources, problem.query, problem.key, problem.value]
        assert all(np.array_equal(a, np.round(a)) and abs(a).max() <= 2 for a in arrays)
        for head in computed(problem)[0]:
            for i, (weights, _) in enumerate(head):
                assert max(weights) <= TOP + 1e-12 or (problem.causal and i == 0)


def test_a_seed_s_worksheet_stays_what_it_is():
    problem = random_problem(seed=0)
    np.testing.assert_array_equal(problem.x[0], [0, 0, 1, 0, 2, 1])
    assert not np.array_equal(random_problem(seed=1).x, problem.x)


@pytest.mark.parametrize(
    ("values", "shown"),
    [([[1.0, 2.0]], ["1", "2"]), ([[1.0, 0.5]], ["1.0000", "0.5000"]), ([[-1e-12, -np.inf]], ["0", "−∞"])],
)
def test_numbers_are_shown_alike(values, shown):
    assert numbers(np.array(values)) == [shown]


def test_a_number_is_told_as_it_is():
    assert [number(v) for v in (np.nan, -0.00001, 12345678.9)] == ["·", "0.0000", "1.235e+07"]
