"""One compiled sampler for each task, and what must hold of a batch, as assertions that a planted fault can break."""

import functools

import jax
import numpy as np
from scipy.stats import chisquare

from posenc.lab import tasks
from posenc.lab.tasks.task import TASKS, Layout
from posenc.language.grammar import write
from posenc.language.registry import call
from tests.tasks.facts import VARIED
from tests.tasks.moves import MOVES

ROWS = 500
QUICK = {"xla_backend_optimization_level": 0}  # to compile is what costs here, and integers come out the same


@functools.cache
def every_text():
    """The default of each task and each of its samples."""
    found = []
    for name in tasks.names():
        cls = TASKS.find(name)
        found += [write(call(cls(**settings), name)) for settings in ({}, *cls.samples)]
    return found


def some_sizes(task):
    """Of these the legal: smallest, odd and even above it, the largest trained on, twice that, the edge of a bucket."""
    low, high = task.sizes.smallest, task.sizes.train[1]
    edge = 64 if task.tokens(64) <= 4096 else 16  # a text may grow with the square of its size
    wanted = {low, low + 1 + low % 2, low + 2 + low % 2, high, 2 * high, max(low, edge)}
    return sorted(filter(task.sizes.has, wanted))


class Sampler:
    """`task.sample` compiled for rows of any size; it counts how often it was traced."""

    def __init__(self, text, rows=ROWS):
        self.task, self.rows, self.traces, self.kept = tasks.parse(text), rows, 0, {}
        self.n_max = max(some_sizes(self.task))
        self._sample = jax.jit(self.traced, compiler_options=QUICK)

    def traced(self, key, n):
        self.traces += 1
        return self.task.sample(key, n, batch=self.rows, n_max=self.n_max)

    def __call__(self, n, seed=0):
        if (n, seed) not in self.kept:
            self.kept[n, seed] = jax.device_get(self._sample(jax.random.key(seed), np.int32(n)))
        return self.kept[n, seed]


@functools.cache
def sampler(text):
    """One per process."""
    return Sampler(text)


def drawn(task, n, *, rows, n_max=None, seed=0):
    """One batch at one size, compiled for it alone."""
    sample = functools.partial(task.sample, batch=rows, n_max=n_max or n)
    return jax.device_get(jax.jit(sample, compiler_options=QUICK)(jax.random.key(seed), np.int32(n)))


def rows(batch):
    """The prompt, or the source where there is one, and the scored targets of each row, as Python lists."""
    told = (batch.tokens, batch.prompt) if batch.source is None else (batch.source, batch.source_valid)
    for tokens, targets, prompt, score in zip(told[0], batch.targets, told[1], batch.score, strict=True):
        yield tokens[prompt].tolist(), targets[score].tolist()


def known(task, scored):
    """The targets that the oracle says: of the next tokens the last is in no prompt."""
    return scored[:-1] if task.next_token else scored


def agrees_with_its_oracle(task, batch):
    for prompt, scored in rows(batch):
        assert task.answer(prompt) == known(task, scored), prompt


def moves_without_a_change(task, batch):
    """What is told otherwise and means the same has the same answers; how many prompts this rearranged."""
    rng, moved = np.random.default_rng(7), 0
    for prompt, scored in rows(batch):
        other = MOVES[task.name](rng, task, prompt)
        assert task.answer(other) == scored, (prompt, other)
        moved += other != prompt
    return moved


def is_well_formed(task, batch):
    """Ids in range, one block of real tokens and then padding, and nothing scored or weighed outside it."""
    length = batch.valid.sum(axis=1)
    index = np.arange(batch.tokens.shape[1])[None, :]
    np.testing.assert_array_equal(batch.valid, index < length[:, None])
    np.testing.assert_array_equal(batch.tokens == task.special("PAD"), ~batch.valid)
    assert batch.tokens.min() >= 0 and batch.tokens.max() < task.vocab
    assert batch.targets.min() >= 0 and batch.targets.max() < task.classes
    assert not (batch.score & ~batch.valid).any() and not (batch.weight * ~batch.valid).any()
    assert not (batch.prompt & ~batch.valid).any()
    assert (batch.weight[batch.score] == 1).all()
    longest = {n: task.tokens(int(n)) for n in np.unique(batch.size)}
    longest = np.array([longest[n] for n in batch.size])
    if {task.name, tasks.spec(task)} & set(VARIED):
        assert (length <= longest).all()
    else:
        np.testing.assert_array_equal(length, longest)
    if task.layout is Layout.LM:
        np.testing.assert_array_equal(length, batch.prompt.sum(axis=1) + batch.score.sum(axis=1))
    assert ((batch.source is None), (batch.source_valid is None)) == (task.layout is not Layout.SEQ2SEQ,) * 2
    if task.layout is Layout.SEQ2SEQ:
        read = batch.source_valid.sum(axis=1)
        np.testing.assert_array_equal(batch.source_valid, index < read[:, None])
        np.testing.assert_array_equal(batch.source == task.special("PAD"), ~batch.source_valid)
        assert batch.source.min() >= 0 and batch.source[batch.source_valid].max() < task.alphabet
        assert (read >= 1).all() and (read <= longest).all() and batch.source.shape == batch.tokens.shape


def does_not_leak(task, batch):
    """No answer stands in the input: slots are empty, blanks are blank, and a language model is asked after its SEP.

    A decoder is asked from its BOS on, and reads at a place what it was asked for at the place before.
    """
    if task.layout in (Layout.TAG, Layout.CLASSIFY):
        asked = batch.weight > 0  # what follows the end of an answer is asked for and not scored
        np.testing.assert_array_equal(batch.tokens == task.special("EMPTY"), asked)
        assert not (batch.score & ~asked).any() and not (batch.prompt & asked).any()
        np.testing.assert_array_equal(batch.valid, batch.prompt | asked)
    if task.layout is Layout.LM:
        asked = batch.score[:, :-1]
        np.testing.assert_array_equal(batch.targets[:, :-1][asked], batch.tokens[:, 1:][asked])
        assert not (batch.prompt[:, 1:] & asked).any()
        assert (batch.targets[batch.score] == task.special("EOS")).sum() == len(batch.size)
    if task.layout is Layout.SEQ2SEQ:
        np.testing.assert_array_equal(batch.score, batch.valid)
        np.testing.assert_array_equal(batch.prompt, batch.tokens == task.special("BOS"))
        assert batch.prompt[:, 0].all() and not batch.prompt[:, 1:].any()
        told = batch.valid[:, 1:]
        np.testing.assert_array_equal(batch.tokens[:, 1:][told], batch.targets[:, :-1][told])
        ends = batch.targets == task.special("EOS")
        np.testing.assert_array_equal(ends.argmax(axis=1), batch.valid.sum(axis=1) - 1)
        assert (ends.sum(axis=1) == 1).all() and (batch.tokens != task.special("EOS")).all()


def same_examples(short, long):
    """Two paddings of one draw: equal as far as both reach, and nothing but padding beyond."""
    length = short.tokens.shape[1]
    source = () if short.source is None else ("source", "source_valid")
    for name in ("tokens", "targets", "score", "weight", "valid", "prompt", *source):
        a, b = getattr(short, name), getattr(long, name)
        np.testing.assert_array_equal(a, b[:, :length], err_msg=name)
    assert not long.valid[:, length:].any() and not long.score[:, length:].any()
    assert long.source is None or not long.source_valid[:, length:].any()
    for name, stratum in short.strata.items():
        np.testing.assert_array_equal(stratum, long.strata[name], err_msg=name)


def p_value(found, law):
    """How likely counts this far from `law` are; 0 where something was seen that the law forbids."""
    assert abs(sum(law.values()) - 1) < 1e-9, "the law is no distribution"
    counts = dict.fromkeys(law, 0)
    for thing in found:
        if thing not in counts:
            return 0.0
        counts[thing] += 1
    expected = np.array(list(law.values())) * len(found)
    return 1.0 if len(law) == 1 else chisquare(list(counts.values()), expected).pvalue
