"""A card is the same in text, JSON and HTML, and shows whatever it holds as it is."""

from html.parser import HTMLParser

import pytest

from posenc.catalog.card import Card, Fact, bibtex, keys, paragraphs
from posenc.lab.cli import cards

STRANGE = Card(
    "scheme",
    "<script>alert(1)</script>",
    'a < b & "c"',
    "x <= y\n  z",
    (
        Fact("one", ["a", "b"], "a <b>"),
        Fact("data", {"n": 1}, ""),
        Fact("rows", [1, 2], "1 <\n2", "rows & more", is_block=True),
        Fact("", "by people", label="only read"),
        Fact("empty", ""),
    ),
    ("A <note>.",),
    ("su2021roformer",),
)


class Tags(HTMLParser):
    """The tags of a text, and what stands between them."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.texts = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        assert not attributes
        self.open.append(tag)
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_html_holds_what_the_text_holds_and_nothing_of_it_is_a_tag():
    page = Tags(STRANGE.as_html())
    assert not page.open
    assert page.seen == "article h1 p pre h2 pre dl dt dd dt dd dt dd p".split()
    whole = "".join(page.texts)
    for part in ("<script>alert(1)</script>", 'a < b & "c"', "x <= y\n  z", "a <b>", "rows & more", "A <note>."):
        assert part in whole
    assert "<script" not in STRANGE.as_html()


def test_text_shows_what_people_read_and_json_what_programs_read():
    assert STRANGE.as_text() == (
        '<script>alert(1)</script>\n  a < b & "c"\n\n      x <= y\n        z\n\n  rows & more:\n      1 <\n      2\n\n'
        "  one          a <b>\n  only read    by people\n  cite         su2021roformer\n\n  A <note>."
    )
    assert STRANGE.as_dict() == {
        "scheme": "<script>alert(1)</script>",
        "idea": 'a < b & "c"',
        "equation": "x <= y\n  z",
        "notes": ["A <note>."],
        "one": ["a", "b"],
        "data": {"n": 1},
        "rows": [1, 2],
        "empty": "",
        "cite": ["su2021roformer"],
    }
    assert "parts" in Card("scheme", "a + b", "", parts=(STRANGE,)).as_dict()


def test_facts_are_broken_where_there_are_columns_and_nowhere_else():
    card = Card("model", "m", "", facts=(Fact("long", "word " * 30),))
    assert max(map(len, card.as_text(40).splitlines())) <= 40
    assert card.as_text(40).splitlines()[-1].startswith(" " * 15 + "word")
    assert len(card.as_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("scheme", "rope + alibi"),
        ("model", "lstm"),
        ("preset", "ruoss"),
        ("suite", "suite:quick"),
        ("experiment", "length"),
    ],
)
def test_what_there_is_has_one_card_each_that_becomes_a_page(kind, name):
    card = cards.build(kind, name)
    page = Tags(card.as_html())
    assert card.kind == kind and page.seen[:2] == ["article", "h1"] and not page.open
    assert card.as_text().startswith(page.texts[page.texts.index("\n") + 1])


def test_bibtex_is_read_in_a_fence_and_without_one():
    """Idea.

    A note.

    ```bibtex
    @article{a2020b, title={x}}
    @misc{c2021d, title={y}}
    ```
    """
    own = test_bibtex_is_read_in_a_fence_and_without_one
    assert paragraphs(own) == ["Idea.", "A note."]
    assert keys(bibtex(own.__doc__)) == ("a2020b", "c2021d")
    assert keys(bibtex("@article{e2022f, title={z}}")) == ("e2022f",)
