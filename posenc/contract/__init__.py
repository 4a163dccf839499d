"""The properties that every scheme must have: `posenc.check(scheme)` runs them and reports what it found.

Each property is a function of a `Case` that returns an `Outcome`; a property is added by adding it to the table. Small
sizes and float64: a property that holds does so to rounding, and one that fails does so by far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import jax

from posenc.contract import decoding, gradients, masking, order, precision, purity, reads, together
from posenc.contract.case import DIMS, LONGEST, Case
from posenc.contract.report import Finding, Outcome, Report
from posenc.core.compose import normal_form
from posenc.core.scheme import Dims, check_dims
from posenc.naming import scheme_of, spec

__all__ = ["PROPERTIES", "Case", "Finding", "Outcome", "Report", "check", "examine"]

PROPERTIES: dict[Callable[[Case], Outcome], str] = {
    purity.no_state_is_kept: "G16",
    purity.it_is_a_value: "G18",
    purity.its_text_names_it: "",
    purity.its_samples_build: "",
    purity.parameters_are_as_declared: "G18",
    purity.embed_reads_shared_parameters: "",
    purity.compiled_equals_op_by_op: "G1",
    purity.parameter_sets_stack: "G2",
    purity.implied_positions_are_the_index: "G9",
    purity.locate_reads_as_declared: "",
    together.hooks_run_once_in_order: "",
    together.sums_run_in_order: "",
    together.grouped_queries_equal_repeated_keys: "",
    together.wrong_positions_are_refused: "",
    together.real_positions_serve_or_are_refused: "",
    reads.scores_read_what_is_declared: "",
    reads.scores_do_not_look_beyond_their_tile: "",
    reads.extra_is_linear: "",
    reads.weights_are_zero_where_nothing_is_seen: "",
    masking.the_future_is_unseen: "G7",
    masking.packed_equals_separate: "G5",
    masking.documents_do_not_leak: "G5",
    masking.padding_changes_nothing: "G6",
    masking.padding_inside_is_passed_over: "G6",
    masking.padding_ends_no_document: "G6",
    masking.nan_in_padding_stays_there: "G6",
    masking.rows_that_see_nothing_are_zero: "G13",
    masking.examples_are_independent: "G14",
    masking.a_block_of_queries_is_part_of_the_square: "G15",
    order.without_positions_order_is_unseen: "G8",
    order.with_positions_order_is_seen: "G8",
    order.tokens_and_positions_permute_together: "G8",
    order.tokens_stay_where_positions_say: "G7",
    decoding.cached_decoding_equals_the_full_forward: "G4",
    decoding.cached_decoding_takes_positions: "G4",
    gradients.gradients_are_those_of_the_function: "G11",
    gradients.gradients_hold_at_distance_zero: "G11",
    gradients.far_positions_are_finite: "G17",
    gradients.scores_of_the_future_are_finite: "",
    precision.bfloat16_loses_no_position: "G12",
    precision.queries_and_keys_are_rounded_once: "G12",
    precision.scores_are_single_precision: "G12",
    precision.products_keep_their_digits: "G12",
}
"""Every property, and its number among the invariants where it has one."""
OF_HOOKS = {
    purity.locate_reads_as_declared,
    reads.scores_read_what_is_declared,
    reads.scores_do_not_look_beyond_their_tile,
    reads.extra_is_linear,
    reads.weights_are_zero_where_nothing_is_seen,
    gradients.scores_of_the_future_are_finite,
    precision.queries_and_keys_are_rounded_once,
    precision.scores_are_single_precision,
    precision.products_keep_their_digits,
}
"""Properties of single hooks: where heads belong to several schemes, they are asked of each."""


def check(scheme: Any, dims: Dims | None = None, *, only: str | Iterable[str] | None = None) -> Report:
    """Check whether a scheme has the properties that every scheme must have. The report prints as a table, and `.ok` is
    True if it has them.

    `only` names properties, or the numbers of invariants ("G7"). The sizes may be changed by `dims`, which should stay
    small: work grows with them, and certainty does not. Tables have at least 64 rows, since 64 tokens are run; causal
    and full masks and grouped queries are always tried, so `dims` leaves them out. Coordinates are not checked. Raises
    `ValueError` where the scheme does not fit the sizes, and for a window, which has no hooks.

    >>> import posenc
    >>> posenc.check("rope", only="the_future_is_unseen").ok
    True
    """
    scheme, properties, dims = scheme_of(scheme), _select_properties(only), DIMS if dims is None else dims
    _check_sizes(scheme, dims)
    with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
        case = Case(scheme, dims)
        findings = tuple(Finding(f.__name__, tag, examine(f, case)) for f, tag in properties)
    return Report(_shown(case), findings)


def _check_sizes(scheme: Any, dims: Any) -> None:
    """Refuse sizes that would fail a correct scheme, and a window, which would not be checked."""
    check_dims(dims)
    if (keys := normal_form(scheme).window) is not None:
        raise ValueError(f"window({keys}) narrows the mask and has no hooks; check the scheme alone.")
    if normal_form(scheme).unplaced is not None:
        raise ValueError("unplaced names tokens and has no hooks; check the scheme alone.")
    if dims.table < LONGEST:
        raise ValueError(f"A check runs {LONGEST} tokens, more than {dims.table}; use Dims(..., longest={LONGEST}).")
    if not dims.causal or dims.key_heads not in (None, dims.heads):
        raise ValueError(
            "A check tries causal and full masks and grouped queries itself; leave causal and key_heads out of dims."
        )


def examine(f: Callable[[Case], Outcome], case: Case) -> Outcome:
    """Return the outcome of one property; an exception is a failure, for hooks may raise anything."""
    with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
        try:
            return _worst([f(each) for each in (case.shares if f in OF_HOOKS else (case,))])
        except Exception as fault:
            first = str(fault).strip().split("\n")[0]
            return Outcome(False, reason=f"{type(fault).__name__}: {first}")


def _worst(outcomes: list[Outcome]) -> Outcome:
    """Return the failure among several outcomes, or else the one with the largest figure."""
    rank = {False: 2, True: 1, None: 0}
    return max(outcomes, key=lambda outcome: (rank[outcome.holds], outcome.figure or 0.0))


def _select_properties(only: str | Iterable[str] | None) -> list[tuple[Callable[[Case], Outcome], str]]:
    if only is None:
        return list(PROPERTIES.items())
    requested = {only} if isinstance(only, str) else set(only)
    names = {f.__name__ for f in PROPERTIES} | set(PROPERTIES.values()) - {""}
    if unknown := sorted(requested - names):
        raise ValueError(f"No property is called {', '.join(unknown)}; choose from {', '.join(sorted(names))}.")
    return [(f, tag) for f, tag in PROPERTIES.items() if {f.__name__, tag} & requested]


def _shown(case: Case) -> str:
    """The scheme's text, or its class where it has none."""
    try:
        return spec(case.unbound)
    except (AttributeError, TypeError):
        return type(case.unbound).__name__
