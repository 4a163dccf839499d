"""What a figure shows is what was stored; its files are the same bytes for the same results."""

import csv
import io
import subprocess
import sys

import numpy as np
import pytest

from posenc.lab.figures import figures, files, style
from posenc.lab.results import statistics
from posenc.lab.results.results import Results
from tests.lab import made


def results(n=3):
    records = [
        made.rope(range(n)),
        made.rope(range(n), label="rope(base=500000.0)", drop=0.3),
        made.rope(range(n), label="alibi", family="linear", drop=-0.05),
        made.rope(range(n), task="sort"),
    ]
    records[2]["trials"][0] |= {"outcome": "diverged", "evaluations": {}}
    return made.results("made", tuple(records))


@pytest.fixture(scope="module")
def drawn():
    return figures.length_curve(results())


def lines(axes):
    return {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}


def test_there_is_a_panel_per_task_and_a_line_per_scheme_through_the_medians(drawn):
    first, second = drawn.axes
    assert [a.get_title("left") for a in (first, second)] == ["copy", "sort"]
    assert set(lines(first)) == {"rope", "rope(base=500000.0)", "alibi"} and set(lines(second)) == {"rope"}
    x, y = lines(first)["rope"].get_data()
    np.testing.assert_array_equal(x, made.SIZES)
    np.testing.assert_allclose(y, [1.0, 1.0, 0.79, 0.69], atol=1e-12)
    assert lines(first)["alibi"].get_ydata()[0] == 1.0, "the median of 0.1, 1 and 1"


def test_every_run_is_a_point(drawn):
    points = np.concatenate(
        [np.asarray(c.get_offsets()) for c in drawn.axes[1].collections if len(c.get_offsets()) > 1]
    )
    cell = next(c for c in statistics.cells(results()) if c.task == "sort")
    assert sorted(map(tuple, points.tolist())) == sorted((n, v) for n in cell.values for v in cell.values[n])


def test_the_band_is_the_range(drawn):
    band = next(
        c for c in drawn.axes[1].collections if type(c).__name__ in ("PolyCollection", "FillBetweenPolyCollection")
    )
    at_32 = [y for x, y in band.get_paths()[0].vertices if x == 32]
    assert (min(at_32), max(at_32)) == pytest.approx((0.68, 0.70))


def test_the_training_range_and_the_three_floors_are_marked(drawn):
    axes = drawn.axes[0]
    said = [t.get_text() for t in axes.texts]
    assert any("trained on 4–16" in t for t in said)
    assert sorted(word for t in said for word in t.split(", ") if not word.startswith("trained")) == [
        *("constant", "guess", "position only"),
    ]
    heights = {float(line.get_ydata()[0]) for line in axes.get_lines() if len(set(line.get_ydata())) == 1}
    assert set(made.FLOORS.values()) <= heights
    assert any(line.get_xdata() == [16, 16] for line in axes.get_lines() if len(line.get_xdata()) == 2)


def test_families_share_a_hue_and_variants_differ_in_marker_and_dash():
    looks = style.looks([("rope", "rotary"), ("rope(base=1.0)", "rotary"), ("xpos", "rotary"), ("alibi", "linear")])
    rotary = [looks[s] for s in ("rope", "rope(base=1.0)", "xpos")]
    assert len({k.colour for k in rotary}) == 1 and looks["alibi"].colour != rotary[0].colour
    assert len({k.marker for k in rotary}) == len({str(k.dash) for k in rotary}) == 3
    assert looks["rope"].dash == "-", "the shortest name of a family is its full line"


def test_variants_of_one_family_alone_have_a_hue_each():
    looks = style.looks([(f"rope (norm={norm})", "rotary") for norm in ("pre", "post")])
    assert len({k.colour for k in looks.values()}) == 2


def test_no_two_schemes_look_alike_even_when_hues_run_out():
    pairs = [(f"s{k}", f"family{k}") for k in range(25)]
    looks = style.looks(pairs)
    assert len({(k.colour, k.marker, str(k.dash)) for k in looks.values()}) == 25
    assert style.looks(reversed(pairs)) == looks


def test_a_heat_map_holds_each_median_over_longer_sizes_with_n():
    axes = figures.heat_map(results()).axes[0]
    said = [t.get_text() for t in axes.texts]
    assert said.count("no\nresult") == 2 and sum("n=3" in t for t in said) == 4
    assert [t.get_text() for t in axes.get_xticklabels()][-1] == "best floor"
    assert said.count("0.20\nposition only") == 2 and list(axes.images[0].get_array()[:, -1]) == [0.2, 0.2]
    cell = next(c for c in statistics.cells(results()) if (c.task, c.scheme) == ("sort", "rope"))
    median = statistics.summary(cell.means(cell.beyond).values()).median
    column = [t.get_text() for t in axes.get_xticklabels()].index("rope")
    assert axes.images[0].get_array()[1, column] == pytest.approx(median)
    assert f"{median:.2f}\nn=3" in said


def test_nothing_finished_is_an_error_that_says_so():
    with pytest.raises(ValueError, match="'empty' has no finished trial"):
        figures.length_curve(made.results("empty", ()))


def test_a_task_evaluated_inside_its_training_range_only_is_drawn():
    record = made.record("rope", "rotary", "copy", [made.trial("rope", "copy", 0, {8: 1.0})], sizes=(8,))
    found = made.results("a", (record,))
    assert len(figures.length_curve(found).axes) == 1
    with pytest.raises(ValueError, match="no size beyond the training range"):
        figures.heat_map(found)
    assert "Over the sizes beyond it" not in figures.caption(found)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    found = results()
    return {p.name: p.read_bytes() for p in figures.save(figures.length_curve(found), folder, "length", found, "Seen.")}


def test_the_same_results_give_the_same_bytes_in_another_process(saved, tmp_path):
    code = (
        "import sys; from pathlib import Path\n"
        "from posenc.lab.figures import figures; from tests.show.test_figures import results\n"
        "r = results(); r = type(r)(r.name, r.records[::-1])\n"
        "figures.save(figures.length_curve(r), Path(sys.argv[1]), 'length', r, 'Seen.')\n"
        "assert 'jax' not in sys.modules and 'matplotlib.pyplot' not in sys.modules"
    )
    env = {"PYTHONPATH": ":".join(map(str, sys.path)), "SOURCE_DATE_EPOCH": "0", "PYTHONHASHSEED": "7"}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, env=env)
    again = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    assert saved.keys() == again.keys() == {f"length.{k}" for k in ("svg", "pdf", "png", "csv", "caption.txt")}
    assert [name for name in saved if saved[name] != again[name]] == []


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_the_source_of_the_numbers_is_inside_the_file(saved, kind):
    found = results()
    content = saved[f"length.{kind}"].decode("latin-1")
    for said in ("run made", "commit abc1234", "jax 0.10.2", stats_digest(found)):
        assert said in content, said
    assert "/tmp" not in content


def stats_digest(found):
    from posenc.lab.store.folder import digest

    return digest(found.trials())


def test_svg_keeps_text_as_text_and_loads_nothing(saved):
    svg = saved["length.svg"].decode()
    assert ">copy</text>" in svg and "<script" not in svg and 'href="http' not in svg


def test_the_data_beside_a_figure_are_all_runs(saved):
    rows = list(csv.DictReader(io.StringIO(saved["length.csv"].decode())))
    assert len(rows) == len(results().rows()) == 48
    assert {r["outcome"] for r in rows} == {"done", "diverged"} and all(r["chosen"] == "True" for r in rows)
    assert saved["length.caption.txt"] == b"Seen.\n"


@pytest.mark.parametrize("text", ["=1+1", "+x", "-x", "@x"])
def test_no_text_cell_is_a_formula(text):
    record = made.rope((0,))
    record["label"] = text
    row = next(csv.DictReader(io.StringIO(files.data(made.results("a", (record,))))))
    assert row["scheme"] == "'" + text


def test_markup_in_names_is_escaped_and_control_characters_are_shown(tmp_path):
    record = made.rope((0,))
    record["label"], record["task"]["label"] = "<script>alert(1)</script>", "x\x1b[31m$y_z^$"
    found = made.results("<b>", (record,))
    figures.save(figures.length_curve(found), tmp_path, "a", found, figures.caption(found))
    svg = (tmp_path / "a.svg").read_text()
    assert "<script" not in svg and "\x1b" not in svg + (tmp_path / "a.caption.txt").read_text()


def test_a_figure_name_cannot_leave_its_folder(drawn, tmp_path):
    with pytest.raises(ValueError, match="cannot be a name"):
        figures.save(drawn, tmp_path, "../x", results(), "")


def test_the_caption_says_who_solves_who_stands_apart_and_what_went_wrong():
    said = figures.caption(results())
    assert (
        "copy: accuracy (tokens) against size, trained on sizes 4 to 16, n = 3: all schemes solve the training range"
        in said
    )
    assert "rope above rope(base=500000.0)" in said, said
    assert "alibi above" not in said, "its diverged run brings its range down to the floor"
    assert "Floors at size 32: 0.10 by a uniform guess, 0.15 by the best constant, 0.20 by position alone." in said
    assert "bands the range over runs (fewer than 6, so no interval)" in said
    assert "Trials: 11 done, 1 diverged (each counted as a uniform guess), 0 failed." in said


def test_the_caption_says_which_token_accuracy_it_shows():
    assert "Token accuracy is teacher-forced:" in figures.caption(results())
    exact = {**made.rope(), "task": {**made.rope()["task"], "metric": "exact"}}
    assert "teacher-forced" not in figures.caption(made.results("a", (exact,)))


def test_the_caption_names_the_interval_when_there_are_six_runs():
    assert "bands the exact 95% interval of the median;" in figures.caption(results(6))


def test_a_heat_map_has_marks_of_its_own():
    said = figures.caption(results(), "heatmap")
    assert "Each cell is the median over n runs" in said and "dotted" not in said
    with pytest.raises(ValueError, match="There is no caption for 'pie'"):
        figures.caption(results(), "pie")


def test_the_caption_calls_overlap_overlap():
    found = made.results("a", (made.rope(), made.rope(label="alibi", family="linear", drop=0.11)))
    assert "no scheme is clearly better." in figures.caption(found)


def compared(a, b, n=3, rows=100):
    """The caption's sentence on two schemes with these accuracies beyond the training range."""
    records = []
    for label, share in (("a", a), ("b", b)):
        trials = [made.trial(label, "copy", s, {16: 1.0, 24: share, 32: share}, rows=rows) for s in range(n)]
        records.append(made.record(label, label, "copy", trials, sizes=(16, 24, 32)))
    return figures.caption(made.results("a", tuple(records))).partition("Floors")[0]


def test_the_caption_states_no_gap_that_the_choice_of_test_examples_explains():
    assert "a above b" in compared(0.7, 0.4)
    assert "above" not in compared(0.7, 0.6), "3 standard errors of 200 rows are 0.14"
    assert "a above b" in compared(0.7, 0.6, rows=1000)


def test_the_caption_ranks_no_means_over_other_sizes():
    near = made.record("a", "a", "copy", [made.trial("a", "copy", s, {16: 1.0, 24: 0.9}) for s in (0, 1)], (16, 24))
    far = made.record("b", "b", "copy", [made.trial("b", "copy", s, {16: 1.0, 32: 0.3}) for s in (0, 1)], (16, 32))
    assert "above" not in figures.caption(made.results("a", (near, far)))


def test_the_caption_ranks_nothing_at_the_floor():
    """The best floor is 0.2; 3 standard errors of 20000 rows are 0.0085 there, and 0.0120 of a difference."""
    assert "above" not in compared(0.207, 0.193, rows=10000), "both are at the floor"
    assert "a above b" in compared(0.217, 0.203, rows=10000), "one is not"


def test_the_caption_ranks_no_single_runs():
    said = compared(0.9, 0.1, n=1)
    assert "above" not in said and "single runs do not show which scheme is better" in said


@pytest.mark.parametrize("figure", ["length", "heatmap"])
def test_the_caption_says_that_runs_share_one_test_set(figure):
    assert "All runs of a task share one test set per size" in figures.caption(results(), figure)


def test_the_committed_first_look_ranks_no_chance():
    """Of its schemes without absolute positions, none tells the index: 0.11 to 0.14 at a floor of 0.12."""
    from pathlib import Path

    from posenc.lab.results.results import load

    said = figures.caption(load(Path(__file__).parents[2] / "experiments" / "records" / "first_look.json"))
    line = next(line for line in said.splitlines() if line.startswith("index_of_token"))
    assert "above rope" not in line and "nope, t5" not in line.partition("Clearly better")[2].partition("above nope")[0]


def test_each_training_range_has_a_panel_a_row_and_a_sentence():
    found = made.results("a", (*made.ranged((4, 16)), *made.ranged((4, 24), label="alibi", family="linear")))
    panels = figures.length_curve(found).axes
    assert [a.get_title("left") for a in panels] == ["copy", "copy"]
    assert [set(lines(a)) for a in panels] == [{"rope"}, {"alibi"}]
    assert [t.get_text() for a in panels for t in a.texts if "trained" in t.get_text()] == [
        *("trained on 4–16", "trained on 4–24"),
    ]
    axes = figures.heat_map(found).axes[0]
    assert [t.get_text() for t in axes.get_yticklabels()] == ["copy\ntrained on 4–16", "copy\ntrained on 4–24"]
    first, second = figures.caption(found).splitlines()[:2]
    assert (
        "copy: accuracy (tokens) against size, trained on sizes 4 to 16" in first
        and "mean accuracy (median of runs) is rope 0.50" in first
    )
    assert "copy: accuracy (tokens) against size, trained on sizes 4 to 24" in second and "is alibi 0.50" in second


@pytest.mark.parametrize("draw", [figures.length_curve, figures.heat_map])
def test_without_matplotlib_a_figure_says_what_to_install(draw, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ValueError, match=r"^Figures need matplotlib; pip install 'posenc\[plot\]'\.$"):
        draw(results())


def test_the_caption_names_the_model_and_why_symmetric_alibi_fails_in_an_encoder():
    run = {"model": "encoder", "depth": 2, "width": 64, "heads": 4}
    records = [made.rope(), made.rope(label="alibi", family="linear", drop=0.3)]
    for record in records:
        record["run"] = {**record["run"], **run}
    text = figures.caption(made.results("a", tuple(records)))
    assert "Model: encoder of 2 layers, width 64, 4 heads." in text and "cannot tell left from right by it." in text
    assert "left from right" not in figures.caption(made.results("a", tuple(records[:1])))
    records[0]["run"] = {**records[0]["run"], "model": "decoder"}
    records[1]["run"] = {**records[1]["run"], "model": "decoder"}
    text = figures.caption(made.results("a", tuple(records)))
    assert "Model: decoder of 2 layers, width 64, 4 heads." in text and "left from right" not in text


def test_an_axis_names_its_metric():
    token, exact = made.rope(), made.rope(task="other")
    exact["task"] = {**exact["task"], "metric": "exact"}
    assert figures.length_curve(made.results("a", (token,))).get_supylabel() == "accuracy (tokens)"
    both = figures.length_curve(made.results("a", (token, exact)))
    assert [axes.get_ylabel() for axes in both.axes] == ["accuracy (tokens)", "accuracy (whole answers)"]
    assert both.get_supylabel() == ""


def test_the_caption_counts_records_that_cannot_be_read():
    found = Results("a", (made.typed(made.rope()),), (), ("records/x.json is left out: it is empty.",), None, 1)
    assert "0 failed; 1 record could not be read." in figures.caption(found)


def test_the_caption_says_what_is_missing():
    lost = [{**line, "outcome": o} for o in ("failed", "pending") for line in made.plan(made.rope((8,)), "g")]
    said = figures.caption(made.results("a", (made.rope(),), tuple(lost)))
    assert "3 done, 0 diverged, 1 failed (left out), 1 not finished." in said
