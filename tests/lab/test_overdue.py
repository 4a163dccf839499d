"""A segment that does not end is named once, after twenty times what those before it took."""

import dataclasses
import os
import re
import threading
from types import SimpleNamespace

import pytest

from posenc.lab.run import progress, trainer
from posenc.lab.run.sweep import sweep
from posenc.lab.spec.experiment import Experiment, grid
from tests.lab.test_sweep import BASE, PLAN, Watch


@pytest.mark.parametrize(
    ("took", "compiles", "limit"),
    [([], True, 600), ([30.0], True, 600), ([], False, 600), ([10.0, 20.0], False, 300), ([0.5], False, 60)],
)
def test_how_long_a_segment_may_take_follows_from_those_before_it_that_did_not_compile(
    monkeypatch, took, compiles, limit
):
    clock, limits = [0.0], []
    begun = lambda seconds, *_: limits.append(seconds) or threading.Timer(1e6, None)  # noqa: E731
    monkeypatch.setattr(progress, "threading", SimpleNamespace(Timer=begun))
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    timer = progress.SegmentTimer(print)
    for seconds in took:
        with timer.time(compiles=False):
            clock[0] += seconds
    with timer.time(compiles=True):  # counts for nothing
        clock[0] += 1e4
    with timer.time(compiles):
        pass
    assert limits[-1] == limit


@pytest.mark.parametrize(
    ("slow", "expected"),
    [(0, "some minutes at most, compiling included,"), (4, "[0-9.]+ s, as those before took,")],
    ids=["first", "later"],
)
def test_a_segment_that_hangs_is_named_while_it_does(monkeypatch, tmp_path, slow, expected):
    """The planted one waits until it is named."""
    named, notes, real = threading.Event(), [], trainer.program

    def program(*given):
        run = real(*given)

        def segment(state, lane, first, steps):
            if first == slow:
                assert named.wait(60)
                monkeypatch.setattr(progress, "COMPILING", 1e6)
            return run.segment(state, lane, first, steps)

        return run._replace(segment=segment)

    class Told(Watch):
        def note(self, text):
            if "has not ended" in text:
                notes.append(text)
                named.set()

    monkeypatch.setattr(trainer, "program", program)
    monkeypatch.setattr(progress, "COMPILING", 1e6 if slow else 0.2)
    monkeypatch.setattr(progress, "LEAST", 0.2)
    plan = dataclasses.replace(PLAN, steps=8)
    assert sweep(Experiment("slow", grid(BASE, scheme=["rope"]), plan), tmp_path / "x", watch=Told()) == 0
    (note,) = notes
    assert re.match(f"rope · even_pairs: a segment has not ended in [01] s, and {expected} were expected; ", note)
    assert f"`kill -9 {os.getpid()}`" in note
