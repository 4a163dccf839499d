"""Sheets of steps as text, as a page, as a figure: nothing of the solution on a worksheet, nothing from elsewhere."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from posenc.lab.explain import by_hand, worksheet
from posenc.lab.explain.problem import FORMS, introduced, random_problem
from posenc.lab.explain.steps import Matrix, Sheet, Step

ALONE = {"meta", "br", "hr", "img", "link"}
FETCHES = {"src", "href", "data", "action", "poster", "srcset", "background"}
EVIL = "<script>alert(1)</script>\"'&"


class Page(HTMLParser):
    """A page as its tags: every one closed in order, and what each says of itself."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ALONE:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    def count(self, tag, **has):
        return sum(t == tag and all(a.get(k) == v for k, v in has.items()) for t, a in self.tags)


def sheets():
    yield by_hand.sheet(introduced(), "rope + alibi")
    yield from (by_hand.sheet(random_problem(form), blank=True) for form in FORMS)


@pytest.fixture(scope="module", params=range(6))
def sheet(request):
    return list(sheets())[request.param]


def test_a_page_is_whole_and_fetches_nothing(sheet):
    text = worksheet.as_html([sheet])
    found = Page(text)
    assert not found.open and text.startswith("<!doctype html>")
    assert found.count("html", lang="en") == found.count("title") == found.count("h1") == 1
    assert found.count("meta", name="viewport", content="width=device-width, initial-scale=1") == 1
    assert not [a for _, a in found.tags if FETCHES & set(a)]
    assert not re.search(r"//|url\(|@import|javascript:", text) and not found.count("script")
    assert "default-src 'none'" in text
    assert found.count("section") == len(sheet.steps)


def test_a_page_has_a_cell_for_every_number_or_a_box_for_it(sheet):
    found = Page(worksheet.as_html([sheet]))
    asked = [m for step in sheet.steps for m in step.matrices if sheet.blank and not m.printed]
    assert found.count("td", **{"class": "box"}) == sum(m.values.size for m in asked)
    told = [m for step in sheet.steps for m in step.matrices if not (sheet.blank and not m.printed)]
    without = sum(m.values.size for m in told if m.changed.any())
    assert found.count("td") == sum(m.values.size for m in [*asked, *told]) + without
    assert found.count("td", **{"class": "new"}) == sum(int(m.changed.sum()) for m in told)
    assert found.count("tr", **{"class": "own"}) == sum(len(m.marked) for m in [*asked, *told])


def evil():
    matrix = Matrix(EVIL, np.eye(1), (EVIL,), (EVIL,))
    step = Step("x", EVIL, (matrix,), EVIL, (EVIL,), EVIL)
    return Sheet(EVIL, EVIL, (step,), EVIL)


def test_whatever_a_scheme_is_called_a_page_shows_it_as_text():
    found = Page(worksheet.as_html([evil()]))
    assert not found.count("script") and "".join(found.text).count(EVIL) == 11


@pytest.mark.parametrize("form", FORMS)
def test_a_worksheet_tells_what_is_given_and_nothing_that_is_asked(form):
    blank, solved = (by_hand.sheet(random_problem(form), blank=b) for b in (True, False))
    text = worksheet.as_text(blank)
    asked = [m for step in blank.steps for m in step.matrices if not m.printed]
    assert text.count(worksheet.BOX) == sum(m.values.size for m in asked) > 40
    root = "1.7321"
    assert set(re.findall(r"\d+\.\d{4}", text)) <= {root}, "a number of four digits is one that was asked for"
    for m in (m for step in blank.steps for m in step.matrices if m.printed):
        assert "\n".join(worksheet.block(m, True)) == "\n".join(worksheet.block(m, False))
    assert worksheet.BOX not in worksheet.as_text(solved)
    values = json.dumps(worksheet.as_json(blank))
    assert json.loads(values)["steps"][-1]["matrices"][-1]["values"] is None


def test_a_worksheet_s_page_holds_no_number_that_is_asked_for():
    text = worksheet.as_html([by_hand.sheet(random_problem(), blank=True)])
    assert set(re.findall(r">-?\d+\.\d{4}<", text)) == set()
