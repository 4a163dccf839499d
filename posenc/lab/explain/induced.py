"""A scheme's effect on attention, measured from outside through `posenc.attend`.

Values are one-hot, so that attention returns its weights. The logarithm of a weight, minus that of the token's weight
on itself, is the score of the pair relative to the token with itself. Nothing here knows any scheme.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from posenc.catalog.schemes import SITES
from posenc.coordinates import place
from posenc.core.compose import Pattern, Shares, layers, normal_form, parts
from posenc.core.scheme import Dims
from posenc.lab.spec.run import THEN, Continuation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEADS, HEAD, DRAWS, SHOWN = 4, 16, 64, 16
LONGEST = 512


@dataclass(frozen=True)
class View:
    """One matrix under a title, with queries down the side and keys along the top. It is NaN where a query does not see
    a key."""

    title: str
    matrix: np.ndarray

    @property
    def shows_position(self) -> bool:
        """Tell whether position has an effect here. Scores then differ from 0, or sizes from 1, by more than sampling
        noise."""
        usual, noise = (1.0, 0.05) if len(self.matrix) == 1 else (0.0, 1e-3)
        there = self.matrix[~np.isnan(self.matrix)]
        return bool(there.size and np.max(np.abs(there - usual)) > noise)


def views(text: str, length: int, causal: bool = False, moved: float = 0.0) -> list[View]:
    """The matrices that show a scheme's effect: input similarity, added scores, scores of equal content.

    Parameters are as at the start of training, or `moved` from there by normal draws of this standard deviation.
    """
    if not 2 <= length <= LONGEST:
        raise ValueError(f"--len is {length}; use a number of tokens from 2 to {LONGEST}.")
    scheme = single(text)
    causal = causal or "bidirectional" in normal_form(scheme).scheme.limits
    sizes = {"trained": max(2, length // 2), "longest": length, "causal": causal}  # extrapolation shows too
    dims = Dims(width=HEADS * HEAD, heads=HEADS, head=HEAD, **sizes)
    with jax.enable_x64(True):
        return _Probe(posenc.bind(scheme, dims), dims, length, moved).views()


def single(text: str) -> Any:
    """Return the scheme of one layer and of all its heads. Raises `ValueError` for a pattern or for shares."""
    scheme = posenc.parse(text)
    if isinstance(scheme, Pattern):
        raise ValueError("A list is a pattern of layers; explain one layer's scheme at a time.")
    if isinstance(normal_form(scheme).scheme, Shares):
        raise ValueError("Heads in braces belong to several schemes; explain one share at a time, without braces.")
    return scheme


class _Probe:
    """A scheme with its initial parameters, or with normal draws added to them, and tokens to apply it to."""

    def __init__(self, scheme: Any, dims: Dims, length: int, moved: float = 0.0):
        self.scheme, self.dims, self.length, self.hooks = scheme, dims, length, normal_form(scheme).scheme
        key = jax.random.key(0)
        draw = np.random.default_rng(0).normal
        start = posenc.init(scheme, key, dims)
        self.params = jax.tree.map(lambda a: a + moved * draw(size=a.shape), start) if moved else start
        index = jnp.arange(length, dtype=jnp.int32)
        self.positions = _laid(self.hooks, place(scheme, key, {"index": index, "length": jnp.int32(length)}))
        self.x = jax.random.normal(key, (DRAWS, length, dims.width))

    def views(self) -> list[View]:
        """The matrices in which position has an effect."""
        views, shape = [], (DRAWS, self.length, HEADS, HEAD)
        if self.hooks.overrides("embed"):
            views.append(View("input: similarity of equal tokens at each position", self._similarity()))
        if self.hooks.overrides("score", "locate", "normalize"):
            scores = self._scores(jnp.zeros(shape)).mean(0)
            for head in range(2) if not np.allclose(scores[0], scores[1:], equal_nan=True) else range(1):
                views.append(
                    View(f"score: added by the scheme, relative to a token with itself, head {head}", scores[head])
                )
        if self.hooks.overrides("query", "key"):
            content = jnp.broadcast_to(jax.random.normal(jax.random.key(1), (DRAWS, 1, HEADS, HEAD)), shape)
            scores = self._scores(content)[:, 0]
            mean, spread = scores.mean(0), scores.std(0)
            views.append(View("query and key: score of equal content, relative to a token with itself, mean", mean))
            if np.nanmax(np.abs(mean)) < np.nanmax(spread):
                views.append(View("query and key: the same, standard deviation over contents", spread))
            content = jax.random.normal(jax.random.key(2), shape)
            views.append(View("query and key: size of a query's scores, relative to no scheme", self._sizes(content)))
        if self.hooks.overrides("value", "output"):
            views.append(View("value: rotation between key and query, 1 minus the cosine", self._value_rotation()))
        return [view for view in views if view.shows_position]

    def _sizes(self, content: Any) -> np.ndarray:
        """How much larger the differences among a query's scores are than without any scheme, `[1, L]`."""
        ours, usual = np.nanstd(self._scores(content), axis=(0, 1, 3)), _usual(self.dims, self.length)
        return np.where(usual > 1e-9, ours / np.maximum(usual, 1e-9), np.nan)[None]

    def _value_rotation(self) -> np.ndarray:
        """1 minus the cosine between a key's value and the part of it that reaches a query."""
        q = jnp.zeros((1, self.length, HEADS, HEAD))
        arrived, sent = self._each_key(q, q)
        size = np.linalg.norm(arrived, axis=-1)
        cosine = (arrived * sent).sum(-1) / np.maximum(size, 1e-300)
        return np.where(size > 1e-12, 1 - cosine, np.nan)[0, 0]

    def _each_key(self, q: Any, k: Any) -> tuple[np.ndarray, np.ndarray]:
        """The effect of each key's value alone on each query, `[draw, H, Q, K, d]`, and that value, of length one."""
        sent = jnp.ones(HEAD) * HEAD**-0.5
        values = jnp.eye(self.length)[:, None, :, None, None] * jnp.broadcast_to(sent, (1, 1, 1, HEADS, HEAD))
        arguments = {"x": self.x[: len(q)], "positions": self.positions}
        mask = "causal" if self.dims.causal else "full"

        def attend(v):
            v = jnp.broadcast_to(v, q.shape).astype(q.dtype)
            return posenc.attend(self.scheme, self.params, q, k, v, mask=mask, **arguments)

        outputs = jax.jit(lambda: jax.lax.map(attend, values) - attend(0 * values[0])[None])()
        return np.asarray(outputs).transpose(1, 3, 2, 0, 4), np.asarray(sent)

    def _similarity(self) -> np.ndarray:
        x = jnp.zeros((self.length, self.dims.width))
        e = posenc.embed(self.scheme, self.params, x, positions=self.positions)
        if not jnp.any(e):  # the scheme adds nothing; on equal tokens a factor shows
            e = posenc.embed(self.scheme, self.params, x + self.x[0, :1], positions=self.positions)
        norm = jnp.linalg.norm(e, axis=-1)
        return np.asarray(e @ e.T / jnp.maximum(norm[:, None] * norm[None, :], 1e-12))

    def _scores(self, content: Any) -> np.ndarray:
        """Per head the score of each pair minus the score of the query's token with itself, `[draw, H, L, L]`.

        If no token sees itself, minus the query's highest score.
        """
        mask = "causal" if self.dims.causal else "full"
        arguments = {"x": self.x, "positions": self.positions, "mask": mask}
        if self.hooks.overrides("value", "output"):  # a rotated value keeps its length
            a = np.linalg.norm(self._each_key(content, content)[0], axis=-1)
        else:
            a = np.asarray(weights(self.scheme, self.params, content, content, **arguments))
        logs = np.where(a > 1e-300, np.log(np.maximum(a, 1e-300)), np.nan)
        own = np.diagonal(logs, axis1=-2, axis2=-1)
        if np.isnan(own).all():  # no token sees itself
            own = np.max(logs, -1, initial=-np.inf, where=~np.isnan(logs))
        return logs - np.where(np.isfinite(own), own, np.nan)[..., None]


@functools.lru_cache(maxsize=4)
def _usual(dims: Dims, length: int) -> np.ndarray:
    """The differences among a query's scores without any scheme, `[L]`."""
    content = jax.random.normal(jax.random.key(2), (DRAWS, length, HEADS, HEAD))
    return np.nanstd(_Probe(posenc.parse("nope"), dims, length)._scores(content), axis=(0, 1, 3))


def _laid(hooks: Any, positions: Any) -> Any:
    """Positions for schemes of several axes: rows and columns of a square for two axes, else a diagonal."""
    if isinstance(positions, tuple):
        return tuple(_laid(s, p) for s, p in zip(hooks.parts, positions, strict=True))
    if hooks.axes == 1 or positions.ndim > 1:
        return positions
    side = math.isqrt(positions.size)
    if hooks.axes == 2 and side * side == positions.size:
        return jnp.stack([positions // side, positions % side], -1)
    return jnp.stack([positions] * hooks.axes, -1)


@functools.lru_cache(maxsize=4)
def _mixing(scheme: Any, mask: str | None) -> Any:
    """Attention of a scheme as one program, which is compiled once for all contents."""
    fixed = {} if mask is None else {"mask": mask}
    return jax.jit(lambda params, q, k, v, more: posenc.attend(scheme, params, q, k, v, **more, **fixed))


def weights(scheme: Any, params: Any, q: Any, k: Any, **arguments: Any) -> Any:
    """The weights of attention, `[batch, H, Q, K]`, from `[batch, L, H, d]` and further arguments of `posenc.attend`.

    Attention over one-hot values returns its weights. Each call has as many of them as a head has features, since some
    schemes need this width; the bias that a scheme adds to the mixed values is subtracted.
    """
    length, columns = k.shape[1], []
    mix = _mixing(scheme, arguments.pop("mask", None))
    for start in range(0, length, k.shape[-1]):
        hot = jnp.eye(length, k.shape[-1], -start)
        v = jnp.broadcast_to(hot[None, :, None, :], k.shape).astype(k.dtype)
        out = mix(params, q, k, v, arguments) - mix(params, q, k, 0 * v, arguments)
        columns.append(out[..., : length - start])
    return jnp.concatenate(columns, -1).swapaxes(1, 2)


def diagram(text: str) -> str:
    """The path of a token through attention, with each part of the scheme where it acts.

    A pattern of layers has one diagram for each distinct layer; of schemes trained in turn, the last is shown.
    """
    scheme = posenc.parse(Continuation.labelled(text.split(THEN)[-1]).scheme)
    return "\n\n".join(_diagram(s) for s in dict.fromkeys(layer.scheme for layer in layers(scheme)))


def _diagram(scheme: Any) -> str:
    at = {hook: "".join(f"── {s.name} " for s in parts(scheme) if s.overrides(hook)) for hook in SITES}
    normalize = "scheme's weights" if at["normalize"] else "softmax"
    query, key = f"query  ── W_q x {at['query']}", f"key    ── W_k x {at['key']}"
    first = max(len(query), len(key))
    scores = f"{key.ljust(first, '─')}─┴─ q·k · scale {at['scale']}{at['score']}── {normalize} ─"
    value = f"value  ── W_v x {at['value']}"
    lines = [
        f"input  ── x {at['embed']}─► W_q, W_k, W_v",
        f"{query.ljust(first, '─')}─┐",
        f"{scores}┐",
        f"{value.ljust(len(scores), '─')}┴─ a·v {at['value_bias']}{at['output']}─►",
    ]
    if scheme.contextual:
        lines.insert(0, f"token  ── position computed from content {at['locate']}─►")
    return "\n".join(lines)


def as_text(view: View) -> str:
    """A matrix as text; a long one is shown by evenly spaced rows and columns."""
    rows, columns = map(_kept, view.matrix.shape)
    cells = [["", *map(str, columns)]]
    cells += [[str(q) if len(rows) > 1 else "", *(_number(float(view.matrix[q, k])) for k in columns)] for q in rows]
    width = max(len(cell) for row in cells for cell in row)
    length = view.matrix.shape[1]
    note = "" if len(columns) == length else f" ({len(columns)} of {length} positions)"
    return "\n".join([view.title + note, *("  ".join(cell.rjust(width) for cell in row).rstrip() for row in cells)])


def _kept(length: int) -> np.ndarray:
    return np.unique(np.linspace(0, length - 1, min(length, SHOWN)).round().astype(int))


def draw(shown: list[View], title: str) -> Figure:
    """Draw the matrices in colour, light where a pair scores low."""
    from posenc.lab.figures import style

    with style.canvas(3.4 * len(shown) + 0.4, 3.3) as figure:
        for axes, view in zip(figure.subplots(1, len(shown), squeeze=False).flat, shown, strict=True):
            image = axes.imshow(view.matrix, cmap="Blues")
            axes.set_title(style.plain(view.title).replace(": ", "\n").replace(", ", "\n", 1), size=7.5)
            axes.set(xlabel="key", ylabel="query")
            figure.colorbar(image, ax=axes, shrink=0.8)
        figure.suptitle(style.plain(title), size=9)
    return figure


def _number(value: float) -> str:
    return "·" if np.isnan(value) else f"{value + 0.0:.2f}".replace("-0.00", "0.00")
