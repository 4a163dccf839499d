"""Every scheme on one page, and what `explain` makes of those that no plain matrix shows."""

from pathlib import Path

import numpy as np
import pytest

import posenc
from posenc.lab.cli import main
from posenc.lab.explain import gallery, induced
from posenc.lab.figures.files import render

PAGE = Path(__file__).resolve().parents[2] / "experiments" / "figures" / "gallery.svg"


@pytest.mark.ci
def test_a_scheme_that_turns_values_shows_its_weights_and_how_far_it_turns():
    found = {view.title.split(":")[0]: view.matrix for view in induced.views("vo_rope", 6, causal=True)}
    turned = found["value"]
    np.testing.assert_allclose(np.diagonal(turned), 0, atol=1e-12)
    assert turned[4, 1] == pytest.approx(turned[3, 0]) and turned[3, 0] > 0.1
    plain = {view.title.split(":")[0]: view.matrix for view in induced.views("rope", 6, causal=True)}
    np.testing.assert_allclose(found["query and key"], plain["query and key"], atol=1e-6)


@pytest.mark.ci
def test_weights_of_whole_rows_are_seen_against_the_highest_where_no_token_sees_itself():
    (view, *_) = induced.views("stick_breaking", 6)
    row = view.matrix[5]
    assert np.isnan(row[5]) and np.nanmax(row) == 0
    np.testing.assert_allclose(np.diff(row[:5]), np.log(2), atol=1e-6)  # each key back takes half of what is left


@pytest.mark.ci
def test_a_scheme_of_a_plane_is_seen_on_a_square():
    (view, *_) = induced.views("rope_2d", 9)
    down, along = view.matrix[0, 3], view.matrix[0, 1]
    assert down != pytest.approx(along, abs=1e-6) or down != pytest.approx(view.matrix[0, 2], abs=1e-6)
    assert view.matrix[0, 1] == pytest.approx(view.matrix[3, 4])


def test_what_multiplies_the_input_shows_on_equal_tokens():
    (view, *_) = induced.views("complex_order", 6)
    assert view.title.startswith("input") and view.matrix[0, 0] == pytest.approx(1) and view.matrix[0, 3] < 1


def test_a_page_without_a_file_is_refused(capsys):
    assert main(["explain", "all"]) == 2 and "--png FILE" in capsys.readouterr().err


def test_the_committed_page_names_every_scheme():
    text = PAGE.read_text(encoding="utf-8")
    assert all(f">{name}<" in text or f">{name}*<" in text for name in posenc.names())


@pytest.mark.ci
@pytest.mark.parametrize("name", gallery.AS)
def test_what_few_tokens_do_not_show_is_shown_by_other_settings(name):
    panel = gallery._panel(name)
    assert panel.view.shows_position and name in gallery.AS[name]
    assert panel.moved == (name in gallery.SCALED)


@pytest.mark.nightly
def test_the_committed_page_is_drawn_again():
    assert render(gallery.draw(gallery.panels()), "svg", PAGE.stem, gallery.ABOUT) == PAGE.read_bytes()
