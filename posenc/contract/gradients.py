"""Gradients are those of the function, and finite wherever it is."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from posenc.contract.case import LENGTH, Case, CaseInputs
from posenc.contract.report import Outcome, absent, finite, holds_if
from posenc.core.compose import parts

STEP = 1e-5
BOUND = 1e-7
FAR = np.array([0, 1, 2, 3, 7, 100, 1000, 4095, 65536, 2**17, 2**20 - 1, 2**20], np.int32)


def gradients_are_those_of_the_function(case: Case) -> Outcome:
    """Directional derivatives of parameters and inputs = central differences, where positions are distinct."""
    return _compare(case, 3 * case.index)


def gradients_hold_at_distance_zero(case: Case) -> Outcome:
    """Check gradients at equal positions."""
    return _compare(case, np.full(LENGTH, 3))


def _compare(case: Case, places: np.ndarray) -> Outcome:
    by_params, by_inputs = case.pull(case.weight, positions=places)
    names = ["parameters", *CaseInputs._fields] if jax.tree.leaves(by_params) else [*CaseInputs._fields]
    still = frozenset().union(*(s.frozen for s in parts(case.scheme)))
    if moved := sorted({k for k, g in _named(by_params) if k in still and np.any(g)}):
        return Outcome(False, reason=f"{', '.join(moved)} is declared frozen and has a gradient")
    worst = ("", 0.0)
    for n, name in enumerate(names):
        direction = _direction(case.params if name == "parameters" else getattr(case.inputs, name), n, still)
        gradient = by_params if name == "parameters" else getattr(by_inputs, name)
        slope = sum(
            float((g * d).sum()) for g, d in zip(jax.tree.leaves(gradient), jax.tree.leaves(direction), strict=True)
        )
        ahead, behind = (_along(case, name, direction, places, step) for step in (STEP, -STEP))
        difference = (ahead - behind) / (2 * STEP)
        apart = abs(slope - difference) / max(1.0, abs(difference))
        worst = max(worst, (name, np.inf if np.isnan(apart) else apart), key=lambda pair: pair[1])
    return Outcome(worst[1] <= BOUND, worst[1], "" if worst[1] <= BOUND else f"in the direction of {worst[0]}")


def _along(case: Case, name: str, direction, places, step: float) -> float:
    moved = lambda a: jax.tree.map(lambda b, d: b + step * d, a, direction)  # noqa: E731
    if name == "parameters":
        out = case.output(p=moved(case.params), positions=places)
    else:
        out = case.output(case.inputs._replace(**{name: moved(getattr(case.inputs, name))}), positions=places)
    return float((out * case.weight).sum())


def _direction(tree, seed: int, still: frozenset[str]):
    """A direction in which everything moves that is not frozen."""
    rng = np.random.default_rng(seed)
    moves = [rng.normal(size=a.shape) / np.sqrt(a.size) * (name not in still) for name, a in _named(tree)]
    return jax.tree.unflatten(jax.tree.structure(tree), moves)


def _named(tree) -> list[tuple[str, np.ndarray]]:
    """Every array with the name of its parameter, or an empty one."""
    named = jax.tree_util.DictKey
    return [
        (next((str(k.key) for k in reversed(path) if isinstance(k, named)), ""), a)
        for path, a in jax.tree_util.tree_leaves_with_path(tree)
    ]


def far_positions_are_finite(case: Case) -> Outcome:
    """Outputs in float32, and gradients, at positions up to 2^20."""
    if why := case.admits(FAR):
        return absent(why)
    single = jax.tree.map(lambda a: np.asarray(a, np.float32), (case.params, case.inputs))
    if not finite(case.output(single[1], single[0], positions=FAR)):
        return Outcome(False, reason="not every output is finite")
    return holds_if(finite(case.pull(case.weight, positions=FAR)), "not every gradient is finite")


def scores_of_the_future_are_finite(case: Case) -> Outcome:
    """Before any mask, `score` and its gradient are finite for keys that come after the query."""
    if not case.scheme.overrides("score") or case.scheme.reads == "heads":
        return absent("it has no score hook" if case.scheme.reads != "heads" else "it reads all heads at once")

    @case.jit
    def score_and_gradient(a):
        p, tile = case.tile(case.dims.heads - 1, a)
        s, pull = jax.vjp(lambda p, s: case.scheme.score(p, s, tile._replace(logits=s)), p, tile.logits)
        return s, pull(jnp.ones_like(s))

    return holds_if(finite(score_and_gradient(case.inputs)), "the score of a future key, or a gradient, is not")
