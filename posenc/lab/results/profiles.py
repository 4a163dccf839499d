"""Performance profiles: the share of a scheme's runs with a score above τ, at every τ (Agarwal et al., 2021).

A profile shows all runs at once, where a mean hides whether all are fair or half of them perfect. Scores are those of
`control`: 0 at the highest floor, 1 where all is right. Each task counts alike, however many runs it has. Without jax.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from posenc.lab.results.control import Runs, bootstrap, interquartile_mean, shared
from posenc.lab.results.results import Results

TAUS = np.arange(101) / 100
"""Each is the float nearest to its hundredth, as scores are, so that a score of 0.6 is not above 0.6."""


@dataclass(frozen=True)
class Profile:
    """The runs of one scheme on all tasks that every scheme ran."""

    scheme: str
    tasks: tuple[str, ...]
    n: int
    """Runs of a task, at least."""
    above: Float[np.ndarray, " taus"]
    """The share of runs with a score above each of `TAUS`, the mean over tasks."""
    interval: tuple[Float[np.ndarray, " taus"], Float[np.ndarray, " taus"]] | None
    """95 % at each τ by a bootstrap over runs, stratified by task; None below six runs of a task."""
    middle: float
    """The interquartile mean of the scores."""


def profiles(results: Results) -> tuple[Profile, ...]:
    """The profile of every scheme, the highest interquartile mean first."""
    made = [_profile(scheme, runs) for scheme, runs in shared(results).items()]
    return tuple(sorted(made, key=lambda profile: (-profile.middle, profile.scheme)))


def above(samples: Sequence[Float[np.ndarray, "draws n"]]) -> Float[np.ndarray, "draws taus"]:
    """The share of scores above each of `TAUS`, the mean over tasks, of many draws of the runs of each task."""
    each = [1 - _at_most(scores) / scores.shape[1] for scores in samples]
    return np.mean(each, axis=0)


def _profile(scheme: str, runs: Runs) -> Profile:
    shares = above([np.array(scores, float)[None] for scores in runs.values()])[0]
    n = min(len(scores) for scores in runs.values())
    return Profile(scheme, tuple(runs), n, shares, bootstrap(above, runs), interquartile_mean(runs))


def _at_most(samples: Float[np.ndarray, "draws n"]) -> Float[np.ndarray, "draws taus"]:
    """How many of each draw are at most each of `TAUS`, run by run, since all at once would need much memory."""
    counts = np.zeros((len(samples), len(TAUS)))
    for scores in samples.T:
        counts += scores[:, None] <= TAUS
    return counts
