"""Attention by hand: a problem solved by the library, plain or under any scheme, and told as a sheet of steps."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from posenc.core.compose import Pattern, add, normal_form, parts
from posenc.core.scheme import Dims
from posenc.lab.explain.induced import diagram
from posenc.lab.explain.problem import Problem
from posenc.lab.explain.steps import Sheet
from posenc.lab.explain.walk import Solved, walk
from posenc.lab.explain.watched import AdditiveScore, positions, watch

WIDTHS = (3, 4, 6, 8, 12, 16)
"""Widths of a head, tried in turn until one suits a scheme: those that turn features need them in pairs."""
LONGER = 8
"""What a scheme is bound to as trained on, where half of the tokens leaves it nothing."""
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
    "single": "Every token asks all tokens and takes from each as much as its key answers the query.",
    "multi-head": "Each head asks in its own way; what they take stands side by side and is mixed.",
    "masked": "A token sees those before it and itself, as where text is written from left to right.",
    "cross": "Tokens of one sequence, a decoder's, ask those of another, an encoder's.",
    "additive": "The attention of 2014: a query and a key meet in a hidden layer and not in a product.",
}


def sheet(problem: Problem, text: str | None = None, *, blank: bool = False) -> Sheet:
    """All steps of a problem; with a scheme's text, beside what they are without it.

    Raises `ValueError` or `TypeError` where the scheme does not serve this form, as attention itself does.
    """
    title = TITLES[problem.form] + (", causal" if problem.causal and problem.form != "masked" else "")
    about = [ABOUT[problem.form]] + [f"The numbers are those of seed {problem.seed}."] * (problem.seed is not None)
    with jax.enable_x64(True):
        if text is None:
            solved = solve(problem)
            steps = walk(solved, None, _undivided(solved))
            return Sheet(title, " ".join(about), tuple(steps), blank=blank)
        ours = _suited(problem, text)
        usual = solve(ours.problem)
        if jax.tree.leaves(ours.params) and not _differ(ours, usual):
            ours = solve(ours.problem, ours.scheme, _moved(ours.params))
            about.append("At the start its parameters change nothing, so they are moved from there at random.")
        if (wide := ours.problem.query.shape[-1]) != problem.query.shape[-1]:
            about.append(f"The scheme asks for heads of {wide} features; those that are new are zero.")
        if ours.problem.trained:
            about.append(f"It is bound as trained on {ours.problem.trained} tokens, as fewer leave it nothing.")
        if ours.problem.causal and not problem.causal:
            about.append("The scheme is causal only, so a query sees what stands before it and itself.")
        if not _differ(ours, usual):
            about.append("It changes nothing here.")
        steps = walk(ours, usual, None)
    path = "" if problem.memory is not None else diagram(text)  # which is drawn for one sequence
    return Sheet(f"{title}, the same under {text}", " ".join(about), tuple(steps), path, blank=blank)


def solve(problem: Problem, scheme: Any = None, params: Any = None) -> Solved:
    """A problem with all its numbers in between; without a scheme, the form's own attention alone."""
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
    found = watch(scheme, params, q, k, v, x=x, key_x=key_x, causal=problem.causal, where=where)
    return Solved(problem, scheme, params, x, sources, found | {"q": q, "k": k, "v": v})


def _form(problem: Problem) -> Any:
    """What makes scores without any scheme."""
    return posenc.parse("nope") if problem.vector is None else AdditiveScore(tuple(map(float, problem.vector)))


def _suited(problem: Problem, text: str) -> Solved:
    """The problem under a scheme, with heads as wide as it asks for."""
    scheme = posenc.parse(text)
    if isinstance(scheme, Pattern):
        raise ValueError("A list is a pattern of layers; explain one layer's scheme at a time.")
    plain = normal_form(scheme).scheme
    _check(problem, text, plain)
    if "bidirectional" in plain.limits and problem.memory is None:
        problem = dataclasses.replace(problem, causal=True)
    own = problem.query.shape[-1]
    refused: ValueError | None = None
    for trained, width in itertools.product((None, LONGER), (w for w in WIDTHS if w >= own)):
        wide = dataclasses.replace(problem.wide(width), trained=trained)
        try:
            whole = scheme if wide.vector is None else add(_form(wide), scheme)
            return solve(wide, posenc.bind(whole, _dims(wide)))
        except ValueError as error:
            refused = error
    assert refused is not None
    raise refused


def _check(problem: Problem, text: str, plain: Any) -> None:
    """Refuse a scheme that this form has no place for."""
    if problem.memory is not None and "cross" in plain.limits:
        raise ValueError(f"{text} is undefined between two sequences, which --form {problem.form} has; {ONE}.")
    if problem.vector is not None and (
        any(s.precedence == "first" for s in parts(plain)) or plain.overrides("query", "key")
    ):
        raise ValueError(f"{text} acts on q·k, which --form additive does without; {ONE}.")


def _dims(problem: Problem) -> Dims:
    """Its sizes; half of its tokens were trained on, so that what schemes do beyond shows too."""
    heads, width, head = problem.query.shape
    count = max(len(problem.x), len(problem.sources))
    trained = problem.trained or max(2, count // 2)
    return Dims(width, heads, head, trained=trained, longest=max(count, trained), causal=problem.causal)


def _moved(params: Any) -> Any:
    draw = np.random.default_rng(0).normal

    def one(a):
        return a + MOVED * draw(size=a.shape) if jnp.issubdtype(a.dtype, jnp.floating) else a

    return jax.tree.map(one, params)


def _differ(ours: Solved, usual: Solved) -> bool:
    pairs = ((ours.x, usual.x), *((ours.found[n], usual.found[n]) for n in ("weights", "out")))
    return not all(np.allclose(a, b, rtol=1e-9, atol=1e-9) for a, b in pairs)


def _undivided(solved: Solved) -> dict[str, np.ndarray] | None:
    """What comes out of the introduction's numbers where nobody divides by √d_k, as introductions do."""
    problem = solved.problem
    if problem.form != "single" or problem.seed is not None or problem.causal:
        return None
    q, k, v = (solved.found[n] for n in "qkv")
    root = q.shape[-1] ** 0.5
    return watch(solved.scheme, solved.params, q * root, k, v, x=solved.x, causal=False)
