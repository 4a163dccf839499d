"""Every way to spread one attention over eight devices of this host, and how far it is from one device.

`python -m tests.kernels.devices [CASE ...]` prints one JSON object, of these cases and of every fault. A process has as
many devices as it began with, and that of the other tests has two.
"""

import inspect
import json
import sys
import types
from collections.abc import Collection
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import posenc
from posenc import Dims, Window, sharding
from posenc.attention import kernels
from posenc.attention.kernels import tiled
from posenc.core.distances import Distances

B, L, H, D = 2, 48, 8, 4
PACKED = np.repeat([1, 2, 3, 0], [7, 20, 17, 4]).astype(np.int32)
RAGGED = np.stack([PACKED, np.repeat([0, 4, 5], [3, 40, 5]).astype(np.int32)])
FAR = np.sort(np.random.default_rng(5).choice(300, L, replace=False)).astype(np.int32)
DRAWN = Distances(2 * np.arange(L, dtype=np.int32), -3 * np.arange(L, dtype=np.int32))
"""Distances in the place of positions: of no token, so that every device holds all."""
BOTH = ("batch and heads", "decoding")
"""Ways over both axes of a mesh."""
WEIGHTED = {
    "scale": 0.3,
    "cap": 2.0,
    "sinks": np.linspace(-1.0, 1.0, H),
    "dropout": 0.25,
    "dropout_key": np.array([0, 9], np.uint32),
}
ALLOWED = np.random.default_rng(6).random((B, L, L)) < 0.6
LEARNED = "rope(frequencies='learned')"


class Case(NamedTuple):
    """`way`: "ring" or "queries" along the length, or the axis that the compiler is left to cut, with a kernel."""

    way: str
    text: str
    devices: int = 4
    kernel: str = "tiled"
    groups: int = H
    exact: bool = True
    about: dict[str, Any] = {}  # noqa: RUF012
    explicit: bool = False
    """Whether the axes of the mesh are part of each array's type."""

    @property
    def name(self) -> str:
        about = ", ".join(f"{a}" if isinstance(a, str | Window) else n for n, a in self.about.items())
        kind = "float64" if self.exact else "float32"
        axes = "explicit axes, " if self.explicit else ""
        where = f"{self.devices}, {self.kernel}, {self.groups} key heads, {kind}"
        return f"{self.way}: {self.text} on {where}, {axes}{about}"


SOME: dict[str, Any] = {"mask": "full", "positions": np.where(FAR > 200, -1, FAR)}
"""Some tokens without a place."""
EVERYWHERE: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("rope", "dense", {}),
    ("alibi", "tiled", {"segments": RAGGED}),
    ("t5", "tiled", {}),
    ("shaw(reach=4)", "rows", {}),
    ("fox", "dense", {}),
    ("fox", "tiled", {}),
    ("path", "dense", {}),
    ("dape", "dense", {}),
)
"""Schemes of every family, over batch, over heads, over both, and in decoding, with axes of either type."""
CASES = [
    Case("ring", "t5", 2, groups=4),
    Case("ring", "t5(bidirectional=True)", 8, about={"mask": "full", "segments": PACKED}),
    Case("ring", "kerple", 8, about={"segments": RAGGED}),
    Case("ring", "alibi", about={"mask": Window(15, 0)}),
    Case("ring", LEARNED, 2, about={"mask": Window(5, 14), "segments": PACKED}),
    Case("ring", LEARNED + " + t5", groups=2, about={"mask": "full", "positions": FAR}),
    Case("ring", LEARNED + " + kerple", 8, exact=False),
    Case("ring", "log_n(trained=4) + alibi", about={"segments": PACKED}),
    Case("ring", "dynamic_ntk(factor=2.0, original=16)"),
    Case("ring", "kerple", 2, about={"mask": "full", "positions": DRAWN}),
    Case("ring", "fox", 8, about={"segments": PACKED}),
    Case("ring of some heads", "kerple", 8, about={"segments": PACKED}),
    Case("ring of some heads", "alibi", 8),
    Case("queries", "fox", 8),
    Case("queries", "t5", 4, groups=4, about={"segments": RAGGED}),
    Case("queries", "stick_breaking", 2, "rows"),
    Case("ring", "alibi", about={"scale": 0.3, "cap": 2.0}),
    Case("queries", "t5", 4, groups=4, about=WEIGHTED),
    Case("queries", "rope", 4, "dense", about=WEIGHTED | {"mask": ALLOWED}),
    Case("ring", "{fox, rope + kerple}", groups=4, about={"segments": RAGGED}),
    Case("queries", "{t5: 1, rope: 3}", groups=2),
    Case("ring", "rope + window(9, of='positions')", 2, about={"mask": "full", "positions": FAR}),
    Case("ring", "alibi + rope + unplaced", about=SOME),
    Case("ring", "ssmax + window(9, of='positions') + unplaced", 2, about=SOME),
    Case("heads", "{alibi, rope}", 4, explicit=True),
    Case("decoding", "{alibi, rope}", 4, "dense", explicit=True),
    Case("heads", "alibi", 8),
    Case("heads", "alibi", 2, "dense"),
    Case("heads", "t5", 4),
    Case("heads", "fox", 4),
    Case("heads", "fox", 8, "dense"),
    Case("batch", "t5", 2),
    Case("batch", "fox", 2, "dense"),
    Case("length", "t5", 8, "dense"),
    *(
        Case(way, text, 2 if way == "batch" else 4, kernel, explicit=explicit, about=about)
        for explicit in (True, False)
        for way in ("batch", "heads", "batch and heads", "decoding")
        for text, kernel, about in EVERYWHERE
        if not (way == "decoding" and kernel != "dense")
    ),
]


def made(case: Case):
    """The scheme, its parameters moved from where they start, and random arrays."""
    causal = str(case.about.get("mask")) != "full"
    dims = Dims(width=H * D, heads=H, head=D, trained=L, key_heads=case.groups, causal=causal)
    scheme = posenc.bind(posenc.parse(case.text), dims)
    kind = jnp.float64 if case.exact else jnp.float32
    params = posenc.init(scheme, jax.random.key(0), dims)
    params = jax.tree.map(lambda a: (a + 0.1 * jnp.cos(jnp.arange(a.size).reshape(a.shape))).astype(kind), params)
    draw = lambda n, *shape: jax.random.normal(jax.random.key(n), (B, L, *shape), kind)  # noqa: E731
    q, k, v, w = draw(1, H, D), draw(2, case.groups, D), draw(3, case.groups, D), draw(4, H, D)
    return scheme, params, (q, k, v, draw(5, H * D)), w


def mesh(case: Case):
    shapes = {"ring of some heads": {"heads": 2, "length": 4}} | dict.fromkeys(BOTH, {"batch": 2, "heads": 2})
    shape = shapes.get(case.way, {"it": case.devices})
    kind = AxisType.Explicit if case.explicit else AxisType.Auto
    each = np.reshape(jax.devices()[: case.devices], tuple(shape.values()))
    return Mesh(each, tuple(shape), axis_types=(kind,) * len(shape))


def cut(case: Case, over: Mesh, params: Any, tokens: Any):
    """The arrays, each on the devices that it belongs to."""
    put = lambda spec: lambda a: jax.device_put(a, NamedSharding(over, spec))  # noqa: E731
    (*qkv, x), whole = tokens, put(P())
    lies = {"batch": P("it"), "heads": P(None, None, "it"), "length": P(None, "it"), "queries": P(None, "it")}
    lies |= dict.fromkeys(BOTH, P("batch", None, "heads"))
    spec = lies.get(case.way, P(None, "it") if case.way == "ring" else P(None, "length", "heads"))
    own = "heads" if case.way in ("ring of some heads", *BOTH) else "it"
    each = P(own) if "heads" in case.way or case.way in BOTH else P()
    place = lambda path, a: put(each if "heads" in [getattr(p, "key", None) for p in path] else P())(a)  # noqa: E731
    few = whole if case.way == "queries" else put(spec)
    return jax.tree.map_with_path(place, params), (put(spec)(qkv[0]), *map(few, qkv[1:]), whole(x))


def gradients(attention, params, tokens, w):
    """The output and the gradient of everything, and the program that makes them."""

    def loss(params, q, k, v, x):
        out = attention(params, q, k, v, x)
        return (out * w).sum(), out

    run = jax.jit(jax.grad(loss, (1, 2, 3, 4, 0), has_aux=True)).lower(params, *tokens).compile()
    grads, out = run(params, *tokens)
    return dict(zip(("output", "q", "k", "v", "x", "params"), (out, *grads), strict=True)), run.as_text()


def spread(case: Case):
    """The output and the gradients of the case on many devices, and the program."""
    scheme, params, tokens, w = made(case)
    over, about = mesh(case), case.about
    x = lambda x: x if scheme.contextual else None  # noqa: E731

    def many(params, q, k, v, a):
        lies = {"mesh": over, "axis": over.axis_names[-1]}
        if case.way.startswith("ring"):
            return sharding.ring(scheme, params, q, k, v, x=x(a), **lies, **about)
        if case.way == "queries":
            return sharding.queries(scheme, params, q, k, v, x=x(a), kernel=case.kernel, **lies, **about)
        if case.way == "decoding":
            return decoded(scheme, params, q, k, v, x(a), **about)
        return posenc.attend(scheme, params, q, k, v, x=x(a), kernel=case.kernel, **about)

    if not case.explicit:
        return gradients(many, *cut(case, over, params, tokens), w)
    with jax.set_mesh(over):
        return gradients(many, *cut(case, over, params, tokens), jax.device_put(w, NamedSharding(over, P())))


def decoded(scheme: Any, params: Any, q: Any, k: Any, v: Any, x: Any) -> Any:
    """Attention by a cache: most tokens at once, then one at a time in one compiled loop."""
    dims = Dims(H * D, H, D, L, key_heads=k.shape[-2])
    cache = posenc.Cache.empty(scheme, params, dims, batch=B, capacity=L, dtype=q.dtype)
    part = lambda at, n: (jax.lax.dynamic_slice_in_dim(a, at, n, 1) for a in (q, k, v))  # noqa: E731
    features = lambda at, n: None if x is None else jax.lax.dynamic_slice_in_dim(x, at, n, 1)  # noqa: E731
    first, cache = posenc.attend(scheme, params, *part(0, L - 6), x=features(0, L - 6), cache=cache)

    def step(cache, at):
        out, cache = posenc.attend(scheme, params, *part(at, 1), x=features(at, 1), cache=cache)
        return cache, out[:, 0]

    rest = jax.lax.scan(step, cache, jnp.arange(L - 6, L))[1]
    return jnp.concatenate([first, rest.swapaxes(0, 1)], 1)


def alone(case: Case):
    """The output and the gradients of the case on one device."""
    scheme, params, tokens, w = made(case)

    def one(params, q, k, v, a):
        x = a if scheme.contextual else None
        kernel = "rows" if case.kernel == "rows" else "dense"
        return posenc.attend(scheme, params, q, k, v, x=x, kernel=kernel, **case.about)

    return gradients(one, params, tokens, w)[0]


def apart(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, float]:
    """The largest difference by what differs, beside the largest number where that is above 1."""

    def far(a, b):
        a, b = np.asarray(a), np.asarray(b)
        return float(np.abs(a - b).max(initial=0) / np.abs(b).max(initial=1))

    pairs = lambda name: map(far, *map(jax.tree.leaves, (ours[name], theirs[name])))  # noqa: E731
    return {name: max(pairs(name), default=0.0) for name in theirs}


FAULTS = {
    "the ring stops one device early": ("fori_loop(0, ring[1], fold", "fori_loop(0, ring[1] - 1, fold"),
    "the gradient of keys stays where it was made": (
        "theirs, keys = _passed((theirs, keys), ring)",
        "keys = _passed(keys, ring)",
    ),
    "keys keep the first device's part of the band": ("(ring[1] - 1) * tiling.keys - met.begin", "0 * met.begin"),
    "a device skips the keys of its last neighbour": (
        "return visible",
        "return visible & (met.begin + tiling.keys != met.start)",
    ),
}
"""A piece of the ring's source, and what replaces it."""


def planted(case: Case, theirs: dict[str, Any], old: str, new: str) -> float:
    """The largest difference with a fault in the ring."""
    right = sharding.around
    source = inspect.getsource(right)
    assert old in source, f"the ring no longer says {old!r}"
    wrong = types.ModuleType("wrong")
    wrong.__dict__["__name__"] = right.__name__
    exec(compile(source.replace(old, new), "wrong", "exec"), wrong.__dict__)
    sharding.around = wrong
    try:
        return max(apart(spread(case)[0], theirs).values())
    finally:
        sharding.around = right


def looks(mask: Any) -> int:
    """How often any of eight devices looks at keys, of 64 times."""
    case, count, right = Case("ring", "nope", 8, about={"mask": mask}), [], tiled.forward

    def counted(*args):
        jax.debug.callback(lambda: count.append(1))
        return right(*args)

    scheme, params, (q, k, v, _), _ = made(case)
    tiled.forward = counted
    sharding.ring(scheme, params, q[0], k[0], v[0], mesh=mesh(case), axis="it", mask=mask).block_until_ready()
    jax.effects_barrier()
    tiled.forward = right
    return len(count)


def report(names: Collection[str]) -> dict[str, Any]:
    """The cases of these names, and every fault."""
    cases = {}
    for case in (case for case in CASES if case.name in names):
        ours, program = spread(case)
        cases[case.name] = {"apart": apart(ours, alone(case)), "gathers": program.count(" all-gather(")}
    faulty = Case("ring", "t5")
    theirs = alone(faulty)
    return {
        "cases": cases,
        "faults": {name: planted(faulty, theirs, *fault) for name, fault in FAULTS.items()},
        "looks": {str(mask): looks(mask) for mask in ("full", "causal", Window(L // 8, 0))},
    }


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", 8)
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_numpy_rank_promotion", "raise")
    kernels.block = lambda queries, keys: 4
    print(json.dumps(report(sys.argv[1:])))
