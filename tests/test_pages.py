"""Pages of experiments, and numbers of records in documents, are those of the records.

`python -m experiments.pages` writes them again.
"""

import json
import re
from statistics import median

import pytest

from experiments.pages.documents import documents
from experiments.pages.fields import fill, refresh, value
from experiments.pages.measured import FOLDER, measured, names
from experiments.pages.page import page


@pytest.mark.parametrize("name", names())
def test_a_page_written_again_is_the_committed_one(name):
    assert page(measured(name)) == (FOLDER / f"{name}.md").read_text(encoding="utf-8")


def test_documents_written_again_are_the_committed_ones():
    changed = [path.name for path, text in documents().items() if path.read_text(encoding="utf-8") != text]
    assert changed == []


def test_a_reading_has_at_most_five_sentences():
    readings = [" ".join(re.sub(r"\{[^{}]*\}", "N", measured(name).reading).split()) for name in names()]
    assert all(len(re.findall(r"[.!?](?= [A-Z]|$)", reading)) <= 5 for reading in readings)
    assert sum(map(bool, readings)) == sum(measured(name).results is not None for name in names())


@pytest.mark.parametrize(
    "field",
    [
        "token_k_back|rope|63",
        "token_k_back|ropes|64",
        "no_task|rope|64",
        "|rope|64",
        "token_k_back|rope|64|lost",
        "token_k_back|rope|64|nats",
        "token_k_back|rope|64|lr=1.0",
        "token_k_back|rope|64|fall",
        "token_k_back|baseline|63",
        "token_k_back|best!ropes|64",
    ],
)
def test_a_field_that_names_no_cell_is_an_error_that_names_it(field):
    for written in (lambda: fill(f"It is {{{field}}}.", measured("first_look")), lambda: refresh(_noted(field))):
        with pytest.raises(ValueError) as error:
            written()
        assert f"{{{field}}}" in str(error.value)


def _noted(field):
    return f"0.5<!-- first_look|{field} -->"


def test_fields_are_the_counts_of_the_record():
    record = json.loads((FOLDER / "records" / "first_look.json").read_text(encoding="utf-8"))
    back = {}
    for of in record["records"]:
        if of["task"]["label"] == "token_k_back(k=3)":
            for trial in of["trials"]:
                counts = trial["evaluations"]["64"]
                back.setdefault(of["label"], []).append((counts["last"] / counts["rows"], counts["correct"]))
    last = [share for share, _ in back["rope"]]
    of, field = measured("first_look"), "token_k_back|rope|64|last"
    assert [value(of, f"{field}{end}") for end in ("", "|min", "|max")] == [
        f"{found(last):.2f}" for found in (median, min, max)
    ]
    assert value(of, f"{field}|n") == "10" and value(of, "token_k_back|schemes|64") == str(len(back))
    assert refresh(f"It is <!-- first_look|{field} -->.") == f"It is {median(last):.2f}<!-- first_look|{field} -->."
    best = max(median(share for share, _ in runs) for label, runs in back.items() if label != "rope")
    assert refresh(_noted("token_k_back|best!rope|64|last")) == (
        f"{best:.2f}<!-- first_look|token_k_back|best!rope|64|last -->"
    )
