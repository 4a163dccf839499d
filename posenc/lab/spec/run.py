"""Settings of training: `Run` decides the compiled program, `Knobs` are its inputs, `Plan` says how often and how long.

Nothing here imports jax, so that help, status, tables and figures start at once. A value moved from `Run` to `Knobs` is
a compilation saved: two trials that differ in knobs alone are two lanes of one program.
"""

from __future__ import annotations

import dataclasses
import math
import re
import struct
from dataclasses import dataclass
from typing import Literal, NamedTuple

from posenc.lab.models import kinds
from posenc.lab.models.kinds import Attention
from posenc.language import grammar
from posenc.language.registry import convert, later

THEN = ", then "
"""Stands between two schemes in the label of a run whose second goes on with the parameters of its first."""
WITH = ", trained with "
"""Stands between the scheme under which a trained model is evaluated and the label of its run."""
ON = ", trained on "
"""Stands between the task on which a trained model is evaluated and the task of its run."""
SUITE = "suite:"
"""Before the name of a suite, where a task is named: `task=suite:probes`."""
MOST = 2**24
"""The largest number that a size of a run can have; memory ends long before."""
_LENGTH = re.compile(r",\s*length\s*=\s*([^,()\[\]{}]*)$")
"""The end of `then` that gives another length: at the top level, since no bracket closes after it."""


class Continuation(NamedTuple):
    """Second scheme that goes on with the parameters of a run: `Continuation(0.95, "pi(factor=4.0)", 64)`."""

    share: float = 1.0
    """The share of the steps that come before it; 1 where nothing goes on."""
    scheme: str = ""
    length: int | None = None
    """The largest size that it trains on; that of the run unless given."""

    @classmethod
    def read(cls, text: str) -> Continuation:
        """That of a setting `then`. Raises `ValueError`."""
        share, _, rest = text.partition(" ")
        continuation = cls.labelled(rest)
        try:
            part = float(share)
        except ValueError:
            part = math.nan
        if not (0 < part < 1 and continuation.scheme):
            raise ValueError(
                f"then is {text!r}; it is a share of the steps and a scheme, such as '0.9 nope', and may end with the"
                " largest size to train on from there, as in '0.95 pi(factor=4.0), length=64'."
            )
        grammar.read(continuation.scheme)
        return continuation._replace(share=part)

    @classmethod
    def labelled(cls, text: str) -> Continuation:
        """That of a label, which has no share. Raises `ValueError` for a length that cannot be a size."""
        if (match := _LENGTH.search(text)) is None:
            return cls(scheme=text.strip())
        length = match[1].strip()
        if not (length.isdecimal() and len(length) < 10 and 1 <= int(length) <= MOST):
            raise ValueError(f"The length in {text!r} is {length!r}; it is a whole number from 1 to {MOST}.")
        return cls(scheme=text[: match.start()].strip(), length=int(length))

    def __str__(self) -> str:
        return f"{self.share!r} {self.label}"

    @property
    def label(self) -> str:
        """Its scheme, and its length where that is given."""
        return self.scheme if self.length is None else f"{self.scheme}, length={self.length}"


@dataclass(frozen=True)
class Run:
    """Settings that decide the program: equal runs are one program, and only different ones compile again."""

    task: str = "reverse_string"
    """The task, as a text such as "token_k_back(k=3)"; in a sweep also "suite:probes"; see `posenc list tasks`."""
    scheme: str = "rope"
    """The encoding, as a text such as "rope + alibi" or "[rope, nope]"; see `posenc list`."""
    model: str | None = None
    """The model, as a text such as "encoder", "decoder" or "lstm(bidirectional=True)"; see `posenc list models`. The
    default is an encoder, for a causal task a decoder, for one with a source an encoder_decoder."""
    width: int = 64
    """Features of the residual stream."""
    depth: int = 2
    """Layers."""
    heads: int = 4
    """Attention heads; they divide the width."""
    hidden: int | None = None
    """Units of the feed-forward layer; 4 times the width unless given."""
    norm: Literal["pre", "post"] = "pre"
    """Position of the normalisation: before each branch, or after each sum as in 2017."""
    batch: int = 64
    """Sequences per step."""
    length: int = 40
    """The largest size trained on; what a size counts is the task's to say."""
    shortest: int | None = None
    """The smallest size trained on; the task's smallest unless given."""
    longest: int | None = None
    """The largest size that tables of positions hold; 4 times `length` unless given, and that of `then` at least."""
    lengths: Literal["step", "example"] = "step"
    """Share one size among all sequences of a step, or draw one for each example."""
    buckets: int | None = None
    """Into how many padded lengths the sizes trained on fall; 1 up to length 16, else 4, unless given."""
    schedule: Literal["cosine", "linear", "constant"] = "cosine"
    """How the learning rate falls after the warm-up: to a tenth, to zero, or not at all."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Type of activations; parameters, angles, biases and softmax are float32."""
    stem: str = later("none")
    """Layer that mixes neighbours before the first layer, as a text: "conv(k=4)", "gru", "shift", or "none"."""
    then: str | None = later(None)
    """From which share of the steps on another scheme goes on with the same parameters: "0.9 nope" (DroPE). With
    "0.95 pi(factor=4.0), length=64" it trains on sizes up to 64 from there, and schemes still count from `length`."""
    attention: Attention = later("scaled_dot")
    """Scores of attention: q·k by the root of the head's width, q·k alone, a layer for each pair, or equal weights."""
    dropout: float = later(0.0)
    """The share of features left out in training: of embeddings, and of what attention and feed-forward layers give."""
    dataset: int | None = later(None)
    """How many examples there are, seen again in turn and other ones for each seed; fresh ones unless given."""
    uniform: Literal["sizes", "numbers"] = later("sizes")
    """Draw sizes uniformly, or each of the numbers whose largest is the size, as papers draw operands."""
    evaluation: Literal["plain", "as_trained"] = later("plain")
    """Leave out dropout and shifts in evaluation, or keep both as in training, as Ruoss et al. released it."""

    def __post_init__(self):
        convert(self)
        if self.task.startswith(SUITE):
            raise ValueError(f"{self.task!r} is several tasks, and a run has one; name it in a grid or a sweep.")
        grammar.read(self.task), grammar.read(self.scheme), grammar.read(self.stem)
        _ = self.goes_on
        kinds.check(self.kind, vars(self))
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout is {self.dropout}; it is a share of features, from 0 up to but not 1.")
        for name in ("width", "depth", "heads", "batch", "length", "hidden", "shortest", "longest", "buckets"):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= MOST:
                raise ValueError(f"{name} is {value}; it is a whole number from 1 to {MOST}.")
        if self.dataset is not None and not (self.dataset % self.batch == 0 < self.dataset <= self.batch * MOST):
            near = self.batch * min(max(self.dataset // self.batch, 1), MOST)
            raise ValueError(f"dataset is {self.dataset}; it is a multiple of the batch, {self.batch}, such as {near}.")
        if self.kind.attends and self.width % self.heads:
            raise ValueError(f"{self.heads} heads do not divide a width of {self.width}; choose a multiple.")
        if self.shortest is not None and self.shortest > self.length:
            raise ValueError(f"shortest is {self.shortest}, but length, the largest size trained on, is {self.length}.")
        if self.trained_to < self.length:
            raise ValueError(
                f"then is {self.then!r}, but length, the largest size trained on before, is {self.length}; give as much"
                " or more, or leave its length out."
            )
        if self.longest is not None and self.longest < self.trained_to:
            raise ValueError(
                f"longest is {self.longest}; tables must hold length, which is {self.trained_to}, at least."
            )

    @property
    def kind(self) -> kinds.Model:
        """Return the kind of the model, by its name."""
        return kinds.parse(self.model or kinds.USUAL)

    @property
    def goes_on(self) -> Continuation:
        """The scheme that goes on with the same parameters, from which share of the steps, on which sizes."""
        return Continuation() if self.then is None else Continuation.read(self.then)

    @property
    def trained_to(self) -> int:
        """The largest size trained on, before or after another scheme goes on."""
        return self.goes_on.length or self.length

    def filled(self, smallest: int, model: str = kinds.USUAL) -> Run:
        """Return the run with nothing left open, for a task with this smallest legal size and this usual model."""
        for name, of, used in (("hidden", "width", "hidden" in self.kind.reads), ("longest", "length", True)):
            if used and getattr(self, name) is None and getattr(self, of) > MOST // 4:
                raise ValueError(
                    f"{of} is {getattr(self, of)}; {name} is four times that unless given, so that it is at most"
                    f" {MOST // 4}: give less, or {name} too."
                )
        return dataclasses.replace(
            self,
            model=self.model or model,
            hidden=self.hidden or (4 * self.width if "hidden" in self.kind.reads else None),
            shortest=self.shortest or smallest,
            longest=self.longest or max(4 * self.length, self.trained_to),
            buckets=self.buckets or (1 if self.length <= 16 else 4),
        )


class Knobs(NamedTuple):
    """Inputs of one trial to its program. No value here costs a compilation."""

    seed: int = 0
    lr: float = 1e-3
    weight_decay: float = 0.0
    warmup: float = 0.1
    clip: float = 1.0


@dataclass(frozen=True)
class Plan:
    """How many trials of each run there are, how long they train, and at which sizes they are evaluated."""

    steps: int = 2000
    """Training steps of each trial."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """One trial each; `--seeds 5` on the command line means 0 to 4."""
    lr: tuple[float, ...] = (1e-3,)
    """Learning rates; the best for each run is chosen on validation examples of the sizes trained on. Each is tried
    with every seed of `tuning`, or without those with every seed."""
    tuning: tuple[int, ...] = ()
    """Seeds that choose among the learning rates and are not reported, `0:3` or `0,1,2`; `seeds` then train at the
    chosen rate alone. Without them the reported seeds choose it too."""
    sizes: tuple[int, ...] | Literal["all"] | None = None
    """Sizes evaluated. "all" is every size from the first beyond training to the largest that the task is evaluated at.
    By default 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3 and 4 times the largest trained size, if they exist."""
    rows: int = 256
    """Sequences evaluated at each size."""
    weight_decay: float = 0.0
    """Decoupled weight decay, of matrices only: positional parameters, biases and norms are exempt."""
    warmup: float = 0.1
    """The share of the steps in which the learning rate rises."""
    clip: float = 1.0
    """The largest norm of a gradient; larger ones are scaled down to it."""
    segment: int | None = None
    """Steps between two looks at the host; unless given, the largest divisor of `steps` up to 100."""

    def __post_init__(self):
        convert(self)
        if not 0 <= self.steps < 2**31:
            raise ValueError(f"steps is {self.steps}; it is a whole number from 0 to {2**31 - 1}.")
        for name in ("lr", "weight_decay", "clip", "warmup"):
            setting = getattr(self, name)
            for value in setting if isinstance(setting, tuple) else (setting,):
                if not _single(value):
                    raise ValueError(f"{name} is {value}; in the float32 of training that is {_rounded(value)}.")
        if not self.seeds or len(set(self.seeds)) < len(self.seeds) or not all(0 <= s < 2**32 for s in self.seeds):
            raise ValueError(f"seeds are {self.seeds}; at least one is needed, each once, from 0 to 4294967295.")
        if not self.lr or len(set(self.lr)) < len(self.lr) or not all(math.isfinite(r) and r >= 0 for r in self.lr):
            raise ValueError(f"lr is {self.lr}; at least one rate is needed, each once, finite and not negative.")
        self._check_tuning()
        if isinstance(self.sizes, tuple):
            object.__setattr__(self, "sizes", tuple(sorted(set(self.sizes))))
            if not self.sizes or not 1 <= self.sizes[0] <= self.sizes[-1] <= MOST:
                raise ValueError(f"sizes are {self.sizes}; at least one is needed, each from 1 to {MOST}.")
        if not 1 <= self.rows <= MOST:
            raise ValueError(f"rows is {self.rows}; from 1 to {MOST} sequences are evaluated at each size.")
        if not (self.weight_decay >= 0 and 0 <= self.warmup <= 1 and self.clip > 0):
            raise ValueError(
                f"weight_decay is {self.weight_decay}, warmup {self.warmup}, clip {self.clip}; "
                "they are at least 0, from 0 to 1, and above 0."
            )
        if self.segment is not None and (self.segment < 1 or self.steps % self.segment):
            raise ValueError(
                f"A segment of {self.segment} steps does not divide {self.steps}; leave it out or change it."
            )

    def _check_tuning(self) -> None:
        tuning = self.tuning
        if len(set(tuning)) < len(tuning) or not all(0 <= s < 2**32 for s in tuning):
            raise ValueError(f"tuning is {tuning}; give each seed once, from 0 to 4294967295.")
        if both := sorted({*tuning} & {*self.seeds}):
            free = max(tuning) + 1
            raise ValueError(
                f"The seed {both[0]} is in tuning and in seeds; those that choose a rate are not reported, so give "
                f"others, such as seeds={free}:{free + len(self.seeds)}."
            )
        if tuning and len(self.lr) == 1:
            raise ValueError(
                f"tuning chooses among learning rates, and lr is {self.lr[0]:g} alone; give several, such as "
                "lr=3e-4,1e-3,3e-3, or leave tuning out."
            )

    @property
    def trials(self) -> int:
        """How many models are trained of each run."""
        tried = len(self.lr) * len(self.tuning or self.seeds)
        return tried + len(self.seeds) * bool(self.tuning)

    @property
    def stride(self) -> int:
        """The length of a segment: the largest divisor of `steps` up to 100, unless given."""
        return self.segment or max((n for n in range(1, 101) if self.steps % n == 0), default=1)

    def around(self, shortest: int, length: int) -> tuple[int, ...]:
        """The sizes evaluated unless others are asked for, when those from `shortest` to `length` are trained on."""
        quarters = (n for f in (0.25, 0.75) if (n := math.ceil(length * f)) >= shortest)
        return tuple(sorted({*quarters, *(math.ceil(length * f) for f in (0.5, 1, 1.25, 1.5, 2, 3, 4))}))

    def knobs(self) -> tuple[Knobs, ...]:
        """One set for each trial that is known before anything trains: at every rate each seed, or each that tunes."""
        return tuple(knobs for lr in self.lr for knobs in self.at(lr, self.tuning or self.seeds))

    def at(self, lr: float, seeds: tuple[int, ...]) -> tuple[Knobs, ...]:
        """One set for each of these seeds, at one rate."""
        rest = {"weight_decay": self.weight_decay, "warmup": self.warmup, "clip": self.clip}
        return tuple(Knobs(seed=seed, lr=lr, **rest) for seed in seeds)


def _rounded(value: float) -> float:
    """A number as float32 keeps it."""
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.inf


def _single(value: float) -> bool:
    """Tell whether float32 keeps a finite number apart from zero and infinity; other numbers are refused elsewhere."""
    return not math.isfinite(value) or (math.isfinite(_rounded(value)) and (_rounded(value) != 0) == (value != 0))
