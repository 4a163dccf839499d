"""Floors are those that plain Python counts, one token at a time, on the same examples."""

import functools
from collections import Counter

import jax
import numpy as np
import pytest

from posenc.lab import tasks
from posenc.lab.tasks.examples import parts
from posenc.lab.tasks.floors import SEED, floors, floors_by_metric
from posenc.lab.tasks.task import TASKS
from tests.night import by_day
from tests.tasks.task_checks import every_text, some_sizes

ROWS = 128


class Row:
    """What guesses see of one example: its input, and its judged places with their targets."""

    def __init__(self, cue, end, tokens, is_input, targets, score):
        self.read = [t for t in tokens[is_input].tolist() if t in cue]
        self.targets = targets.tolist()
        self.places = np.flatnonzero(score).tolist()
        self.ends = {i for i in self.places if self.targets[i] == end}

    def judged(self, metric, first):
        self.places = self.places[-1:] if metric == "last" else [i for i in self.places if i >= first]
        return self

    def hits(self, guess, told=True):
        return [self.targets[i] == guess(i) or (told and i in self.ends) for i in self.places]


def counted(task, learnt, judged, exact):
    """Floors of examples, each chosen on the first and counted on the second."""
    whole = lambda hits: [all(h) for h in hits if h] if exact else [hit for h in hits for hit in h]  # noqa: E731
    share = lambda hits: np.mean(whole(hits))  # noqa: E731
    constants = Counter()
    places = {}
    for row in learnt:
        said = {row.targets[i] for i in row.places if i not in row.ends}
        if exact:
            constants.update(said if len(said) == 1 else range(task.classes) if row.places and not said else ())
        for i in row.places:
            if not exact and i not in row.ends:
                constants[row.targets[i]] += 1
            places.setdefault(i, Counter())[row.targets[i]] += 1
    first = lambda count: min(count, key=lambda c: (-count[c], c), default=0)  # noqa: E731
    answers = [tuple((i, row.targets[i]) for i in row.places) for row in learnt]
    common = learnt[answers.index(Counter(answers).most_common(1)[0][0])].targets
    best = common.__getitem__ if exact else lambda i: first(places.get(i, {}))
    one = 1 / task.choices
    free = [[1.0 if i in row.ends else one for i in row.places] for row in judged]
    found = {
        "uniform": np.mean([np.prod(f) for f in free if f] if exact else [p for f in free for p in f]),
        "prior": share([row.hits(lambda i: first(constants)) for row in judged]),
    }
    if task.cue is not None:
        shift = 0 if task.layout.writes else task.cue.start
        bags = [first(Counter(row.read)) if row.read else task.cue.start for row in judged]
        found["bag"] = share([row.hits(lambda i, b=b: b - shift) for row, b in zip(judged, bags, strict=True)])
    return found | {"position": share([row.hits(best, told=False) for row in judged])}


def read_rows(task, n, room):
    """The examples that floors are counted on."""
    key = jax.random.fold_in(jax.random.key(SEED), n)
    cue, end = task.cue or (), task.special("EOS") if task.layout.writes else -1
    for batch in jax.device_get(parts(task, 2 * ROWS, room, key, n)):
        own = (batch.tokens, batch.prompt) if batch.source is None else (batch.source, batch.source_valid)
        yield from (Row(cue, end, *row) for row in zip(*own, batch.targets, batch.score, strict=True))


MORE = [text for text in every_text() if text.startswith(("copy(", "fill_blank(", "flip_flop(noisy"))]


@pytest.mark.parametrize("blind", by_day(tasks.names() + MORE, tasks.names()[::2]))
def test_floors_are_those_counted_one_by_one(blind):
    task = tasks.parse(blind)
    low, *_ = sizes = some_sizes(task)[:3]
    found = floors_by_metric(task, sizes, low, rows=ROWS)
    assert found[task.metric] == floors(task, sizes, rows=ROWS)
    for metric, table in found.items():
        if metric == "gain":
            assert table == {n: {"unigram": 0.0} for n in sizes}
            continue
        for n, floor in table.items():
            first = task.tokens(low) if metric == "beyond" and n > low else 0
            every = [row.judged(metric, first) for row in read_rows(task, n, max(sizes))]
            expected = counted(task, every[::2], every[1::2], metric == "exact")
            if metric == "error":
                expected = {name: 1 - share for name, share in expected.items()}
            assert list(floor) == list(expected) and all(type(v) is float for v in floor.values())
            assert floor == pytest.approx(expected, abs=1e-6), (metric, n)


def test_floors_are_one_program(monkeypatch):
    cls, traced = TASKS.find("reverse_string"), []
    make = cls.make
    monkeypatch.setattr(cls, "make", functools.wraps(make)(lambda *a: traced.append(1) or make(*a)))
    floors(tasks.parse("reverse_string"), [3, 4, 5, 6], rows=16)
    assert len(traced) == 1


def test_floors_refuse_what_is_no_size():
    with pytest.raises(ValueError, match="size 2"):
        floors(tasks.parse("token_k_back(k=3)"), [2, 8])
    with pytest.raises(ValueError, match="empty"):
        floors(tasks.parse("token_k_back(k=3)"), [])
