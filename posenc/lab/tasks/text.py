"""Real text, as every paper of positional encodings measures it (ours, after Shannon, 1951).

@article{shannon1951prediction, title={Prediction and Entropy of Printed English},
  author={Shannon, Claude E.}, journal={Bell System Technical Journal}, year={1951}}
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Shaped

from posenc.lab.tasks import corpora
from posenc.lab.tasks.corpora import PARTS, Symbols, TextSource
from posenc.lab.tasks.draw import INT, between
from posenc.lab.tasks.layout import tagged
from posenc.lab.tasks.task import CAUSAL, Layout, Sizes, Task
from posenc.lab.tasks.yardsticks import yardsticks

LENGTH = 128
SIZES = (256, 512, 1024, 2048)
PLAIN = {ord(" "): "␣", ord("\n"): "⏎", ord("\t"): "⇥"}
"""Signs for white space in printed symbols."""


class TextPart(NamedTuple):
    """A part of a text on the device."""

    symbols: Shaped[Array, " most"]
    """The symbols; behind the last the array may go on, so that parts have one shape."""
    length: Int[Array, ""]


class Text(Task, name="text"):
    """Name the next byte of a text at every position (Shannon, 1951).

    t h e ␣ c a t  ->  h e ␣ c a t ·      a row is n + 1 bytes of the text from a random start; the last is not asked

    `file` is a file of your own, absolute or relative to the working folder; `corpus` a text that a package holds:
    "pydoc", the topics of Python's `help()`, or "kjv", the King James Version (extra `corpora`). With `characters` a
    symbol is a character of a text in UTF-8, not a byte. Training, validation and test rows come from parts that share
    no document (`posenc.lab.tasks.corpora`). The SHA-256 of the text is part of a trial's identity; a record never
    holds the text. A next byte has no oracle; that of this task reads it off the row.
    """

    layout = Layout.TOKENS
    directions = CAUSAL
    ability = "language"
    read_by = "bits"
    continues = True
    samples = ({"characters": True},)

    file: str | None = None
    corpus: Literal["pydoc", "kjv"] | None = None
    characters: bool = False
    digest: str = dataclasses.field(default="", init=False, repr=False)
    """The SHA-256 of the text when the task was made; an edited file is another task."""

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "corpus", self.source.corpus)
        object.__setattr__(self, "digest", corpora.content(self.source).digest)
        if self._longest < self.sizes.smallest:
            raise ValueError(
                f"The text {self.source} has {self._total} {self._unit}s, too few for two rows in each of its three"
                f" parts; give a file of {TOO_FEW} or more."
            )

    def validate(self):
        super().validate()
        if self.file is not None and self.corpus is not None:
            raise ValueError("'text' was given both a file and a corpus; give one of them.")

    @property
    def source(self) -> TextSource:
        """Return the source of the text."""
        return TextSource(self.file, self.corpus or "pydoc") if self.file is None else TextSource(self.file)

    @property
    def texts(self):
        kind, name = ("corpus", self.corpus) if self.file is None else ("file", self.file)
        return {f"{kind} {name}": self.digest}

    @property
    def _symbols(self) -> Symbols:
        return corpora.symbols(self.source, self.characters, self.digest)

    _unit = property(lambda task: "character" if task.characters else "byte")
    _total = property(lambda task: sum(map(len, task._symbols.parts.values())))
    _longest = property(lambda task: min(map(len, task._symbols.parts.values())) - 2)  # two rows at least

    alphabet = property(lambda task: len(task._symbols.words) if task.characters else 256)
    classes = property(lambda task: task.alphabet)

    @functools.cached_property
    def vocabulary(self):
        codes = map(ord, self._symbols.words) if self.characters else range(256)
        printed = ((n, PLAIN.get(code) or _printed(code, self.characters)) for n, code in enumerate(codes))
        return dict(printed)

    @property
    def sizes(self):
        length = min(LENGTH, self._longest)
        beyond = tuple(n for n in SIZES if n <= self._longest)
        shortest = self._longest + 2
        why = f"since {self.source} has {self._total} {self._unit}s and the shortest of its three parts {shortest}"
        return Sizes(2, (length, length), beyond, self._longest, why=why)

    def tokens(self, n):
        return n + 1

    def load_part(self, part):
        return _on_device(self, part)

    def make(self, key, n, n_max):
        return self.take(self.load_part("test"), key, n, n_max)

    def take(self, data, key, n, n_max):
        first = between(key, 0, data.length - 1 - n)
        places = jnp.arange(n_max + 1, dtype=INT)[None, :]
        row = data.symbols.at[first[:, None] + places].get(mode="clip").astype(INT)
        following = jnp.pad(row[:, 1:], ((0, 0), (0, 1)))
        return tagged(self, n, row, n + 1, following, places < n[:, None])

    def tokenise(self, text):
        if not self.characters:
            return list(text.encode("utf-8", "surrogateescape"))
        numbers = {word: n for n, word in enumerate(self._symbols.words)}
        if unknown := [character for character in text if character not in numbers]:
            raise ValueError(f"The text {self.source} has no character {unknown[0]!r}; write with those that it has.")
        return [numbers[character] for character in text]

    def text_of(self, tokens):
        if self.characters:
            return "".join(self._symbols.words[token] for token in tokens)
        return bytes(tokens).decode("utf-8", "replace")

    def continuation(self, prompt, most):
        """Return what follows the first place of the test part where the prompt occurs."""
        test, read = self._symbols.parts["test"], np.asarray(prompt, np.int64)
        if len(read) >= len(test):
            return None
        starts = np.lib.stride_tricks.sliding_window_view(test, len(read))[:-1]
        places = np.flatnonzero(np.equal(starts, read).all(axis=1))
        return test[places[0] + len(read) :][:most].tolist() if places.size else None

    def yardsticks(self, rows):
        return yardsticks(self._symbols.parts["train"].astype(np.int64), rows.astype(np.int64), self.alphabet)

    def answer(self, prompt):
        return prompt[1:]


TOO_FEW = 40
"""The fewest symbols of a text whose parts each hold two rows of the smallest size."""


@functools.lru_cache(maxsize=8)
def _on_device(task: Text, part: str) -> TextPart:
    """Return a part of a text, moved to the device once in a process. Parts of evaluation have one shape."""
    parts = task._symbols.parts
    symbols = parts[part]
    most = len(symbols) if part == "train" else max(len(parts[name]) for name in PARTS[1:])
    with jax.ensure_compile_time_eval():
        return TextPart(jnp.asarray(np.pad(symbols, (0, most - len(symbols)))), jnp.int32(len(symbols)))


def _printed(code: int, is_character: bool) -> str:
    """A byte or a character as people read it, or its number in hexadecimal."""
    is_plain = chr(code).isprintable() and (is_character or code < 128)
    return chr(code) if is_plain else f"\\x{code:02x}"
