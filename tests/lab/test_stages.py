"""Another scheme goes on with the same parameters (DroPE; Gelberg et al., 2025): what is carried, and what is not."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from posenc.lab.cli import main
from posenc.lab.explain.patterns import restored
from posenc.lab.models.carry import fresh_parameters
from posenc.lab.models.interface import inputs
from posenc.lab.results.results import load
from posenc.lab.run import plan, trainer
from posenc.lab.run.sweep import rehearse, sweep
from posenc.lab.spec.experiment import Experiment
from posenc.lab.spec.run import Knobs, Run
from posenc.lab.store import checkpoints
from posenc.lab.store import folder as store
from posenc.lab.tasks import examples
from posenc.lab.train import batches, evaluation, needs, training
from posenc.lab.train.training import gone_on, init, resolve, stages
from posenc.lab.train.vectors import Packing
from tests.lab.test_sweep import PLAN, Watch

RUN = Run(task="even_pairs", scheme="rope", then="0.5 nope", width=8, depth=1, heads=2, hidden=8, batch=4, length=4)


def experiment(*runs):
    return Experiment("tiny", runs or (RUN,), PLAN)


def resolved(scheme, depth=1):
    return resolve(Run(task="even_pairs", scheme=scheme, width=8, depth=depth, heads=2, hidden=8, length=4))


def started(cell, seed=0):
    """A trial in the midst of training: every number, of moments too, is another."""
    state = jax.eval_shape(lambda: init(cell, Knobs(jnp.uint32(0), 1e-3, 0.0, 0.1, 1.0)))
    draw = np.random.default_rng(seed).normal
    return jax.tree.map(lambda a: draw(0, 0.3, a.shape).astype(a.dtype) if a.ndim else np.int32(7 - seed), state)


def going_on(first, second, depth):
    """A state under one scheme, a fresh one under another, and the first gone on as the second."""
    before, fresh = started(resolved(first, depth)), started(resolved(second, depth), seed=1)
    return before, fresh, gone_on(before, fresh)


def models(state):
    """The parameters of a state and their two moments."""
    adam = next(s for s in jax.tree.leaves(state, is_leaf=lambda s: hasattr(s, "mu")) if hasattr(s, "mu"))
    packing = Packing.of(state.model)
    return state.model, packing.unpack(adam.mu), packing.unpack(adam.nu)


def leaves(tree):
    return {jax.tree_util.keystr(path): np.asarray(a) for path, a in jax.tree_util.tree_leaves_with_path(tree)}


def same(a, b):
    a, b = leaves(a), leaves(b)
    return a.keys() == b.keys() and all(np.array_equal(a[path], b[path]) for path in a)


def layer(model, n):
    period = len(model.layers)
    return jax.tree.map(lambda a: a[n // period], model.blocks[n % period])


PLAIN = ("query", "key_value", "out")


@pytest.mark.parametrize(
    "first, second",
    [
        ("[rope, nope]", "nope"),
        ("nope", "[rope, nope]"),
        ("[rope, rope, rope, nope]", "nope"),
        ("[rope, nope]", "[t5, kerple, rope, nope]"),
        ("learned + rope", "fire"),
    ],
)
def test_every_layer_keeps_its_weights_whatever_the_period(first, second):
    before, fresh, after = going_on(first, second, 4)
    assert jax.tree.structure(after) == jax.tree.structure(fresh)
    assert [a.shape for a in jax.tree.leaves(after)] == [a.shape for a in jax.tree.leaves(fresh)]
    assert after.diverged == before.diverged == 7
    for old, new in zip(models(before), models(after), strict=True):
        for name in ("embedding", "readout", "scale"):
            assert same(getattr(old, name), getattr(new, name)), name
        for a, b in ((layer(old, n), layer(new, n)) for n in range(4)):
            assert same([a.up, a.down, a.scales], [b.up, b.down, b.scales])
            assert same([getattr(a.attention, n) for n in PLAIN], [getattr(b.attention, n) for n in PLAIN])


@pytest.mark.ci
@pytest.mark.parametrize(
    "first, second", [("[kerple, kerple]", "kerple"), ("[t5, t5 + kerple]", "[t5, kerple + t5, t5, kerple + t5]")]
)
def test_one_model_in_two_spellings_goes_on_with_the_same_logits(first, second):
    before, fresh, after = going_on(first, second, 4)
    assert fresh_parameters(before.model, fresh.model) == ()
    cell = resolved(first, 4)
    batch = cell.task.sample(jax.random.key(0), 8, batch=4, n_max=8)
    about = (inputs(batch), jax.random.key(0))
    look = jax.jit(lambda model: model(*about))
    expected = look(before.model)
    np.testing.assert_allclose(look(after.model), expected, rtol=1e-4, atol=1e-5)
    assert np.abs(look(fresh.model) - expected).max() > 0.1


def table(model, text, *at):
    found = model.tied.get_value()[text.replace("t5", "t5(bidirectional=True)")]
    for n in at:
        found = found[n]
    return found


@pytest.mark.guard
@pytest.mark.parametrize(
    "first, second, old, new",
    [
        ("learned + rope", "learned", ("learned + rope", 0), ("learned",)),
        ("learned", "rope + learned", ("learned",), ("rope + learned", 1)),
        ("learned + rope", "learned + [rope, nope]", ("learned + rope", 0), ("learned",)),
        ("rope + t5", "t5", ("rope + t5", 1), ("t5",)),
        ("[t5, nope]", "[nope, t5]", ("t5",), ("t5",)),
        ("[t5, t5 + rope]", "[t5, t5 + kerple]", ("t5 + rope", 0), ("t5 + kerple", 0)),
        ("t5 + t5", "rope + t5 + t5", ("t5 + t5", 1), ("rope + t5 + t5", 2)),
    ],
)
def test_parameters_that_layers_share_go_on_with_their_part(first, second, old, new):
    before, fresh, after = going_on(first, second, 2)
    for a, b, c in zip(models(before), models(after), models(fresh), strict=True):
        assert same(table(a, *old), table(b, *new)) and not same(table(b, *new), table(c, *new))


def position(model, n, *at):
    found = layer(model, n).attention.position.get_value()
    for step in at:
        found = found[step]
    return found


@pytest.mark.guard
@pytest.mark.parametrize(
    "first, second, old, new, kept",
    [
        ("rope + kerple", "kerple", (1,), (), (0, 1, 2, 3)),
        ("kerple", "rope + kerple", (), (1,), (0, 1, 2, 3)),
        ("rope + (t5 + kerple) @ index", "t5 + kerple", (2,), (1,), (0, 1, 2, 3)),
        ("[rope, kerple]", "kerple", (), (), (1, 3)),
        ("kerple", "kerple(weight=True)", (), (), ()),
        ("rope + kerple + kerple", "kerple + kerple", (2,), (1,), (0, 1, 2, 3)),
    ],
)
def test_a_layers_own_parameters_go_on_with_their_part(first, second, old, new, kept):
    before, fresh, after = going_on(first, second, 4)
    for a, b, c in zip(models(before), models(after), models(fresh), strict=True):
        for n in range(4):
            found = position(b, n, *new)
            assert jax.tree.leaves(found), "there is something to keep"
            assert same(found, position(a, n, *old) if n in kept else position(c, n, *new))


def test_what_starts_anew_is_named_and_weights_never_do():
    def named(first, second, depth=4):
        return fresh_parameters(*(started(resolved(s, depth)).model for s in (first, second)))

    assert named("rope", "nope") == named("learned + t5 + kerple", "t5") == ()
    assert named("[rope, kerple]", "kerple") == ("kerple (layer 1, layer 3)",)
    assert named("rope", "learned + [rope, t5]") == ("learned (shared)", "t5(bidirectional=True) (shared)")
    assert named("kerple", "kerple + kerple", 1) == ("kerple (layer 1)",)
    with pytest.raises(ValueError, match="parameter"):
        fresh_parameters(started(resolved("rope", 2)).model, started(resolved("rope", 4)).model)


def listened(monkeypatch):
    """What the programs of each stage were given and gave to start with."""
    seen, real = [], trainer.program

    def build(*args):
        made = real(*args)

        def start(knobs, *before):
            seen.append((jax.device_get(before), jax.device_get(found := made.init(knobs, *before))))
            return found

        return made._replace(init=start)

    monkeypatch.setattr(trainer, "program", build)
    return seen


@pytest.mark.ci
def test_the_second_stage_starts_from_the_last_parameters_of_the_first(tmp_path, monkeypatch):
    seen, last, real = listened(monkeypatch), [], trainer.pure
    monkeypatch.setattr(trainer, "pure", lambda model: last.append(jax.device_get(real(model))) or last[-1])
    assert sweep(experiment(), tmp_path / "one", keep=True, watch=Watch()) == 0
    ((none, first), ((before,), after)) = seen
    assert none == () and same(before, after), "rope and nope have no parameters, so all are carried"
    assert not same(before.model, first.model), "the first stage has trained"
    trial = store.read_plan(tmp_path / "one")[0].id
    kept = checkpoints.restore(tmp_path / "one", trial)["readout"]
    assert np.array_equal(kept, last[0]["readout"][0]), "what is kept is of the last stage"
    assert not np.array_equal(kept, after.model.readout.get_value()[0]), "the second has trained too"
    (found,) = load(tmp_path / "one").records
    assert found.label == "rope, then nope" and found.run["then"].startswith("0.5 nope")


@pytest.mark.ci
def test_each_stage_trains_by_its_own_program_and_the_last_is_evaluated(tmp_path):
    kinds = training.initial_states, training.train_segment, batches.make_batches, examples.examples, evaluation.sums
    for f in kinds:
        f.clear_cache()
    assert sweep(experiment(), tmp_path / "one", watch=Watch()) == 0
    assert [f._cache_size() for f in kinds] == [2, 2, 1, 2, 1], "examples of the test and of the floors"
    assert rehearse(experiment(), tmp_path / "none")["programs"] == 8


def test_a_stage_without_steps_and_an_unknown_scheme_are_refused_before_anything_trains(tmp_path):
    with pytest.raises(ValueError, match="of 4"):
        sweep(experiment(Run(**{**vars(RUN), "then": "0.1 nope"})), tmp_path / "one", watch=Watch())
    with pytest.raises(ValueError, match="'npe'"):
        sweep(experiment(Run(**{**vars(RUN), "then": "0.5 npe"})), tmp_path / "one", watch=Watch())


def test_memory_is_looked_at_for_every_stage(monkeypatch):
    seen = []
    monkeypatch.setattr(needs, "check_memory", lambda cell, longest: seen.append((cell.run.scheme, longest)))
    plan.rehearsed(Run(**{**vars(RUN), "batch": 8}), PLAN)  # which no other test has traced
    assert seen == [("rope", 8), ("nope", 8)]


TABLES = "learned + [t5 + kerple]"


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A run of three labels with the parameters of all, and what was said of it."""
    folder, watch = tmp_path_factory.mktemp("runs") / "kept", Watch()
    runs = (RUN, *(Run(**{**vars(RUN), "then": text}) for text in (None, f"0.5 {TABLES}")))
    assert sweep(experiment(*runs), folder, keep=True, watch=watch) == 0
    return folder, watch


@pytest.mark.ci
def test_a_model_is_restored_with_its_positional_parameters(kept):
    line = next(line for line in store.read_plan(kept[0]) if line.label.endswith(TABLES))
    model = restored(stages(plan.planned_run(line.run), 4)[-1][0], kept[0], line.id)
    found = checkpoints.restore(kept[0], line.id)
    np.testing.assert_array_equal(
        position(model, 0, 1, "heads", "r1"), found["blocks"]["0"]["attention"]["position"]["1"]["heads"]["r1"][0]
    )
    np.testing.assert_array_equal(table(model, "learned", "layer", "table"), found["tied"]["learned"]["layer"]["table"])
    assert len(jax.tree.leaves(model)) == len(jax.tree.leaves(found))


@pytest.mark.ci
def test_a_sweep_tells_what_starts_anew_and_is_silent_where_nothing_does(kept):
    folder, watch = kept
    notes = [note for note in watch.notes() if "start anew" in note]  # what four steps teach differs by machine
    parts = ["kerple (layer 1)", "learned (shared)", "t5(bidirectional=True) (shared)"]
    assert notes == [f"rope, then {TABLES} · even_pairs: after step 2, parameters of {', '.join(parts)} start anew."]
    (events,) = (folder / "events").glob("*.jsonl")
    told = [json.loads(line) for line in events.read_text().splitlines()]
    assert [(e["parts"], e["step"]) for e in told if e["event"] == "anew"] == [(parts, 2)]


@pytest.mark.ci
def test_a_label_with_a_comma_chooses_and_compares(kept, capsys):
    assert main(("table", str(kept[0]), "--only", "scheme=rope, then nope,rope", "--json")) == 0
    assert {row["scheme"] for row in json.loads(capsys.readouterr().out)["rows"]} == {"rope, then nope", "rope"}
    assert main(("compare", str(kept[0]), "rope, then nope", "rope", "--json")) == 0
    assert json.loads(capsys.readouterr().out)["first"] == "rope, then nope"
