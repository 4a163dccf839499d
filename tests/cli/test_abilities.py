"""Abilities: what classes of tasks declare is read without importing them."""

import json

import posenc as package
from posenc.lab import tasks
from posenc.lab.spec.abilities import ABILITIES, ability_of
from posenc.lab.tasks.task import TASKS
from posenc.language.modules import declarations

OURS = [name for name in tasks.names() if TASKS.find(name).__module__.startswith("posenc.")]


def test_what_classes_declare_is_read_without_importing_them():
    assert sorted(declarations("lab.tasks")) == OURS and sorted(declarations("schemes")) == package.names()
    for name in OURS:
        task = tasks.parse(name)
        assert ability_of(name) == task.ability and task.ability in ABILITIES
    assert ability_of("shifted(task='count_symbol(most=4)', size=9)") == "counting" and ability_of("theirs(k=2)") == ""


def test_an_unknown_ability_names_those_that_exist(refuse):
    assert all(name in refuse("list", "tasks", "--ability", "countin") for name in ABILITIES)


def test_tasks_are_listed_by_ability(posenc):
    assert {row["name"]: row["ability"] for row in json.loads(posenc("list", "tasks", "--json").out)} == {
        name: tasks.parse(name).ability for name in tasks.names()
    }
    rows = json.loads(posenc("list", "tasks", "--ability", "sorting", "--json").out)
    assert [row["name"] for row in rows] == ["bucket_sort", "sort_labels", "sort_multi", "sort_single"]
    assert "use `posenc list tasks --ability`" in posenc("list", "schemes", "--ability", "sorting").err
