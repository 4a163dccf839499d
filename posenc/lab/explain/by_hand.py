"""Attention by hand: the library solves a problem, plain or under any scheme, and a sheet shows every step."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from posenc.core.compose import add, normal_form, parts
from posenc.core.scheme import Dims
from posenc.lab.explain.induced import diagram, single
from posenc.lab.explain.problem import Problem
from posenc.lab.explain.steps import Sheet
from posenc.lab.explain.walk import Solved, walk
from posenc.lab.explain.watched import AdditiveScore, positions, watch

WIDTHS = (3, 4, 6, 8, 12, 16)
"""Widths of a head, tried in turn until one suits the scheme: rotations, for example, need an even number."""
LONGER = 8
"""The training length that a scheme is bound to if half of the tokens is too short for it."""
MOVED = 0.5
TITLES = {
    "single": "Self-attention",
    "multi-head": "Attention with two heads",
    "masked": "Masked self-attention",
    "cross": "Cross-attention",
    "additive": "Additive attention",
}
ONE = "take --form single, multi-head or masked, or another scheme"
ABOUT = {
    "single": "Every token compares its query with all keys, and takes more of a value the better its key matches.",
    "multi-head": "Each head has its own queries, keys and values; the heads' outputs are put side by side and mixed.",
    "masked": "A token sees only itself and the tokens before it, as in text written from left to right.",
    "cross": "The queries come from one sequence, a decoder's; keys and values come from another, an encoder's.",
    "additive": "The attention of 2014: a hidden layer combines a query and a key, in place of a dot product.",
}


def sheet(problem: Problem, text: str | None = None, *, blank: bool = False) -> Sheet:
    """All steps of a problem; with a scheme's text, each beside the same step without the scheme.

    Raises `ValueError` or `TypeError` if the scheme cannot serve this form, as attention itself does.
    """
    title = TITLES[problem.form] + (", causal" if problem.causal and problem.form != "masked" else "")
    notes = [ABOUT[problem.form]] + [f"The numbers are those of seed {problem.seed}."] * (problem.seed is not None)
    with jax.enable_x64(True):
        if text is None:
            solved = solve(problem)
            steps = walk(solved, None, _undivided(solved))
            return Sheet(title, " ".join(notes), tuple(steps), blank=blank)
        ours = _suited(problem, text)
        usual = solve(ours.problem)
        if jax.tree.leaves(ours.params) and not _differ(ours, usual):
            ours = solve(ours.problem, ours.scheme, _moved(ours.params))
            notes.append("The scheme's parameters have no effect before training, so random numbers are added to them.")
        if (wide := ours.problem.query.shape[-1]) != problem.query.shape[-1]:
            notes.append(f"The scheme needs heads of {wide} features; the added features are zero.")
        if ours.problem.trained:
            trained = ours.problem.trained
            notes.append(f"The scheme is bound to a training length of {trained}, as a shorter one does not suit it.")
        if ours.problem.causal and not problem.causal:
            notes.append("The scheme is causal only, so a query sees only itself and the tokens before it.")
        if not _differ(ours, usual):
            notes.append("The scheme changes nothing here.")
        steps = walk(ours, usual, None)
    path = "" if problem.memory is not None else diagram(text)  # the diagram shows one sequence
    return Sheet(f"{title}, the same under {text}", " ".join(notes), tuple(steps), path, blank=blank)


def solve(problem: Problem, scheme: Any = None, params: Any = None) -> Solved:
    """A problem with all its intermediate numbers; without a scheme, plain attention of the problem's form."""
    scheme = _form(problem) if scheme is None else scheme
    params = posenc.init(scheme, jax.random.key(0), _dims(problem)) if params is None else params
    where = positions(scheme, len(problem.x), problem.memory is None)
    x, sources = (
        np.asarray(posenc.embed(scheme, params, jnp.asarray(a), positions=where)) for a in (problem.x, problem.sources)
    )
    q, k, v = (
        (a @ w).swapaxes(0, 1) for a, w in ((x, problem.query), (sources, problem.key), (sources, problem.value))
    )
    key_x = None if problem.memory is None else sources
    arrays = watch(scheme, params, q, k, v, x=x, key_x=key_x, causal=problem.causal, where=where)
    return Solved(problem, scheme, params, x, sources, arrays | {"q": q, "k": k, "v": v})


def _form(problem: Problem) -> Any:
    """The scheme of plain attention: "nope", or the hidden layer of the additive form."""
    return posenc.parse("nope") if problem.vector is None else AdditiveScore(tuple(map(float, problem.vector)))


def _suited(problem: Problem, text: str) -> Solved:
    """The problem under a scheme, with heads as wide as the scheme needs."""
    scheme = single(text)
    plain = normal_form(scheme).scheme
    _check(problem, text, plain)
    if "bidirectional" in plain.limits and problem.memory is None:
        problem = dataclasses.replace(problem, causal=True)
    narrowest = problem.query.shape[-1]
    refused: ValueError | None = None
    for trained, width in itertools.product((None, LONGER), (w for w in WIDTHS if w >= narrowest)):
        wide = dataclasses.replace(problem.wide(width), trained=trained)
        try:
            combined = scheme if wide.vector is None else add(_form(wide), scheme)
            return solve(wide, posenc.bind(combined, _dims(wide)))
        except ValueError as error:
            refused = error
    assert refused is not None
    raise refused


def _check(problem: Problem, text: str, plain: Any) -> None:
    """Refuse a scheme that cannot act in this form of attention."""
    if problem.memory is not None and "cross" in plain.limits:
        raise ValueError(f"{text} is undefined between two sequences, which --form {problem.form} has; {ONE}.")
    if problem.vector is not None and (
        any(s.precedence == "first" for s in parts(plain)) or plain.overrides("query", "key")
    ):
        raise ValueError(f"{text} acts on q·k, which --form additive does without; {ONE}.")


def _dims(problem: Problem) -> Dims:
    """The sizes to bind to. Half of the tokens is the training length, so that the sheet shows extrapolation too."""
    heads, width, head = problem.query.shape
    count = max(len(problem.x), len(problem.sources))
    trained = problem.trained or max(2, count // 2)
    return Dims(width, heads, head, trained=trained, longest=max(count, trained), causal=problem.causal)


def _moved(params: Any) -> Any:
    draw = np.random.default_rng(0).normal

    def perturb(a):
        return a + MOVED * draw(size=a.shape) if jnp.issubdtype(a.dtype, jnp.floating) else a

    return jax.tree.map(perturb, params)


def _differ(ours: Solved, usual: Solved) -> bool:
    pairs = ((ours.x, usual.x), *((ours.arrays[n], usual.arrays[n]) for n in ("weights", "out")))
    return not all(np.allclose(a, b, rtol=1e-9, atol=1e-9) for a, b in pairs)


def _undivided(solved: Solved) -> dict[str, np.ndarray] | None:
    """The introduction's problem without the division by √d_k, as introductions compute it; else None."""
    problem = solved.problem
    if problem.form != "single" or problem.seed is not None or problem.causal:
        return None
    q, k, v = (solved.arrays[n] for n in "qkv")
    root = q.shape[-1] ** 0.5
    return watch(solved.scheme, solved.params, q * root, k, v, x=solved.x, causal=False)
