"""The groups are the ones they are called, and a parity is what counting says."""

from itertools import product

import numpy as np
import pytest

from posenc.lab.tasks.groups import GENERATORS, elements

ORDERS = {"Z2": 2, "S3": 6, "Z60": 60, "A4xZ5": 60, "A5": 60, "S5": 120}


def times(a, b):
    return tuple(a[i] for i in b)


def derived(members):
    """The subgroup that commutators generate."""
    back = {a: tuple(np.argsort(a).tolist()) for a in members}
    seeds = {times(times(a, b), times(back[a], back[b])) for a, b in product(members, repeat=2)}
    found = new = {min(members)}
    while new:
        new = {times(a, b) for a in new for b in seeds} - found
        found = found | new
    return found


def test_every_group_has_its_order_and_its_identity_first():
    assert {group: len(elements(group)) for group in GENERATORS} == ORDERS
    assert all(elements(group)[0] == tuple(range(len(elements(group)[0]))) for group in GENERATORS)


@pytest.mark.parametrize(
    ("group", "orders"), [("Z2", [1]), ("S3", [3, 1]), ("Z60", [1]), ("A4xZ5", [4, 1]), ("A5", [60]), ("S5", [60, 60])]
)
def test_groups_are_commuting_solvable_or_not_as_their_names_say(group, orders):
    """The series of derived subgroups ends at the identity if and only if a group is solvable."""
    members, found = set(elements(group)), []
    for _ in orders:
        members = derived(members)
        found.append(len(members))
    assert found == orders


def test_the_one_of_60_that_commutes_is_one_cycle():
    (g,) = GENERATORS["Z60"]
    powers, a = [], g
    while a not in powers:
        powers.append(a)
        a = times(a, g)
    assert len(powers) == 60
