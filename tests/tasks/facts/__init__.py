"""What is known of tasks, worked out by hand, a file for each family; every check of `tests/tasks` reads it from here.

EXAMPLES     (text, prompt, answer), token ids
LAWS         text: (size, law, bound): `law(bound)` is the exact distribution of prompts at that size, `bound` the
             number that an inclusive end would make one larger
FLOORS       name: f(task, size) -> (prior, position); None where it is not known; left out where both are uniform
BAGS         name: f(task, size) -> the floor `bag`; None where it is not known; of every task with a `cue`
FLOOR_SIZES  name: the sizes at which floors are compared, unless the usual ones
VARIED       names or texts of tasks whose text varies in length at one size; others are as long as `tokens` says
BROKEN       (text, size, module of posenc.tasks, name in it, what to put there): the oracle must see it
PLANTED      (text, function, a piece of its source, what replaces it, which check must see it), as in `tests.planting`:
             "oracle"; "law", which is that text's of LAWS; "leak"; or "form", of a batch
"""

import importlib
import pkgutil

FAMILIES = {m.name: importlib.import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__)}


def _lists(name):
    return [entry for family in FAMILIES.values() for entry in getattr(family, name, [])]


def _dicts(name):
    return {key: value for family in FAMILIES.values() for key, value in getattr(family, name, {}).items()}


EXAMPLES, VARIED = _lists("EXAMPLES"), _lists("VARIED")
BROKEN, PLANTED = _lists("BROKEN"), _lists("PLANTED")
LAWS, FLOORS, FLOOR_SIZES = _dicts("LAWS"), _dicts("FLOORS"), _dicts("FLOOR_SIZES")
BAGS = _dicts("BAGS")
