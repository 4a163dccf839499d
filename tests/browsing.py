"""A real browser for the tests of pages, and what axe-core finds in a page that it shows."""

import shutil

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

OPTIONS = {"resultTypes": ["violations"], "preload": False}
"""Style sheets are not read again, which a browser refuses for files of a disk."""


@pytest.fixture(scope="module")
def browser():
    sync = pytest.importorskip("playwright.sync_api", reason="Playwright comes with the extra `browser`")
    if CHROMIUM is None:
        pytest.skip("no chromium is on this machine")
    with sync.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


def barriers(page):
    """The serious and critical findings of axe-core, each with the first elements that it names."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core comes with the extra `browser`")
    return [
        (finding["id"], [(node["html"][:120], node["failureSummary"][:200]) for node in finding["nodes"][:5]])
        for finding in axe.Axe().run(page, options=OPTIONS).response["violations"]
        if finding["impact"] in ("serious", "critical")
    ]
