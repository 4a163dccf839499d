"""Pages in a real browser, from the disk: narrow and wide, light and dark, by keyboard, without a network."""

import functools
import itertools

import pytest

import posenc
from tests.browsing import barriers, browser  # noqa: F401

pytestmark = [pytest.mark.ci, pytest.mark.timeout(900)]  # the first test waits for the site
KINDS = (
    "index",
    "atlas",
    "which",
    "schemes/index",
    "schemes/rope",
    "tasks/index",
    "tasks/copy",
    "experiments/index",
    "experiments/length",
    "guides/attention",
    "guides/huggingface",
    "guides/by-hand",
    "reference/attention",
)
CHARTS = {"atlas": "#atlas-chart svg", "experiments/length": "#lengths .chart svg"}
CHARTS["schemes/rope"] = ".math mjx-container svg"
"""Drawn by a script, and waited for."""
WIDTHS = (390, 768, 1440)
CUT = "(e) => e.getBoundingClientRect().right > innerWidth || e.scrollWidth > e.clientWidth + 1"
"""Whether a reader sees less than all of a caption, an equation or a command."""
SECONDS = 60_000


@pytest.fixture
def opened(browser, built):  # noqa: F811
    """`opened("schemes/rope", 390)` is that page; what it asks of other hosts, or complains of, fails."""
    complaints, contexts = [], []

    def show(name, width=1440, **how):
        context = browser.new_context(viewport={"width": width, "height": 900}, **how)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(SECONDS)
        local = built.as_uri()
        page.on("request", lambda r: r.url.startswith((local, "data:", "blob:", "about:")) or complaints.append(r.url))
        page.on("console", lambda m: m.type == "error" and complaints.append(m.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{local}/{name}.html", timeout=SECONDS)
        if chart := CHARTS.get(name):
            page.wait_for_selector(chart)
        return page

    yield show
    for context in contexts:
        context.close()
    assert not complaints


@pytest.mark.parametrize("name", KINDS)
def test_a_page_fits_and_is_quiet(opened, name):
    for width in WIDTHS:
        page = opened(name, width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, width
        broken = "() => [...document.images].filter((i) => i.complete && !i.naturalWidth).map((i) => i.src)"
        assert not page.evaluate(broken)
        assert not page.evaluate(f"() => [...document.querySelectorAll('caption, .wrap code')].filter({CUT}).length")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", KINDS)
def test_a_page_bars_nobody(opened, name, scheme):
    page = opened(name, 768, color_scheme=scheme)
    dark = page.evaluate("document.body.dataset.mdColorScheme")
    assert dark == ("slate" if scheme == "dark" else "default")
    assert page.locator("main h1").count() == 1 and page.evaluate("document.documentElement.lang") == "en"
    assert not barriers(page)


def test_equations_of_every_scheme_are_set(opened):
    """Of all pages, one after another in one window, no equation has a part that MathJax refuses."""
    page = opened("schemes/rope")
    for name in posenc.names():
        page.goto(page.url.rpartition("/")[0] + f"/{name}.html", timeout=SECONDS)
        page.wait_for_function(
            "document.querySelectorAll('[data-tex]').length === document.querySelectorAll('.math mjx-container').length"
        )
        assert page.locator("mjx-merror, [data-mjx-error]").count() == 0, name


@pytest.mark.parametrize(
    ("typed", "found"),
    [("alibi", "alibi"), ("forgetting transformer", "fox"), ("roformer", "rope")],
)
def test_search_finds_a_scheme_first_by_its_name_or_its_paper(opened, typed, found):
    page = opened("index")
    page.keyboard.press("/")
    page.keyboard.type(typed)
    page.wait_for_selector(f".md-search-result__item a[href*='schemes/{found}']")
    page.wait_for_timeout(500)
    assert f"schemes/{found}.html" in page.locator(".md-search-result__link").first.get_attribute("href")


def test_a_table_is_as_long_as_its_rows_and_a_task_names_who_does_it(opened):
    page = opened("tasks/token_k_back")
    table = page.locator(".scroll", has_text="in decoders")
    rows = table.locator("tbody tr").count()
    assert rows > 40 and table.evaluate("(e) => e.scrollHeight <= e.clientHeight + 20"), "no box of its own to scroll"
    assert "to 4 L" in table.locator("tbody tr").first.inner_text()


def test_the_grid_is_filtered_by_keyboard(opened):
    page = opened("schemes/index")
    shown = functools.partial(page.locator, "#schemes > li:not([hidden])")
    whole = shown().count()
    page.locator("select[name=family]").focus()
    page.keyboard.type("rotary")
    assert 5 < shown().count() < whole
    assert {tile.get_attribute("data-family") for tile in shown().all()} == {"rotary"}
    page.locator("select[name=can]").select_option("both")
    assert all("both" in tile.get_attribute("data-can") for tile in shown().all())


def test_the_atlas_sorts_and_chooses_by_keyboard(opened):
    page = opened("atlas")
    caption = page.locator("#atlas-table caption")
    assert "right at 2 L" in caption.inner_text()
    for name in ("model", "metric", "rate", "family", "sort"):
        assert page.locator(f"#atlas-menus select[name={name}]").count() == 1
    page.locator("select[name=metric]").focus()
    page.keyboard.press("ArrowDown")
    assert "right at 1.25 L" in caption.inner_text()
    page.locator("select[name=sort]").focus()
    page.keyboard.press("End")
    last = page.locator("select[name=sort]").input_value()
    numbers = page.evaluate(
        """(probe) => { const at = [...document.querySelectorAll("#atlas-table thead th")].findIndex(
        (th) => th.textContent === probe); return [...document.querySelectorAll("#atlas-table tbody tr")].map(
        (tr) => tr.children[at].textContent).filter((text) => /^[\\d.]+$/.test(text)).map(Number); }""",
        last,
    )
    assert numbers and numbers == sorted(numbers, reverse=True)


@pytest.mark.parametrize("by", ["row", "offset", ""])
def test_the_picture_of_the_atlas_is_sorted_as_its_table(opened, by):
    page = opened("atlas")
    page.wait_for_selector("#atlas-chart svg")
    for choice in ("row", "offset", by):
        page.locator("select[name=sort]").select_option(choice)
    page.wait_for_timeout(500)
    rows = page.locator("#atlas-table tbody th").all_inner_texts()
    labels = page.evaluate(
        """() => [...document.querySelectorAll("#atlas-chart .role-axis-label text")].map((text) =>
        [text.textContent, text.getBoundingClientRect().y])"""
    )
    shown = [text for text, _ in sorted(labels, key=lambda label: label[1])]
    begins = {row[:12] for row in rows}
    assert [text[:12] for text in shown if text[:12] in begins] == [row[:12] for row in rows]


def test_on_a_phone_no_number_of_the_atlas_lies_on_another(opened):
    page = opened("atlas", 390)
    page.wait_for_selector("#atlas-chart svg")
    boxes = page.evaluate(
        """() => [...document.querySelectorAll("#atlas-chart .mark-text text")].filter(
        (text) => /^[.\\d]+$/.test(text.textContent)).map((text) => {
        const box = text.getBoundingClientRect(); return [Math.round(box.top), box.left, box.right]; })"""
    )
    lines = {}
    for top, left, right in boxes:
        lines.setdefault(top, []).append((left, right))
    for line in lines.values():
        line.sort()
        assert all(right <= left + 0.5 for (_, right), (left, _) in itertools.pairwise(line))
    assert len(boxes) > 500


def test_the_atlas_shows_rows_by_their_names_and_the_address_keeps_what_was_chosen(opened):
    page = opened("atlas")
    rows = page.locator("#atlas-table tbody th")
    page.locator("select[name=model]").select_option("encoder")
    page.locator("select[name=sort]").select_option("offset")
    whole = rows.count()
    page.locator("input[name=words]").focus()
    page.keyboard.type("rope rand")
    names = rows.all_inner_texts()
    assert 0 < len(names) < whole and all("rope" in name and "rand" in name for name in names)
    page.reload()
    page.wait_for_selector("#atlas-chart svg")
    assert rows.all_inner_texts() == names
    assert "encoder" in page.locator("#atlas-table caption").inner_text()
    assert page.locator("select[name=sort]").input_value() == "offset"
    page.locator("input[name=words]").fill("no row has this")
    assert rows.count() == 0 and "0 rows" in page.locator("#atlas-count").inner_text()
    page.locator("input[name=words]").fill("")
    assert rows.count() == whole


def test_a_cell_of_the_atlas_tells_its_runs_and_shows_its_places(opened):
    page = opened("atlas")
    cell = page.locator("#atlas-chart .mark-rect path").first
    cell.hover()
    page.wait_for_selector("#vg-tooltip-element.visible")
    assert "1.25 L" in page.locator("#vg-tooltip-element").inner_text()
    cell.click()
    assert "at position" in page.locator("#atlas-words").inner_text()
    page.wait_for_selector("#atlas-places svg")


def test_a_line_of_an_experiment_is_chosen_by_keyboard(opened):
    page = opened("experiments/permutation")
    page.wait_for_selector("#lengths .chart svg")
    faint = functools.partial(page.locator, "#lengths .chart .mark-line path[opacity='0.15']")
    keys = page.locator("#lengths .keys button")
    assert keys.count() > 8 and faint().count() == 0
    keys.nth(3).focus()
    page.keyboard.press("Enter")
    name = keys.nth(3).inner_text()
    assert page.locator("#lengths [role=status]").inner_text().startswith(f"{name}: ")
    page.wait_for_selector("#lengths .chart .mark-line path[opacity='0.15']")
    assert faint().count() == keys.count() - 1
    lines = keys.count()
    page.locator("#lengths select").focus()
    page.keyboard.press("ArrowDown")
    assert keys.count() != lines


def test_on_paper_and_without_scripts_the_committed_figure_stands_alone(opened):
    page = opened("experiments/length")
    page.emulate_media(media="print")
    assert page.locator("#lengths").is_hidden() and page.locator("img[src$='figures/length.svg']").is_visible()
    page = opened("experiments/first_look", java_script_enabled=False)
    assert page.locator("#lengths").is_hidden() and page.locator("img[src$='figures/first_look.svg']").is_visible()
