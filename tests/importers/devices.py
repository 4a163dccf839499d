"""Both models on four devices of this host, two along the batch and two along the heads, against one device.

`python -m tests.importers.devices KIND TEXT ...` prints one JSON object. A process has as many devices as it began
with, and that of the other tests has two.
"""

import json
import sys
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.importers import cases

CUT = {
    "linen": {"query": 2, "key": 2, "value": 2, "out": 1, "heads": 1, "up": 2, "down": 1},
    "nnx": {"query": 2, "key_value": 2, "out": 1, "heads": 1, "gate": 2, "up": 2, "down": 1},
}
"""The axis of a stacked parameter that the devices of "heads" share, by the last of these names in its path."""


def axis(kind: str, path: tuple[Any, ...]) -> int | None:
    """The axis along which a parameter is cut, if any. What layers share has no axis of periods in front."""
    names = [str(getattr(part, "key", getattr(part, "name", part))) for part in path]
    found = [name for name in names if name in CUT[kind]]
    return CUT[kind][found[-1]] - ("tied" in names) if found else None


def apart(kind: str, text: str) -> dict[str, float]:
    """The largest difference of logits, gradients and decoding, and how many of the parameters are cut."""
    mesh = jax.make_mesh((2, 2), ("batch", "heads"), axis_types=(AxisType.Auto,) * 2)
    model = cases.made(kind, text)
    lies = lambda n: P() if n is None else P(*(None,) * n, "heads")  # noqa: E731
    put = lambda path, a: jax.device_put(a, NamedSharding(mesh, lies(axis(kind, path))))  # noqa: E731
    params = jax.tree.map_with_path(put, model.params)
    tokens = jax.device_put(cases.TOKENS, NamedSharding(mesh, P("batch")))
    far = lambda a, b: max(map(lambda a, b: float(abs(a - jax.device_get(b)).max()), *map(jax.tree.leaves, (a, b))))  # noqa: E731

    @jax.jit
    def run(params, tokens):
        def loss(params):
            logits = model.apply(params, tokens)
            return cases.loss(logits, tokens), logits

        return jax.grad(loss, has_aux=True)(params)

    @jax.jit
    def decoded(params, tokens):
        first, caches = model.apply(params, tokens[:, :9], model.empty(params, *tokens.shape))
        rest, _ = model.apply(params, tokens[:, 9:], caches)
        return jnp.concatenate([first, rest], 1)

    gradient, logits = run(params, tokens)
    one = jax.device_put((model.params, cases.TOKENS), jax.devices()[0])
    alone, whole = jax.device_get(run(*one))
    held = jax.tree.leaves(jax.tree.map(lambda a: a.addressable_shards[0].data.size < a.size, params))
    return {
        "logits": far(whole, logits),
        "gradients": far(alone, gradient),
        "decoding": far(whole, decoded(params, tokens)),
        "devices": len(logits.sharding.device_set),
        "cut": sum(held),
    }


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", 4)
    pairs = zip(sys.argv[1::2], sys.argv[2::2], strict=True)
    print(json.dumps({f"{kind}: {text}": apart(kind, text) for kind, text in pairs}))
