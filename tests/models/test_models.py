"""What holds for every model: padding is nothing, the future unseen where causal, all is trained, lanes are trials."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from posenc.lab.models import interface, kinds, stems
from posenc.lab.models.draws import WeightDraw
from posenc.lab.models.interface import build
from posenc.lab.spec.run import Knobs, Plan, Run
from posenc.lab.train import training
from posenc.lab.train.lanes import Arrangement, stack
from posenc.naming import bind, parse
from tests.models.cases import TEXTS, given, logits, made, needs_source, numbers, shaken, shaped
from tests.night import by_day
from tests.oracles import models as oracle

BOTH = [*TEXTS, "rnnsearch with a source"]


def case(text, **change):
    """A model, what it is given, and its name."""
    name, _, source = text.partition(" with ")
    change |= {"source": True} if source else {}
    return made(name, **change), given(name, source=bool(source) or None), name


def causal(text):
    name, _, source = text.partition(" with ")
    return shaped(name, source=bool(source)).dims.causal


def padded(inputs, more, fill=3):
    """The same sequences with as much padding behind them, of these tokens."""
    wide = lambda a, value: jnp.pad(a, ((0, 0), (0, more)), constant_values=value)  # noqa: E731
    inputs = inputs._replace(tokens=wide(inputs.tokens, fill), valid=wide(inputs.valid, False))
    if inputs.source is None:
        return inputs
    return inputs._replace(source=wide(inputs.source, fill), source_valid=wide(inputs.source_valid, False))


@pytest.mark.ci
@pytest.mark.parametrize("text", BOTH)
def test_padding_changes_nothing_and_is_seen_by_nobody(text):
    model, inputs, _ = case(text)
    length = inputs.tokens.shape[1]
    one, other = (logits(model, padded(inputs, 4, fill))[:, :length] for fill in (3, 8))
    np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(one, logits(model, inputs), atol=2e-5)


@pytest.mark.parametrize("text", BOTH)
def test_rows_of_different_lengths_do_not_meet(text):
    model, inputs, _ = case(text)
    short = inputs.valid & (jnp.arange(inputs.valid.shape[1]) < 3)[None]
    mixed = inputs._replace(valid=jnp.concatenate([short[:1], inputs.valid[1:]]))
    np.testing.assert_allclose(logits(model, mixed)[1], logits(model, inputs)[1], atol=2e-5)
    alone = jax.tree.map(lambda a: a[:1, :3] if a.shape == inputs.valid.shape else a[:1], mixed)
    np.testing.assert_allclose(logits(model, mixed)[0, :3], logits(model, alone)[0], atol=2e-5)


@pytest.mark.parametrize("text", BOTH)
def test_a_causal_model_does_not_look_ahead_and_another_does(text):
    model, inputs, _ = case(text)
    later = inputs._replace(tokens=inputs.tokens.at[:, 4:].set((inputs.tokens[:, 4:] + 1) % 9))
    one, other = logits(model, inputs), logits(model, later)
    if causal(text):
        np.testing.assert_array_equal(one[:, :4], other[:, :4])
    else:
        assert (np.abs(one - other).max((0, 2))[:4].max()) > 1e-4
    assert np.abs(one - other)[:, 4:].max() > 1e-4


@pytest.mark.ci
@pytest.mark.parametrize("text", [t for t in BOTH if t.endswith(" source") or needs_source(t)])
def test_a_source_is_looked_at_and_its_padding_is_not(text):
    model, inputs, _ = case(text)
    other = inputs._replace(source=(inputs.source + 1) % 9)
    assert np.abs(logits(model, inputs) - logits(model, other)).max() > 1e-4
    part = inputs._replace(source_valid=inputs.source_valid.at[:, 5:].set(False))
    hidden = part._replace(source=part.source.at[:, 5:].set(0))
    np.testing.assert_array_equal(logits(model, part), logits(model, hidden))
    assert np.abs(logits(model, part) - logits(model, inputs)).max() > 1e-5


@pytest.mark.parametrize("text", BOTH)
def test_every_parameter_has_a_finite_gradient_that_is_not_zero(text):
    model, inputs, _ = case(text)
    loss = jax.jit(jax.grad(lambda model: (model(inputs, jax.random.key(1)) ** 2).mean()))
    for path, a in jax.tree_util.tree_leaves_with_path(loss(shaken(model))):
        assert np.isfinite(a).all() and (np.abs(a).max(initial=0) > 0 or not a.size), jax.tree_util.keystr(path)


@pytest.mark.parametrize("text", BOTH)
def test_activations_of_half_precision_keep_weights_and_logits(text):
    model, inputs, _ = case(text)
    rough, *_ = case(text, dtype=jnp.bfloat16)
    assert {a.dtype for a in jax.tree.leaves(rough)} == {jnp.dtype("float32")}
    exact, found = logits(model, inputs), logits(rough, inputs)
    assert found.dtype == np.float32 and 1e-5 < np.abs(found - exact).max() < 0.15


def oracles():
    for text in BOTH:
        if (name := kinds.parse(text.partition(" ")[0]).name) in oracle.MODELS:
            yield name, text


def test_every_model_that_is_no_transformer_has_an_oracle():
    own = {name for name in kinds.MODELS.names() if not kinds.MODELS.find(name)().attends}
    assert own == set(oracle.MODELS)


def exact(text, **change):
    """Without the cache of float32 models, and away from where it starts."""
    name, _, source = text.partition(" with ")
    shape = shaped(name, source=bool(source), dtype=jnp.float64, **change)
    model = build(bind(parse("nope"), shape.dims), shape, jax.random.key(0))
    return shaken(jax.tree.map(lambda a: a.astype(jnp.float64), model)), given(name, source=bool(source))


@pytest.mark.parametrize(("name", "text"), list(oracles()))
def test_a_model_equals_its_equations(name, text, x64):
    model, inputs = exact(text)
    ours, p = logits(model, inputs), numbers(model)
    for row in range(2):
        source = None if inputs.source is None else np.asarray(inputs.source[row])
        theirs = oracle.MODELS[name](name, p, np.asarray(inputs.tokens[row]), model.shape.dims.causal, source)
        np.testing.assert_allclose(ours[row], theirs, rtol=0, atol=1e-12)


@pytest.mark.guard
@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("both", [False, True])
def test_a_convolution_of_any_width_equals_its_equation(k, both, x64):
    model, inputs = exact(f"convolution(k={k}, bidirectional={both})", depth=1)
    theirs = oracle.convolution("", numbers(model), np.asarray(inputs.tokens[0]), not both)
    np.testing.assert_allclose(logits(model, inputs)[0], theirs, rtol=0, atol=1e-12)


@functools.cache
def recurrent_weights(name, **settings):
    text = f"{name}({', '.join(f'{k}={v!r}' for k, v in settings.items())})"
    return numbers(made(text))["blocks"][0]["ahead"]


@pytest.mark.ci
def test_recurrent_weights_start_as_rotations_and_the_forget_gate_open():
    for name, gates in (("rnn", 1), ("gru", 3), ("lstm", 4)):
        u = recurrent_weights(name)["dense_h"]["kernel"].reshape(8, gates, 8)
        for gate in range(gates):
            np.testing.assert_allclose(u[:, gate].T @ u[:, gate], np.eye(8), atol=1e-5)
    bias = recurrent_weights("lstm")["dense_h"]["bias"].reshape(4, 8)
    np.testing.assert_array_equal(bias, np.repeat([[0.0], [1.0], [0.0], [0.0]], 8, 1))
    assert recurrent_weights("lstm", forget=0.0)["dense_h"]["bias"].max() == 0


def test_a_plain_network_can_start_without_a_rotation_and_its_usual_name_stays():
    """The same draw gives both: the rotation is made of the very numbers that are used as they are."""
    turned, plain = (recurrent_weights("rnn", start=start) for start in ("orthogonal", "normal"))
    u, v = (weights["dense_h"]["kernel"].reshape(8, 8) for weights in (turned, plain))
    np.testing.assert_array_equal(turned["dense_i"]["kernel"], plain["dense_i"]["kernel"])
    assert 0.5 < v.var() * 8 < 2 and np.ptp(np.linalg.svd(v)[1]) > 0.5 > np.ptp(np.linalg.svd(u)[1])
    assert kinds.full(kinds.parse("rnn(start='orthogonal')")) == "rnn(bidirectional=False)"
    assert kinds.spec(kinds.parse("rnn(start='normal')")) == "rnn(start='normal')"


@pytest.mark.ci
@pytest.mark.parametrize("text", by_day([t for t in TEXTS if not needs_source(t)], ("decoder", "lstm", "averaging")))
def test_a_run_is_one_program_and_its_lanes_are_trials(text):
    kind = kinds.parse(text)
    task = "even_pairs" if not kind.causal else "flip_flop"
    run = Run(task=task, scheme="nope", model=text, width=8, depth=1, batch=4, length=8, buckets=2)
    cell, knobs = training.resolve(run), [Knobs(jnp.uint32(s), *map(jnp.float32, Knobs()[1:])) for s in (0, 1)]
    found = []
    for lanes, how in ((knobs, Arrangement("vmap", 1)), (knobs[:1], Arrangement("map", 1))):
        program, lane = training.program(cell, 2, 4, how), stack(lanes, how)
        state = program.init(lane)
        for first in (0, 2):
            state, loss = program.segment(state, lane, jnp.int32(first), jnp.int32(4))
        found.append(np.asarray(loss))
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-4)
    assert np.abs(found[0][0] - found[0][1]).max() > 1e-4


@pytest.mark.ci
def test_stems_stand_before_every_model():
    from posenc.lab.models import stems

    for text in ("lstm", "averaging", "convolution"):
        plain, more = made(text), made(text, stem=stems.parse("conv(k=2)"))
        assert np.abs(logits(plain, given(text)) - logits(more, given(text))).max() > 1e-4, text


@pytest.mark.parametrize(
    ("run", "says"),
    [
        ({"model": "lstm"}, "'rope'"),
        ({"model": "gru", "scheme": "learned + alibi"}, "'alibi'"),
        ({"model": "rnn", "scheme": "nope + window(4)"}, "a window"),
        ({"model": "averaging", "scheme": "[nope, nope]"}, "no attention that a list of layers' schemes could act in"),
        ({"model": "convolution", "scheme": "t5"}, "'t5'"),
        ({"model": "convolution(k=0)", "scheme": "nope"}, "'k' of 'convolution'"),
        ({"model": "lstm(True)", "scheme": "nope"}, "model='lstm(True)'"),
        ({"model": "encoder"}, "is bidirectional; take decoder, averaging, convolution, gru, lstm, rnn."),
        ({"task": "before", "model": "decoder"}, "is causal; take encoder, averaging(bidirectional=True), "),
        ({"task": "even_pairs", "model": "encoder", "scheme": "t5 + fox"}, "bidirectional; take model=decoder, or"),
        (
            {"task": "even_pairs", "model": "encoder", "scheme": "[rope, cope + window(3)]", "depth": 2},
            "'cope' is causal only",
        ),
        ({"model": "decoder", "scheme": "rope + t5(bidirectional=True) + window(3)"}, "bidirectional=True"),
        ({"model": "lst", "scheme": "nope"}, "'lst'"),
        ({"model": "lstm + gru", "scheme": "nope"}, "is not one model"),
        ({"model": "lstm(units=3)", "scheme": "nope"}, "'units'"),
        ({"model": "lstm", "scheme": "nope", "heads": 2}, "heads is 2"),
        ({"model": "lstm", "scheme": "nope", "hidden": 9}, "hidden is 9"),
        ({"model": "gru", "scheme": "nope", "norm": "post"}, "norm is 'post'"),
        ({"model": "rnnsearch", "scheme": "nope", "attention": "dot"}, "'rnnsearch'"),
        ({"model": "lstm", "scheme": "nope", "then": "0.5 learned"}, "'lstm'"),
        ({"model": "encoder_decoder"}, "model='encoder_decoder'"),
        ({"model": "decoder", "task": "s2s_copy"}, "model='decoder'"),
        ({"model": "decoder", "dropout": 1.0}, "dropout is 1.0"),
    ],
)
def test_what_a_model_cannot_do_is_refused_in_one_sentence(run, says):
    from posenc.lab.run.plan import rehearsed

    with pytest.raises(ValueError) as error:
        rehearsed(Run(**{"task": "flip_flop", "length": 8, "width": 8, "depth": 1, **run}), Plan(sizes=(8,)))
    text = str(error.value)
    assert says in text and text.endswith(".") and "\n" not in text


def test_sizes_that_a_model_does_not_read_need_not_fit():
    assert training.resolve(Run(task="flip_flop", model="gru", scheme="nope", width=10)).run.hidden is None
    with pytest.raises(ValueError, match="4 heads.* 10"):
        Run(width=10)


def test_a_model_is_named_in_one_way_in_identities():
    from posenc.lab.run import plan
    from posenc.lab.store import folder

    same = [
        training.resolve(Run(task="flip_flop", scheme="nope", model=t)) for t in ("lstm", "lstm(forget=1)", "lstm( )")
    ]
    assert len({plan.identity(cell, Knobs(), 5) for cell in same}) == 1
    written = plan.written(same[0])
    assert written["model"] == "lstm(bidirectional=False, forget=1.0)"
    assert plan.written(training.resolve(Run()))["model"] == "encoder"
    assert plan.planned_run(folder.plain(written)).shape == same[0].shape
    for text in TEXTS:
        assert kinds.parse(kinds.spec(kinds.parse(text))) == kinds.parse(kinds.full(kinds.parse(text)))


def test_a_model_is_final():
    with pytest.raises(TypeError, match="Wider.*LSTMModel"):
        type("Wider", (kinds.LSTMModel,), {}, name="wider")
    assert "wider" not in kinds.MODELS.names()


@pytest.mark.parametrize("stem", [None, "conv(k=2)"])
@pytest.mark.parametrize("text", TEXTS)
def test_a_model_for_more_symbols_and_classes_starts_as_the_smaller_one(text, stem):
    """And the rest is zero: embeddings of further symbols, and columns of the readout for further classes."""
    stem = stem and stems.parse(stem)
    small, shape = made(text, seed=4, stem=stem), shaped(text, stem=stem)
    larger = shape._replace(vocab=16, classes=32)

    def drawn(symbols, classes):
        scheme = bind(parse("nope"), shape.dims)
        return interface.build(scheme, larger, WeightDraw(jax.random.key(4), symbols, classes))

    large = jax.jit(drawn)(shape.vocab, shape.classes)
    for (path, a), b in zip(jax.tree_util.tree_leaves_with_path(small), jax.tree.leaves(large), strict=True):
        np.testing.assert_array_equal(b[tuple(map(slice, a.shape))], a, err_msg=jax.tree_util.keystr(path))
        assert np.count_nonzero(b) == np.count_nonzero(a), jax.tree_util.keystr(path)
