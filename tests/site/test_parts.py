"""Pieces of the site without MkDocs: what is escaped, what there is a page for, and where links lead."""

import json
import os
import re
import shutil
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import pytest

import posenc
from posenc.catalog.card import Card
from posenc.lab import tasks
from posenc.lab.results.atlas_cells import atlas_cells, recorded_cells
from posenc.lab.results.results import load
from posenc.lab.site import atlas_data, guides, home, length_charts, shelf, tags, task_pages, tiles, usage
from posenc.lab.site.atlas_page import EMPTY, atlas_page
from posenc.lab.site.reference import GROUPS, fenced, reference_pages

HOSTILE = "<script>alert('x')</script>"


@pytest.mark.parametrize(
    "written",
    [
        tags.paragraph(HOSTILE),
        tags.paragraph(f"`{HOSTILE}`"),
        tags.table([HOSTILE], [[HOSTILE]], HOSTILE),
        tags.table(["a"], [[tags.Link(HOSTILE, '"><script>')]]),
        tags.facts([(HOSTILE, HOSTILE)]),
        tags.picture('"><script>', HOSTILE, HOSTILE),
        Card("scheme", HOSTILE, HOSTILE, HOSTILE).as_html(),
        length_charts.section([{"title": HOSTILE, "chart": {}, "lines": [{"name": HOSTILE}]}]),
    ],
)
def test_a_text_of_a_record_is_shown_as_text(written):
    assert HOSTILE not in written and '"><script>' not in written and "&lt;script" in written


def test_a_block_holds_a_fence_of_its_own():
    text = "before\n````\nafter"
    shown = tags.block(text)
    assert shown.startswith("`````text\n") and shown.endswith("\n`````")


def test_a_title_with_quotes_is_one_title():
    assert 'title: "a \\"b\\" \\\\ c"' in tags.page("a.md", 'a "b" \\ c').text


@pytest.fixture(scope="module")
def cut():
    return tiles.cut((shelf.experiments() / "figures" / "gallery.svg").read_text(encoding="utf-8"))


def test_every_scheme_has_its_picture(cut):
    assert {*cut} >= {*posenc.names()}
    for name in posenc.names():
        root = ET.fromstring(cut[name][0])
        _, _, wide, high = map(float, root.get("viewBox").split())
        assert wide == high > 0 and len(list(root.iter())) > 3, name


def test_pictures_differ_and_stars_mark_moved_parameters(cut):
    assert len({shown for shown, _ in cut.values()}) >= len(cut) - 1
    assert cut["repo"][1] and not cut["rope"][1]
    assert "nothing in" in cut["nope"][0] and "<image" in cut["rope"][0].replace("ns0:", "")


def test_every_task_has_three_examples_that_differ():
    examples = json.loads(task_pages.EXAMPLES.read_text(encoding="utf-8"))
    assert [*examples] == sorted(tasks.names())
    for name, shown in examples.items():
        assert len({*shown}) == 3 and all("oracle" in text for text in shown), name


@pytest.mark.ci
@pytest.mark.parametrize("name", ["copy", "before", "s2s_copy"])
def test_examples_are_those_of_the_task(name):
    from posenc.lab.explain import task_card

    if os.environ.get("POSENC_REGENERATE"):
        worked = {name: task_card.worked(name) for name in sorted(tasks.names())}
        task_pages.EXAMPLES.write_text(json.dumps(worked, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    examples = json.loads(task_pages.EXAMPLES.read_text(encoding="utf-8"))
    assert task_card.worked(name) == examples[name]
    example = {fact.key: fact.text for fact in task_card.card(name).facts}["example"]
    assert examples[name][0] == example


def test_links_of_guides_lead_to_pages_of_the_site():
    text = (
        "[a](../experiments/base.py) [b](../experiments/figures/base.svg) [c](../README.md#x) [d](model.md#y) [e](../x)"
    )
    assert guides.localized(text) == (
        "[a](../experiments/base.md) [b](../assets/figures/base.svg) [c](../index.md) [d](model.md#y) e"
    )
    assert guides.localized("<!-- places: checked -->\ntext") == "text"


def test_an_example_in_a_docstring_is_a_block():
    shown = fenced("Idea.\n\n>>> [1][0]\n1\n\nMore.")
    assert shown == "Idea.\n\n```pycon\n>>> [1][0]\n1\n```\n\nMore."


def test_every_public_name_has_a_place_in_the_reference():
    text = "".join(page.text for page in reference_pages())
    assert all(f"## posenc.{name}\n" in text for name in posenc.__all__)
    assert {name for _, names in GROUPS.values() for name in names} <= {*posenc.__all__}


@pytest.mark.ci
@pytest.mark.parametrize("name", ["rope", "learned", "rope_2d", "fox"])
def test_programs_of_a_scheme_run_as_they_stand(name):
    for framework, program in usage.usage(name).items():
        space = {}
        exec(compile(program, f"{name} in {framework}", "exec"), space)
        assert space["y"].shape[:2] == (2, 128), framework


def test_the_atlas_without_records_says_so(tmp_path):
    page = atlas_page(tmp_path, tmp_path)
    assert tags.paragraph(EMPTY) in page.text and not list(tmp_path.iterdir())


def test_the_atlas_takes_its_records_and_the_probes_that_wait(tmp_path):
    places = tmp_path / "records", tmp_path / "records" / "partial"
    places[1].mkdir(parents=True)
    paths = [places[at] / f"{name}.json.gz" for name, at in (("atlas", 0), ("atlas", 1), ("atlas_recall", 1))]
    for path in paths:
        path.write_bytes(b"")
    assert atlas_data.records(tmp_path) == paths


def test_numbers_of_the_atlas_are_those_of_its_cells():
    record = shelf.experiments() / "records" / "atlas.json.gz"
    lines = atlas_data.atlas_data([record])["cells"]
    at = {(c["row"], c["model"], c["probe"]): c for c in lines if c["rate"] == atlas_data.CHOSEN}
    cells = atlas_cells(load(record))
    assert len(at) == len(cells) > 5
    for cell in cells:
        line = at[cell.row, cell.model, cell.probe]
        for name, value in {"x1": cell.once, "x2": cell.twice, "x4": cell.four, "floor": cell.floor}.items():
            assert line[name] == pytest.approx(value, abs=6e-4), (cell, name)
        assert line["reach"] == pytest.approx(cell.reach, abs=6e-4) and line["n"] == cell.seeds


def test_the_front_table_shades_what_is_above_the_floor():
    cells = recorded_cells()
    text = home.home(cells, {"schemes": 1}).text
    shown = [cell for cell in cells if cell.row in home.SHOWN and cell.model == "decoder"]
    assert {cell.row for cell in shown} == {*home.SHOWN}
    assert len(re.findall(r'<td class="(?:h\d+|off)"', text)) == len(shown)
    assert all(('"off"' in line) == ("not learned" in line) for line in re.findall(r"<td class.*?</td>", text))
    assert 'class="h10" title="look-up, to 4 L">1.00' in text and 'class="off" title="offset, not learned">0.07' in text
    assert "<table" not in home.home((), {}).text


def test_a_damaged_record_leaves_its_experiment_without_results(tmp_path):
    shutil.copy(shelf.experiments() / "first_look.py", tmp_path)
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "first_look.json").write_text("{", encoding="utf-8")
    shelved = shelf._shelved(tmp_path / "first_look.py")
    assert shelved.results is None and not shelved.recorded_schemes


def test_what_a_scheme_can_is_read_from_its_card():
    from posenc.lab.site.scheme_pages import able

    facts = [("cache", "none: why"), ("causal only", "why"), ("kernels", ["dense"])]
    refused = SimpleNamespace(facts=[SimpleNamespace(key=k, value=v) for k, v in facts])
    facts = [("cache", "keys"), ("causal only", ""), ("kernels", ["dense", "tiled"])]
    serves = SimpleNamespace(facts=[SimpleNamespace(key=k, value=v) for k, v in facts])
    assert able(refused) == [] and able(serves) == ["decode", "kernels", "both"]
