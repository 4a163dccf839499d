"""`posenc report`: one file that says what the run holds, escapes it, loads nothing, and replaces only reports."""

import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from posenc.lab.cli import report as command
from posenc.lab.report import vega
from posenc.lab.report.page import MARKER
from posenc.lab.results.results import load
from posenc.lab.spec import atlas
from posenc.lab.store import folder as store
from tests.lab import made

EVIL = "<script>alert(1)</script>"
FIRST_LOOK = str(Path(__file__).parents[2] / "experiments" / "first_look.py")


class Seen(HTMLParser):
    """The tags of a page, their attributes, and what a reader sees as text."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.texts, self.open = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if not {"script", "style"} & {*self.open[-1:]}:
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


def written(posenc, *words):
    said = posenc("report", *words, "-o", "r.html")
    assert (said.code, said.out) == (0, "r.html\n"), said.err
    return Path("r.html").read_text()


@pytest.fixture(scope="module")
def committed(tmp_path_factory):
    """The report of a committed experiment."""
    path = tmp_path_factory.mktemp("report") / "r.html"
    assert command.WriteReport((FIRST_LOOK,), str(path))() == 0
    return path.read_text()


def test_a_committed_experiment_is_reported_in_a_small_file_that_loads_nothing(committed):
    seen = Seen(committed)
    assert len(committed.encode()) <= 3 * 2**20 and "first_look" in seen.text and "baseline: guess" in seen.text
    loads = [attrs[name] for _, attrs in seen.tags for name in ("src", "href", "data", "action") if name in attrs]
    assert not [link for link in loads if not link.startswith("#")] and "url(" not in committed
    assert "@import" not in committed and "default-src 'none'" in committed and "<iframe" not in committed


def test_a_report_has_every_part(committed):
    text = Seen(committed).text
    for part in (
        "In encoders RoPE and T5 keep part of an offset",
        "trained on 8–16, evaluated at 8, 16, 20, 24, 32, 48, 64 (tokens) on 256 examples each",
        "By length",
        "By position",
        "Loss along training",
        "Seeds",
        "Trials: 120 done, 0 diverged, 0 failed.",
        "Still falling when training ended",
        "Each scheme was trained at one learning rate, 0.003",
        "e6ad5ab533",
        "machine cpu x2",
        "posenc sweep experiments/first_look.py",
        "Bracket",
        "n = 10 runs",
        "RoFormer",
    ):
        assert part.lower() in text.lower(), part


def mine():
    return made.filled("mine", [made.rope(range(6)), made.rope(range(6), label="alibi", family="linear", drop=0.3)])


def test_the_table_has_the_medians_and_the_floors(posenc):
    """Each median of the table is that of the runs, by NumPy, with floors as they were recorded."""
    results = load(mine())
    page = written(posenc, "mine", "--metric", "accuracy")
    rows = re.findall(r"<tr><th scope=\"row\">(\w+)</th>(.*?)</tr>", page)
    cells = {name: re.findall(r"<td>([^<]*)(?:<small>|</td>)", row) for name, row in rows[::-1]}
    for name in ("rope", "alibi"):
        values = {n: [r.value for r in results.rows() if (r.scheme, r.size) == (name, n)] for n in made.SIZES}
        assert cells[name][-4:] == [f"{np.median(values[n]):.2f}" for n in made.SIZES]
        assert cells[name][0] == str(len(values[8]))
    for words, value in {"guess": ".10", "constant": ".15", "position": ".20"}.items():
        assert f">baseline: {words}</th>" + f"<td>0{value}</td>" * 4 in page


def test_every_seed_is_in_the_figure_with_its_value_at_every_size(posenc):
    results = load(mine())
    page = written(posenc, "mine")
    for row in results.rows():
        wanted = f"{row.scheme}, seed {row.seed}: "
        (title,) = [t for t in re.findall('aria-label="([^"]*)"', page) if t.startswith(wanted) and "at 32" in t]
        assert f"{row.value:.2f} at {row.size}" in title


def test_a_task_of_the_atlas_has_its_title_in_a_run_of_ones_own(posenc):
    made.filled("mine", [made.rope(task="token_k_back(k=3)")])
    title = atlas.PROBES["offset"].title
    assert f"{title} (token_k_back(k=3))" in Seen(written(posenc, "mine")).text


def test_texts_of_records_show_as_text(posenc):
    """Of a run whose texts are markup wherever a record has a text."""
    record = made.rope(label=EVIL, task=f"copy{EVIL}", family=EVIL)
    record["provenance"] |= {"commit": EVIL, "device": f'cpu"{EVIL}'}
    record["run"]["scheme"] = EVIL
    record["trials"].append(made.trial(EVIL, f"copy{EVIL}", 9, {}, outcome="diverged"))
    folder = made.filled("evil", [record])
    made.write_plan(folder, made.plan(made.rope((0,), label=f"lost{EVIL}"), "lost"))
    store.write_error(folder, "lost", "failed", f"Traceback\nValueError: {EVIL}")
    page = written(posenc, "evil")
    seen = Seen(page)
    assert sum(tag == "script" for tag, _ in seen.tags) == 1 and EVIL not in page
    assert html.escape(EVIL) in page and seen.text.count(EVIL) > 8
    assert "diverged at step 3 of 10" in seen.text and f"failed: ValueError: {EVIL}" in seen.text
    assert "Not known here, so without an entry" in seen.text


def test_a_name_of_a_bundle_is_escaped(posenc):
    assert posenc("export", mine().name, "--bundle", "b.json").code == 0
    content = json.loads(Path("b.json").read_text())
    Path("b.json").write_text(json.dumps(content | {"name": EVIL}))
    page = written(posenc, "b.json")
    assert EVIL not in page and EVIL in Seen(page).text


def test_several_runs_and_the_command_that_repeats_each(posenc, runs):
    (runs / "sweep.toml").write_text('name = "mine"\n')
    made.filled("other", [made.rope()])
    page = written(posenc, "mine", "other")
    seen = Seen(page)
    assert [tag for tag, _ in seen.tags].count("article") == 2
    assert "posenc sweep runs/mine/sweep.toml --name mine-again" in seen.text and "No command was kept" in seen.text
    ids = [attrs["id"] for _, attrs in seen.tags if "id" in attrs]
    assert len(ids) == len({*ids})


def test_many_lines_are_small_multiples_before_grey(posenc):
    made.filled("many", [made.rope((0,), label=f"s{k}") for k in range(9)])
    page = written(posenc, "many")
    charts = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(charts) == 18 and page.count('class="panels multiples"') == 2
    for chart in charts:
        assert chart.count(f'stroke="{vega.FAINT}"') == 9 and len(re.findall("s\\d, seed 0: ", chart)) == 1


def test_a_file_that_would_be_too_large_leaves_single_runs_out(posenc, refuse, runs, monkeypatch):
    whole = len(written(posenc, "mine"))
    monkeypatch.setattr(command, "LARGEST", whole - 1000)
    page = written(posenc, "mine")
    assert len(page) < whole and "Single runs are left out" in page and "rope, seed 0: " not in page
    monkeypatch.setattr(command, "LARGEST", len(page) - 6000)
    assert "Figures are left out" in written(posenc, "mine")
    monkeypatch.setattr(command, "LARGEST", 1000)
    assert "choose tasks or schemes by --only" in refuse("report", "mine", "-o", "r.html")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "needs a run"),
        (("none",), "none"),
        (("planned",), "No trial of 'planned' has a result yet"),
        (("mine", "-o", "r.pdf"), "use a file name with .html"),
        (("mine", "-o", "no/r.html"), "in an existing folder"),
        (("mine", "-o", "mine.html"), "exists and was not written by posenc"),
        (("first_look", "--watch"), "is not a run folder; leave --watch out"),
    ],
)
def test_a_report_is_refused_in_one_sentence(refuse, runs, tmp_path, words, why):
    made.write_plan(store.create("planned"), made.plan(made.rope(), "g"))
    (tmp_path / "mine.html").write_text("<p>my own</p>")
    assert why in refuse("report", *words)
    assert (tmp_path / "mine.html").read_text() == "<p>my own</p>"


def test_a_folder_that_is_read_only_is_refused(refuse, runs, monkeypatch):
    monkeypatch.setattr("os.access", lambda *_: False)  # root may write anywhere
    assert "is read-only; use another" in refuse("report", "mine", "-o", "r.html")


def test_a_report_is_written_over_and_the_same(posenc, runs):
    first = written(posenc, "mine")
    assert MARKER in first and written(posenc, "mine") == first


def test_watching_writes_it_again_until_all_is_trained(posenc, monkeypatch):
    """Nothing is written before the first result; then as results come, to be read again by the browser; then once."""
    rope, alibi = made.rope(), made.rope(label="alibi", family="linear")
    folder = store.create("mine")
    for number, record in enumerate((rope, alibi)):
        made.write_plan(folder, made.plan(record, f"g{number}"))
    pages, coming = [], [rope, alibi]

    def sleep(seconds):
        pages.append(Path("r.html").read_text() if Path("r.html").exists() else None)
        assert 1 <= seconds <= 60
        made.write_record(folder, coming.pop(0))

    monkeypatch.setattr(command.time, "sleep", sleep)
    said = posenc("report", "mine", "--watch", "-o", "r.html")
    last = Path("r.html").read_text()
    assert (said.code, said.out) == (0, "r.html\nr.html\n") and not coming
    assert pages[0] is None and "3 not finished" in pages[1] and 'http-equiv="refresh" content="60"' in pages[1]
    assert "refresh" not in last and "6 done" in Seen(last).text
    assert not list(Path().glob(".*.tmp"))
