"""The encoder-decoder: the equations in float64 NumPy, what nobody may see, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from posenc.core.compose import normal_form
from posenc.core.scheme import Dims
from posenc.lab.models import kinds
from posenc.lab.models.interface import Inputs, Shape, build
from posenc.lab.run import plan
from posenc.lab.spec.run import Run
from posenc.lab.store import folder
from posenc.lab.train.training import pure, resolve
from posenc.naming import parse
from tests.oracles import loop
from tests.oracles.models import norm as layer_norm

DIMS = Dims(width=16, heads=2, head=8, trained=8, longest=32)
KEY = jax.random.key(1)


def made(scheme, cross="nope", depth=2, **change):
    shape = Shape(DIMS, depth, 12, 9, 7, model=kinds.parse(f"encoder_decoder(cross={cross!r})"))._replace(**change)
    return jax.jit(lambda key: build(parse(scheme), shape, key))(jax.random.key(0))


def given(rows=2, length=6, source=8, lengths=None, sources=None):
    text, read = (jax.random.randint(jax.random.key(n), (rows, m), 0, 9) for n, m in ((5, length), (6, source)))
    upto = lambda many, m: jnp.arange(m)[None, :] < jnp.array(many or [m] * rows)[:, None]  # noqa: E731
    return Inputs(text, upto(lengths, length), {}, read, upto(sources, source))


run = jax.jit(lambda model, given: model(given, KEY))


def normalised(x, scale):
    return np.apply_along_axis(layer_norm, -1, x, scale)


def attention(p, x, m, slopes, causal):
    """Softmax of q·k / √d less the slope times the distance, sequence by sequence."""
    seen, out = np.tri(x.shape[1], m.shape[1]) if causal else np.ones((x.shape[1], m.shape[1])), []
    for q, kv in zip(x @ p["query"], m @ p["key_value"], strict=True):
        q, k, v = (a.reshape(-1, 2, 8) for a in (q, *np.split(kv, 2, axis=1)))
        score = lambda h, _, i, j, q=q, k=k: loop.dot(q, k, h, i, j) - slopes[h] * abs(i - j)  # noqa: E731
        out.append(loop.attend([None] * 2, q, k, v, seen, score).reshape(-1, 16) @ p["out"])
    return np.array(out)


def by_the_equations(model, given, norm, slopes, across):
    """The reader, then the writer, as they stand in the model's own text."""
    p = jax.tree.map(lambda a: np.asarray(a, np.float64), pure(model))

    def beside(x, scale, branch):
        return normalised(x + branch(x), scale) if norm == "post" else x + branch(normalised(x, scale))

    def layer(blocks, n):
        return jax.tree.map(lambda a: a[n], blocks[0])

    def feed(p):
        return lambda x: np.maximum(x @ p["up"], 0) @ p["down"]

    m = p["reader"]["embedding"][np.asarray(given.source)]
    for n in range(2):
        own = layer(p["reader"]["blocks"], n)
        m = beside(m, own["scales"][0], lambda x, own=own: attention(own["attention"], x, x, slopes, False))
        m = beside(m, own["scales"][1], feed(own))
    m = normalised(m, p["reader"]["scale"]) if norm == "pre" else m
    y = p["writer"]["embedding"][np.asarray(given.tokens)]
    for n in range(2):
        own = layer(p["writer"]["blocks"], n)
        block = own["block"]
        y = beside(y, block["scales"][0], lambda x, own=block: attention(own["attention"], x, x, slopes, True))
        y = beside(y, own["scale"], lambda x, own=own: attention(own["across"], x, m, across, False))
        y = beside(y, block["scales"][1], feed(block))
    y = normalised(y, p["writer"]["scale"]) if norm == "pre" else y
    return y @ p["writer"]["readout"]


@pytest.mark.ci
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize(("scheme", "cross"), [("nope", "nope"), ("alibi", "nope"), ("alibi", "same")])
def test_the_model_is_its_equations(scheme, cross, norm):
    model, inputs = made(scheme, cross, norm=norm), given()
    slopes = (2**-4, 2**-8) if scheme == "alibi" else (0, 0)
    expected = by_the_equations(model, inputs, norm, slopes, slopes if cross == "same" else (0, 0))
    np.testing.assert_allclose(run(model, inputs), expected, atol=2e-5)
    if cross == "same":
        assert np.abs(expected - by_the_equations(model, inputs, norm, slopes, (0, 0))).max() > 1e-3


@pytest.mark.ci
def test_open_settings_are_filled_for_each_side():
    model = made("t5")
    assert (
        normal_form(model.reader.layers[0]).scheme.bidirectional is True
        and normal_form(model.writer.layers[0]).scheme.bidirectional is False
    )
    tables = [jax.tree.leaves(side.tied.get_value()) for side in (model.reader, model.writer)]
    assert [len(leaves) for leaves in tables] == [1, 1] and (tables[0][0] != tables[1][0]).any()


def test_a_plan_keeps_open_settings_open():
    """What is filled for one side, written down and read again, would be given for the other."""
    cell = resolve(Run(scheme="t5", model="encoder_decoder", task="s2s_copy", length=4))
    assert "bidirectional=None" in plan.written(cell)["scheme"]
    again = plan.planned_run(folder.plain(plan.written(cell)))
    assert again.scheme == cell.scheme and again.shape == cell.shape


@pytest.mark.ci
def test_what_acts_on_the_input_alone_does_nothing_across():
    same, nope = (made("sinusoidal", cross) for cross in ("same", "nope"))
    np.testing.assert_array_equal(run(same, given()), run(nope, given()))


@pytest.mark.ci
def test_random_positions_are_those_of_each_sequence_across_too():
    """With positions drawn anew for each, the two keys differ and one call is one draw."""
    model, inputs = made("rope @ random_sorted(64)", "same"), given()
    call = jax.jit(lambda key: model(inputs, key))
    np.testing.assert_array_equal(call(KEY), call(KEY))
    assert np.abs(call(KEY) - call(jax.random.key(2))).max() > 1e-4


@pytest.mark.parametrize(
    ("scheme", "cross", "says"),
    [
        ("t5", "same", "'t5' is undefined between two sequences; take cross='nope'"),
        ("alibi + t5", "same", "'alibi' + 't5' is undefined between two sequences"),
        ("learned + rope", "same", "before a list, such as 'sinusoidal \\+ \\[rope\\]'"),
        ("fox", "nope", "'fox' is causal only.*both ways"),
        ("[rope, nope, nope]", "nope", "depth=2 must be a multiple of the pattern's 3 layers"),
    ],
)
def test_what_cannot_be_is_refused_by_name(scheme, cross, says):
    with pytest.raises(ValueError, match=says.replace(" + 't5'", " \\+ 't5'")):
        made(scheme, cross)


def test_a_missing_source_is_refused():
    with pytest.raises(ValueError, match="source"):
        made("nope")(given()._replace(source=None), KEY)
