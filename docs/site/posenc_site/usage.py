"""How a scheme is written in a model: the same attention in Flax NNX, Flax Linen and plain JAX."""

from __future__ import annotations

from typing import Any

import posenc
from posenc.core.compose import axes

SIZES = "dims = posenc.Dims(width=64, heads=4, head=16, trained=128)"


def usage(name: str) -> dict[str, str]:
    """Framework to a program that runs as it stands; a scheme of the input is applied before the layer."""
    scheme = posenc.parse(name)
    acts, places = posenc.acts_on_input(scheme), _places(scheme)
    bound = f'scheme = posenc.bind(posenc.parse("{name}"), dims)'
    x = "x = jax.random.normal(jax.random.key(0), (2, 128, 64))"
    embedded = [
        "own = posenc.init(scheme, jax.random.key(1), dims)",
        f"x = posenc.embed(scheme, own, x{', positions=positions' * bool(places)})  # once, before the first layer",
    ] * acts
    given, kept = ", positions=positions" * bool(places), ", embedded=True" * acts
    nnx = [
        "import jax, posenc, posenc.nnx",
        "from flax import nnx",
        "",
        *(SIZES, bound, x, *places, *embedded),
        f"layer = posenc.nnx.Attention(scheme, dims, rngs=nnx.Rngs(0){kept})",
        f'y = layer(x{given}, mask="causal")  # [2, 128, 64]',
    ]
    linen = [
        "import jax, posenc, posenc.linen",
        "",
        *(SIZES, bound, x, *places, *embedded),
        f"layer = posenc.linen.Attention(scheme, dims{kept})",
        f"variables = layer.init(jax.random.key(2), x{given})",
        f'y = layer.apply(variables, x{given}, mask="causal")  # [2, 128, 64]',
    ]
    features = ", x=x" * bool(scheme.contextual)
    plain = [
        "import jax, posenc",
        "",
        *(SIZES, bound, *([x] if acts or features else []), *places),
        "params = posenc.init(scheme, jax.random.key(0), dims)",
        *(line.replace("own, x", "params, x") for line in embedded if not line.startswith("own")),
        "q, k, v = jax.random.normal(jax.random.key(1), (3, 2, 128, 4, 16))",
        f'y = posenc.attend(scheme, params, q, k, v{features}{given}, mask="causal")  # [2, 128, 4, 16]',
    ]
    return {"Flax NNX": "\n".join(nnx), "Flax Linen": "\n".join(linen), "Plain JAX": "\n".join(plain)}


def _places(scheme: Any) -> list[str]:
    """The positions of a scheme of several axes; a line of text has the index for the first."""
    n = axes(scheme)
    if not isinstance(n, int) or n < 2:
        return []
    return [
        f"positions = jax.numpy.stack([jax.numpy.arange(128)] * {n}, -1)  # [128, {n}], yours: a place for each axis"
    ]
