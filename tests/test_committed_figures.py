"""Committed figures are drawn again, say what is in them, and can be read.

POSENC_REGENERATE=1 pytest tests/test_committed_figures.py -n0 -k drawn_again       draws all of them anew
"""

import functools
import itertools
import os
import re
from math import log

import pytest

from posenc.lab.cli import main
from posenc.lab.figures.atlas import TABLE
from posenc.lab.figures.figures import drawing
from posenc.lab.results.floors import FLOORS, mean_floors
from posenc.lab.results.floors import floors as floors_of
from posenc.lab.results.statistics import cells
from posenc.lab.spec.experiment_file import executed, from_file
from tests.test_experiments import FOLDER, RECORDED, committed_results

FIGURES = FOLDER / "figures"
SCRIPTS = sorted(FIGURES.glob("[!_]*.py"))
"""What draws a figure of several records, or of something else."""


@pytest.mark.parametrize("path", [*RECORDED, *SCRIPTS], ids=lambda p: p.stem)
def test_a_committed_figure_is_drawn_again(path, tmp_path, capsys):
    """By `posenc plot`, or by the file that draws it; with POSENC_REGENERATE it becomes the committed one."""
    folder = FIGURES if os.environ.get("POSENC_REGENERATE") else tmp_path
    if path in SCRIPTS:
        executed(path).main(folder=folder)
    else:
        assert main(("plot", str(path), "-o", str(folder))) == 0
    names = [f"{path.stem}.{ending}" for ending in ("svg", "caption.txt", "csv")]
    contents, committed = ({n: (of / n).read_bytes() for n in names if (of / n).exists()} for of in (folder, FIGURES))
    assert contents.keys() == committed.keys() >= {*names[:2]}
    assert [name for name in contents if contents[name] != committed[name]] == []


@functools.cache
def figure_and_caption(path):
    """The figure of a committed record, the results in it, and what is committed beside it."""
    drawn, results = drawing(from_file(path, yes=True), committed_results(path))
    return drawn.figure, results, (FIGURES / f"{path.stem}.caption.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", RECORDED, ids=lambda p: p.stem)
def test_a_caption_names_the_axes_of_its_figure_and_how_many_runs_there_are_in_five_lines(path):
    figure, _, caption = figure_and_caption(path)
    labels = {said for axes in figure.axes for said in (axes.get_xlabel(), axes.get_ylabel()) if said}
    assert {said for said in labels if said not in caption} == set() and labels
    runs = {cell.n for cell in cells(committed_results(path))}
    assert all(f"n = {n} runs" in caption for n in runs)
    assert "Trials:" in caption and " diverged" in caption and " failed" in caption
    assert len(caption.splitlines()) <= 5 and len(caption) < 2000


def unigram_losses(task):
    """The nats by place, at every size, of a reader that knows how frequent symbols are."""
    return [nats for readers in task.yardsticks.values() for nats in readers["unigram"]]


@pytest.mark.parametrize("path", RECORDED, ids=lambda p: p.stem)
def test_every_axis_of_accuracies_or_errors_has_the_floors_of_the_record(path):
    """Those at a size, or the mean over the sizes trained on or beyond them, by a metric that is shown; no other axis
    has any."""
    figure, results, caption = figure_and_caption(path)
    known = {name: set() for name in FLOORS}
    for each in (results, committed_results(path), committed_results(path).shown()):
        inside, beyond = ({c.task: getattr(c, part) for c in cells(each)} for part in ("inside", "beyond"))
        described = [*each.tasks().values(), *(record.task for record in each.records)]  # ranges trained on may differ
        for task in described:
            for sizes in (inside[task.label], beyond[task.label], *([n] for n in floors_of(task))):
                for name, share in mean_floors(task, sizes).items():
                    known[name].add(round(share, 9))
    up = ""
    for axes in figure.axes:
        up = axes.get_ylabel() or up
        upright = not axes.get_xlabel().startswith("accuracy")  # rows have floors along x
        drawn = {line.get_label()[1:]: line for line in axes.get_lines() if line.get_label()[1:] in FLOORS}
        if up.startswith("loss (bits)"):
            levels = {name: {round(y, 9) for y in line.get_ydata()} for name, line in drawn.items()}
            assert levels.keys() == {"uniform", "unigram"} and levels["uniform"] == {8}, "of bytes"
            assert levels["unigram"] <= {round(n / log(2), 9) for task in described for n in unigram_losses(task)}
            continue
        if upright and not up.startswith(("accuracy", "error rate")):
            assert not drawn
            continue
        assert {"uniform", "prior", "position"} <= set(drawn) and "baselines" in caption
        for name, line in drawn.items():
            at = line.get_ydata() if upright else line.get_xdata()
            shares = {round(1 - y if up.startswith("error rate") else y, 9) for y in at}
            assert shares and shares <= known[name]
        texts = [re.sub(r" \.\d\d ↓$", "", text.get_text()) for text in axes.texts]  # of one below the axis
        said = {word for text in texts for word in text.split(", ")}
        assert {"guess", "constant", "position"} <= said


@pytest.mark.parametrize("path", RECORDED, ids=lambda p: p.stem)
def test_no_word_lies_on_data(path):
    """Names of floors and the sizes trained on stand outside the axes. Of a table the texts are the data."""
    figure, _, _ = figure_and_caption(path)
    figure.draw_without_rendering()
    for axes in (axes for axes in figure.axes if axes.get_label() != TABLE):
        for text in axes.texts:
            box, inside = text.get_window_extent(), axes.bbox
            assert box.x0 >= inside.x1 or box.y0 >= inside.y1, text.get_text()


@pytest.mark.parametrize("path", RECORDED, ids=lambda p: p.stem)
def test_nothing_of_a_figure_is_cut_off_or_lies_on_a_title(path):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure, _, _ = figure_and_caption(path)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    whole, drawn = figure.get_size_inches(), figure.get_tightbbox(canvas.get_renderer())
    assert drawn.x0 > -0.05 and drawn.y0 > -0.05 and drawn.x1 < whole[0] + 0.05 and drawn.y1 < whole[1] + 0.05
    titles = [axes._left_title.get_window_extent() for axes in figure.axes if axes.get_title("left")]
    assert not any(a.overlaps(b) for a, b in itertools.combinations(titles, 2))
