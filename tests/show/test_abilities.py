"""A table of abilities takes the runs that a column names, at the size of its rule, and says which of them learned."""

import pytest

from posenc.lab.figures import style
from posenc.lab.spec.experiment_file import executed
from tests.hits import FOLDER
from tests.lab import made

abilities = executed(FOLDER / "figures" / "_abilities.py")
Ability = abilities.Ability
SCHEMES = {"rope": ("rope",), "alibi": ("alibi", "alibi(form='half')"), "nope": ("nope",)}
COPY = Ability("copy", "made", "copy", "decoder", "accuracy")


def record(label, model, curve, seeds=3):
    """One scheme in one model, right in these shares at these sizes, of which 4 to 16 are trained."""
    trials = [made.trial(label, "copy", seed, curve) for seed in range(seeds)]
    rec = made.record(label, label, "copy", trials, sizes=tuple(curve))
    return {**rec, "run": {**rec["run"], "model": model}}


def column(**changes):
    records = (
        record("rope", "decoder", {8: 1.0, 16: 0.95, 24: 0.9, 32: 0.6}),
        record("rope", "encoder", {8: 0.1, 16: 0.1, 24: 0.1, 32: 0.1}),
        record("alibi(form='half')", "decoder", {8: 1.0, 16: 0.85, 24: 0.9, 32: 0.7}),
    )
    ability = Ability(**{**vars(COPY), **changes})
    return abilities.column(made.results("made", records), ability, SCHEMES)


def test_a_column_is_of_one_model_at_about_twice_its_length_with_the_highest_floor():
    one = column()
    assert (one.size, one.longest, one.floor) == (32, 16, ("position", made.FLOORS["position"]))
    assert one.score("rope") == pytest.approx(0.6) and one.score("alibi") == pytest.approx(0.7)
    floor = made.FLOORS["position"]
    assert one.excess("rope") == pytest.approx((0.6 - floor) / (1 - floor))
    assert one.score("nope") is None and one.excess("nope") is None


def test_the_size_is_that_nearest_to_the_rule_and_is_named_where_it_is_not_twice():
    assert column().heading == "copy" and column(times=1.4).size == 24
    assert column(times=1.4).heading == "copy\n(1.5 L)"


def test_what_was_not_learned_at_one_of_the_trained_sizes_is_told_apart():
    """alibi has 1.00 at 8 and 0.85 at 16, and more beyond than rope."""
    assert column().learned("rope") and not column().learned("alibi")


def test_every_cell_has_a_row_of_what_it_rests_on():
    rope, alibi = abilities.rows([column()], list(SCHEMES))
    assert (rope["scheme"], alibi["text"], rope["n"], rope["size"]) == ("rope", "alibi(form='half')", 3, 32)
    assert rope["learned"] and not alibi["learned"] and rope["median"] == pytest.approx(0.6)


def test_cells_are_blue_by_their_excess_grey_where_not_learned_and_a_dash_where_not_run():
    from matplotlib.colors import to_rgb
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    abilities.draw(axes, [column(), column(model="encoder")], list(SCHEMES), "made")
    shades = axes.images[0].get_array().filled(-1)
    assert shades[0, 0] == pytest.approx(column().excess("rope")) and (shades.flat[1:] == -1).all()
    texts = {tuple(t.get_position()): t.get_text() for t in axes.texts if type(t).__name__ == "Text"}
    assert [texts[0, row] for row in range(4)] == [".60", ".70", "–", ".20"] and texts[1, 0] == ".10"
    grey = [c for c in axes.collections if tuple(c.get_facecolor()[0][:3]) == pytest.approx(to_rgb(style.FAINT))]
    assert len(grey) == 2, "alibi as a decoder, rope as an encoder"
    assert [label.get_text() for label in axes.get_yticklabels()] == [*SCHEMES, "best floor"]
