"""Whole layers of DeBERTa v2, whose projections of content may be those of P, and its buckets as whole numbers."""

import jax
import jax.numpy as jnp
import numpy as np

import posenc
from tests.golden.case import Check
from tests.golden.through import cotangent, gradients, run, scheme, scores

schemes = ("deberta",)


def compare(case):
    yield from [_bucket(case)] if "bucket" in case.arrays else _layer(case)


def _layer(case):
    a, said = case.arrays, case.args
    heads, d, length, terms = said["heads"], said["head_dim"], said["length"], set(said["pos_att_type"])
    reach, buckets = said["max_relative_positions"], said["position_buckets"]
    term = "both" if len(terms) > 1 else terms.pop()
    buckets = buckets if buckets > 0 else reach
    deberta = scheme(f"deberta({term!r}, {reach}, {buckets})")
    weights = {n: a[n] for n in a if n.startswith("W.")}
    yield _rows("relative_position", a["relative_position"], _read(deberta, np.arange(length, dtype=np.int32)), buckets)

    def project(x, name):
        return x @ weights[f"W.{name}.weight"].T + jnp.expand_dims(weights[f"W.{name}.bias"], range(x.ndim - 1))

    def own(name):
        """A projection of P: that of the content where they share it."""
        name = f"{name}_proj" if said["share_att_key"] else f"pos_{name}_proj"
        w, b = weights[f"W.{name}.weight"], weights[f"W.{name}.bias"]
        return w.T.reshape(-1, heads, d).swapaxes(0, 1), b.reshape(heads, d)

    p = {}
    for name, needs in (("key", "c2p"), ("query", "p2c")):
        if term in ("both", needs):
            p[name], p[f"{name}_bias"] = own(name)

    def f(x, table):
        params = {"layer": {"table": table}, "heads": p}
        q, k, v = (project(x, f"{n}_proj").reshape(*x.shape[:2], heads, d) for n in ("query", "key", "value"))
        out = posenc.attend(deberta, params, q, k, v, segments=a["mask"], mask="full").reshape(x.shape)
        s = jax.vmap(lambda q, k: scores(deberta, params, q, k))(q, k)
        bias = s - jnp.einsum("bqhd,bkhd->bhqk", q, k) * deberta.scale(d)
        return out, bias, jax.nn.softmax(jnp.where(a["mask"][:, None, None] > 0, s, -jnp.inf), -1)

    (out, bias, shares), back = run(f, cotangent(case), a["x"], a["rel_embeddings"])
    real = a["mask"] > 0
    forward, backward = case.tolerance(1e-5, 2e-6), case.tolerance(5e-5, 2e-6)
    yield Check("out", out * real[..., None], a["out"] * real[..., None], forward)
    rows = real[:, None, :, None]
    yield Check("probs", shares * rows, a["probs"] * rows, forward)
    yield Check("position_bias", bias, a["position_bias"], forward)
    yield from gradients(case, ("x", "rel_embeddings"), back, backward)


def _bucket(case):
    a, buckets = case.arrays, case.args["bucket_size"]
    deberta = scheme(f"deberta('c2p', {case.args['max_position']}, {buckets})")
    ours = _read(deberta, a["relative_position"], np.zeros(1, np.int32))[:, 0]
    return _rows("bucket", a["bucket"], ours, buckets)


def _read(deberta, positions, key_positions=None):
    """The row that each pair reads: a table whose rows are their own numbers, and a query of 1."""
    params = {
        "layer": {"table": np.arange(2.0 * deberta.buckets, dtype=np.float32)[:, None]},
        "heads": {"key": np.ones((1, 1, 1), np.float32), "key_bias": np.zeros((1, 1), np.float32)},
    }
    alone = scheme(f"deberta('c2p', {deberta.reach}, {deberta.buckets})")
    keys = positions if key_positions is None else key_positions
    q, k = np.ones((len(positions), 1, 1), np.float32), np.zeros((len(keys), 1, 1), np.float32)
    rows = scores(alone, params, q, k, positions=positions, key_positions=keys, scale=1.0)
    return np.asarray(rows[0]).astype(np.int32)


def _rows(name, theirs, ours, buckets):
    """Their attention clips what it looks up; what they record is not clipped yet."""
    return Check(name, ours - buckets, np.clip(theirs, -buckets, buckets - 1), 0)
