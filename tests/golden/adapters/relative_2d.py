"""Tables of offsets in windows of images, with and without a class token; TensorFlow's count key minus query."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from tests.golden.case import Case, Check
from tests.golden.through import run

schemes = ("relative_2d",)


def compare(case: Case) -> Iterator[Check]:
    args, a = case.args, case.arrays
    (height, width), heads, first = args["window"], args["heads"], bool(args["class_token"])
    index = np.arange(height * width)
    places = np.stack([index // width, index % width], -1).astype(np.int32)
    places = np.concatenate([np.full((1, 2), -1, np.int32), places]) if first else places
    scheme = posenc.parse(f"relative_2d(height={height}, width={width}, class_token={first})")
    scheme.check_positions({}, places)
    planes = a["table"].ndim == 3

    def f(table):
        each = table[:, ::-1, ::-1].reshape(heads, -1) if planes else table.T
        return jax.vmap(lambda own, head: _bias(scheme, {"table": own}, head, heads, places))(each, jnp.arange(heads))

    out, (grad,) = run(f, a["cotangent"], a["table"])
    yield Check("bias", out, a["bias"], 0)
    yield Check("grad_table", grad, a["grad_table"], 1e-5)
    if planes:
        down, right = (places[None, :, n] - places[:, None, n] for n in range(2))
        yield Check("index", (down + height - 1) * (2 * width - 1) + right + width - 1, a["index"], 0)
    else:
        rows = f(jnp.broadcast_to(jnp.arange(len(a["table"]), dtype=jnp.float32)[:, None], a["table"].shape))[0]
        yield Check("index", rows.astype(int), a["index"], 0)


def _bias(scheme, p, head, heads, places):
    places = jnp.asarray(places)
    i, zero = jnp.arange(len(places)), jnp.zeros((len(places), len(places)))
    tile = posenc.Tile(places, places, places[:, None] - places[None], zero, 1.0, zero == 0, i, i, head, heads)
    return scheme.score(p, zero, tile)
