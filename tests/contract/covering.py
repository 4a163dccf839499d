"""Which schemes hold the whole contract by day, computed from the registry: few that show every trait that there is.

What only the engine decides (caches, packing, padding, precision) is the same code for all schemes that share their
traits. Another scheme shows by day what is its own (`OWN`) where its code changed since it was recorded, and the whole
contract at night, under `--record`, and in `.ci/run` where its code or the engine's changed (`--unverified`).
"""

from collections.abc import Iterable
from typing import Any

import jax

import posenc
from posenc.contract import DIMS
from posenc.core.scheme import SCHEMES

HOOKS = """carry neighbour_carry scale embed neighbours locate query key value score normalize value_bias output
    lookup""".split()
OWN = (
    "it_is_a_value",
    "its_text_names_it",
    "its_samples_build",
    "parameters_are_as_declared",
    "embed_reads_shared_parameters",
    "locate_reads_as_declared",
    "wrong_positions_are_refused",
    "real_positions_serve_or_are_refused",
    "scores_read_what_is_declared",
    "scores_do_not_look_beyond_their_tile",
    "extra_is_linear",
    "weights_are_zero_where_nothing_is_seen",
    "documents_do_not_leak",
    "padding_changes_nothing",
    "nan_in_padding_stays_there",
    "rows_that_see_nothing_are_zero",
    "tokens_and_positions_permute_together",
    "gradients_are_those_of_the_function",
    "gradients_hold_at_distance_zero",
    "scores_of_the_future_are_finite",
    "queries_and_keys_are_rounded_once",
    "scores_are_single_precision",
    "products_keep_their_digits",
)
"""Properties by day of every changed scheme: two programs and what needs none."""


def traits(scheme: Any) -> set[str]:
    """What the engine can treat a scheme by: what it reads, its hooks, limits, axes and parameters."""
    bound = posenc.bind(scheme, DIMS)
    found = {f"reads {bound.reads}", f"{bound.axes} axes"}
    found |= {f"limit {name}" for name in bound.limits} | {hook for hook in HOOKS if bound.overrides(hook)}
    found |= {name for name in ("contextual", "positional") if getattr(bound, name)}
    made = jax.eval_shape(lambda key: posenc.init(bound, key, DIMS), jax.random.key(0))
    return found | {f"parameters of {part}" for part in ("layer", "heads") if made[part]}


def covering(schemes: dict[str, Any]) -> list[str]:
    """Names of few schemes that have every trait among them; the same set whatever the order."""
    left = {name: traits(scheme) for name, scheme in sorted(schemes.items())}
    missing, chosen = set().union(*left.values()), []
    while missing:
        best = max(left, key=lambda name: len(left[name] & missing))
        missing -= left[best]
        chosen.append(best)
    return chosen


def registered(names: Iterable[str] = ()) -> dict[str, Any]:
    """Schemes of the registry as they stand."""
    return {name: SCHEMES.find(name)() for name in names or posenc.names()}
