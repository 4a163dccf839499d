"""Words in groups. S3 in lexical order: 0 is the identity, 1 exchanges 1 and 2, 2 exchanges 0 and 1, 3 is 0→1→2→0."""

from tests.tasks.law import strings

LAWS = {"word_problem(group='S3')": (3, strings(6), 3), "word_problem(group='Z2')": (5, strings(2), 5)}

PLANTED = [
    # the newest factor stands on the left: b · a⁻¹
    ("word_problem(group='S3')", "groups:_steps", "inverse[:, p]", "p[:, inverse].swapaxes(0, 1)", "oracle"),
]  # fmt: skip
