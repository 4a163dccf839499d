"""Properties that every task must have: `check(task)` samples some thousand examples and reports each in a line.

The oracle decides what is right: it shares no code with `sample`, so a slip in either shows as a difference.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax
import numpy as np

from posenc.contract.report import Finding, Outcome, Report, holds_if
from posenc.lab.tasks.floors import floors
from posenc.lab.tasks.task import TASKS, Batch, Layout, Task
from posenc.language import grammar
from posenc.language.registry import call

ROWS = 512
"""Examples of each size."""
LONGEST = 4096
"""Sizes of more tokens than this are not sampled."""
QUICK = {"xla_backend_optimization_level": 0}  # compiling takes longer than running, and integers come out the same


class TaskCase(NamedTuple):
    """A task, some legal sizes in order, and `draw(size, seed)`: a batch padded for the largest of them."""

    task: Task
    sizes: tuple[int, ...]
    draw: Callable[[int, int], Batch]


def check(task: Task, *, only: str | Iterable[str] | None = None) -> Report:
    """Check whether a task has the properties that every task must have. The report prints as a table, and `.ok` is
    True if nothing failed.

    `only` names properties.

    >>> from posenc.tasks import parse
    >>> check(parse("reverse_string"), only="the_text_names_the_task").ok
    True
    """
    if not isinstance(task, Task):
        raise TypeError(f"A task was expected, not {task!r}; give posenc.tasks.parse(text), or a task object.")
    properties = {function.__name__: function for function in PROPERTIES}
    wanted = list(properties) if only is None else [only] if isinstance(only, str) else list(only)
    for name in wanted:
        if name not in properties:
            raise ValueError(f"No property of tasks is called {name}; known: {', '.join(properties)}.")
    case = _case(task)
    return Report(
        grammar.write(call(task, task.name)),
        tuple(Finding(name, "", _outcome(properties[name], case)) for name in wanted),
    )


def _outcome(of: Callable[[TaskCase], Outcome], case: TaskCase) -> Outcome:
    """The outcome of one property; code of the task that raises is a failure, and its error the reason."""
    try:
        return of(case)
    except Exception as error:
        return Outcome(False, reason=f"{type(error).__name__}: {error}")


def fault_of_examples(task: Task, sizes: Iterable[int]) -> str:
    """Return what makes a batch at these sizes unfit to train on, in words; empty where nothing does."""
    case = _drawn(task, tuple(n for n in sizes if task.tokens(n) <= LONGEST))
    for of in (examples_are_well_formed, examples_are_scored, _examples_fit):
        if case.sizes and not (outcome := of(case)).holds:
            return outcome.reason
    return ""


def _examples_fit(case: TaskCase) -> Outcome:
    """No example is longer than `tokens(n)`."""
    task = case.task
    for n in case.sizes:
        longest = int(case.draw(n, 0).valid.sum(axis=1).max())
        if longest > task.tokens(n):
            return Outcome(
                False, reason=f"size {n}: an example has {longest} tokens, but tokens({n}) is {task.tokens(n)}"
            )
    return Outcome(True)


def _case(task: Task) -> TaskCase:
    low, high = task.sizes.smallest, task.sizes.train[1]
    wanted = {low, *(task.sizes.below(n) for n in (low + 1, low + 2, high, 2 * high) if n >= low)}
    sizes = tuple(sorted(n for n in wanted if task.sizes.has(n) and task.tokens(n) <= LONGEST)) or (low,)
    return _drawn(task, sizes)


def _drawn(task: Task, sizes: tuple[int, ...]) -> TaskCase:
    """The case of a task at these sizes."""
    sample = jax.jit(functools.partial(task.sample, batch=ROWS, n_max=sizes[-1]), compiler_options=QUICK)

    @functools.cache
    def draw(n: int, seed: int) -> Batch:
        return jax.device_get(sample(jax.random.key(seed), np.int32(n)))

    return TaskCase(task, sizes, draw)


def samples_equal_the_oracle(case: TaskCase) -> Outcome:
    """The scored targets of every example are what `answer` returns for its prompt."""
    count = 0
    for n in case.sizes:
        for prompt, scored in _rows(case.task, case.draw(n, 0)):
            answer = [int(t) for t in case.task.answer(list(prompt))]
            if answer != scored:
                return Outcome(
                    False, reason=f"size {n}: for {prompt} sampled {scored}, but the oracle answers {answer}"
                )
            count += 1
    return Outcome(True, reason=f"{count} examples at sizes {', '.join(map(str, case.sizes))}")


def examples_are_scored(case: TaskCase) -> Outcome:
    """At each size some examples have a scored place; those without one count in no metric."""
    shares = {n: float(case.draw(n, 0).score.any(axis=1).mean()) for n in case.sizes}
    if empty := [n for n, share in shares.items() if not share]:
        return Outcome(False, reason=f"size {empty[0]}: no example has a scored place")
    least = min(shares, key=shares.__getitem__)
    note = f"size {least}: {shares[least]:.0%} of the examples have a scored place"
    return Outcome(True, reason="" if shares[least] == 1 else note)


def examples_are_well_formed(case: TaskCase) -> Outcome:
    """Check that ids are in range and real tokens come first, with padding after. Nothing in padding is scored or
    weighed."""
    task = case.task
    for n in case.sizes:
        b = case.draw(n, 0)
        length = b.valid.sum(axis=1)
        odd = [name for name in ("targets", "score", "weight", "valid") if getattr(b, name).shape != b.tokens.shape]
        if odd:
            has, needed = getattr(b, odd[0]).shape, b.tokens.shape
            return Outcome(False, reason=f"at size {n} {odd[0]} have the shape {has}, and tokens {needed}")
        wrong = {
            "tokens are from 0 up to vocab": 0 <= b.tokens.min() and b.tokens.max() < task.vocab,
            "targets are from 0 up to classes": 0 <= b.targets.min() and b.targets.max() < task.classes,
            "real tokens are one block at the start": np.array_equal(
                b.valid, np.arange(b.valid.shape[1])[None] < length[:, None]
            ),
            "padding, and only padding, is PAD": np.array_equal(b.tokens == task.special("PAD"), ~b.valid),
            "scored places are real tokens": not (b.score & ~b.valid).any(),
            "weighed places are real tokens": not ((b.weight != 0) & ~b.valid).any(),
            "weights are finite": bool(np.isfinite(b.weight).all()),
            "scored places have weight 1": bool((b.weight[b.score] == 1).all()),
            "the prompt is real tokens": not (b.prompt & ~b.valid).any(),
            "sizes are as requested": bool((b.size == n).all()),
            "coordinates are whole numbers of the shape of the tokens": all(
                c.shape == b.tokens.shape and c.dtype.kind == "i" for c in b.coords.values()
            ),
            "strata are whole numbers, one for each example": all(
                s.shape == b.size.shape and s.dtype.kind == "i" for s in b.strata.values()
            ),
        }
        if failed := [rule for rule, holds in wrong.items() if not holds]:
            return Outcome(False, reason=f"at size {n} it does not hold that {failed[0]}")
    return Outcome(True)


def the_answer_is_not_in_the_input(case: TaskCase) -> Outcome:
    """Slots for the answer are empty, and no prompt holds a scored place of a text."""
    task = case.task
    for n in case.sizes:
        b = case.draw(n, 0)
        if task.layout in (Layout.TAG, Layout.CLASSIFY) and not (b.tokens[b.score] == task.special("EMPTY")).all():
            return Outcome(False, reason=f"size {n}: a scored slot is not EMPTY")
        if task.layout is Layout.LM and (b.prompt[:, 1:] & b.score[:, :-1]).any():
            return Outcome(False, reason=f"size {n}: the prompt contains part of the answer")
    return Outcome(True)


def sizes_are_legal(case: TaskCase) -> Outcome:
    """The sizes of training and evaluation are legal, and no example is longer than `tokens(n)`."""
    task, sizes = case.task, case.task.sizes
    illegal = [n for n in (*sizes.train, *sizes.evaluation) if not sizes.has(n)]
    if illegal:
        return Outcome(False, reason=f"size {illegal[0]} is trained on or evaluated, but legal are {sizes.legal()}")
    if not (fit := _examples_fit(case)).holds:
        return fit
    try:
        task.check_size(sizes.smallest - 1)
    except ValueError:
        return Outcome(True)
    return Outcome(False, reason=f"size {sizes.smallest - 1} is accepted, below the smallest")


def the_key_decides_the_examples(case: TaskCase) -> Outcome:
    """Equal keys give equal examples, in another compilation too; other keys give others."""
    task, n = case.task, case.sizes[-1]
    first, other = case.draw(n, 0), case.draw(n, 1)
    again = jax.jit(functools.partial(task.sample, batch=ROWS, n_max=n), compiler_options=QUICK)
    second = jax.device_get(again(jax.random.key(0), np.int32(n)))
    if not _equal(first, second):
        return Outcome(False, reason=f"size {n}: one key gave two different batches")
    return holds_if(not _equal(first, other), f"size {n}: keys 0 and 1 gave the same examples")


def padding_changes_no_example(case: TaskCase) -> Outcome:
    """The examples of one key and size are the same, whatever size they are padded for."""
    n, task = case.sizes[0], case.task
    sample = jax.jit(functools.partial(task.sample, batch=ROWS, n_max=n), compiler_options=QUICK)
    short, long = jax.device_get(sample(jax.random.key(0), np.int32(n))), case.draw(n, 0)
    width = short.tokens.shape[1]
    cut = long._replace(
        **{k: v[:, :width] for k, v in long._asdict().items() if isinstance(v, np.ndarray) and v.ndim == 2},
        coords={k: v[:, :width] for k, v in long.coords.items()},
    )
    return holds_if(_equal(short, cut), f"size {n}: padded for {n} and for {case.sizes[-1]}, the examples differ")


def floors_leave_room(case: TaskCase) -> Outcome:
    """A guess without the tokens is right less often than the oracle."""
    task, n = case.task, case.task.sizes.train[1]
    scores = floors(task, [n], rows=ROWS)[n]
    text = f"at size {n}, in {task.metric}: {', '.join(f'{name} {value:.2f}' for name, value in scores.items())}"
    best = 0.0 if task.metric == "error" else 1.0
    solved = any(value == best for value in scores.values())
    return Outcome(not solved, reason=text + ("; a guess without the tokens is always right" if solved else ""))


def the_text_names_the_task(case: TaskCase) -> Outcome:
    """The text of the task, read again, is the same task."""
    task = case.task
    if task.name not in TASKS.names():
        return Outcome(None, reason="it has no name in the registry")
    text = grammar.write(call(task, task.name))
    tree = grammar.read(text)
    again = TASKS.make(tree) if isinstance(tree, grammar.Call) else None
    return holds_if(again == task, f"{text!r} is read as {again!r}")


def samples_build(case: TaskCase) -> Outcome:
    """Every entry of `samples` is a legal setting."""
    cls = type(case.task)
    for settings in cls.samples:
        cls(**settings)
    return Outcome(
        True if cls.samples else None, reason=f"{len(cls.samples)} settings" if cls.samples else "no samples"
    )


PROPERTIES: tuple[Callable[[TaskCase], Outcome], ...] = (
    samples_equal_the_oracle,
    examples_are_scored,
    examples_are_well_formed,
    the_answer_is_not_in_the_input,
    sizes_are_legal,
    the_key_decides_the_examples,
    padding_changes_no_example,
    floors_leave_room,
    the_text_names_the_task,
    samples_build,
)


def _rows(task: Task, batch: Batch) -> Iterable[tuple[list[int], list[int]]]:
    """The prompt, or the source if there is one, and the scored targets of each row, as far as its oracle knows."""
    end = -1 if task.next_token else None
    tokens, read = (batch.tokens, batch.prompt) if batch.source is None else (batch.source, batch.source_valid)
    for row, part, targets, score in zip(tokens, read, batch.targets, batch.score, strict=True):
        yield row[part].tolist(), targets[score].tolist()[:end]


def _equal(a: Any, b: Any) -> bool:
    leaves = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return all(np.array_equal(x, y) for x, y in leaves)
