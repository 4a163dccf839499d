"""Words in groups. S3 in lexical order: 0 is the identity, 1 exchanges 1 and 2, 2 exchanges 0 and 1, 3 is 0→1→2→0."""

import numpy as np

from posenc.lab.tasks import groups
from tests.tasks.law import strings

LAWS = {"word_problem(group='S3')": (3, strings(6), 3), "word_problem(group='Z2')": (5, strings(2), 5)}


def in_the_wrong_order(group, steps=groups._steps):
    """The element that leads from a to b if the newest factor stood on the left: b · a⁻¹."""
    p = np.array(groups.elements(group))
    number = {tuple(row): i for i, row in enumerate(p.tolist())}
    back = np.argsort(p, axis=1)
    return np.array([[number[tuple(b[a].tolist())] for b in p] for a in back])


BROKEN = [("word_problem(group='S3')", 8, "groups", "_steps", in_the_wrong_order)]
