"""Rotations by positions of several numbers: axial and mixed, in sections, and by generators."""

from collections.abc import Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from posenc.numerics.orthogonal import skew, turns
from tests.golden.case import Case, Check
from tests.golden.through import run, told

schemes = ("rope_2d", "mrope", "liere")


def compare(case: Case) -> Iterator[Check]:
    yield from KINDS[case.id.rstrip("0123456789")](case)


def turned(scheme, side, heads, x, positions):
    """A hook on every head of every sequence: `[batch, heads, length, features]`, positions `[batch, length, axes]`."""
    one = lambda own, x, at: getattr(scheme, side)(own, x, told(scheme, own, at))[0]  # noqa: E731
    return jax.vmap(jax.vmap(one, (0, 0, None)), (None, 0, 0))(heads, x, positions)


def _plane(case: Case, frequencies: str) -> Iterator[Check]:
    args, a = case.args, case.arrays
    scheme = posenc.parse(f"rope_2d(frequencies={frequencies!r}, base={args['rope_theta']!r})")
    index = np.arange(args["height"] * args["width"])
    np.testing.assert_array_equal(a["positions"], np.stack([index % args["width"], index // args["width"]], -1))
    positions = np.broadcast_to(a["positions"], (args["batch"], *a["positions"].shape))
    mixed = frequencies == "mixed"

    def f(q, freqs):
        return turned(scheme, "query", {"frequency": freqs} if mixed else {}, q, positions)

    freqs = a["freqs"].swapaxes(0, 1) if mixed else np.zeros(args["heads"], np.float32)
    out, (grad_q, grad_freqs) = run(f, a["cotangent"], a["q"], freqs)
    yield Check("q_out", out, a["q_out"], 1e-5)
    k_out = turned(scheme, "key", {"frequency": jnp.asarray(freqs)} if mixed else {}, jnp.asarray(a["k"]), positions)
    yield Check("k_out", k_out, a["k_out"], 1e-5)
    yield Check("grad_q", grad_q, a["grad_q"], 5e-5)
    if mixed:
        yield Check("grad_freqs", grad_freqs.swapaxes(0, 1), a["grad_freqs"], 5e-5)


def _mrope(case: Case) -> Iterator[Check]:
    args, a = case.args, case.arrays
    scheme = posenc.parse(f"mrope(sections={tuple(args['sections'])!r}, base={args['rope_theta']!r})")
    positions = jnp.broadcast_to(jnp.moveaxis(a["positions"], 0, -1), (args["batch"], args["length"], 3))
    f = lambda side, x: jax.vmap(  # noqa: E731
        lambda x, at: jax.vmap(lambda x: getattr(scheme, side)({}, x, at)[0])(x)
    )(x, positions)
    out, (grad_q,) = run(partial(f, "query"), a["cotangent"], a["q"])
    yield Check("q_out", out, a["q_out"], 2e-5)
    yield Check("k_out", f("key", jnp.asarray(a["k"])), a["k_out"], 2e-5)
    yield Check("grad_q", grad_q, a["grad_q"], 5e-5)


def _liere(case: Case) -> Iterator[Check]:
    args, a = case.args, case.arrays
    heads, size, axes = args["heads"], args["generator_dim"], args["dimensions"]
    shared, blocks = not args["per_head"], args["head_dim"] // size
    scheme = posenc.parse(f"liere(axes={axes}, size={size}, shared={shared}, extent=1.0)")
    ticks = [np.linspace(0, 1, steps) for steps in args["grid"]]
    grid = np.stack(np.meshgrid(*ticks, indexing="ij"), -1).reshape(-1, axes)
    np.testing.assert_allclose(a["positions"], grid, atol=1e-6)
    places = a["positions"] if axes > 1 else a["positions"][:, 0]
    places = jnp.broadcast_to(places, (args["batch"], *places.shape))

    def entries(generators):
        """The numbers above the diagonals, `[heads, axes, blocks, numbers]`."""
        above = generators[:, 0][..., *np.triu_indices(size, 1)]
        if shared:
            return jnp.broadcast_to(above, (heads, *above.shape))
        return above.reshape(axes, heads, blocks, -1).swapaxes(0, 1)

    def f(side, x, generators):
        return turned(scheme, side, {"generator": entries(generators)}, x, places)

    out, (grad_q, grad_generators) = run(partial(f, "query"), a["cotangent"], a["q"], a["generators"])
    yield Check("q_out", out, a["q_out"], 2e-5)
    yield Check("k_out", f("key", jnp.asarray(a["k"]), jnp.asarray(a["generators"])), a["k_out"], 2e-5)
    yield Check("grad_q", grad_q, a["grad_q"], 5e-5)
    yield Check("grad_generators", grad_generators, a["grad_generators"], 5e-5)
    one = jnp.ones(1, jnp.float32)
    each = skew(jnp.asarray(a["generators"][:, 0][..., *np.triu_indices(size, 1)]), size)
    total = jnp.einsum("la,abcd->lbcd", jnp.asarray(a["positions"]), each)
    ours = jax.vmap(jax.vmap(lambda s: turns(s, one)[0]))(total)
    yield Check("rotation", ours, a["rotation"], 2e-5)


KINDS = {
    "axial": partial(_plane, frequencies="axial"),
    "mixed": partial(_plane, frequencies="mixed"),
    "mrope": _mrope,
    "liere": _liere,
}
