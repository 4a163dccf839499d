"""Maps of positions along sequences, grids and trees, and unscaled scores of what they map."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from tests.golden.case import Case, Check
from tests.golden.through import gradients, run, scores, told

schemes = ("algebraic",)


def compare(case: Case) -> Iterator[Check]:
    args, a = case.args, case.arrays
    kind, heads, d = case.id.rstrip("0123456789"), args["heads"], args["head_dim"]
    scheme = posenc.parse(f"algebraic(structure={kind!r}, branching={args.get('branching', 2)})")
    where = {"sequence": lambda: args["positions"], "tree": lambda: args["nodes"]}
    where["grid"] = lambda: np.stack([args["x"], args["y"]], -1)
    positions = jnp.asarray(where[kind](), jnp.int32)

    def steps(primitives):
        """The numbers above the diagonals of P - Pᵀ, `[heads, steps, numbers]`; a tree's last primitive is unused."""
        size = primitives.shape[-1]
        above = (primitives - primitives.swapaxes(1, 2))[..., *np.triu_indices(size, 1)]
        if kind == "tree":
            return above[:-1].reshape(args["branching"], heads, -1).swapaxes(0, 1)
        return above.reshape(-1, heads, above.shape[-1]).swapaxes(0, 1)

    def f(q, k, primitives):
        params = {"layer": {}, "heads": {"step": steps(primitives)}}
        where = {"positions": positions, "key_positions": positions, "scale": 1.0}
        return jnp.stack([scores(scheme, params, *pair, **where) for pair in zip(q, k, strict=True)])

    names = ["q", "k", "primitives"]
    out, grads = run(f, a["cotangent"], *(a[n] for n in names))
    yield Check("scores", out, a["scores"], 5e-5)
    yield from gradients(case, names, grads, 1e-4)
    own = steps(jnp.asarray(a["primitives"]))
    unit = lambda c: jnp.broadcast_to(c, (len(positions), d))  # noqa: E731
    hear = lambda p, c: scheme.query(p, unit(c), told(scheme, p, positions))[0]  # noqa: E731
    columns = jax.vmap(lambda p: jax.vmap(lambda c: hear({"step": p}, c))(jnp.eye(d)))
    yield Check("maps", columns(own).transpose(2, 0, 3, 1), a["maps"], 5e-5)
    if kind == "tree":
        yield from _steps(case, positions)


def _steps(case: Case, nodes) -> Iterator[Check]:
    """The steps between nodes, from a decay of one half; theirs as released follow from them and the longest path."""
    scheme = posenc.parse(f"algebraic(structure='tree', branching={case.args['branching']}, decay=0.5)")
    one, seen = jnp.ones((len(nodes),) * 2), jnp.ones((len(nodes),) * 2, bool)
    tile = posenc.Tile(nodes, nodes, nodes[:, None] - nodes[None, :], one, 1.0, seen, nodes, nodes, jnp.int32(0), 1)
    ours = np.rint(-np.log2(scheme.score({}, one, tile))).astype(int)
    yield Check("steps_as_described", ours, case.arrays["steps_as_described"], 0)
    depth = ours[list(case.args["nodes"]).index(0)]  # the root is among the nodes
    common = (depth[:, None] + depth[None, :] - ours) // 2
    released = np.where(ours > 0, 2 * (depth.max() - common), 0)
    yield Check("steps_as_released", released, case.arrays["steps_as_released"], 0)
