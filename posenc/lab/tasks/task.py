"""What a task is: where its examples come from, what is scored, which sizes are legal.

A task is a frozen dataclass whose fields are its settings. `sample` makes a batch on the device for a traced size;
`answer` is its oracle, plain Python that shares no code with `sample`. Layouts are assembled in `tasks.layout`.
"""

from __future__ import annotations

import dataclasses
import enum
from abc import ABC, abstractmethod
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from posenc.language.registry import Registry, convert

TASKS = Registry("task", "posenc.lab.tasks", "posenc.tasks")
BOTH = frozenset({"causal", "bidirectional"})
CAUSAL = frozenset({"causal"})
BIDIRECTIONAL = frozenset({"bidirectional"})
MOST = 2**24
"""The largest whole number that a setting takes; memory ends long before, and int32 soon after."""


class Layout(enum.Enum):
    """Where the answer stands: in empty slots, in one slot, at each token, after a prompt, in a decoder.

    What follows from that, unless a task says otherwise: a text is written from left to right and counts as a whole.
    """

    TAG = "tag"
    CLASSIFY = "classify"
    TOKENS = "tokens"
    LM = "lm"
    SEQ2SEQ = "seq2seq"

    @property
    def specials(self) -> tuple[str, ...]:
        """The tokens that this layout adds after a task's own, in the order of their ids."""
        match self:
            case Layout.TAG | Layout.CLASSIFY:
                return ("EMPTY", "PAD")
            case Layout.TOKENS:
                return ("PAD",)
            case Layout.LM:
                return ("PAD", "SEP", "BOS", "EOS")
            case Layout.SEQ2SEQ:
                return ("PAD", "BOS", "EOS")

    @property
    def writes(self) -> bool:
        """Whether the answer is a text of the task's own tokens, ended by EOS."""
        return "EOS" in self.specials

    @property
    def metric(self) -> str:
        """What figures show."""
        return "exact" if self.writes else "accuracy" if self is Layout.CLASSIFY else "token"


class Batch(NamedTuple):
    """Examples of one task; every leaf has a static shape, T being `task.tokens(n_max)`."""

    tokens: Int[Array, "B T"]  # padded on the right
    targets: Int[Array, "B T"]  # the class to predict at this place (LM: already shifted)
    score: Bool[Array, "B T"]  # counted by the metric
    weight: Float[Array, "B T"]  # of the loss; equals `score` unless a paper differs
    valid: Bool[Array, "B T"]  # a real token; keys that are not are masked
    size: Int[Array, " B"]  # the x axis of every figure
    prompt: Bool[Array, "B T"]  # what the oracle is told: the input, for LM all through SEP
    coords: dict[str, Int[Array, "B T"]]  # coordinates that the task offers to schemes
    strata: dict[str, Int[Array, " B"]]  # what results may be grouped by
    source: Int[Array, "B S"] | None = None  # SEQ2SEQ only
    source_valid: Bool[Array, "B S"] | None = None


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Which sizes a task has."""

    smallest: int
    """The smallest legal one; below it nothing can be asked."""
    train: tuple[int, int]
    """Training drew uniformly from these to these, both ends included, where the task was published. In a run of ours
    `Run.length` is the upper end (`upto`), and `Run.shortest` the lower where it is given."""
    evaluation: tuple[int, ...]
    """Sizes beyond training, by default."""
    largest: int | None = None
    """The largest legal one, where settings bound it."""
    step: int = 1
    """From one legal size to the next: 2 where a size counts tokens that come in pairs."""

    @property
    def validation(self) -> tuple[int, ...]:
        """Sizes inside the training range, on which a learning rate may be chosen: the range's quarters."""
        low, high = self.train
        return tuple(sorted({self.below(high - (high - low) * quarter // 4) for quarter in range(4)}))

    def below(self, n: Any) -> Any:
        """The largest legal size up to n, a number or an array; n is the smallest or more."""
        return n if self.step == 1 else n - (n - self.smallest) % self.step

    def has(self, n: int) -> bool:
        """Whether a size is legal."""
        return n >= self.smallest and (self.largest is None or n <= self.largest) and self.below(n) == n

    def legal(self, smallest: int | None = None) -> str:
        """The sizes that `has` admits, from `smallest` on, in words: what a refusal says to take."""
        low = smallest or self.smallest
        high = self.largest if self.largest is None else max(low, self.below(self.largest))
        if low == high:
            return f"only {low}"
        every = "" if self.step == 1 else f", in steps of {self.step}"
        return (f"at least {low}" if high is None else f"{low} to {high}") + every

    def upto(self, length: int, shortest: int | None = None) -> Sizes:
        """These sizes when those trained on are `shortest` to `length`; a task trained at one size stays at one."""
        low, high = self.train
        first = shortest or (length if low == high else low)
        if not self.has(length) or length < first:
            bound = max(self.smallest, shortest or (self.smallest if low == high else low))
            also = f", or give shortest too, from {self.smallest} on" if self.has(length) and not shortest else ""
            raise ValueError(f"The longest size trained on is {length}; take {self.legal(bound)}{also}.")
        beyond = tuple(n for n in self.evaluation if n > length)
        return dataclasses.replace(self, train=(first, length), evaluation=beyond)


@dataclass_transform(frozen_default=True)
class Task(ABC):
    """The base of all tasks. `class ReverseString(Task, name="reverse_string")` enters the registry.

    Token ids: `0 … alphabet-1` are the task's own, then the specials of its layout, so that all are below `vocab`.
    """

    name: ClassVar[str]
    suites: ClassVar[tuple[str, ...]] = ()
    samples: ClassVar[tuple[dict[str, Any], ...]] = ()  # settings that the tests also run
    least: ClassVar[dict[str, int]] = {}  # the smallest value of a setting

    # Values, or properties where settings decide: hence without a type that a checker could hold both to.
    layout: Any
    directions: Any = property(lambda task: CAUSAL if task.layout.writes else BOTH)
    metric: Any = property(lambda task: task.layout.metric)
    """str: what figures show: token, accuracy, exact, last, error."""
    ability: Any = ()
    revision: Any = 1  # raised when the data change
    alphabet: Any
    """int: how many tokens the task itself has, without the specials of its layout."""
    vocabulary: Any = MappingProxyType({})
    """dict: what the task's own tokens are called, for people, where their number does not say it."""
    sizes: Any
    """Sizes: which are trained on, evaluated, and legal."""
    classes: Any = property(lambda task: task.vocab)
    """int: how many outputs there are; a language model's are its tokens."""
    choices: Any = property(lambda task: task.alphabet if task.layout.writes else task.classes)
    """int: what a uniform guess of one answer token chooses among."""
    cue: Any = None
    """range: tokens among which a row's most frequent is a guess without order; None where that is senseless."""

    def __init_subclass__(cls, name: str | None, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        if cls.__bases__ != (Task,):
            raise TypeError(f"{cls.__name__} extends {cls.__bases__[0].__name__}, but tasks are final.")
        if missing := [attribute for attribute in ("layout", "alphabet", "sizes") if not hasattr(cls, attribute)]:
            raise TypeError(f"{cls.__name__} has no {' and no '.join(missing)}; a task states all three.")
        cls.name = cls.__name__ if name is None else name
        dataclasses.dataclass(frozen=True)(cls)
        jax.tree_util.register_static(cls)
        if name is not None:  # a task without a name serves a test or a notebook and is found by nobody
            TASKS.add(name, cls)

    def __post_init__(self) -> None:
        convert(self)
        self.validate()

    def validate(self) -> None:
        """Refuse settings that have no meaning, in one `ValueError` sentence; who overrides this calls it too."""
        for setting, bound in self.least.items():
            given = getattr(self, setting)
            if given < bound:
                raise ValueError(f"The setting {setting!r} of {self.name!r} is at least {bound}, not {given}.")
        for field in dataclasses.fields(self):
            given = getattr(self, field.name)
            if isinstance(given, int) and given > MOST:
                raise ValueError(f"The setting {field.name!r} of {self.name!r} is at most {MOST}, not {given}.")

    def ways(self, n: int) -> int:
        """In how many ways a size comes about, which its paper draws equally often: pairs of numbers of which n is the
        larger. 1 where n itself is drawn."""
        return 1

    @property
    def vocab(self) -> int:
        """All input tokens are below this."""
        return self.alphabet + len(self.layout.specials)

    def special(self, word: str) -> int:
        """The id of EMPTY, PAD, SEP, BOS or EOS."""
        return self.alphabet + self.layout.specials.index(word)

    def word(self, token: int) -> str:
        """What a token is called: its name, or its number."""
        if token >= self.alphabet:
            return self.layout.specials[token - self.alphabet]
        return self.vocabulary.get(token, str(token))

    @abstractmethod
    def tokens(self, n: int) -> int:
        """The length of the longest sequence of size n, on the host."""

    @abstractmethod
    def make(self, key: PRNGKeyArray, n: Int[Array, " B"], n_max: int) -> Batch:
        """Examples, one per entry of n. Whoever writes a task writes this; whoever uses one calls `sample`."""

    @abstractmethod
    def answer(self, prompt: list[int]) -> list[int]:
        """The targets at the scored places of this prompt, in order: the oracle."""

    def sample(self, key: PRNGKeyArray, n: int | Int[Array, ""] | Int[Array, " B"], *, batch: int, n_max: int) -> Batch:
        """`batch` examples of size n (a scalar, or one per row), padded as size `n_max` needs.

        Examples do not depend on `n_max`: everything is drawn position by position, across the batch.
        """
        self.check_size(n_max)
        if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
            raise ValueError(f"A batch has at least one row; {batch!r} was asked of {self.name!r}.")
        if not jnp.issubdtype(jnp.asarray(n).dtype, jnp.integer):
            raise TypeError(f"A size is a whole number; {self.name!r} was given {jnp.asarray(n).dtype}.")
        if jnp.shape(n) not in ((), (batch,)):
            raise ValueError(f"Sizes are one number or one per row, of shape ({batch},), not {jnp.shape(n)}.")
        if not isinstance(n, Tracer):
            for size in np.unique(np.asarray(n)):
                self.check_size(int(size), n_max)
        return self.make(key, jnp.broadcast_to(jnp.asarray(n, jnp.int32), (batch,)), n_max)

    def check_size(self, n: int, longest: int | None = None) -> None:
        """Refuse a size that is not legal here. A traced size cannot be looked at: its caller checks the range."""
        if isinstance(n, bool) or not isinstance(n, int | np.integer):
            raise TypeError(f"A size is a whole number; {self.name!r} was given {n!r}.")
        sizes = self.sizes if longest is None else dataclasses.replace(self.sizes, largest=longest)
        if not sizes.has(n):
            raise ValueError(f"{self.name!r} has no size {n}; with these settings take {sizes.legal()}.")
