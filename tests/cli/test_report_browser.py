"""Reports in a real browser: from a disk, at the widths of a phone, a tablet and a desk, light and dark."""

from pathlib import Path

import pytest

from posenc.lab.cli.report import WriteReport
from tests.browsing import barriers, browser  # noqa: F401

FIRST_LOOK = str(Path(__file__).parents[2] / "experiments" / "first_look.py")

pytestmark = pytest.mark.ci


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "r.html"
    assert WriteReport((FIRST_LOOK,), str(path))() == 0
    return path.as_uri()


@pytest.mark.parametrize("look", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 768, 1440])
def test_a_report_opens_without_a_network(browser, address, width, look):  # noqa: F811
    page, requests, errors = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=look), [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(address)
    wide = page.evaluate("document.documentElement.scrollWidth")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    nameless = "svg:not([aria-label]):not([aria-hidden]), img:not([alt])"
    assert wide == width and requests == [address] and not errors and page.locator(nameless).count() == 0
    assert dark == (look == "dark") and not barriers(page)
    page.close()


def test_a_touch_reads_a_run(browser, address):  # noqa: F811
    page = browser.new_page(viewport={"width": 390, "height": 900})
    page.goto(address)
    page.locator("svg path[aria-label*=', seed 0: ']").first.dispatch_event("click")
    assert ", seed 0: " in page.locator("output").inner_text()
    page.locator("h1").first.dispatch_event("click")
    assert page.locator("output").inner_text() == ""
    page.close()


def test_it_prints_on_two_pages(browser, address):  # noqa: F811
    page = browser.new_page()
    page.goto(address)
    assert page.pdf(prefer_css_page_size=True).count(b"/Type /Page\n") == 2
    page.close()
