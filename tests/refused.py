"""Settings that are refused, as a table: `name: setting=value; setting=value, other=value`, a line for each name."""

import re

import pytest


def rows(table):
    """The name and the settings of each entry."""
    lines = (line.split(": ", 1) for line in table.strip().splitlines())
    return [(name, given) for name, every in lines for given in every.split("; ")]


def check_refused(parse, name, given):
    """The text is refused with its name and one of the settings with its value."""
    with pytest.raises(ValueError, match=name) as refusal:
        parse(f"{name}({given})")
    said, settings = str(refusal.value), (one.split("=", 1) for one in re.split(r", (?=\w+=)", given))
    assert any(key in said and value.strip("'") in said for key, value in settings)
    assert said.endswith((".", "?")) and "\n" not in said
