"""Real text, here of a file of 78 bytes: its last eight are the test part."""

from pathlib import Path

from tests.tasks.law import even

SMALL = Path(__file__).with_suffix(".txt")
OF_SMALL = f"text(file={str(SMALL)!r})"
TEST_PART = b"abcdefgh\n"[1:]


def windows(many):
    """Rows of size 2 that begin at the first so many places of the test part."""
    return even(tuple(TEST_PART[at : at + 3]) for at in range(many))


LAWS = {OF_SMALL: (2, windows, 6)}

PLANTED = [
    ("text", "text:Text.take", "row[:, 1:]", "row[:, :-1]", "oracle"),
    (OF_SMALL, "text:Text.take", "data.length - 1 - n", "data.length - n", "law"),
    (OF_SMALL, "text:Text.make", '"test"', '"train"', "law"),
]  # fmt: skip
