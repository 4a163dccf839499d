"""Pages in a real browser, from the disk: narrow and wide, light and dark, by keyboard, without a network."""

import functools
import shutil

import pytest

pytestmark = pytest.mark.ci
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
WIDTHS = (390, 768, 1440)
SECONDS = 60_000
NAMELESS = """() => [...document.querySelectorAll("main a, main button, main select, main input, main summary")]
  .filter((e) => e.getClientRects().length && !e.closest("[aria-hidden=true]"))
  .filter((e) => !(e.innerText || e.getAttribute("aria-label") || e.title
    || (e.labels && e.labels.length) || e.querySelector("img[alt]"))).map((e) => e.outerHTML.slice(0, 120))"""
CONTRAST = """() => {
  const parse = (c) => (c.match(/[\\d.]+/g) || []).map(Number);
  const over = (top, under) => { const a = top[3] ?? 1; return [0, 1, 2].map((i) => top[i] * a + under[i] * (1 - a)); };
  const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92
    : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const below = (e) => { const stack = []; for (let at = e; at; at = at.parentElement) {
    const c = parse(getComputedStyle(at).backgroundColor); if (c.length && c[3] !== 0) stack.unshift(c); }
    return stack.reduce((under, c) => over(c, under), [255, 255, 255]); };
  return [..."p td th dt dd a label figcaption".split(" ").flatMap((n) => [...document.querySelectorAll(`main ${n}`)])]
    .filter((e) => !e.matches(".headerlink") && e.getClientRects().length)
    .filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()))
    .map((e) => { const under = below(e), ink = over(parse(getComputedStyle(e).color), under);
      const [a, b] = [light(ink), light(under)].sort((x, y) => y - x);
      return [(a + 0.05) / (b + 0.05), e.innerText.slice(0, 40), e.className]; })
    .filter(([ratio]) => ratio < 4.5);
}"""


@pytest.fixture(scope="module")
def browser():
    sync = pytest.importorskip("playwright.sync_api", reason="Playwright comes with the extra `browser`")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("there is no chromium on this machine")
    with sync.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser, built):
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
        if name == "atlas":
            page.wait_for_selector("#atlas-chart svg")
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", KINDS)
def test_a_page_can_be_read_and_named(opened, name, scheme):
    """Instead of axe-core, which no wheel of ours has: names of what can be used, one first heading, contrast."""
    page = opened(name, 768, color_scheme=scheme)
    dark = page.evaluate("document.body.dataset.mdColorScheme")
    assert dark == ("slate" if scheme == "dark" else "default")
    assert page.locator("main h1").count() == 1 and page.evaluate("document.documentElement.lang") == "en"
    assert not page.evaluate(NAMELESS)
    assert not page.evaluate(CONTRAST)


def test_search_answers_from_the_disk(opened):
    page = opened("index")
    page.keyboard.press("/")
    page.keyboard.type("alibi")
    page.wait_for_selector(".md-search-result__item a[href*='schemes/alibi']")


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


def test_a_cell_of_the_atlas_tells_its_runs_and_shows_its_places(opened):
    page = opened("atlas")
    cell = page.locator("#atlas-chart .mark-rect path").first
    cell.hover()
    page.wait_for_selector("#vg-tooltip-element.visible")
    assert "1.25 L" in page.locator("#vg-tooltip-element").inner_text()
    cell.click()
    assert "at place" in page.locator("#atlas-words").inner_text()
    page.wait_for_selector("#atlas-places svg")
