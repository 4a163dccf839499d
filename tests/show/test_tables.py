"""Tables say every number with its n, and the same results give the same bytes."""

import csv
import io
import json
import re
from dataclasses import replace

import pytest

from posenc.lab.figures import tables
from posenc.lab.figures.fitting import Columns
from posenc.lab.results.results import Results, load
from tests.lab import made
from tests.test_docs import EXPERIMENTS

RECORDS = EXPERIMENTS / "records"
ALIBI, ROPE = "0.58 [0.10–0.59]", "0.69 [0.68–0.70]"
SPREAD = "the range over runs (fewer than 6, so no interval)"
FALLING = "the loss fell by more than 10% over the last half of the steps, and by more than it scatters"
HOLDS = "90% to: the largest size up to which every median is at least 0.9."
DASHES = "─" * 16
TEXT = f"""\
task  scheme    n  done  diverged  failed     lr  90% to  8*                16*               24                32
────  ────────  ─  ────  ────────  ──────  ─────  ──────  ────────────────  ────────────────  ────────────────  {DASHES}
copy  alibi     3     2         1       1  0.001      16  1.00 [0.10–1.00]  1.00 [0.10–1.00]  0.68 [0.10–0.69]  {ALIBI}
      rope      3     3         0       0  0.001      16  1.00 [1.00–1.00]  1.00 [1.00–1.00]  0.79 [0.78–0.80]  {ROPE}
      baseline                                            0.20              0.20              0.20              0.20

Median of runs; token accuracy. Brackets: {SPREAD}. * sizes trained on. {HOLDS}
Trials: 5 done, 1 diverged (each counted as a uniform guess), 1 failed (left out).
Still falling when training ended ({FALLING}): alibi 50%, rope 50%.
"""


def results():
    alibi = made.rope(label="alibi", family="linear", drop=0.2)
    alibi["trials"][0] |= {"outcome": "diverged", "evaluations": {}}
    rope = made.rope()
    for trial in (*alibi["trials"], *rope["trials"]):
        trial["curve"] = {"step": [1, 5, 10], "loss": [2.0, 1.0, 0.5]}
    lost = [{**line, "outcome": "oom"} for line in made.plan(made.rope((9,), label="alibi", family="linear"), "g")]
    return made.results("made", (rope, alibi), tuple(lost))


def test_the_text_table():
    assert tables.table(results()) == TEXT


@pytest.mark.parametrize("format", ["text", "csv", "md", "latex", "json"])
def test_equal_results_give_equal_bytes_and_no_time_enters(format):
    when = {"seconds": {"train": 99.0}, "ended": "2030", "host": "there", "lanes": "vmap"}
    found = results()
    records = (replace(r, provenance=r.provenance | when, trials=r.trials[::-1]) for r in reversed(found.records))
    other = Results("other", tuple(records), found.unfinished)
    assert tables.table(other, format) == tables.table(found, format)


def test_csv_has_full_precision_and_no_formula():
    record = made.rope((0,), label="+x")
    (row,) = csv.DictReader(io.StringIO(tables.table(made.results("a", (record,)), "csv")))
    assert row["scheme"] == "'+x" and row["n"] == "1" and float(row["24"]) == 0.8 and row["spread"] == "range"
    rows = list(csv.DictReader(io.StringIO(tables.table(results(), "csv"))))
    assert (rows[0]["32"], rows[0]["32 low"], rows[0]["32 high"]) == ("0.58", "0.1", "0.59")


def test_json_holds_every_run():
    said = json.loads(tables.table(results(), "json"))
    alibi = said["rows"][0]
    assert alibi["sizes"]["32"]["values"] == [0.1, 0.59, 0.58] and alibi["sizes"]["32"]["spread"] == "range"
    assert alibi["outcomes"] == {"diverged": 1, "done": 2, "oom": 1}
    assert said["notes"] == TEXT.splitlines()[-3:]


def test_latex_is_booktabs_with_everything_escaped():
    record = made.rope((0,), task="a_b")
    record["label"] = "x & {y} ~ 5% \\ #$^"
    text = tables.table(made.results("a", (record,)), "latex", Columns(sizes=(8, 16)))
    assert text.startswith("% The preamble needs \\usepackage{booktabs,adjustbox}.\n")
    assert "\n\\multicolumn{6}{l}{a\\_b} \\\\\n" in text
    row = next(line for line in text.splitlines() if line.startswith("x"))
    escaped = r"x \& \{y\} \textasciitilde{} 5\% \textbackslash{} \#\$\textasciicircum{}"
    assert row.startswith(rf"{escaped} & 1 & 0.001 & 16 & 1.00 & 1.00") and row.endswith(r"\\")
    assert [text.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1, 1, 1]


LABELS = ["[rope, nope]", "[a] (width=8)", "*", "a<b", "a>b|c", "rope"]


def test_no_row_of_latex_begins_with_what_belongs_to_the_end_of_the_row_before():
    """`\\\\` and `\\midrule` take an option in brackets, and `\\\\` a star, on the next line too."""
    records = [made.rope(label=label, task=task) for label in LABELS for task in ("[copy]", "sort")]
    text = tables.table(made.results("a", records), "latex", Columns(sizes=(16,)))
    lines = text.splitlines()
    assert not [line for line in lines if line.startswith(("[", "*"))]
    rows = [line.partition(" & ")[0] for line in lines if " & " in line and not line.startswith("scheme")]
    protected = ["{[}rope, nope]", "{[}a] (width=8)", "{*}", r"a\textless{}b", r"a\textgreater{}b\textbar{}c", "rope"]
    assert sorted(rows) == sorted(2 * protected) and r"\multicolumn{5}{l}{{[}copy]}" in text


def test_markdown_escapes_what_would_be_a_tag_or_a_column():
    records = [made.rope(label=label, task="a<i>") for label in ["x<b>|y", "`z`"]]
    lines = tables.table(made.results("a", records), "md").splitlines()
    cells = [line.split(" | ") for line in lines if line.startswith("|")]
    assert {len(row) for row in cells} == {len(cells[0])}
    assert [row[:2] for row in cells[2:]] == [["| a\\<i>", "\\`z\\`"], ["| a\\<i>", "x\\<b>\\|y"]]
    assert not re.search(r"(?<!\\)<", "\n".join(lines))


def test_latex_counts_outcomes_only_if_a_trial_is_not_done():
    few = Columns(sizes=(16,))
    done = made.results("a", (made.rope(),))
    assert r"scheme & n & lr & 90\% to & 16* \\" in tables.table(done, "latex", few)
    assert r"scheme & n & done & diverged & failed & lr & 90\% to & 16* \\" in tables.table(results(), "latex", few)


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_a_text_fits_its_width_and_loses_no_number(width):
    found = load(RECORDS / "first_look.json").shown()
    whole, text = tables.table(found), tables.table(found, columns=Columns(width=width))
    assert max(map(len, whole.splitlines())) > 170 and max(map(len, text.splitlines())) <= width
    cell = re.compile(r"\d\.\d\d \[\d\.\d\d–\d\.\d\d\]")
    assert sorted(cell.findall(text)) == sorted(cell.findall(whole)) and len(cell.findall(text)) == 84
    assert " ".join(text.split()).endswith(" ".join(whole.rpartition("\n\n")[2].split())), "the notes, wrapped"
    for line in tables.table(found, columns=Columns(width=10**6)).splitlines():
        assert line in whole.splitlines()


def test_rows_of_a_broken_text_are_those_of_their_schemes():
    text = tables.table(made.results("a", (made.rope(), made.rope(label="alibi", drop=0.3))), columns=Columns(width=62))
    assert text.startswith("copy\nscheme    n     lr  90% to  8*                16*\n────────  ─  ─────  ──────  ───")
    first, second = text.split("\n\n")[:2]
    assert first.splitlines()[3] == "alibi     3  0.001      16  1.00 [1.00–1.00]  1.00 [1.00–1.00]"
    assert second.splitlines()[0] == "scheme    24                32"
    assert second.splitlines()[2:] == [
        "alibi     0.59 [0.58–0.60]  0.49 [0.48–0.50]",
        f"rope      0.79 [0.78–0.80]  {ROPE}",
        "baseline  0.20              0.20",
    ]


def test_a_name_that_is_too_long_is_broken_beside_its_numbers():
    record = made.rope()
    record["label"] = "rope @ random_sorted(limit=512, resample='layer')"
    lines = tables.table(made.results("a", (record,)), columns=Columns(width=70)).splitlines()
    assert lines[3].startswith("rope @ random_sorted(") and "1.00" in lines[3] and lines[4].strip() == "limit=512,"
    assert max(map(len, lines)) <= 70


def test_sizes_and_spreads_are_chosen_in_every_format():
    other = made.record("rope", "rotary", "sort", [made.trial("rope", "sort", 0, {16: 1.0, 40: 0.5})], sizes=(16, 40))
    found, few = made.results("a", (made.rope(), other)), Columns(sizes=(32,), brackets=False)
    text = tables.table(found, columns=few)
    assert "0.69" in text and "[" not in text and "Spreads are left out." in text and "    16  " in text, "90% to stays"
    assert "Left out, since not evaluated at 32: sort." in text and "1.00" not in text
    rows = list(csv.DictReader(io.StringIO(tables.table(found, "csv", few))))
    assert list(rows[0])[-2:] == ["90% to", "32"] and rows[0]["90% to"] == "16"
    assert list(json.loads(tables.table(found, "json", few))["rows"][0]["sizes"]) == ["32"]
    assert "| 90% to | 32 |" in tables.table(found, "md", few)


def test_latex_sets_the_best_in_bold_only_where_spreads_part():
    apart = made.results("a", (made.rope(), made.rope(label="alibi", family="linear", drop=0.3)))
    text = tables.table(apart, "latex")
    rows = [line for line in text[text.index("scheme & n") :].splitlines() if line.startswith(("alibi", "rope"))]
    alibi, rope = rows
    assert r"\textbf{0.69 [0.68--0.70]}" in rope and "textbf" not in alibi
    overlap = made.results("a", (made.rope(), made.rope(label="alibi", family="linear", drop=0.11)))
    assert "textbf" not in tables.table(overlap, "latex")
    assert "textbf" not in tables.table(made.results("a", (made.rope(),)), "latex"), "one scheme is not the best of any"
    single = made.results("a", (made.rope((0,)), made.rope((0,), label="alibi", family="linear", drop=0.3)))
    assert "textbf" not in tables.table(single, "latex"), "single runs have no spread"


def test_a_size_that_fewer_runs_have_says_so():
    record = made.rope()
    del record["trials"][2]["evaluations"]["32"]
    assert "0.69 [0.69–0.70] n=2" in tables.table(made.results("a", (record,)))


def test_learning_rates_that_were_chosen_are_explained():
    trials = [
        made.trial("rope", "copy", s, {16: a, 32: 0.5}, lr=lr) for s in (0, 1) for lr, a in ((1e-3, 1), (1e-2, 0.5))
    ]
    text = tables.table(made.results("a", (made.record("rope", "rotary", "copy", trials, sizes=(16, 32)),)))
    assert (
        "chosen on validation examples of the sizes trained on, by the reported seeds themselves. The other counts"
        in text
    )
    assert " 2     4         0       0  0.001" in text


def test_stars_are_those_of_each_training_range():
    text = tables.table(made.results("a", tuple(made.ranged((4, 16), (4, 24)))))
    heads = [line.split()[9:] for line in text.splitlines() if line.startswith("task")]
    assert heads == [["8*", "16*", "24", "32"], ["8*", "16*", "24*", "32"]]
    said = json.loads(tables.table(made.results("a", tuple(made.ranged((4, 16), (4, 24)))), "json"))
    assert [row["trained"] for row in said["rows"]] == [[4, 16], [4, 24]]


def test_records_of_several_commits_are_told():
    other = made.rope(label="alibi", family="linear")
    other["provenance"]["commit"] = "def5678"
    text = tables.table(made.results("a", (made.rope(), other)))
    assert "\nThese records are from 2 commits: abc1234, def5678.\n" in text


def test_no_result_is_a_table_without_numbers():
    lost = [{**line, "outcome": "failed"} for line in made.plan(made.rope((0,)), "g")]
    text = tables.table(made.results("a", (), tuple(lost)))
    assert "copy  rope    0     0         0       1   –" in text and "no result yet" in text


def test_an_unknown_format_says_which_there_are():
    with pytest.raises(ValueError, match="called 'xml'; use text, csv, md, latex, html, json"):
        tables.table(results(), "xml")


def test_control_characters_do_not_reach_the_terminal():
    record = made.rope((0,))
    record["label"] = "a\x1b[2J"
    assert "\x1b" not in tables.table(made.results("a", (record,)))
