"""The base class of tasks: how examples are sampled, what is scored, and which sizes are legal.

A task is a frozen dataclass whose fields are its settings. `sample` makes a batch on the device for a traced size;
`answer` is its oracle, plain Python that shares no code with `sample`. `tasks.layout` assembles the layouts.
"""

from __future__ import annotations

import dataclasses
import enum
from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from posenc.language.echo import echoed, offer
from posenc.language.modules import notebook
from posenc.language.registry import Registry, convert

TASKS = Registry("task", "posenc.lab.tasks", "posenc.tasks")
BOTH = frozenset({"causal", "bidirectional"})
CAUSAL = frozenset({"causal"})
BIDIRECTIONAL = frozenset({"bidirectional"})
MOST = 2**24
"""The largest allowed integer setting; memory runs out long before it, and int32 overflows soon after it."""


class Layout(enum.Enum):
    """Place of the answer: in empty slots, in one slot, at each token, after a prompt, or in a decoder.

    A layout sets defaults that a task may override: answers written as a text (LM, SEQ2SEQ) are causal and scored by
    exact match.
    """

    TAG = "tag"
    CLASSIFY = "classify"
    TOKENS = "tokens"
    LM = "lm"
    SEQ2SEQ = "seq2seq"

    @property
    def specials(self) -> tuple[str, ...]:
        """The tokens that this layout adds after those of the task, in the order of their ids."""
        match self:
            case Layout.TAG | Layout.CLASSIFY:
                return ("EMPTY", "PAD")
            case Layout.TOKENS:
                return ("PAD",)
            case Layout.LM:
                return ("PAD", "SEP", "BOS", "EOS")
            case Layout.SEQ2SEQ:
                return ("PAD", "BOS", "EOS")

    def length(self, n: int) -> int | None:
        """Return the tokens of an input of n tokens and its answer, if the layout fixes that length. The answer has as
        many slots, one slot, none, or with its end one more than the source. A text has no fixed length."""
        match self:
            case Layout.TAG:
                return 2 * n
            case Layout.TOKENS:
                return n
            case Layout.CLASSIFY | Layout.SEQ2SEQ:
                return n + 1

    @property
    def writes(self) -> bool:
        """Tell whether the answer is a text of the task's tokens, ended by EOS."""
        return "EOS" in self.specials

    @property
    def metric(self) -> str:
        """The metric that figures show."""
        return "exact" if self.writes else "accuracy" if self is Layout.CLASSIFY else "token"


class Batch(NamedTuple):
    """Examples of one task; every leaf has a static shape, T being `task.tokens(n_max)`."""

    tokens: Int[Array, "B T"]  # padded on the right
    targets: Int[Array, "B T"]  # the class to predict at this token (LM: already shifted)
    score: Bool[Array, "B T"]  # counted by the metric
    weight: Float[Array, "B T"]  # of the loss; equals `score` unless a paper differs
    valid: Bool[Array, "B T"]  # False at padding, whose keys are masked
    size: Int[Array, " B"]  # the x axis of every figure
    prompt: Bool[Array, "B T"]  # what the oracle reads: the input; for LM up to and including SEP
    coords: dict[str, Int[Array, "B T"]]  # coordinates that the task provides to schemes
    strata: dict[str, Int[Array, " B"]]  # labels by which results may be grouped
    source: Int[Array, "B S"] | None = None  # SEQ2SEQ only
    source_valid: Bool[Array, "B S"] | None = None


@dataclasses.dataclass(frozen=True)
class Sizes:
    """The sizes that a task has: legal, trained on, and evaluated."""

    smallest: int
    """The smallest legal size; below it no example exists."""
    train: tuple[int, int]
    """The range, both ends included, from which the published training drew sizes uniformly. In our runs `Run.length`
    sets the upper end and `Run.shortest`, if set, the lower (`upto`)."""
    evaluation: tuple[int, ...]
    """Sizes beyond training, by default."""
    largest: int | None = None
    """The largest legal size, if the settings limit it."""
    step: int = 1
    """The distance from one legal size to the next: 2 where a size counts tokens that come in pairs."""
    why: str = ""
    """Why there is a largest size, as the end of a message."""

    @property
    def validation(self) -> tuple[int, ...]:
        """Sizes inside the training range, on which a learning rate may be chosen: the range's quarters."""
        low, high = self.train
        return tuple(sorted({self.below(high - (high - low) * quarter // 4) for quarter in range(4)}))

    def below(self, n: Any) -> Any:
        """The largest legal size up to n (a number or an array); n must not be below the smallest."""
        return n if self.step == 1 else n - (n - self.smallest) % self.step

    def has(self, n: int) -> bool:
        """Tell whether a size is legal."""
        return n >= self.smallest and (self.largest is None or n <= self.largest) and self.below(n) == n

    def legal(self, smallest: int | None = None) -> str:
        """The sizes that `has` allows, from `smallest` up, in words for error messages."""
        low = smallest or self.smallest
        high = self.largest if self.largest is None else max(low, self.below(self.largest))
        more = f", {self.why}" if self.why else ""
        if low == high:
            return f"only {low}{more}"
        steps = "" if self.step == 1 else f", in steps of {self.step}"
        return (f"at least {low}" if high is None else f"{low} to {high}") + steps + more

    def upto(self, length: int, shortest: int | None = None) -> Sizes:
        """These sizes with training from `shortest` to `length`; a task published with one training size keeps one."""
        low, high = self.train
        first = shortest or (length if low == high else low)
        if not self.has(length) or length < first:
            bound = max(self.smallest, shortest or (self.smallest if low == high else low))
            also = f", or set shortest too, to {self.smallest} or more" if self.has(length) and not shortest else ""
            raise ValueError(f"The longest training size, length, is {length}; take {self.legal(bound)}{also}.")
        beyond = tuple(n for n in self.evaluation if n > length)
        return dataclasses.replace(self, train=(first, length), evaluation=beyond)


@dataclass_transform(frozen_default=True)
class Task(ABC):
    """The base of all tasks. `class ReverseString(Task, name="reverse_string")` enters the registry.

    Token ids: `0 … alphabet-1` are the task's, then come the special tokens of its layout; all are below `vocab`.
    """

    name: ClassVar[str]
    suites: ClassVar[tuple[str, ...]] = ()
    samples: ClassVar[tuple[dict[str, Any], ...]] = ()  # settings that the tests also run
    least: ClassVar[dict[str, int]] = {}  # the smallest value of a setting

    # Values, or properties where they depend on settings; no type fits both, hence Any.
    layout: Any
    directions: Any = property(lambda task: CAUSAL if task.layout.writes else BOTH)
    metric: Any = property(lambda task: task.layout.metric)
    """str: the metric that figures show, one of token, accuracy, exact, last, error."""
    ability: Any = ""
    """str: the ability that it needs, such as "counting"; `posenc.lab.spec.abilities` has ours."""
    revision: Any = 1  # raised when the data change
    alphabet: Any
    """int: how many tokens the task has, without the special tokens of its layout."""
    vocabulary: Any = MappingProxyType({})
    """dict: readable names of the task's tokens, where the number itself is not the name."""
    sizes: Any
    """Sizes: the legal ones, those trained on, and those evaluated."""
    classes: Any = property(lambda task: task.vocab)
    """int: the number of output classes; a language model has its tokens."""
    choices: Any = property(lambda task: task.alphabet if task.layout.writes else task.classes)
    """int: from how many tokens a uniform guess of one answer token is drawn."""
    read_by: Any = None
    """str: the metric that results are read by, where it is not that of figures, nor the places beyond training."""
    texts: Any = MappingProxyType({})
    """dict: what `load_part` reads, "file my.txt", to its SHA-256, which is part of a trial's identity."""
    continues: Any = False
    """bool: whether what is predicted at a token is the one that comes next, as in an answer of LM."""
    cue: Any = None
    """range: the tokens that answers consist of. The row's most frequent one is then a guess without order. It is None
    if answers are others."""
    next_token: Any = False
    """bool: True if targets are the next tokens. The last of them is in no prompt, so `answer` leaves it out."""
    unigram: Any = None
    """Float[ndarray, " classes"]: the unigram law of a source whose `losses` are known exactly. Others have None."""

    _repr_html_ = notebook("posenc.lab.explain.task_card:as_html")

    def __init_subclass__(cls, name: str | None, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        if cls.__bases__ != (Task,):
            raise TypeError(
                f"{cls.__name__} extends {cls.__bases__[0].__name__}, but tasks are final; extend Task alone."
            )
        if missing := [attribute for attribute in ("layout", "alphabet", "sizes") if not hasattr(cls, attribute)]:
            raise TypeError(f"{cls.__name__} must define layout, alphabet and sizes; it lacks {' and '.join(missing)}.")
        cls.name = cls.__name__ if name is None else name
        dataclasses.dataclass(frozen=True)(cls)
        jax.tree_util.register_static(cls)
        if name is not None:  # a task without a name is for a test or a notebook, and is not registered
            TASKS.add(name, cls)

    def __post_init__(self) -> None:
        convert(self)
        self.validate()
        if type(self).tokens is Task.tokens:
            self.tokens(1)  # refuses a text, of which no layout says how long it is

    def validate(self) -> None:
        """Raise `ValueError`, in one sentence, for settings without a meaning; an override calls this one too."""
        for setting, bound in self.least.items():
            value = getattr(self, setting)
            if value < bound:
                raise ValueError(f"The setting {setting!r} of {self.name!r} must be at least {bound}, not {value}.")
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int) and value > MOST:
                raise ValueError(f"The setting {field.name!r} of {self.name!r} must be at most {MOST}, not {value}.")

    def ways(self, n: int) -> int:
        """How many equally likely cases of the paper have this size, such as pairs of lengths whose larger is n.

        1 where the paper draws n itself.
        """
        return 1

    @property
    def vocab(self) -> int:
        """The number of input tokens; all ids are below it."""
        return self.alphabet + len(self.layout.specials)

    def special(self, word: str) -> int:
        """The id of EMPTY, PAD, SEP, BOS or EOS."""
        return self.alphabet + self.layout.specials.index(word)

    def word(self, token: int) -> str:
        """The name of a token, or its number."""
        if token >= self.alphabet:
            return self.layout.specials[token - self.alphabet]
        return self.vocabulary.get(token, str(token))

    def tokens(self, n: int) -> int:
        """Return the length of the longest sequence of size n, on the host. It is the layout's for n tokens of input,
        unless a task says otherwise."""
        if (length := self.layout.length(n)) is None:
            raise TypeError(f"{type(self).__name__} must define tokens(n), the length of its longest text of size n.")
        return length

    @abstractmethod
    def make(self, key: PRNGKeyArray, n: Int[Array, " B"], n_max: int) -> Batch:
        """Examples, one per entry of n. A task defines this; its users call `sample`."""

    def load_part(self, part: str) -> Any:
        """Return the data from which examples of "train", "validation" or "test" are taken, as arrays on the device. It
        is None if all of an example is drawn, so that no two parts share any."""
        return None

    def take(self, data: Any, key: PRNGKeyArray, n: Int[Array, " B"], n_max: int) -> Batch:
        """Make examples as `make` does, from a part of its data. A task that has `load_part` defines this too."""
        return self.make(key, n, n_max)

    @abstractmethod
    def answer(self, prompt: list[int]) -> list[int]:
        """The oracle: the targets at the scored tokens of this prompt, in order."""

    def losses(
        self, texts: Int[np.ndarray, "rows T+1"], window: int | None = None, places: Sequence[int] | None = None
    ) -> Float[np.ndarray, "rows places"]:
        """Return the least expected loss at positions of texts, in nats, of a predictor of the last `window` tokens, or
        of all. Only a task with a `unigram` has it; else `ValueError`. The target at position i is token i + 1. It is
        plain numpy, without code of `make`."""
        raise ValueError(f"The best loss of {self.name!r} is not known.")

    def tokenise(self, text: str) -> list[int]:
        """The tokens that a text names, each as `word` writes it, with spaces between. Raises `ValueError`."""
        tokens = {self.word(token): token for token in range(self.alphabet)}
        if unknown := [word for word in text.split() if word not in tokens]:
            raise ValueError(f"{self.name!r} has no symbol {echoed(unknown[0])}.{offer(unknown[0], tokens)}")
        return [tokens[word] for word in text.split()]

    def text_of(self, tokens: Sequence[int]) -> str:
        """The text that names these tokens."""
        return " ".join(map(self.word, tokens))

    def continuation(self, prompt: list[int], most: int) -> list[int] | None:
        """Return the true continuation of a prompt, of at most `most` tokens; None if it is unknown."""
        return self.answer(prompt)[:most]

    def yardsticks(self, rows: Int[np.ndarray, "rows T"]) -> dict[str, Float[np.ndarray, " places"]]:
        """The mean loss of simple readers, by name, at each scored place of these rows of tokens, in nats; empty where
        guesses are enough."""
        return {}

    def sample(
        self,
        key: PRNGKeyArray,
        n: int | Int[Array, ""] | Int[Array, " B"],
        *,
        batch: int,
        n_max: int,
        data: Any = None,
    ) -> Batch:
        """Return `batch` examples of size n (a scalar, or one per row), padded as size `n_max` needs. They come from
        what `load_part` of this task returned for a part; by default from the test part.

        Examples do not depend on `n_max`: everything is drawn position by position, across the batch.
        """
        self.check_size(n_max)
        if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
            raise ValueError(f"batch={batch!r} for {self.name!r} must be a whole number of rows, at least 1.")
        if not jnp.issubdtype(jnp.asarray(n).dtype, jnp.integer):
            raise TypeError(f"A size of {self.name!r} must be a whole number, not {jnp.asarray(n).dtype}.")
        if jnp.shape(n) not in ((), (batch,)):
            raise ValueError(f"Sizes must be one number or one per row, of shape ({batch},), not {jnp.shape(n)}.")
        if not isinstance(n, Tracer):
            for size in np.unique(np.asarray(n)):
                self.check_size(int(size), n_max)
        n = jnp.broadcast_to(jnp.asarray(n, jnp.int32), (batch,))
        return self.make(key, n, n_max) if data is None else self.take(data, key, n, n_max)

    def check_size(self, n: int, longest: int | None = None) -> None:
        """Raise an error for a size that is not legal. A traced size is unknown here: its caller checks the range."""
        if isinstance(n, bool) or not isinstance(n, int | np.integer):
            raise TypeError(f"A size of {self.name!r} must be a whole number, not {n!r}.")
        sizes = self.sizes if longest is None else dataclasses.replace(self.sizes, largest=longest)
        if not sizes.has(n):
            raise ValueError(f"{self.name!r} has no size {n}; with these settings take {sizes.legal()}.")
