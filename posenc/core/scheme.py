"""What a positional scheme is: pure functions, one for each place where position can enter attention.

Hooks are written for one sequence and one head, and are the identity until overridden (so the base class is NoPE).
Attention alone calls them, under `jax.vmap` over batch and heads.

    x ─ embed ─► q, k, v ─ neighbours ─ locate ─► query, key, value ─► q·kᵀ · scale ─ score ─ normalize ─► a
    a ─► a·v + value_bias ─ output ─►

Settings are dataclass fields and static; what is learned lives in a plain dict that the caller owns.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar, cast, dataclass_transform, get_args

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Num, PRNGKeyArray, PyTree

from posenc.core.hooks import CHECKED, checked
from posenc.language.echo import echoed
from posenc.language.registry import Registry, convert
from posenc.language.registry import later as later
from posenc.numerics.precision import widened
from posenc.numerics.sizes import FAR

Params = dict[str, Any]
T = TypeVar("T")
Reads = Literal["nothing", "distance", "positions", "content", "row", "heads"]
ORDER: tuple[Reads, ...] = ("nothing", "distance", "positions", "content", "row", "heads")
LIMITS = {
    "bidirectional": "undefined where queries see what comes after them",
    "cross": "undefined between two different sequences",
    "cache": "no cache gives what the full forward gives, so that decoding has none",
    "reencoded": "cached keys become stale as the text grows, so a cache stores plain k and v and encodes them again",
}
"""The limits that a scheme may declare in `limits`, each with a reason."""
Role = Literal["query", "key", "value"]
ROLES: tuple[Role, ...] = ("query", "key", "value")
Precedence = Literal["any", "temperature", "first", "last"]
"""Place of a scheme in a sum. "any" stands anywhere. "temperature" multiplies the query by a number, and comes before
whatever else changes the query. "first" replaces q·k, with no other that changes q or k. "last" gives q and k more
features, and comes after all others that change them."""
SCHEMES = Registry("scheme", "posenc.schemes", "posenc.schemes")
GROUP_AXIS, REPEAT_AXIS = "posenc_key_heads", "posenc_queries_per_key_head"


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Dims:
    """The sizes of a model, as far as a scheme may ask for them."""

    width: int
    """Features of the residual stream."""
    heads: int
    """Query heads."""
    head: int
    """Features of one head."""
    trained: int
    """The longest sequence trained on."""
    longest: int | None = None
    """The size of tables of positions; `trained` unless given."""
    key_heads: int | None = None
    """Key and value heads, a divisor of `heads`; as many unless given."""
    causal: bool = True
    """True if queries see only what stands before them and themselves."""

    def __post_init__(self):
        sizes = "width", "heads", "head", "trained", "longest", "key_heads"
        for name in sizes:
            object.__setattr__(self, name, _as_integer(getattr(self, name)))
        convert(self)
        for name in sizes:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}; it is a whole number of at least 1.")
            if value is not None and value >= FAR:
                raise ValueError(f"{name} is {echoed(value)}; it is below {FAR}.")
        if self.heads % (self.key_heads or self.heads):
            raise ValueError(f"{self.key_heads} key heads do not divide {self.heads} heads; choose a divisor.")

    @property
    def table(self) -> int:
        """Rows of a table of positions."""
        return self.longest or self.trained


class At(NamedTuple):
    """The metadata of each token of one sequence, before any hook."""

    position: PyTree[Num[Array, " L"]]
    """The positions of tokens: any numbers, repeated or unordered too. `[L]` or `[L, axes]`; a tuple for a chain."""
    index: Int[Array, " L"]
    """Its place in the sequence. Masks and windows look at this alone."""
    segment: Int[Array, " L"]
    """Its document; 0 is padding, which no query sees."""
    visible: Int[Array, " L"]
    """How many keys it sees as a query."""
    head: Int[Array, ""]
    heads: int


class Tile(NamedTuple):
    """Any rectangle of one head's score matrix: queries down the side, keys along the top."""

    query_info: PyTree
    """The info about each query that `query` passes to `score`."""
    key_info: PyTree
    """The info about each key that `key` passes to `score`."""
    distance: PyTree[Num[Array, "Q K"]]
    """Query position minus key position: the past is positive. A last axis for positions of several axes."""
    logits: Float[Array, "Q K"]
    """The scaled products q·k, before any `score`; under a cap of these alone, what it leaves of them."""
    scale: float
    """The factor of q·k; features made from the query multiply by it too."""
    visible: Bool[Array, "Q K"]
    """The keys at which a query may look."""
    qi: Int[Array, " Q"]
    ki: Int[Array, " K"]
    head: Int[Array, ""]
    heads: int

    def gather(self, s: Float[Array, "Q K"]) -> Float[Array, "H Q K"]:
        """Return the array of every head, for schemes that read `heads`."""
        all_heads = jax.lax.all_gather(jax.lax.all_gather(s, REPEAT_AXIS), GROUP_AXIS)
        return all_heads.reshape(self.heads, *s.shape)


def by_settings(declaration: Callable[[Any], Any]) -> Any:
    """Return a property for a declaration that depends on settings: `reads = by_settings(lambda self: ...)`."""
    return property(declaration)


def bound_setting(setting: T | None) -> T:
    """A setting that may be left open, as hooks see it: `bind` has filled it."""
    return cast(T, setting)


@dataclass_transform(frozen_default=True)
class Scheme:
    """Position, injected nowhere: every hook is the identity, so this class is NoPE.

    Subclasses are final, frozen dataclasses, named by the class statement: `class ALiBi(Scheme, name="alibi")`.
    A setting left `None` is filled from the model's sizes by `bind`, which `posenc.bind` calls.
    """

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field]]
    name: ClassVar[str]
    family: ClassVar[str] = "none"
    """Family whose colour it takes in figures."""
    reads: ClassVar[Reads] = "nothing"
    """Arguments that `score`, `normalize` and `value_bias` look at, from least to most. They decide which kernels
    serve, and `posenc.check` holds a scheme to them. "distance" adds a number that depends on `tile.distance` alone."""
    positional: ClassVar[bool] = False
    """True if `locate`, `query` or `key` read the position of a token although `reads` is more than "positions". Drawn
    distances then cannot serve."""
    contextual: ClassVar[bool] = False
    """True if `locate` reads the features of tokens, so that attention must be given `x`."""
    tied: ClassVar[frozenset[str]] = frozenset()
    """Parameters that all layers share; those that `embed` reads must be."""
    frozen: ClassVar[frozenset[str]] = frozenset()
    """Parameters that are drawn once and never trained: hooks stop their gradient."""
    limits: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Cases that it cannot serve, and why, by the names in `LIMITS`; empty if it serves everywhere."""
    precedence: ClassVar[Precedence] = "any"
    """Place in a sum, by the names of `Precedence`."""
    products: ClassVar[bool] = False
    """True if `score` makes products of queries and keys of its own, as all do whose precedence is "first"."""
    passes_info: ClassVar[bool] = False
    """True if `query`, although overridden, returns its info unchanged, so that it is stored once for all heads."""
    extrapolates: ClassVar[str] = ""
    """How it is reported to fare beyond the training length, and by whom; empty where no report is known."""
    axes: ClassVar[int] = 1
    """How many numbers a position has."""
    coordinate: ClassVar[str] = ""
    """The coordinates of a task that its positions must be, such as "digit"; empty where the index serves."""
    revision: ClassVar[int] = 1
    """Raised when its numbers change, so that old results are not taken for new ones."""
    samples: ClassVar[tuple[dict[str, Any], ...]] = ()
    """Settings that the contract tests run beside the defaults."""

    def __init_subclass__(cls, name: str | None):
        if cls.__mro__[1] is not Scheme:
            raise TypeError(
                f"{cls.__name__} extends {cls.__mro__[1].__name__}, but schemes are final: wrap it instead."
            )
        _check_declared(cls)
        if vars(cls).keys() & {"score", "normalize", "value_bias"} and "reads" not in vars(cls):
            raise TypeError(
                f"{cls.__name__} overrides score, normalize or value_bias, so it must declare what they read."
            )
        if isinstance(reads := vars(cls).get("reads"), str) and reads not in ORDER:
            raise TypeError(f"{cls.__name__} reads {reads!r}; a scheme reads one of {', '.join(ORDER)}.")
        for hook in vars(cls).keys() & set(CHECKED):
            setattr(cls, hook, checked(hook, vars(cls)[hook]))
        dataclasses.dataclass(frozen=True)(cls)
        jax.tree_util.register_static(cls)
        if name is not None:
            cls.name = name
            SCHEMES.add(name, cls)

    def __post_init__(self):
        convert(self, below=FAR)
        self.validate()

    def validate(self) -> None:
        """Refuse settings that have no meaning, in one `ValueError` sentence."""

    def bind(self, dims: Dims) -> Scheme:
        """Return the scheme with its open settings filled. Raises `ValueError` if it cannot serve these sizes."""
        return self

    def check_positions(self, p: Params, position: Num[Array, "*batch L"]) -> None:
        """Refuse positions, `[..., L]` or `[..., L, axes]`: a `TypeError` for a wrong kind, and, where they are
        concrete, a `ValueError` for a wrong value. `p` is the layer's parameters."""

    def init(self, key: PRNGKeyArray, dims: Dims) -> Params:
        """Parameters of one layer: a dict of arrays, empty where nothing is learned."""
        return {}

    def init_head(self, key: PRNGKeyArray, dims: Dims) -> Params:
        """Parameters of one query head; hooks receive them without a head axis, merged with the layer's."""
        return {}

    def carry(self, dims: Dims) -> PyTree:
        """Return the carry of `locate` before the first token, from chunk to chunk: arrays of one sequence and head."""
        return ()

    def neighbour_carry(self, dims: Dims) -> dict[Role, PyTree]:
        """Return the carry of `neighbours` before the first token, from chunk to chunk. It has arrays of one sequence
        for each role that it changes, "query", "key" or "value", and is empty if it changes none."""
        return {}

    def scale(self, d: int) -> float:
        """Return the factor of q·k; `d` is the head's width before any hook widens it."""
        return d**-0.5

    def embed(self, p: Params, x: Float[Array, "L D"], at: At) -> Float[Array, "L D"]:
        """The input, `[L, D]`, of the type of `x`. `p` is the layer's parameters alone."""
        return x

    def locate(self, p: Params, x: Float[Array, "L D"] | None, at: At, carry: PyTree) -> tuple[PyTree, PyTree]:
        """The info of each token, arrays `[L, ...]`, and the carry after the last. The only hook that sees
        other tokens, hence the one with a carry; `x` is `None` unless the scheme is `contextual`."""
        return at.position, carry

    def neighbours(
        self, p: Params, role: Role, a: Float[Array, "L H d"], at: At, past: PyTree
    ) -> tuple[Float[Array, "L H d"], PyTree]:
        """The queries, keys or values of all heads, as the model made them, each changed by the tokens just before it
        in its document; and what is carried after the last. Only the roles that `neighbour_carry` names are asked for,
        before any other hook sees them. `p` is the layer's parameters alone."""
        return a, past

    def query(self, p: Params, q: Float[Array, "L d"], info: PyTree) -> tuple[Float[Array, "L e"], PyTree]:
        """The query of each token, `[L, e]`, and what it passes to `score`, arrays `[L, ...]`. `info` is from `locate`;
        `e` is `d` unless the scheme gives queries and keys more features."""
        return q, info

    def key(self, p: Params, k: Float[Array, "L d"], info: PyTree) -> tuple[Float[Array, "L e"], PyTree]:
        """The key of each token, `[L, e]`, and what it passes to `score`, arrays `[L, ...]`; a cache stores both."""
        return k, info

    def value(self, p: Params, v: Float[Array, "L d"], info: PyTree) -> Float[Array, "L d"]:
        """The value of each token, `[L, d]`, before mixing."""
        return v

    def pair(
        self, p: Params, k: Float[Array, "L d"], v: Float[Array, "L d"], info: PyTree
    ) -> tuple[Float[Array, "L e"], PyTree, Float[Array, "L d"]]:
        """The key of each token, what it passes to `score`, and the value: `key` and `value`, unless overridden by a
        scheme that passes something made of the value."""
        k, passed = self.key(p, k, info)
        return k, passed, self.value(p, v, info)

    def score(self, p: Params, s: Float[Array, "Q K"], tile: Tile) -> Float[Array, "Q K"]:
        """The score of each pair of tokens, `[Q, K]`, at least float32. Finite for keys in the future too: causality
        is the mask's job."""
        return s

    def normalize(self, p: Params, s: Float[Array, "Q K"], tile: Tile) -> Float[Array, "Q K"]:
        """Scores to weights, `[Q, K]`, over whole rows; zero where `tile.visible` is False. Attention uses its own
        softmax unless this is overridden."""
        raise TypeError(f"{type(self).__name__} has no weights of its own; attention uses softmax.")

    def value_bias(self, p: Params, a: Float[Array, "Q K"], tile: Tile) -> Float[Array, "Q d"]:
        """Return the addition to the weighted values, `[Q, d]`; linear in the weights `a`, so that tiles add up."""
        raise TypeError(f"{type(self).__name__} adds nothing to the weighted values.")

    def output(self, p: Params, o: Float[Array, "L d"], info: PyTree) -> Float[Array, "L d"]:
        """Return what each query receives, `[L, d]`, after mixing."""
        return o

    def overrides(self, *hooks: str) -> bool:
        """Tell whether this scheme has any of these hooks of its own."""
        return any(getattr(type(self), hook) is not getattr(Scheme, hook) for hook in hooks)

    def lookup(self, info: PyTree, key_info: PyTree, rows: Int[Array, " Q"]) -> PyTree:
        """The info of queries that are rows of a longer sequence of keys.

        A contextual scheme read the tokens before them only there, so their info is taken from the keys.
        """
        if not self.contextual:
            return info
        return jax.tree.map(lambda a: a.at[rows].get(mode="fill"), key_info)

    def __add__(self, other: Any) -> Any:
        from posenc.core.compose import add  # composition knows schemes, so schemes cannot know it at import

        return add(self, other)

    def __matmul__(self, coordinates: Any) -> Any:
        from posenc.core.compose import under

        return under(self, coordinates)


def _check_declared(cls: type[Scheme]) -> None:
    """Refuse limits and a precedence that have no meaning; those that are properties follow the settings."""
    limits, precedence = (vars(cls).get(name, getattr(Scheme, name)) for name in ("limits", "precedence"))
    if isinstance(limits, Mapping):
        if wrong := [name for name in limits if name not in LIMITS]:
            raise TypeError(f"{cls.__name__} has the limit {wrong[0]!r}; limits are {', '.join(map(repr, LIMITS))}.")
        if wrong := [name for name, why in limits.items() if not isinstance(why, str) or not why]:
            raise TypeError(f"The limit {wrong[0]!r} of {cls.__name__} needs a reason, a text that errors can show.")
        cls.limits = MappingProxyType(dict(limits))
    elif not isinstance(limits, property):
        raise TypeError(f"The limits of {cls.__name__} are {limits!r}; write a dict of reasons, or a property.")
    if not isinstance(precedence, property) and precedence not in get_args(Precedence):
        raise TypeError(
            f"{cls.__name__} has the precedence {precedence!r}; it is one of {', '.join(get_args(Precedence))}."
        )


def check_dims(dims: Any) -> None:
    """Raises `TypeError` for anything but a `Dims`."""
    if not isinstance(dims, Dims):
        raise TypeError(f"dims is of type {type(dims).__name__}; give posenc.Dims(width=..., heads=..., ...).")


def check_whole(name: str, position: Num[Array, "*batch L"]) -> None:
    """Raises `TypeError` unless positions are whole numbers, for schemes that look distances up."""
    if not jnp.issubdtype(position.dtype, jnp.integer):
        raise TypeError(
            f"{name!r} looks distances up in a table, so it takes whole positions, not {position.dtype}; use 'kerple'"
            " or 'fire' for real ones."
        )


def _as_integer(value: Any) -> Any:
    """A whole number of any library as Python's; anything else as it is, for `convert` to refuse."""
    try:
        return value if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return value


def bias_dtype(s: Float[Array, ...]) -> jnp.dtype:
    """The type of angles, biases and distances: float32 at least, float64 where the scores are."""
    return widened(s.dtype)
