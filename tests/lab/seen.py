"""Claims for the tests of verdicts: seen in the paper, unless a claim says otherwise or is ours."""

from posenc.lab.results import published


def Published(*args, **more):
    return published.Published(*args, **_seen(more))


def Order(*args, **more):
    return published.Order(*args, **_seen(more))


def _seen(more):
    return more if more.get("origin") == "ours" else {"seen": "paper", **more}
