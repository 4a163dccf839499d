"""What is known of tasks, worked out by hand, a file for each family; every check of `tests/tasks` reads it from here.

LAWS         text: (size, law, bound): `law(bound)` is the exact distribution of prompts at that size, `bound` the
             number that an inclusive end would make one larger
VARIED       names or texts of tasks whose text varies in length at one size; others are as long as `tokens` says
PLANTED      (text, function of posenc.lab.tasks, a piece of its source, what replaces it, which check must see it):
             "oracle"; "law", which is that text's of LAWS; "leak"; or "form", of a batch
"""

import importlib
import pkgutil

FAMILIES = {m.name: importlib.import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__)}


def _lists(name):
    return [entry for family in FAMILIES.values() for entry in getattr(family, name, [])]


def _dicts(name):
    return {key: value for family in FAMILIES.values() for key, value in getattr(family, name, {}).items()}


LAWS, VARIED, PLANTED = _dicts("LAWS"), _lists("VARIED"), _lists("PLANTED")
