"""One scheme ready to be examined: sizes, parameters and inputs in float64, and the layer that runs them.

The layer is the input hook, projections and attention, so that a scheme that acts on the input is examined like the
others. `plain`, `output` and `pull` are compiled once for each case, at little effort: compiling is most of a check.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from posenc.attention.attend import attend, embed
from posenc.attention.encode import with_neighbours
from posenc.attention.tokens import Tokens
from posenc.core.compose import Shares, merge, normal_form, pick, spread
from posenc.core.parameters import init
from posenc.core.scheme import At, Dims, Tile
from posenc.naming import bind

LITTLE: dict[str, Any] = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
"""Compilation with little effort, which is five times as fast."""
if version("jaxlib").startswith("0.10."):  # later ones know no such option
    LITTLE["xla_cpu_use_fusion_emitters"] = False
LENGTH = 12
LONGEST = 64
DIMS = Dims(width=32, heads=4, head=8, trained=16, longest=LONGEST)
DOCUMENTS = np.array([1, 1, 1, 1, 1, 2, 3, 3, 3, 3, 3, 3], np.int32)
PADDED = np.array([0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1], np.int32)


class CaseInputs(NamedTuple):
    """Features of tokens, and what is added to the queries, keys and values made from them."""

    x: Float[Array, "*batch L width"]
    q: Float[Array, "*batch L H d"]
    k: Float[Array, "*batch L H d"]
    v: Float[Array, "*batch L H d"]


class Case:
    """A scheme, bound to sizes, with parameters at a generic point."""

    def __init__(self, scheme: Any, dims: Dims = DIMS):
        self.unbound, self.dims, self.options = normal_form(scheme).scheme, dims, _little()
        self.scheme = bind(self.unbound, dims)
        self.params = self.parameters(0)
        rng = np.random.default_rng(1)
        draw: Callable[..., Any] = lambda *shape: rng.normal(size=shape)  # noqa: E731
        size = LONGEST, dims.heads, dims.head
        self.long = CaseInputs(draw(LONGEST, dims.width), *(draw(*size) / 2 for _ in range(3)))
        self.weights = draw(3, dims.width, dims.heads * dims.head) * dims.width**-0.5
        self.inputs = self.take(LENGTH)
        self.index = np.arange(LENGTH, dtype=np.int32)

    @functools.cached_property
    def shares(self) -> tuple[Case, ...]:
        """Each share of the heads in a model of those heads alone; the case itself where all have one scheme."""
        if not isinstance(self.unbound, Shares):
            return (self,)
        cuts = self.unbound.cuts(self.dims.heads, self.dims.heads)
        return tuple(Case(cut.scheme, cut.dims(self.dims)) for cut in cuts)

    @functools.cached_property
    def bidirectional(self) -> Case:
        """Return the case with the scheme in a model that sees past and future."""
        d = self.dims
        return Case(self.unbound, Dims(d.width, d.heads, d.head, d.trained, d.longest, d.key_heads, False))

    def parameters(self, seed: int) -> Any:
        """Parameters moved away from where they start, for zeros and ones hide what they multiply."""
        start = jax.device_get(self.jit(lambda key: init(self.scheme, key, self.dims))(jax.random.key(seed)))
        rng = np.random.default_rng(seed)

        def moved(a):
            noise = 0.1 * rng.normal(size=np.shape(a))
            return np.where(a == 0, noise, a * (1 + noise))

        return jax.tree.map(moved, start)

    def take(self, stop: int, start: int = 0) -> CaseInputs:
        """The inputs of some tokens."""
        return jax.tree.map(lambda a: a[start:stop], self.long)

    def positions(self, numbers: Any) -> Any:
        """Numbers as positions of this scheme: the same one on each axis."""
        numbers = np.asarray(numbers)
        return numbers if self.scheme.axes == 1 else np.stack([numbers] * self.scheme.axes, -1)

    def admits(self, numbers: Any) -> str:
        """Why the scheme refuses these positions, or nothing."""
        try:
            self.scheme.check_positions(pick(self.params, "layer"), spread(self.scheme, self.positions(numbers)))
        except (TypeError, ValueError) as refusal:
            return str(refusal)
        return ""

    def project(self, y: Array, a: CaseInputs) -> tuple[Array, Array, Array]:
        """Queries, keys and values."""
        made = [
            (y @ jnp.asarray(w, y.dtype)).reshape(*y.shape[:-1], self.dims.heads, self.dims.head) for w in self.weights
        ]
        return made[0] + a.q, made[1] + a.k, made[2] + a.v

    def layer(self, p: Any, a: CaseInputs, positions=None, segments=None, mask: Any = "causal") -> Float[Array, ...]:
        """The output of attention, after the scheme acted on the input."""
        y = embed(self.scheme, p, a.x, positions=positions, segments=segments)
        q, k, v = self.project(y, a)
        return attend(self.scheme, p, q, k, v, x=y, positions=positions, segments=segments, mask=mask)

    def eager(self, p: Any, a: CaseInputs, **arguments: Any) -> Any:
        """`layer`, op by op."""
        p, a, arguments = jax.tree.map(jnp.asarray, (p, a, arguments))
        with jax.disable_jit():
            return jax.device_get(self.layer(p, a, **arguments))

    def jit(self, f: Any, **options: Any) -> Any:
        """`jax.jit`, at little effort."""
        return jax.jit(f, compiler_options=self.options, **options)

    @functools.cached_property
    def _output(self):
        return self.jit(self.layer, static_argnames="mask")

    @functools.cached_property
    def _pull(self):
        def pull(p, a, weight, positions, segments):
            return jax.vjp(lambda p, a: self.layer(p, a, positions, segments), p, a)[1](weight)

        return self.jit(pull)

    def plain(self, a: CaseInputs | None = None, p: Any = None) -> Array:
        """The causal output, without positions or segments passed."""
        return jax.device_get(self._output(self.params if p is None else p, self.inputs if a is None else a))

    def output(self, a=None, p=None, positions=None, segments=None, mask: Any = "causal") -> Array:
        """The output of `LENGTH` tokens with positions and segments."""
        positions, segments = self._positions_and_segments(positions, segments)
        p, a = self.params if p is None else p, self.inputs if a is None else a
        return jax.device_get(self._output(p, a, positions, segments, mask=mask))

    def implied(self, segments) -> Array:
        """The causal output with segments; positions are implied."""
        return jax.device_get(self._output(self.params, self.inputs, None, segments))

    def pull(self, weight, a=None, p=None, positions=None, segments=None) -> tuple[Any, CaseInputs]:
        """The gradients of ⟨weight, output⟩: of the parameters, and of the inputs."""
        p, a = self.params if p is None else p, self.inputs if a is None else a
        return jax.device_get(self._pull(p, a, weight, *self._positions_and_segments(positions, segments)))

    def _positions_and_segments(self, positions, segments):
        segments = np.ones(LENGTH, np.int32) if segments is None else segments
        positions = restarted(segments) if positions is None else positions
        return self.positions(positions), segments

    @functools.cached_property
    def weight(self) -> np.ndarray:
        """A generic direction of outputs."""
        shape = LENGTH, self.dims.heads, self.dims.head
        return np.random.default_rng(2).normal(size=shape)

    def tile(self, head: int = 0, a: CaseInputs | None = None, numbers: Any = None) -> tuple[Any, Tile]:
        """One head's parameters, and the whole square of its scores as the score hook meets it.

        Heads are counted around, so that a model of one head has a head 2.
        """
        a, numbers = self.inputs if a is None else a, self.index if numbers is None else numbers
        scheme, index, count = self.scheme, jnp.arange(LENGTH, dtype=jnp.int32), self.dims.heads
        head %= count
        heads = rows(pick(self.params, "heads"), head)
        p = jax.tree.map(jnp.asarray, merge(pick(self.params, "layer"), heads))
        place = spread(scheme, jnp.asarray(self.positions(numbers)))
        at = At(place, index, jnp.ones_like(index), index + 1, jnp.int32(head), count)
        q, k, v = self.project(a.x, a)
        past = scheme.neighbour_carry(self.dims)
        q, k, v, *_ = with_neighbours(scheme, (pick(self.params, "layer"), {}), Tokens(q, k, v), at, past)[0]
        c, _ = scheme.locate(p, jnp.asarray(a.x), at, scheme.carry(self.dims))
        (q, i), (k, j, _) = scheme.query(p, q[:, head], c), scheme.pair(p, k[:, head], v[:, head], c)
        scale = scheme.scale(self.dims.head)
        distance = jax.tree.map(lambda b: b[:, None] - b[None, :], place)
        visible = index[None, :] <= index[:, None]
        return p, Tile(i, j, distance, q @ k.T * scale, scale, visible, index, index, jnp.int32(head), count)


@functools.cache
def _little() -> dict[str, Any] | None:
    """`LITTLE`, where this jax knows all of it: what only saves time may not keep a scheme from being examined."""
    try:
        jax.jit(lambda: jnp.zeros(()), compiler_options=LITTLE)()
    except Exception:  # the type of the error differs between generations
        return None
    return LITTLE


def restarted(segments: np.ndarray) -> np.ndarray:
    """The index counted from where each token's document began; padding ends none."""
    document, start, out = 0, 0, np.zeros(len(segments), np.int32)
    for n, segment in enumerate(segments):
        if segment > 0 and segment != document:
            document, start = segment, n
        out[n] = n - start
    return out


def rows(a: Any, places: Any) -> Any:
    """Return the same rows of every array."""
    return jax.tree.map(lambda b: b[places], a)


def put(a: Any, places: Any, value: Any) -> Any:
    """Every array with these rows replaced."""

    def replace_rows(b):
        b = np.array(b)
        b[places] = value
        return b

    return jax.tree.map(replace_rows, a)
