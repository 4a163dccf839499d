"""Other scores than scaled products: each its formula, with position after it, and refused where it has no place."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc.core.scheme import Dims
from posenc.lab.models.attentions import PARTS, with_attention
from posenc.lab.models.interface import build
from posenc.lab.run import plan
from posenc.lab.spec.run import Knobs, Run
from posenc.lab.train import training
from posenc.naming import bind, parse
from tests.models.cases import given, logits, numbers, shaken, shaped
from tests.oracles import alibi, loop
from tests.oracles import models as oracle

EVERY = ("scaled_dot", *PARTS)


def made(attention, scheme="nope", text="encoder", dtype=jnp.float32, heads=2, **change):
    shape = shaped(text, attention=attention, dtype=dtype, **change)
    dims = Dims(width=8, heads=heads, head=8 // heads, trained=8, longest=32, causal=text == "decoder")
    shape = shape._replace(dims=dims)
    return build(bind(parse(scheme), dims), shape, jax.random.key(0))


def by_hand(model, tokens, attention, scheme, causal):
    """The whole Transformer of one sequence in loops, from its numbers alone."""
    p, dims = numbers(model), model.shape.dims
    x, blocks, heads, d = p["embedding"][tokens], p["blocks"][0], dims.heads, dims.head
    seen = np.tri(len(x), dtype=bool) if causal else np.ones((len(x), len(x)), bool)
    slopes = alibi.slopes(heads)
    for n in range(model.shape.depth):
        mine = jax.tree.map(lambda a, n=n: a[n], blocks)
        inside = np.array([oracle.norm(t, mine["scales"][0]) for t in x])
        q = (inside @ mine["attention"]["query"]).reshape(-1, heads, d)
        k, v = (inside @ mine["attention"]["key_value"]).reshape(len(x), 2, heads, d).swapaxes(0, 1)
        position = mine["attention"]["position"]
        own = position[0]["heads"] if attention != "scaled_dot" else {}

        def score(h, _, i, j, q=q, k=k, own=own):
            mixed = oracle.scores(attention, {name: a[h] for name, a in own.items()}, q[i, h], k[j, h])
            return mixed - (slopes[h] * abs(i - j) if scheme == "alibi" else 0.0)

        mixed = loop.attend([None] * heads, q, k, v, seen, score).reshape(len(x), -1)
        x = x + mixed @ mine["attention"]["out"]
        inside = np.array([oracle.norm(t, mine["scales"][1]) for t in x])
        x = x + np.maximum(inside @ mine["up"], 0) @ mine["down"]
    return np.array([oracle.norm(t, p["scale"]) for t in x]) @ p["readout"]


@pytest.mark.ci
@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("scheme", ["nope", "alibi"])
@pytest.mark.parametrize("attention", EVERY)
@pytest.mark.parametrize("text", ["encoder", "decoder"])
def test_a_transformer_equals_its_equations(text, attention, scheme, heads, x64):
    """With one head it is the formula itself."""
    model = shaken(made(attention, scheme, text, jnp.float64, heads))
    model = jax.tree.map(lambda a: a.astype(jnp.float64), model)
    inputs = given(text)
    theirs = by_hand(model, np.asarray(inputs.tokens[0]), attention, scheme, text == "decoder")
    np.testing.assert_allclose(logits(model, inputs)[0], theirs, rtol=0, atol=1e-11)


@pytest.mark.ci
@pytest.mark.parametrize("attention", PARTS)
def test_every_kernel_gives_the_same(attention, x64):
    dims = Dims(width=12, heads=3, head=4, trained=9, longest=16)
    scheme = with_attention(attention, bind(parse("t5 + kerple" if attention != "dot" else "kerple"), dims), dims)
    params = posenc.init(scheme, jax.random.key(0), dims)
    q, k, v = jax.random.normal(jax.random.key(1), (3, 2, 9, 3, 4), jnp.float64)
    dense, *others = (posenc.attend(scheme, params, q, k, v, kernel=kernel) for kernel in ("dense", "tiled", "rows"))
    for other in others:
        np.testing.assert_allclose(other, dense, atol=1e-12)


@pytest.mark.ci
@pytest.mark.parametrize("attention", PARTS)
def test_all_is_trained_but_the_queries_and_keys_of_an_average(attention):
    model, inputs = shaken(made(attention, "kerple")), given("encoder")
    gradient = jax.jit(jax.grad(lambda model: (model(inputs, jax.random.key(1)) ** 2).mean()))(model)
    block = gradient.blocks[0].attention
    idle = [block.query.get_value(), block.key_value.get_value()[..., :8]]
    for path, a in jax.tree_util.tree_leaves_with_path(gradient):
        assert np.isfinite(a).all() and (np.abs(a).max() > 0 or a is block.query.get_value()), path
    assert all(float(jnp.abs(a).max()) == 0 for a in idle) == (attention == "average")


@pytest.mark.ci
def test_undivided_scores_start_wider_by_the_root_of_the_head():
    """That is what is compared; T5's, which nothing divides either, are the same under both."""
    queries = {
        (a, s): numbers(made(a, s))["blocks"][0]["attention"]["query"]
        for a in ("scaled_dot", "dot")
        for s in ("rope", "t5")
    }
    np.testing.assert_allclose(queries["dot", "rope"], queries["scaled_dot", "rope"], rtol=1e-6)
    np.testing.assert_array_equal(queries["dot", "t5"], queries["scaled_dot", "t5"])
    np.testing.assert_allclose(queries["dot", "rope"], 2 * queries["dot", "t5"], rtol=1e-6)


@pytest.mark.parametrize(
    ("attention", "scheme", "says"),
    [
        ("additive", "rope", "'rope' acts on the product of queries and keys, which attention='additive'"),
        ("average", "learned + xpos", "'xpos' acts on the product of queries and keys, which attention='average'"),
        ("additive", "[alibi, rope]", "'rope' acts on the product of queries and keys, which attention='additive'"),
        ("average", "tapa", "'tapa' acts on the product of queries and keys, which attention='average'"),
        ("additive", "dape", "'dape' acts on the product of queries and keys, which attention='additive'"),
        ("dot", "tupe", "'dot' by 1"),
    ],
)
def test_what_has_no_place_is_refused_by_name(attention, scheme, says):
    run = Run(task="flip_flop", model="decoder", scheme=scheme, attention=attention, width=8, depth=2, length=8)
    cell = training.resolve(run)
    with pytest.raises(ValueError) as error:
        jax.eval_shape(lambda: build(cell.scheme, cell.shape, jax.random.key(0)))
    assert says.replace("'dot'", "dot") in str(error.value) and "\n" not in str(error.value)


def test_attention_and_dropout_are_part_of_the_identity_only_where_they_differ():
    plain, same = (training.resolve(Run(**how)) for how in ({}, {"attention": "scaled_dot", "dropout": 0}))
    others = [training.resolve(Run(**how)) for how in ({"attention": "dot"}, {"dropout": 0.1})]
    assert plan.written(plain).keys().isdisjoint(("attention", "dropout"))
    names = [plan.identity(cell, Knobs(), 5) for cell in (plain, same, *others)]
    assert names[0] == names[1] and len(set(names)) == 3
    assert plan.written(others[0])["revisions"]["Dot"] == 1
    with pytest.raises(ValueError, match="The setting 'attention' of .* takes 'scaled_dot' or 'dot' or"):
        Run(attention="luong")


@pytest.mark.ci
def test_another_scheme_goes_on_on_the_same_attention():
    from posenc.lab.models.carry import carried, fresh_parameters

    before, fresh = made("additive", "kerple"), made("additive", "nope")
    after = carried(before, fresh)
    assert fresh_parameters(before, fresh) == ()
    kept = [jax.tree.leaves(m.blocks[0].attention.position.get_value()[0]) for m in (before, after)]
    assert len(kept[0]) == 3
    jax.tree.map(np.testing.assert_array_equal, *kept)
