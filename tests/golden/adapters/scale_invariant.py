"""Scores under the transformation, and the two conditions that it was made for."""

from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np

import posenc
from tests.golden.case import Case, Check
from tests.golden.through import checks, run, scores

schemes = ("scale_invariant",)
NONE = {"layer": {}, "heads": {}}


def compare(case: Case) -> Iterator[Check]:
    scheme = posenc.parse(f"scale_invariant(tau={case.args['tau']!r})")
    yield from (_conditions if "distance" in case.arrays else _layer)(case, scheme)


def _layer(case: Case, scheme) -> Iterator[Check]:
    a = case.arrays
    first = lambda x: jnp.asarray(x).swapaxes(1, 2)  # noqa: E731
    f = lambda q, k, v: first(posenc.attend(scheme, NONE, first(q), first(k), first(v), positions=a["positions"]))  # noqa: E731
    yield from checks(case, ["q", "k", "v"], *run(f, a["cotangent"], a["q"], a["k"], a["v"]))
    length, repeat = len(a["positions"]), a["q"].shape[1] // a["k"].shape[1]
    one = np.broadcast_to(np.eye(length), (*a["k"].shape[:2], length, length))
    yield Check("weights", f(a["q"], a["k"], one), a["weights"], 1e-12)
    seen = np.tri(length, dtype=bool)
    for q, k, theirs in zip(a["q"], np.repeat(a["k"], repeat, 1), a["scores"], strict=True):
        ours = scores(
            scheme, NONE, first(q[None])[0], first(k[None])[0], positions=a["positions"], key_positions=a["positions"]
        )
        yield Check("scores", np.where(seen, ours, 0), np.where(seen, theirs, 0), 1e-12)


def _conditions(case: Case, scheme) -> Iterator[Check]:
    """a and m are what becomes of scores of 1 and 0; a normal score s has E exp(a s + m) = exp(a²/2 + m)."""
    a = case.arrays
    place = lambda s: _score(scheme, s, a["distance"])  # noqa: E731
    m = place(0.0)
    stretch = place(1.0) - m
    yield Check("a", stretch, a["a"], 1e-12)
    yield Check("m", m, a["m"], 1e-12)
    weight = np.exp(stretch**2 / 2 + m)
    yield Check("expected_weight, relative", weight / a["expected_weight"], np.ones(len(m)), 1e-10)
    scored = weight * (stretch**2 + m)
    yield Check("expected_weighted_score, relative", scored / a["expected_weighted_score"], np.ones(len(m)), 1e-10)
    totals = []
    for start in a["decade_from"].tolist():
        far = np.arange(start, 10 * start)
        low = _score(scheme, 0.0, far)
        totals.append(np.exp((_score(scheme, 1.0, far) - low) ** 2 / 2 + low).sum())
    yield Check("decade_total, relative", np.array(totals) / a["decade_total"], np.ones(len(totals)), 1e-10)
    limit = np.exp(0.5) * case.args["tau"] * np.log(10)
    yield Check("decade_limit", np.array([limit]), a["decade_limit"], 1e-10)
    yield Check("the last decade is near the limit", np.array(totals[-1:]) / limit, np.ones(1), 1e-2)


def _score(scheme, s, distance):
    places = jnp.asarray(distance)
    zero, none = jnp.full((1, len(places)), s), jnp.zeros(1, jnp.int32)
    tile = posenc.Tile(none, places, places[None], zero, 1.0, zero == zero, none, places, jnp.int32(0), 1)
    return np.asarray(scheme.score({}, zero, tile))[0]
