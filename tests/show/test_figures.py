"""What a figure shows is what was stored; its files are the same bytes for the same results."""

import csv
import io
import sys

import numpy as np
import pytest
from matplotlib.layout_engine import ConstrainedLayoutEngine

from posenc.lab.figures import claims, figures, files, style
from posenc.lab.figures.floor_lines import apart
from posenc.lab.figures.rows import Dots, heat, rows
from posenc.lab.results import statistics
from posenc.lab.results.results import Results
from posenc.lab.store.folder import digest
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
    return figures.length(results()).figure


def lines(axes):
    return {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}


def test_the_last_digits_of_a_layout_do_not_reach_a_file(monkeypatch):
    """As matplotlib's solver leaves them by chance, of axes and of parts of a figure."""

    def draw(shift):
        def execute(engine, figure):
            solve(engine, figure)
            for part in figure.subfigs:
                part.bbox_relative.set_points(part.bbox_relative.get_points() + shift)
            for axes in figure.axes:
                axes.set_position(axes.get_position(original=True).translated(shift, shift))

        monkeypatch.setattr(ConstrainedLayoutEngine, "execute", execute)
        pair = figures.length(results()).figure, rows(["rope"], [Dots("dots", "accuracy", {"rope": [0.5]})])
        return [files.render(figure, "svg", "made", "made") for figure in pair]

    solve = ConstrainedLayoutEngine.execute
    exact = draw(0)
    assert exact == draw(1e-13)
    assert all(a != b for a, b in zip(exact, draw(1e-4), strict=True))


def test_there_is_a_panel_per_task_and_a_line_per_scheme_through_the_medians(drawn):
    first, second = drawn.axes
    assert [a.get_title("left") for a in (first, second)] == ["copy", "sort"]
    assert set(lines(first)) == {"rope", "rope(base=500000.0)", "alibi"} and set(lines(second)) == {"rope"}
    x, y = lines(first)["rope"].get_data()
    np.testing.assert_array_equal(x, made.SIZES)
    np.testing.assert_allclose(y, [1.0, 1.0, 0.79, 0.69], atol=1e-12)
    assert lines(first)["alibi"].get_ydata()[0] == 1.0, "the median of 0.1, 1 and 1"


def test_up_to_five_runs_are_a_thin_line_each_and_more_are_a_band(drawn):
    cell = next(c for c in statistics.cells(results()) if c.task == "sort")
    runs = [line for line in drawn.axes[1].get_lines() if line.get_label() == "_run"]
    found = sorted(tuple(zip(*run.get_data(), strict=True)) for run in runs)
    assert found == sorted(tuple((n, cell.values[n][k]) for n in made.SIZES) for k in range(3))
    assert not bands(drawn.axes[1]) and max(run.get_linewidth() for run in runs) < 1
    six = figures.length(results(6)).figure.axes[1]
    (band,) = bands(six)
    at_32 = [y for x, y in band.get_paths()[0].vertices if x == 32]
    assert (min(at_32), max(at_32)) == pytest.approx((0.65, 0.70)), "of six, the range holds the median with 97 %"
    assert not [line for line in six.get_lines() if line.get_label() == "_run"]


def bands(axes):
    return [c for c in axes.collections if type(c).__name__ in ("PolyCollection", "FillBetweenPolyCollection")]


def test_names_of_floors_that_would_touch_move_apart_as_little_as_possible():
    assert apart([10.0, 50.0], 8.0, 0.0) == [10.0, 50.0]
    assert apart([20.0, 20.0, 21.0], 8.0, 0.0) == pytest.approx([37 / 3, 61 / 3, 85 / 3])
    assert apart([1.0, 2.0], 8.0, 0.0) == [0.0, 8.0], "none leaves the panel"
    assert apart([10.0, 11.0, 19.0], 8.0, 0.0) == pytest.approx([5.333, 13.333, 21.333], abs=1e-3)


def test_up_to_eight_lines_have_a_hue_each_and_the_first_of_a_family_has_its_hue():
    pairs = [("rope", "rotary"), ("rope(base=1.0)", "rotary"), ("xpos", "rotary"), ("alibi", "linear")]
    looks = style.looks([*pairs, *((f"x{k}", "table") for k in range(4))])
    assert len({k.colour for k in looks.values()}) == len({k.marker for k in looks.values()}) == 8
    assert looks["rope"].colour == style.HUES["rotary"] and looks["alibi"].colour == style.HUES["linear"]


def test_of_more_than_eight_families_share_a_hue_and_variants_differ_in_marker_and_dash():
    looks = style.looks([("rope", "rotary"), ("alibi", "linear"), *((f"rope(base={k}.0)", "rotary") for k in range(7))])
    rotary = [look for name, look in looks.items() if name != "alibi"]
    assert len({k.colour for k in rotary}) == 1 and looks["alibi"].colour != rotary[0].colour
    assert len({k.marker for k in rotary}) == 8 and len({(k.marker, str(k.dash)) for k in rotary}) == 8
    assert looks["rope"].dash == "-", "the shortest name of a family is its full line"


def test_more_than_eight_lines_are_small_multiples_with_the_others_in_grey():
    found = made.results("many", tuple(made.rope(label=f"s{k}", family="rotary") for k in range(9)))
    figure = figures.length(found).figure
    assert [a.get_title("left") for a in figure.axes] == [f"s{k}" for k in range(9)] and not figure.legends
    for k, axes in enumerate(figure.axes):
        assert set(lines(axes)) == {f"s{k}"}
        grey = [line for line in axes.get_lines() if line.get_label().startswith("_s")]
        assert len(grey) == 8 and {line.get_color() for line in grey} == {style.FAINT}


def test_no_two_schemes_look_alike_even_when_hues_run_out():
    pairs = [(f"s{k}", f"family{k}") for k in range(25)]
    looks = style.looks(pairs)
    assert len({(k.colour, k.marker, str(k.dash)) for k in looks.values()}) == 25
    assert style.looks(reversed(pairs)) == looks


def test_a_heat_map_holds_each_median_over_longer_sizes_with_n():
    axes = heat(results()).figure.axes[0]
    said, shares = [t.get_text() for t in axes.texts], axes.images[0].get_array()
    assert said.count("no\nresult") == 2 and sum("n=3" in t for t in said) == 4
    assert [t.get_text() for t in axes.get_yticklabels()][-1] == "best baseline"
    assert said.count("0.20\nposition") == 2 and list(shares[-1]) == [0.2, 0.2]
    cell = next(c for c in statistics.cells(results()) if (c.task, c.scheme) == ("sort", "rope"))
    median = statistics.summary(cell.means(cell.beyond).values()).median
    row = [t.get_text() for t in axes.get_yticklabels()].index("rope")
    assert shares[row, 1] == pytest.approx(median) and f"{median:.2f}\nn=3" in said


def test_nothing_finished_is_an_error_that_says_so():
    with pytest.raises(ValueError, match="'empty' has no finished trial"):
        figures.length(made.results("empty", ()))


def test_a_task_evaluated_inside_its_training_range_only_is_drawn():
    record = made.record("rope", "rotary", "copy", [made.trial("rope", "copy", 0, {8: 1.0})], sizes=(8,))
    found = made.results("a", (record,))
    assert len(figures.length(found).figure.axes) == 1
    with pytest.raises(ValueError, match="no size beyond the training range"):
        heat(found)
    assert "Over the sizes beyond it" not in figures.length(found).caption


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    found = results()
    return {
        p.name: p.read_bytes() for p in figures.save(figures.length(found).figure, folder, "length", found, "Seen.")
    }


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_the_source_of_the_numbers_is_inside_the_file(saved, kind):
    found = results()
    content = saved[f"length.{kind}"].decode("latin-1")
    for said in ("run made", "commit abc1234", "jax 0.10.2", digest(found.trials())):
        assert said in content, said
    assert "/tmp" not in content


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


@pytest.mark.ci
def test_markup_in_names_is_escaped_and_control_characters_are_shown(tmp_path):
    record = made.rope((0,))
    record["label"], record["task"]["label"] = "<script>alert(1)</script>", "x\x1b[31m$y_z^$"
    found = made.results("<b>", (record,))
    figures.save(figures.length(found).figure, tmp_path, "a", found, figures.length(found).caption)
    svg = (tmp_path / "a.svg").read_text()
    assert "<script" not in svg and "\x1b" not in svg + (tmp_path / "a.caption.txt").read_text()


def test_a_figure_name_cannot_leave_its_folder(drawn, tmp_path):
    with pytest.raises(ValueError, match="cannot be a name"):
        figures.save(drawn, tmp_path, "../x", results(), "")


def compared(a, b, n=6, rows=100):
    """The caption's sentence on two schemes with these accuracies beyond the training range."""
    records = []
    for label, share in (("a", a), ("b", b)):
        curves = [{16: 1.0, 24: share + s / 1000, 32: share} for s in range(n)]
        trials = [made.trial(label, "copy", s, curve, rows=rows) for s, curve in enumerate(curves)]
        records.append(made.record(label, label, "copy", trials, sizes=(16, 24, 32)))
    return figures.length(made.results("a", tuple(records))).caption


BEST = "Highest on average beyond them (rank-sum tests with Holm's correction): a above 1 of 1, p = 0.0022 (copy)."


def test_holms_correction_is_for_all_pairs_of_the_task():
    """Of two schemes with six runs wholly apart p is .002; of twelve there are 66 pairs, and it is .14."""
    records = []
    for k in range(12):
        curves = [{16: 1.0, 24: 0.9 - k / 20 + s / 1000, 32: 0.9 - k / 20} for s in range(6)]
        trials = [made.trial(f"s{k}", "copy", s, curve, rows=10_000) for s, curve in enumerate(curves)]
        records.append(made.record(f"s{k}", "f", "copy", trials, sizes=(16, 24, 32)))
    every = tuple(made.typed(record) for record in records)
    few, many = (claims.better(Results("a", every[:n]), {}) for n in (4, 12))
    assert "s0 above 3 of 3" in few and "none (copy)" in many


@pytest.mark.parametrize(
    ("a", "b", "how", "better"),
    [
        (0.7, 0.4, {}, True),
        (0.7, 0.7, {}, False),
        (0.7, 0.6, {}, False),  # 3 standard errors of 200 rows are 0.14
        (0.7, 0.6, {"rows": 1000}, True),
        (0.205, 0.185, {"rows": 10000}, False),  # the best is at the floor of 0.2, give or take 0.0085
        (0.217, 0.203, {"rows": 10000}, True),
    ],
)
def test_the_caption_calls_better_only_what_neither_floor_nor_test_examples_explain(a, b, how, better):
    assert (BEST in compared(a, b, **how)) == better


def test_the_caption_ranks_no_means_over_other_sizes():
    near = made.record("a", "a", "copy", [made.trial("a", "copy", s, {16: 1.0, 24: 0.9}) for s in range(6)], (16, 24))
    far = made.record("b", "b", "copy", [made.trial("b", "copy", s, {16: 1.0, 32: 0.3}) for s in range(6)], (16, 32))
    assert "above" not in figures.length(made.results("a", (near, far))).caption


def test_each_training_range_has_a_panel_a_column_and_a_sentence():
    found = made.results("a", (*made.ranged((4, 16)), *made.ranged((4, 24), label="alibi", family="linear")))
    panels = figures.length(found).figure.axes
    assert [a.get_title("left") for a in panels] == ["copy", "copy"]
    assert [set(lines(a)) for a in panels] == [{"rope"}, {"alibi"}]
    assert [t.get_text() for a in panels for t in a.texts if "trained" in t.get_text()] == [
        *("trained on 4–16", "trained on 4–24"),
    ]
    axes = heat(found).figure.axes[0]
    assert [t.get_text() for t in axes.get_xticklabels()] == ["copy\ntrained on 4–16", "copy\ntrained on 4–24"]


@pytest.mark.parametrize("draw", [figures.length, heat])
def test_without_matplotlib_a_figure_says_what_to_install(draw, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ValueError, match=r"^Figures need matplotlib; pip install 'posenc\[plot\]'\.$"):
        draw(results())


def test_a_figure_takes_the_metric_that_it_shows():
    drawing = figures.length(made.results("a", (made.rope(task="sort"),)).shown("exact"))
    assert drawing.figure.axes[0].get_ylabel() == "accuracy (whole answers)"


def test_sizes_above_the_largest_are_left_out_of_the_picture():
    axes = figures.length(results(), largest=24).figure.axes[0]
    assert list(lines(axes)["rope"].get_xdata()) == [8, 16, 24]


def test_sizes_at_which_all_lines_are_alike_are_left_out_but_for_their_neighbours():
    curves = {"a": (1.0, 1.0, 0.9, 0.0, 0.0), "b": (1.0, 1.0, 0.5, 0.0, 0.0)}
    sizes = (8, 16, 24, 32, 48)
    trials = {label: made.trial(label, "copy", 0, dict(zip(sizes, of, strict=True))) for label, of in curves.items()}
    every = tuple(made.record(label, label, "copy", [trial], sizes=sizes) for label, trial in trials.items())
    (axes,) = figures.length(made.results("a", every), differing=True).figure.axes
    assert list(lines(axes)["a"].get_xdata()) == [16, 24, 32]
    (axes,) = figures.length(made.results("a", every[:1]), differing=True).figure.axes
    assert list(lines(axes)["a"].get_xdata()) == [*sizes], "of one line there is nothing to compare"


def test_the_caption_says_what_is_missing():
    lost = [{**line, "outcome": o} for o in ("failed", "pending") for line in made.plan(made.rope((8,)), "g")]
    said = figures.length(made.results("a", (made.rope(),), tuple(lost))).caption
    assert "3 done, 0 diverged, 1 failed (left out), 1 not finished." in said


@pytest.mark.parametrize("n", [1, 2, 5])
def test_with_fewer_than_six_runs_the_caption_calls_none_better(n):
    assert "With fewer than 6 runs no scheme is called better" in compared(0.7, 0.4, n=n)
