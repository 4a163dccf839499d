"""How wide a table is: as a terminal, as COLUMNS says, or as wide as it takes in a pipe; and what it is reduced to."""

import json
import os

import pytest

from posenc.lab.cli import output


def widest(text):
    return max(map(len, text.splitlines()))


def test_a_table_has_the_columns_that_are_set_and_whole_lines_in_a_pipe(posenc, runs, monkeypatch):
    for width in (60, 100):
        monkeypatch.setenv("COLUMNS", str(width))
        assert widest(posenc("table", "mine").out) <= width < 110
    for given in (None, "", "0", "wide"):
        monkeypatch.setenv("COLUMNS", given) if given is not None else monkeypatch.delenv("COLUMNS")
        whole = posenc("table", "mine").out
        assert widest(whole) > 140 and whole.startswith("task   scheme")


def test_a_table_fits_the_terminal(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert output.columns() is None
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("shutil.get_terminal_size", lambda *_, **__: os.terminal_size((72, 20)))
    assert output.columns() == 72
    monkeypatch.setenv("COLUMNS", "50")
    assert output.columns() == 50


def test_sizes_and_spreads_are_chosen(posenc, runs):
    said = posenc("table", "mine", "--sizes", "16,32", "--brackets", "off")
    assert said.code == 0 and "  90% to  16*   32\n" in said.out and "[" not in said.out
    assert "Spreads are left out." in said.out and "[" in posenc("table", "mine", "--sizes", "16,32").out
    rows = json.loads(posenc("table", "mine", "--sizes", "32", "--json").out)["rows"]
    assert {tuple(row["sizes"]) for row in rows} == {("32",)} and rows[0]["90% to"] == 16


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (["--sizes", "17,32"], 3, "Nothing was evaluated at size 17; there are 8, 16, 24, 32."),
        (["--sizes", "x"], 2, "sizes takes a whole number, not 'x'."),
        (["--sizes", ""], 2, "sizes= has no value"),
        (["--brackets", "off", "--json"], 2, "--brackets is for tables, and JSON holds every run"),
        (["--brackets", "maybe"], 2, "invalid choice 'maybe'"),
    ],
)
def test_sizes_and_spreads_that_cannot_be_chosen(posenc, runs, words, code, why):
    said = posenc("table", "mine", *words)
    assert (said.code, said.out) == (code, "") and why in said.err and len(said.err.splitlines()) == 1
