"""The figure of the atlas shows each cell as its caption says."""

from posenc.lab.figures.atlas import atlas_table
from tests.lab.test_atlas_cells import cell

CELLS = (
    cell("rope", reach=1.25, rates_apart=0.3),
    cell("rope", probe="index", reach=None, trained=0.42),
    cell("nope", family="none", reach=4.0),
    cell("nope", family="none", model="encoder", reach=2.0),
    cell("rope", model="encoder", reach=8.0),
    cell("fox", family="context", reach=3.0),
)


def test_each_cell_has_its_reach_or_what_was_not_learned_under_the_floors():
    (axes,) = atlas_table(CELLS).axes
    rows = [label.get_text() for label in axes.get_yticklabels()]
    assert rows == ["best floor at 2 L", "nope", "rope", "fox"], "what others are read against comes first"
    shown = {text.get_position(): text.get_text() for text in axes.texts}
    assert [shown[x, 0] for x in range(3)] == [".20"] * 3
    assert [shown.get((x, 1)) for x in range(3)] == ["4", None, "2"]
    assert [shown.get((x, 2)) for x in range(3)] == ["1.2", ".42", "8"]
    dots = [(line.get_xdata()[0], line.get_ydata()[0]) for line in axes.lines if line.get_marker() == "."]
    assert len(dots) == 1 and round(dots[0][0]) == 0 and round(dots[0][1]) == 2


def test_only_what_has_no_row_in_a_model_is_hatched():
    half = cell("alibi(form='half', factor=64.0)", family="context", model="encoder", reach=1.0)
    (axes,) = atlas_table((*CELLS, half)).axes
    (hatched,) = (boxes for boxes in axes.collections if boxes.get_hatch())
    boxes = {tuple(path.vertices.mean(0).round()) for path in hatched.get_paths()}
    assert [label.get_text() for label in axes.get_yticklabels()][3:] == [half.row, "fox"]
    assert boxes == {(0.0, 3.0), (1.0, 3.0), (2.0, 4.0)}, "a decoder has one direction, and fox no form for both"
