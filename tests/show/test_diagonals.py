"""Which head looks at the answer, and what is drawn of it."""

import csv

import numpy as np
import pytest

from posenc.lab.explain import diagonals
from posenc.lab.spec.experiment_file import executed
from tests.test_experiments import FOLDER


def weights(back, share, size=6):
    """Heads that put this share on the token so many places back, and the rest on themselves."""
    eye = np.eye(size)
    return share * np.eye(size, k=-back) + (1 - share) * eye


def test_the_head_with_most_weight_so_many_places_back_is_found():
    layers = [np.stack([weights(1, 0.9), weights(3, 0.2)]), np.stack([weights(3, 0.7), weights(2, 1.0)])]
    one = diagonals.steepest("rope", layers, 3, 4)
    assert (one.layer, one.head, one.share) == (2, 1, pytest.approx(0.7)) and one.sum == pytest.approx(0.2 + 0.7)
    with pytest.raises(ValueError, match="--len is 6; take more than the 6 places"):
        diagonals.steepest("rope", layers, 6, 4)


def test_each_scheme_has_a_head_and_below_it_the_sum_and_both_say_how_much():
    shares = [k / 20 for k in range(7)]
    diagonal = [
        diagonals.Diagonal(f"s{k}", 1, k + 1, 3, 4, weights(3, s), 2 * weights(3, s)) for k, s in enumerate(shares)
    ]
    figure = diagonals.draw(diagonal)
    titles = [axes.get_title("left").strip() for axes in figure.axes]
    assert titles == [*(f"s{k}" for k in range(6)), *[""] * 6, "s6", ""]
    said = [axes.texts[0].get_text().split("\n") for axes in figure.axes]
    assert said[2] == ["layer 1, head 3: 0.10", "darkest 0.90"] and said[8] == ["all heads: 0.20", "darkest 1.80"]
    assert figure.axes[8].images[0].get_clim() == (0, pytest.approx(1.8)), "pale ones are dark at their largest weight"
    assert len(figure.axes[0].get_lines()) == 2, "training ended at 4 of 6 tokens"


def test_the_committed_patterns_show_what_was_measured():
    module = executed(FOLDER / "figures" / "patterns.py")
    for path in (module.HEADS, module.SUMS):
        with path.open(newline="") as file:
            assert len(list(csv.reader(file))) == 1 + 6 * module.TOKENS
    t5 = next(one for one in module.measured() if one.scheme == "t5")
    elsewhere = [np.diagonal(t5.total, back).mean() for back in range(-8, 9) if back != -module.BACK]
    assert t5.share < 0.15 and t5.sum > 1.6 * max(elsewhere), "no head finds it alone"
    share = {one.scheme: one.share for one in module.measured()}
    assert share["rope"] > 0.8 and max(share["nope"], share["alibi"]) < 0.15
    learned = next(one for one in module.measured() if one.scheme == "learned").weights
    inside, beyond = np.diagonal(learned, -3)[:13], np.diagonal(learned, -3)[13:]
    assert inside.mean() > 0.5 and beyond.mean() < 0.2, "it stops where training ended"


def test_a_run_that_kept_nothing_is_refused(tmp_path, capsys):
    from posenc.lab.cli import main

    assert main(["explain", "patterns", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
