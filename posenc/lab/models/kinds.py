"""The models by name: `parse("lstm(bidirectional=True)")`. Their settings and properties, without importing jax.

The module that builds a model is imported when one is built (`posenc.lab.models.interface.build`).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Collection, Iterable
from typing import Any, ClassVar, Literal, dataclass_transform

from posenc.language import grammar
from posenc.language.registry import Registry, call, convert, identity, later

MODELS = Registry("model", "posenc.lab.models.kinds")
Attention = Literal["scaled_dot", "dot", "additive", "average"]


@dataclass_transform(frozen_default=True)
class Model:
    """A kind of model. Subclasses are final frozen dataclasses, named by the class statement.

    Every model uses the width and depth of `Run`, and the optional settings that `reads` names.
    """

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field]]
    name: ClassVar[str]
    builder: ClassVar[str]
    """Name of its builder from a scheme, a shape and a key: "transformer.Transformer", a class or a function."""
    revision: ClassVar[int] = 1
    """Raised when the model's numbers change: part of every trial's identity."""
    reads: ClassVar[tuple[str, ...]] = ()
    """The settings of `Run` in `OPTIONAL` that it uses."""
    source: ClassVar[str] = ""
    """Source sequence that it reads besides its tokens: "" (never), "where there is one", or "always"."""
    binds: ClassVar[bool] = False
    """True if it binds the scheme itself, since its attentions differ in direction."""
    goes_on: ClassVar[bool] = False
    """True if training can continue under another scheme."""
    causal: Any = property(lambda self: not self.bidirectional)
    """True if a token sees only itself and earlier tokens."""

    def __init_subclass__(cls, name: str):
        if cls.__mro__[1] is not Model:
            raise TypeError(f"{cls.__name__} extends {cls.__mro__[1].__name__}, but models are final.")
        dataclasses.dataclass(frozen=True)(cls)
        cls.name = name
        MODELS.add(name, cls)

    def __post_init__(self):
        convert(self)
        self.validate()

    def validate(self) -> None:
        """Raise `ValueError`, in one sentence, for settings without a meaning."""

    @property
    def attends(self) -> bool:
        """Tell whether it has attention in which any scheme can act."""
        return "attention" in self.reads

    def weights(self, run: Any) -> int:
        """How many numbers the matrices of one layer hold."""
        raise TypeError(f"{type(self).__name__} must define weights(run), the number of weights in one layer.")

    def pairs(self, run: Any) -> int:
        """How many numbers one layer computes for each pair of tokens."""
        if not self.attends:
            return 0
        return run.width if run.attention == "additive" else run.heads


USUAL = "encoder"


def usual(directions: Collection[str], source: bool) -> str:
    """The model of a run that names none, by what its task allows. All of them use the same settings."""
    return "encoder_decoder" if source else USUAL if "bidirectional" in directions else "decoder"


def likeliest(names: Iterable[str]) -> list[str]:
    """Names of models in the order in which a message offers them: those with attention first."""
    return sorted(names, key=lambda name: ("attention" not in MODELS.find(name.partition("(")[0]).reads, name))


OPTIONAL = {"heads": 4, "hidden": None, "norm": "pre", "attention": "scaled_dot"}
"""Settings of `Run` that some models ignore, and their defaults. Setting one that the model ignores is an error."""


def _transformer(run: Any) -> int:
    return 4 * run.width**2 + 2 * run.width * run.hidden


class EncoderModel(Model, name="encoder"):
    """A Transformer in which every token sees every other (Vaswani et al., 2017)."""

    builder = "transformer.Transformer"
    reads = tuple(OPTIONAL)
    goes_on = True
    causal = False

    def weights(self, run):
        return _transformer(run)


class DecoderModel(Model, name="decoder"):
    """A Transformer in which a token sees itself and earlier tokens (Vaswani et al., 2017)."""

    builder = "transformer.Transformer"
    reads = tuple(OPTIONAL)
    goes_on = True
    causal = True

    def weights(self, run):
        return _transformer(run)


class EncoderDecoderModel(Model, name="encoder_decoder"):
    """A bidirectional Transformer reads a source, and a causal one attends to it and writes (Vaswani et al., 2017)."""

    cross: Literal["nope", "same"] = "nope"
    """The scheme of cross attention: "nope", as published, or "same" as within sequences, where that is defined."""

    builder = "encoder_decoder.EncoderDecoder"
    reads = tuple(OPTIONAL)
    source = "always"
    binds = True
    causal = True

    def weights(self, run):
        return 2 * _transformer(run) + 4 * run.width**2  # a layer of each, and cross attention


class RNNModel(Model, name="rnn"):
    """A recurrent network without gates, one state for each token (Elman, 1990)."""

    bidirectional: bool = False
    start: Literal["orthogonal", "normal"] = later("orthogonal")
    """Start of its recurrent weights: as a rotation or reflection, which keeps the length of a state, or as N(0, 1 /
    width), which does not."""

    builder = "recurrent.Recurrent"

    def weights(self, run):
        return 2 * (1 + 2 * self.bidirectional) * run.width**2


class LSTMModel(Model, name="lstm"):
    """A recurrent network with a memory behind three gates (Hochreiter and Schmidhuber, 1997)."""

    bidirectional: bool = False
    forget: float = 1.0
    """Initial bias of the forget gate; a positive one makes memory last at the start (Jozefowicz et al., 2015)."""

    builder = "recurrent.Recurrent"

    def weights(self, run):
        return 8 * (1 + 2 * self.bidirectional) * run.width**2


class GRUModel(Model, name="gru"):
    """A recurrent network with two gates and no memory apart from its state (Cho et al., 2014)."""

    bidirectional: bool = False

    builder = "recurrent.Recurrent"

    def weights(self, run):
        return 6 * (1 + 2 * self.bidirectional) * run.width**2


class RNNSearchModel(Model, name="rnnsearch"):
    """A bidirectional network reads, another attends to it by additive attention and writes (Bahdanau et al., 2014).

    Where a task has no source, the reader reads the tokens.
    """

    builder = "search.RNNSearch"
    source = "where there is one"
    causal = False

    def weights(self, run):
        return 24 * run.width**2  # its depth is the reader's; the writer weighs about as much as one layer

    def pairs(self, run):
        return run.width


class ConvolutionModel(Model, name="convolution"):
    """Convolutions of k tokens, each layer added to its input (Gehring et al., 2017; Bai et al., 2018)."""

    k: int = 4
    bidirectional: bool = False

    builder = "convolution.Convolution"

    def validate(self):
        if self.k < 1:
            raise ValueError(f"The setting 'k' of 'convolution' must be at least 1, not {self.k}.")

    def weights(self, run):
        return self.k * run.width**2


class AveragingModel(Model, name="averaging"):
    """A bag of words: the mean of all visible tokens, through feed-forward layers (Iyyer et al., 2015)."""

    bidirectional: bool = False

    builder = "averaging.Averaging"

    def weights(self, run):
        return run.width**2


@functools.cache
def parse(text: str) -> Model:
    """The model that a text names.

    >>> parse("lstm(True)").causal
    False
    """
    tree = grammar.read(text)
    if not isinstance(tree, grammar.Call):
        raise ValueError(f"{text!r} is not one model; write one name with settings, for example 'convolution(k=4)'.")
    return MODELS.make(tree)


def spec(model: Model) -> str:
    """The shortest text of a model."""
    return grammar.write(call(model, model.name))


def full(part: Any) -> str:
    """The text of a model, or of a stem, with every setting written out."""
    return grammar.write(grammar.Call(part.name, (), tuple(identity(part).items())))


def check(model: Model, settings: dict[str, Any]) -> None:
    """Raise `ValueError` for settings of a run that this model ignores."""
    for name, usual in OPTIONAL.items():
        if name not in model.reads and settings[name] != usual:
            others = ", ".join(n for n in MODELS.names() if name in MODELS.find(n).reads)
            raise ValueError(
                f"{name} is {settings[name]!r}, but {model.name!r} has no {name}; leave it at {usual!r}, or take one of"
                f" the models {others}."
            )
