"""SHAPE and CAPE: sinusoids of the index, shifted and scaled. The draws are inputs, those of evaluation are ours."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from tests.golden.case import Case, Check

schemes = ("sinusoidal", "sinusoidal_2d")


def compare(case: Case) -> Iterator[Check]:
    rule = _shape if case.args["source"] == "shape" else _cape_2d if "grid" in case.args else _cape
    yield from rule(case.args, case.arrays)


def _embed(scheme, x, positions):
    none = {"layer": {}, "heads": {}}
    return jax.jit(lambda x, p: posenc.embed(scheme, none, x * x.shape[-1] ** 0.5, positions=p))(x, positions)


def _shape(args, a) -> Iterator[Check]:
    offsets, length = a["offsets"], args["length"]
    limit = max(args["noise_size"] - 1, 0)
    scheme = posenc.parse(f"sinusoidal @ offset({limit}, evaluate={'largest' if args['noise_size'] else 'zero'!r})")
    index = np.broadcast_to(np.arange(length, dtype=np.int32), (args["batch"], length))
    place = jax.jit(lambda key: posenc.place(scheme, key, {"index": index, "length": length}, train=args["training"]))
    ours = np.asarray(place(jax.random.key(0)))
    if args["training"]:
        drawn = (ours[:, 0] > limit) | (offsets > limit)
        yield Check("a draw is below noise_size, theirs and ours", drawn, offsets < 0, 0)
        ours = index + offsets[:, None]
    else:
        yield Check("offsets", ours[:, 0], offsets, 0)
    out = _embed(scheme, a["x"].swapaxes(0, 1), ours).swapaxes(0, 1)
    yield Check("out", out, a["out"], 1e-5 if ours.max() < 100 else 5e-5)


def _positions(scheme, args, given, draws):
    """Positions of every sequence under their draws; in evaluation they come from `place` and use none."""
    if not args["training"]:
        return posenc.place(scheme, jax.random.key(0), given)
    one = scheme.coordinates[0].coordinates
    axes = [given[name] for name in one.which] or [given["index"]]
    p = one.delta * jnp.stack(axes, -1).astype(jnp.float32)
    p, apart = one.centered(p, jnp.ones((len(p), 1), bool))
    return jnp.stack([one.moved(p, apart, *draw)[:, slice(None) if one.which else 0] for draw in draws])


def _outside(one, draws):
    """Which draws lie outside their bounds, theirs and ours; none should."""
    theirs, ours = draws[0], one.draw(jax.random.key(1), len(draws[0][1]), draws[0][0].shape[1])
    bounds = one.shift, one.local, np.log(one.factor)
    return [
        bool(np.any(np.abs(a) > bound + 1e-6)) for draw in (theirs, ours) for a, bound in zip(draw, bounds, strict=True)
    ]


def _cape(args, a) -> Iterator[Check]:
    said = [args[f"max_{name}"] for name in ("global_shift", "local_shift", "global_scaling")]
    center = "mean" if args["normalize"] else "none"
    scheme = posenc.parse(f"sinusoidal @ augment({', '.join(map(repr, said))}, {center!r}, {args['positions_delta']})")
    given = {"index": np.arange(args["length"], dtype=np.int32), "length": args["length"]}
    draws = [
        (shift[None, :], own[:, None], scale[0])
        for shift, own, scale in zip(a["global_shift"], a["local_shift"], a["log_scale"], strict=True)
    ]
    yield Check("draws outside their bounds", _outside(scheme.coordinates[0].coordinates, draws), np.zeros(6, bool), 0)
    positions = _positions(scheme, args, given, draws)
    yield Check("out", _embed(scheme, a["x"], positions), a["out"], 1e-5 if np.abs(positions).max() < 100 else 5e-5)


def _cape_2d(args, a) -> Iterator[Check]:
    said = f"{args['max_global_shift']!r}, 0.0, {args['max_global_scaling']!r}"
    scheme = posenc.parse(f"sinusoidal_2d @ augment({said}, 'unit', which=('row', 'col'))")
    row, column = (n.reshape(-1).astype(np.int32) for n in np.indices(args["grid"]))
    given = {"index": np.arange(row.size, dtype=np.int32), "length": row.size, "row": row, "col": column}
    draws = [
        (np.array([[x, y]]), np.zeros((row.size, 2), np.float32), np.log(scale))
        for x, y, scale in zip(*(a[name].reshape(-1) for name in ("shift_x", "shift_y", "scale")), strict=True)
    ]
    yield Check("draws outside their bounds", _outside(scheme.coordinates[0].coordinates, draws), np.zeros(6, bool), 0)
    x = a["x"].reshape(args["batch"], -1, args["dim"])
    ours = _embed(scheme, x, _positions(scheme, args, given, draws)).reshape(a["out"].shape)
    yield Check("out", ours, a["out"], 1e-5)
