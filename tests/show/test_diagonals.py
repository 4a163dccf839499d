"""Which head looks at the answer, and what is drawn of it."""

import numpy as np
import pytest

from posenc.lab.explain import diagonals


def weights(back, share, size=6):
    """Heads that put this share on the token so many places back, and the rest on themselves."""
    eye = np.eye(size)
    return share * np.eye(size, k=-back) + (1 - share) * eye


def test_the_head_with_most_weight_so_many_places_back_is_found():
    layers = [np.stack([weights(1, 0.9), weights(3, 0.2)]), np.stack([weights(3, 0.7), weights(2, 1.0)])]
    one = diagonals.steepest("rope", layers, 3, 4)
    assert (one.layer, one.head, one.share) == (2, 1, pytest.approx(0.7)) and one.sum == pytest.approx(0.2 + 0.7)
    with pytest.raises(ValueError, match="--len is 6; take more than the 6 positions"):
        diagonals.steepest("rope", layers, 6, 4)


def test_a_run_that_kept_nothing_is_refused(tmp_path, capsys):
    from posenc.lab.cli import main

    assert main(["explain", "patterns", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
