"""The pytest option `--golden`, and a third answer beside passed and failed: not covered."""

from collections import defaultdict

KEY = "golden_not_covered"


def pytest_addoption(parser):
    parser.addoption("--golden", metavar="DIR", help="the folder of golden files to compare with (tests/golden)")


def pytest_report_teststatus(report):
    if report.when == "call" and report.passed and KEY in dict(report.user_properties):
        return "not covered", "n", "NOT COVERED"
    return None


def pytest_terminal_summary(terminalreporter):
    families, counts = defaultdict(set), defaultdict(int)
    for report in terminalreporter.stats.get("not covered", []):
        family, _, reason = dict(report.user_properties)[KEY]
        families[reason].add(family)
        counts[reason] += 1
    for reason, found in families.items():
        number = f"{counts[reason]} case{'s' if counts[reason] > 1 else ''}"
        where = f"famil{'ies' if len(found) > 1 else 'y'} {', '.join(sorted(found))}"
        terminalreporter.write_line(f"golden: {number} of {where} not covered: {reason}")
