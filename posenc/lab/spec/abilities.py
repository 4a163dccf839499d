"""Abilities: what a task needs of positions. Each task names the one it is about; read without importing tasks, or jax.

A task that shows another one in its own way (`shifted`) has the ability of that one.
"""

from __future__ import annotations

import ast

from posenc.language import grammar
from posenc.language.modules import declarations

ABILITIES = {
    "offset": "the token a given number of positions away, or how many positions away a token is",
    "index": "what stands at an index, counted from the beginning, or at which index something stands",
    "order": "which of two comes first",
    "counting": "how many there are, also modulo a number",
    "copying": "the same tokens again: in their order, backwards or in another order",
    "sorting": "items in the order of their values",
    "arithmetic": "sums, products and other values of numbers written in digits",
    "recall": "a token found by what it is or follows, wherever it stands",
    "state": "a state that tokens change one after another",
    "language": "which symbol comes next in a text",
}
"""Ability to what is asked for."""
TASKS = "lab.tasks"


def ability_of(task: str) -> str:
    """Return the ability of a task of ours, by its text: `count_symbol(most=8)` has "counting". Other tasks have "".

    >>> ability_of("shifted(task='count_symbol')")
    'counting'
    """
    source = _attribute_source(grammar.read(task), "ability")
    return ast.literal_eval(source) if source else ""


def _attribute_source(task: grammar.Tree, attribute: str) -> str:
    """Return the value of a task's class attribute, as source text. For `shifted` it is that of the task in its
    setting."""
    body = declarations(TASKS).get(task.name, {}) if isinstance(task, grammar.Call) else {}
    if attribute not in body or "self.inner" not in body[attribute]:
        return body.get(attribute, "")
    inner = dict(zip(("task",), task.positional, strict=False)) | dict(task.settings)
    return _attribute_source(grammar.read(inner.get("task", ast.literal_eval(body["task"]))), attribute)
