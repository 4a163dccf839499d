"""The shift of keys and values in GRAPE, and Inkling's short convolution."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp

from posenc.lab.models.stems import Conv, shifted
from tests.golden.case import Case, Check
from tests.golden.through import checks, run

schemes = ()


def compare(case: Case) -> Iterator[Check]:
    a = case.arrays
    if case.args["source"] == "short_conv":
        mask = jnp.asarray(a["mask"])
        taps = a["weight"][:, 0].T  # from the farthest token to the current one

        def conv(x, taps):
            return jax.vmap(lambda x, s: Conv(k=case.args["kernel"])({"taps": taps}, x, s, True))(x, mask)

        out, (x, weight) = run(conv, a["cotangent"], a["x"], taps)
        yield from checks(case, ["x", "weight"], out, (x, weight.T[:, None]))
        return

    def shift(x, w, b, mix, bias):
        one = lambda x: shifted(x @ w.T + b[None, :], x, mix.T, bias, jnp.ones(x.shape[0], jnp.int32))  # noqa: E731
        return jax.vmap(one)(x)

    names = ["x", "linear.weight", "linear.bias", "shift_proj.weight", "shift_proj.bias"]
    yield from checks(case, names, *run(shift, a["cotangent"], *(a[name] for name in names)))
