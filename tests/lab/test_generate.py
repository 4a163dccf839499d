"""Text written token by token: what is written, and that it is what one pass over the true text says of it."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from posenc.lab.models import layers
from posenc.lab.models.interface import Inputs, inputs
from posenc.lab.spec.run import Knobs, Run
from posenc.lab.tasks.measure import measure
from posenc.lab.train import generate
from posenc.lab.train.generate import exact, free_running, greedy
from posenc.lab.train.training import init, resolve, segment
from tests.night import by_day

KEY = jax.random.key(3)
SMALL = {"width": 16, "heads": 2, "depth": 2, "batch": 16, "length": 4, "longest": 12}
CARRIED = ["fox", "selective_rope", "grape_ap"]
RINGS = ["rope + window(3)", "sinusoidal + [alibi + window(2), nope]", "fox + window(3)"]
DRAWN = ["rope @ random_sorted(64)", "alibi @ random_sorted(64, resample='layer')"]
DAILY = ["learned", "t5", "cope", CARRIED[0], RINGS[1], DRAWN[1]]
NIGHTLY = sorted({"nope", "dape", *CARRIED, *RINGS, *DRAWN} - set(DAILY))


def cell(scheme, **change):
    decoder = {"task": "copy(symbols=3)", "model": "decoder"}
    return resolve(Run(**({"scheme": scheme} | SMALL | decoder | change)))


def knobs(seed=0, lr=3e-3):
    return Knobs(jnp.uint32(seed), *map(jnp.float32, (lr, 0.0, 0.1, 1.0)))


def trained(cell, steps, seed=0):
    start = jax.jit(lambda k: init(cell, k))(knobs(seed))
    if not steps:
        return start.model
    go = jax.jit(lambda state, k: segment(cell, steps, state, k, jnp.int32(0), jnp.int32(steps)))
    return go(start, knobs(seed))[0].model


def batch_of(cell, n=5, rows=12, n_max=6):
    """Examples of several sizes, so that prompts and answers differ in length."""
    sizes = cell.task.sizes.smallest + jnp.arange(rows, dtype=jnp.int32) % n
    return cell.task.sample(jax.random.key(7), sizes, batch=rows, n_max=n_max)


def by_steps(model, given, first, key=KEY):
    """The logits of a text that is told, read token by token."""
    carry, length = model.begin(given, key, first), given.tokens.shape[1]
    start, carry = model.proceed(carry, given, key, 0, first)

    def go(carry, t):
        logits, carry = model.proceed(carry, given, key, t, 1)
        return carry, logits[:, 0]

    rest = jax.lax.scan(go, carry, jnp.arange(first, length))[1]
    return jnp.concatenate([start, rest.swapaxes(0, 1)], 1)


def apart(model, given, first=2):
    """How far the logits of real tokens are from those of one pass over the whole text."""
    both = jax.jit(lambda model: (by_steps(model, given, first), model(given, KEY)))(model)
    return float(jnp.where(given.valid[..., None], jnp.abs(both[0] - both[1]), 0).max())


@pytest.mark.parametrize("scheme", by_day([*DAILY, "conv", *NIGHTLY], [*DAILY, "conv"]))
def test_steps_with_a_cache_are_one_pass(scheme):
    one = cell("rope", stem="conv") if scheme == "conv" else cell(scheme)
    assert apart(trained(one, 0), inputs(batch_of(one))) < 2e-5


def test_a_window_keeps_no_more_keys_than_it_shows():
    one = cell("rope + window(3)")
    (cache,) = trained(one, 0).begin(inputs(batch_of(one)), KEY, 1)
    assert cache.k.shape[-2] == 3 and cache.index is not None


def test_positions_one_place_off_are_caught(monkeypatch):
    """The comparison with one pass can fail."""
    sound = layers.slice_positions
    monkeypatch.setattr(
        "posenc.lab.models.layers.slice_positions", lambda s, p, first, new: sound(s, p, first - 1, new)
    )
    one = cell("rope @ random_sorted(64)")
    assert apart(trained(one, 0), inputs(batch_of(one))) > 1e-3


def both(model, task, batch):
    """What is said at each place, in one pass and when the model writes by itself; then the right places of each."""
    forced = jax.jit(lambda model: jnp.argmax(model(inputs(batch), KEY), -1))(model)
    free = greedy(model, inputs(batch), batch.prompt, KEY, end=task.special("EOS"), first=1)
    found = [np.asarray(a) for a in (forced, free)]
    return *found, *((a == np.asarray(batch.targets)) & np.asarray(batch.score) for a in found)


def agree(model, task, batch):
    """The share of rows right throughout, the same ones in both; up to an answer's first error both say the same."""
    forced, free, *right = both(model, task, batch)
    score = np.asarray(batch.score)
    whole = [(a == score).all(1) for a in right]
    np.testing.assert_array_equal(*whole)
    before = np.cumsum(score & ~right[0], axis=1) - (score & ~right[0]) == 0
    np.testing.assert_array_equal(forced[score & before], free[score & before])
    return whole[0].mean(), right


PARTLY = [(s, 400) for s in ("alibi + window(4)", "rope @ random_sorted(32)", "fox", "t5")]


@pytest.mark.nightly  # the sums of a model that writes are counted by hand
@pytest.mark.parametrize(("scheme", "steps"), by_day([("rope", 60), *PARTLY], [("rope", 60)]))
def test_both_exact_matches_agree_for_a_decoder_that_is_sometimes_right(scheme, steps):
    one = cell(scheme)
    whole, right = agree(trained(one, steps), one.task, batch_of(one, n=4, rows=256))
    assert 0.02 < whole < 0.98, f"nothing is compared: {whole}"
    assert (right[0] != right[1]).any(), "after an error the two read different texts"


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("scheme", "cross"),
    [("nope", "nope"), ("t5", "nope"), ("rope + window(3)", "same"), ("rope @ random_sorted(64)", "same")],
)
def test_both_exact_matches_agree_for_an_encoder_decoder(scheme, cross):
    one = cell(scheme, task="s2s_copy(symbols=3)", model=f"encoder_decoder(cross={cross!r})")
    assert agree(trained(one, 200), one.task, batch_of(one, n=4, rows=256))[0] > 0.02


def test_a_scheme_of_words_is_told_those_that_were_written():
    """And not those of the true answer, which stand behind the prompt."""
    one = cell("complex_order(words=99) @ axes('index', 'token')")
    model, batch = trained(one, 0), batch_of(one)
    assert apart(model, inputs(batch)) < 2e-5
    unseen = inputs(batch)._replace(tokens=jnp.where(batch.prompt, batch.tokens, 0))
    wrote = [np.asarray(greedy(model, given, batch.prompt, KEY)) for given in (inputs(batch), unseen)]
    assert (wrote[0] == wrote[1]).all() and (wrote[0] > 0).any()


def test_the_sums_of_a_model_that_writes_are_those_counted_by_hand():
    one = cell("rope")
    model, batch = trained(one, 0), batch_of(one)
    sums = free_running(model, one.task, batch, KEY)
    right = both(model, one.task, batch)[-1]
    assert int(sums["correct"]) == right.sum() and int(sums["exact"]) == (right == batch.score).all(1).sum()
    assert int(sums["scored"]) == int(measure(model(inputs(batch), KEY), batch)["scored"])


@pytest.mark.nightly
def test_exact_shows_both_ways_at_each_size():
    one = cell("rope")
    found = exact(trained(one, 0), one.task, [2, 4], rows=16)
    assert list(found) == [2, 4]
    for by_metric in found.values():
        assert by_metric["exact"]["teacher_forced"] == by_metric["exact"]["free_running"]
        assert set(by_metric) == {"exact", "token"} and set(by_metric["token"]) == {"teacher_forced", "free_running"}


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Successor:
    """Says the number after the last one, of nine, and NaN after `broken`."""

    broken: int = -1

    def __call__(self, given, key):
        said = jax.nn.one_hot((given.tokens + 1) % 9, 9)
        return jnp.where((given.tokens == self.broken)[..., None], jnp.nan, said)

    def begin(self, given, key, most):
        return ()

    def proceed(self, carry, given, key, first, new):
        return self(given._replace(tokens=jax.lax.dynamic_slice_in_dim(given.tokens, first, new, 1)), key), carry


def said(prompts, room, model=Successor(), valid=None, **how):
    """What is written after these prompts, with eights, which nobody may read, where the answers would stand."""
    told = np.full((len(prompts), room), 8, np.int32)
    prompt = np.zeros(told.shape, bool)
    for row, text in enumerate(prompts):
        told[row, : len(text)], prompt[row, : len(text)] = text, True
    given = Inputs(jnp.asarray(told), jnp.ones(told.shape, bool) if valid is None else jnp.asarray(valid))
    return greedy(model, given, prompt, KEY, **how).tolist()


def test_a_text_goes_on_from_what_was_written():
    assert said([[5, 2], [1, 7, 0]], 5) == [[6, 3, 4, 5, 6], [2, 8, 1, 2, 3]]
    assert said([[5, 2], [1, 7, 0]], 5, first=2) == [[6, 3, 4, 5, 6], [2, 8, 1, 2, 3]]


def test_writing_stops_when_all_have_said_their_end():
    assert said([[5, 2], [3, 1, 2]], 7, end=4) == [[6, 3, 4, 5, -1, -1, -1], [4, 2, 3, 4, -1, -1, -1]]
    assert said([[2], [3]], 4, end=0) == [[3, 4, 5, 6], [4, 5, 6, 7]]


def test_writing_stops_where_no_text_may_stand():
    valid = np.arange(5)[None, :] < np.array([[3], [2]])
    assert said([[1], [2]], 5, valid=valid) == [[2, 3, 4, -1, -1], [3, 4, 5, -1, -1]]


def test_what_is_nan_is_said_by_no_token():
    assert said([[5]], 4, Successor(broken=7)) == [[6, 7, -1, 1]]


def test_prompts_of_other_lengths_are_the_same_program():
    said([[5, 2], [1, 7, 0]], 6)
    before = generate._greedy._cache_size()
    said([[5], [1, 7]], 6)
    assert generate._greedy._cache_size() == before


@pytest.mark.parametrize(
    ("prompts", "first", "says"),
    [([[5], [1, 7]], 2, "first.* 2.* 1 "), ([[5], []], 1, "one token"), ([[5]], 0, "first.* 0")],
)
def test_prompts_that_do_not_serve_are_refused(prompts, first, says):
    with pytest.raises(ValueError, match=says):
        said(prompts, 4, first=first)


def test_what_cannot_be_written_is_refused_by_name():
    one = cell("nope", model="gru", heads=4)
    with pytest.raises(ValueError, match="'gru' cannot go on token by token; take decoder or encoder_decoder"):
        free_running(trained(one, 0), one.task, batch_of(one), KEY)
    slots = cell("rope", task="reverse_string")
    with pytest.raises(ValueError, match="'reverse_string' is answered in one pass"):
        free_running(trained(slots, 0), slots.task, batch_of(slots), KEY)
    stretched = cell("alibi @ random_sorted(64, over='distances')")
    with pytest.raises(ValueError, match="distances"):
        free_running(trained(stretched, 0), stretched.task, batch_of(stretched), KEY)


def test_what_is_drawn_has_the_law_of_the_logits():
    logits = jnp.log(jnp.broadcast_to(jnp.array([0.5, 0.3, 0.2]), (4000, 1, 3)))
    for heat, law in ((1.0, [0.5, 0.3, 0.2]), (0.5, [25 / 38, 9 / 38, 4 / 38])):
        dice = generate.Dice(jax.random.key(1), jnp.float32(heat))
        drawn = generate._draw(dice, logits, 3)[:, 0]
        assert np.bincount(drawn, minlength=3) / 4000 == pytest.approx(law, abs=0.03)
        assert (drawn != generate._draw(dice, logits, 4)[:, 0]).any(), "each place has draws of its own"
    assert (generate._draw(dice, logits * jnp.nan, 0) == -1).all()
