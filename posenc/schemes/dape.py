"""DAPE: a perceptron over the scores and biases of all heads corrects the scores of each head."""

from __future__ import annotations

import math
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from posenc.core.scheme import Scheme, Tile, bias_dtype, by_settings

SLOPE = 0.01
"""The slope of the leaky rectifier below 0."""


class DAPE(Scheme, name="dape"):
    """A perceptron reads the scores and biases of all heads for a pair of tokens and adds to each score (Zheng et al.,
    2024, §3).

        s_ij = S_ij + B_ij + f([S_ij; B_ij]),   S, B ∈ R^H: the scaled products of all heads and their biases

    It follows the bias that it adapts: `kerple + dape`, `alibi + dape`, `fire + dape`; alone, B is 0. f has one hidden
    layer and a leaky rectifier. The weights start at PyTorch's defaults, which the authors keep. It reads scores only,
    so positions reach it through the schemes before it. The authors' FIRE within DAPE has leaky rectifiers too; ours
    does not.

    ```bibtex
    @inproceedings{zheng2024dape,
      title = {{DAPE}: Data-Adaptive Positional Encoding for Length Extrapolation},
      author = {Zheng, Chuanyang and Gao, Yihang and Shi, Han and Huang, Minbin and Li, Jingyao and Xiong, Jing and
                Ren, Xiaozhe and Ng, Michael and Jiang, Xin and Li, Zhenguo and Li, Yu},
      booktitle = {Advances in Neural Information Processing Systems},
      year = {2024},
      eprint = {2405.14722},
    }
    ```
    """

    hidden: int = 32

    family = "context"
    extrapolates = "strongly in perplexity (Zheng et al., 2024)"
    reads = "heads"
    samples = ({"hidden": 5},)

    def validate(self):
        _check_hidden(self.name, self.hidden)

    def init(self, key, dims):
        return _inner(key, 2 * dims.heads, self.hidden)

    def init_head(self, key, dims):
        return _outer(key, self.hidden)

    def locate(self, p, x, at, carry):
        return (), carry

    def score(self, p, s, tile):
        p = {name: a.astype(bias_dtype(s)) for name, a in p.items()}
        inner = jnp.einsum("cqk,ch->hqk", _channels(s, tile), p["w1"], precision="highest") + p["b1"][:, None, None]
        return s + jnp.einsum("hqk,h->qk", jax.nn.leaky_relu(inner, SLOPE), p["w2"], precision="highest") + p["b2"]


class DAPEv2(Scheme, name="dape_v2"):
    """DAPE that also reads neighbouring keys, by convolutions along the keys (Zheng et al., 2024, DAPE V2, §3).

        s_ij = S_ij + B_ij + f([S; B])_ij,   f: 1 × kernel, leaky rectifier, 1 × kernel,   S and B zero for hidden keys

    Without these zeros a convolution at the last visible key would read the next one, which must stay hidden.
    Neighbours are the adjacent keys of the same document, padding skipped; before the first key there are zeros.

    After the query's own key the second convolution reads the first one's outputs there, which depend on zeros and
    earlier keys (`edge` "open"). The released code does so too, except near the end of the array of keys, where zeros
    replace those outputs, so that a token's output depends on the number of tokens after it. That is `edge` "array",
    which has no cache.

    ```bibtex
    @misc{zheng2024dapev2,
      title = {{DAPE} {V2}: Process Attention Score as Feature Map for Length Extrapolation},
      author = {Zheng, Chuanyang and Gao, Yihang and Shi, Han and Xiong, Jing and Sun, Jiankai and Li, Jingyao and
                Huang, Minbin and Ren, Xiaozhe and Ng, Michael and Jiang, Xin and Li, Zhenguo and Li, Yu},
      year = {2024},
      eprint = {2410.04798},
    }
    ```
    """

    kernel: int = 3
    hidden: int = 32
    edge: Literal["open", "array"] = "open"

    family = "context"
    extrapolates = "strongly in perplexity (Zheng et al., 2024)"
    reads = "heads"
    limits = by_settings(
        lambda self: {
            "bidirectional": "its convolution takes scores of later keys for zeros",
            **({"cache": "its convolution reads where the array of keys ends"} if self.edge == "array" else {}),
        }
    )
    samples = ({"kernel": 1, "hidden": 5}, {"kernel": 5, "hidden": 4})

    def validate(self):
        _check_hidden(self.name, self.hidden)
        if self.kernel < 1 or self.kernel % 2 == 0:
            raise ValueError(f"'dape_v2' has kernel={self.kernel}; it must be odd, with a key in the middle.")
        if self.kernel == 1 and self.edge != "open":
            raise ValueError("'dape_v2' with kernel=1 reads only one key, so edge has no effect; leave edge out.")

    def init(self, key, dims):
        return _inner(key, 2 * dims.heads, self.hidden, self.kernel)

    def init_head(self, key, dims):
        return _outer(key, self.hidden, self.kernel)

    def locate(self, p, x, at, carry):
        return (), carry

    def score(self, p, s, tile):
        p = {name: a.astype(bias_dtype(s)) for name, a in p.items()}
        reach, keys = self.kernel // 2, s.shape[1]
        order, rank = _order(tile.visible)
        after = reach if self.edge == "open" else 0
        hidden = jnp.where(tile.visible[None], _channels(s, tile), 0)
        visible, channels = (_take(a, order) for a in (tile.visible, hidden))
        inner = (
            _convolved(jnp.pad(channels, ((0, 0), (0, 0), (reach, reach + after))), p["w1"]) + p["b1"][:, None, None]
        )
        begun = jnp.pad(jnp.cumsum(visible, -1) > 0, ((0, 0), (0, after)), mode="edge")
        inner = jnp.where(begun[None], jax.nn.leaky_relu(inner, SLOPE), 0)
        inner = jnp.pad(inner, ((0, 0), (0, 0), (reach, reach - after)))
        outer = _convolved(inner, p["w2"][:, None])[0, :, :keys] + p["b2"]
        return s + _take(outer, rank)


def _channels(s: Float[Array, "Q K"], tile: Tile) -> Float[Array, "2H Q K"]:
    """The products of all heads, then their biases."""
    return jnp.concatenate([tile.gather(a.astype(s.dtype)) for a in (tile.logits, s - tile.logits)])


def _inner(key: PRNGKeyArray, channels: int, hidden: int, *kernel: int) -> dict[str, Array]:
    """The hidden layer, the same for all heads."""
    w, b = _uniform(key, math.prod((channels, *kernel)), (channels, hidden, *kernel), (hidden,))
    return {"w1": w, "b1": b}


def _outer(key: PRNGKeyArray, hidden: int, *kernel: int) -> dict[str, Array]:
    """One head's output."""
    w, b = _uniform(key, math.prod((hidden, *kernel)), (hidden, *kernel), ())
    return {"w2": w, "b2": b}


def _uniform(key: PRNGKeyArray, inputs: int, *shapes: tuple[int, ...]) -> list[Array]:
    """Uniform numbers between ±1 / √inputs."""
    keys, bound = jax.random.split(key, len(shapes)), inputs**-0.5
    return [jax.random.uniform(k, shape, minval=-bound, maxval=bound) for k, shape in zip(keys, shapes, strict=True)]


def _convolved(a: Float[Array, "c Q n"], w: Float[Array, "c h kernel"]) -> Float[Array, "h Q m"]:
    """A convolution along the keys, without padding."""
    kernel, keys = w.shape[-1], a.shape[-1] - w.shape[-1] + 1
    terms = (jnp.einsum("cqk,ch->hqk", a[:, :, n : n + keys], w[:, :, n], precision="highest") for n in range(kernel))
    return jnp.asarray(sum(terms))


def _order(visible: Bool[Array, "Q K"]) -> tuple[Int[Array, " K"], Int[Array, " K"]]:
    """The keys that are visible to any query, in order, then the others; and the rank of each key in this order."""
    order = jnp.argsort(~visible.any(0), stable=True)
    return order, jnp.argsort(order)


def _take(a: Array, keys: Int[Array, " K"]) -> Array:
    return jnp.take(a, keys, -1)


def _check_hidden(name: str, hidden: int) -> None:
    if hidden < 1:
        raise ValueError(f"{name!r} has hidden={hidden}; it must be at least 1.")
