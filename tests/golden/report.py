"""The pytest option `--golden`, and a third answer beside passed and failed: not covered."""

from collections import Counter

KEY = "golden_not_covered"


def pytest_addoption(parser):
    parser.addoption("--golden", metavar="DIR", help="the folder of golden files to compare with (tests/golden)")


def pytest_report_teststatus(report):
    if report.when == "call" and report.passed and KEY in dict(report.user_properties):
        return "not covered", "n", "NOT COVERED"
    return None


def pytest_terminal_summary(terminalreporter):
    reports = terminalreporter.stats.get("not covered", [])
    if not reports:
        return
    said = [dict(r.user_properties)[KEY] for r in reports]
    whole, single = Counter(), []
    for family, case, reason in said:
        if reason.startswith(("the family", "no scheme")):
            whole[family] += 1
        else:
            single.append(f"golden: {family}-{case} not covered: {reason}")
    if whole:
        line = f"golden: {sum(whole.values())} cases of families {', '.join(sorted(whole))} not covered"
        terminalreporter.write_line(line)
    for line in single:
        terminalreporter.write_line(line)
