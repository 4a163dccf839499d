"""Forms that the authors' code has beside those of their papers: KERPLE without a bias, GRAPE-AP with tied features."""

from tests.golden.adapters import grape, kerple

schemes = ("kerple", "grape_ap")


def compare(case):
    yield from (kerple if "kind" in case.args else grape).compare(case)
