"""Pieces of the site without MkDocs: what is escaped, what there is a page for, and where links lead."""

import json
import os
import re
import shutil
from types import SimpleNamespace

import pytest
from posenc_site import kit, pages, records, tex

import posenc
from posenc.catalog.schemes import card
from posenc.lab import tasks
from posenc.lab.results.atlas_cells import atlas_cells, recorded_cells
from posenc.lab.results.results import load

HOSTILE = "<script>alert('x')</script>"


def rendered(source, **values):
    """Render a template's text with the macros of the pages."""
    return kit.ENVIRONMENT.from_string('{% import "kit.html" as kit %}' + source).render(HOSTILE=HOSTILE, **values)


@pytest.mark.parametrize(
    "written",
    [
        rendered("{{ kit.p(HOSTILE) }}"),
        rendered("{{ kit.p('`' ~ HOSTILE ~ '`') }}"),
        rendered("{{ kit.table([HOSTILE], [[HOSTILE]], HOSTILE) }}"),
        rendered("{{ kit.table(['a'], [[link]]) }}", link=kit.Link(HOSTILE, '"><script>')),
        rendered("{{ kit.facts([(HOSTILE, HOSTILE)]) }}"),
        rendered("{{ kit.menu('a', HOSTILE, {'\"><script>': HOSTILE}) }}"),
        kit.equation(HOSTILE),
        kit.page(
            "a.md",
            "a",
            "task.md",
            card=SimpleNamespace(idea=HOSTILE, equation="", notes=[HOSTILE]),
            examples=(),
            facts=(),
            floors=(),
            used=(),
            command="",
            entries=(),
            doers=(),
        ).text,
        f"&lt;script{pages.written([{'title': HOSTILE}])}",
    ],
)
def test_a_text_of_a_record_is_shown_as_text(written):
    assert HOSTILE not in written and '"><script>' not in written and "&lt;script" in written


def test_a_block_holds_a_fence_of_its_own():
    text = "before\n````\nafter"
    shown = kit.block(text)
    assert shown.startswith("`````text\n") and shown.endswith("\n`````")


def test_a_title_with_quotes_is_one_title():
    page = kit.page("a.md", 'a "b" \\ c', "experiments.md", rows=())
    assert 'title: "a \\"b\\" \\\\ c"' in page.text


def test_every_equation_is_mathematics():
    """Each brace is closed, and no sign that TeX would not know is left."""
    for name in posenc.names():
        for plain, written in (part for line in tex.pieces(card(name).equation) for part in line):
            bare = re.sub(r"\\[{}]", "", written)
            assert bare.count("{") == bare.count("}"), (name, written)
            assert not set(written) & set("ΣΠ·…⌊⌋≤≥∈×∘‖⊕²ᵀ₈√`<>") and "\u0302" not in written, (name, plain, written)
            words = re.sub(r"\\(text|mathrm|operatorname)\{[^}]*\}|\\[A-Za-z]+", " ", written)
            assert not re.search("[A-Za-z]{3,}", words), (name, written)


def test_every_task_has_three_examples_that_differ():
    examples = json.loads(pages.EXAMPLES.read_text(encoding="utf-8"))
    assert [*examples] == sorted(tasks.names())
    for name, shown in examples.items():
        assert len({*shown}) == 3 and all("oracle" in text for text in shown), name


@pytest.mark.ci
@pytest.mark.parametrize("name", ["copy", "before", "s2s_copy"])
def test_examples_are_those_of_the_task(name):
    from posenc.lab.explain import task_card

    if os.environ.get("POSENC_REGENERATE"):
        worked = {name: task_card.worked(name) for name in sorted(tasks.names())}
        pages.EXAMPLES.write_text(json.dumps(worked, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    examples = json.loads(pages.EXAMPLES.read_text(encoding="utf-8"))
    assert task_card.worked(name) == examples[name]
    example = {fact.key: fact.text for fact in task_card.card(name).facts}["example"]
    assert examples[name][0] == example


def test_links_of_guides_lead_to_pages_of_the_site():
    text = (
        "[a](../experiments/base.py) [b](../experiments/figures/base.svg) [c](../README.md#x) [d](model.md#y) [e](../x)"
    )
    assert pages.localized(text) == (
        "[a](../experiments/base.md) [b](../assets/figures/base.svg) [c](../index.md) [d](model.md#y) e"
    )
    assert pages.localized("<!-- places: checked -->\n0.5<!-- first_look|rope -->\ntext") == "0.5\ntext"
    of_experiment = pages.localized("[a](figures/base.svg) [b](../docs/model.md) [c](base.py)", of_experiments=True)
    assert of_experiment == "[a](../assets/figures/base.svg) [b](../guides/model.md) [c](../experiments/base.md)"


def test_an_example_in_a_docstring_is_a_block():
    pytest.importorskip("griffe", reason="griffe comes with the extra `docs`")
    from docstrings import fenced

    shown = fenced("Idea.\n\n>>> [1][0]\n1\n\nMore.")
    assert shown == "Idea.\n\n```pycon\n>>> [1][0]\n1\n```\n\nMore."


def test_every_public_name_has_a_place_in_the_reference():
    folder = records.ROOT / "docs" / "site" / "content" / "reference"
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md")))
    homes = {name: home for home, public in posenc._HOMES.items() for name in public}
    wanted = [f"## posenc.{name}\n\n::: posenc.{homes[name]}.{name}\n" for name in posenc.__all__]
    assert text.count("## posenc.") == len(wanted) and all(place in text for place in wanted)


@pytest.mark.ci
@pytest.mark.parametrize("name", ["rope", "learned", "rope_2d", "fox"])
def test_programs_of_a_scheme_run_as_they_stand(name):
    for framework, program in pages.usage(name).items():
        space = {}
        exec(compile(program, f"{name} in {framework}", "exec"), space)
        assert space["y"].shape[:2] == (2, 128), framework


def test_the_atlas_without_records_says_so(tmp_path):
    page, data = pages.atlas_page(records.atlas_data(records.atlas_records(tmp_path)))
    assert "No record of the atlas" in page.text and "<script" not in page.text and not data


def test_the_atlas_takes_its_records_and_the_probes_that_wait(tmp_path):
    places = tmp_path / "records", tmp_path / "records" / "partial"
    places[1].mkdir(parents=True)
    paths = [places[at] / f"{name}.json.gz" for name, at in (("atlas", 0), ("atlas", 1), ("atlas_recall", 1))]
    for path in paths:
        path.write_bytes(b"")
    assert records.atlas_records(tmp_path) == paths


def test_numbers_of_the_atlas_are_those_of_its_cells():
    record = records.EXPERIMENTS / "records" / "atlas.json.gz"
    lines = records.atlas_data([record])["cells"]
    at = {(c["row"], c["model"], c["probe"]): c for c in lines if c["rate"] == records.CHOSEN}
    cells = atlas_cells(load(record))
    assert len(at) == len(cells) > 5
    for cell in cells:
        line = at[cell.row, cell.model, cell.probe]
        for name, value in {"x1": cell.once, "x2": cell.twice, "x4": cell.four, "floor": cell.floor}.items():
            assert line[name] == pytest.approx(value, abs=6e-4), (cell, name)
        assert line["reach"] == pytest.approx(cell.reach, abs=6e-4) and line["n"] == cell.seeds


def test_the_front_table_shades_what_is_above_the_floor():
    cells = recorded_cells()
    text = pages.home(cells, {"schemes": 1}).text
    rows = [row.replace(",", ", ") for row in pages.SHOWN.split()]
    shown = [cell for cell in cells if cell.row in rows and cell.model == "decoder"]
    assert {cell.row for cell in shown} == {*rows}
    assert len(re.findall(r'<td class="(?:h\d+|off)"', text)) == len(shown)
    assert all(('"off"' in line) == ("not learned" in line) for line in re.findall(r"<td class.*?</td>", text))
    assert 'class="h10" title="look-up, to 4 L">1.00' in text and 'class="off" title="offset, not learned">0.07' in text
    assert "<table" not in pages.home((), {}).text


def test_a_damaged_record_leaves_its_experiment_without_results(tmp_path):
    shutil.copy(records.EXPERIMENTS / "first_look.py", tmp_path)
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "first_look.json").write_text("{", encoding="utf-8")
    shelved = records.shelved(tmp_path / "first_look.py")
    assert not shelved.recorded and not shelved.recorded_schemes and not shelved.floors


def test_what_a_scheme_can_is_read_from_its_card():
    facts = [("cache", "none: why"), ("causal only", "why"), ("kernels", ["dense"])]
    refused = SimpleNamespace(facts=[SimpleNamespace(key=k, value=v) for k, v in facts])
    facts = [("cache", "keys"), ("causal only", ""), ("kernels", ["dense", "tiled"])]
    serves = SimpleNamespace(facts=[SimpleNamespace(key=k, value=v) for k, v in facts])
    assert pages.able(refused) == [] and pages.able(serves) == ["decode", "kernels", "both"]
