"""Attention over many devices is that of one, and no device does or holds what is not its own."""

import contextlib
import fcntl
import json
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType, Mesh
from jax.sharding import PartitionSpec as P

import posenc
from posenc import Dims, sharding
from posenc.attention import kernels
from tests.jaxprs import equations
from tests.kernels import devices


@pytest.fixture(scope="session")
def report(tmp_path_factory, request):
    """What a process with eight devices found of the cases of this session; made once, whichever worker is first."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    found = base / "devices.json"
    with (base / "devices.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not found.exists():
            equal = test_many_devices_are_equal_to_one.__name__
            chosen = [item for item in request.session.items if getattr(item, "originalname", "") == equal]
            names = (item.callspec.params["case"].name for item in chosen)
            run = [sys.executable, "-m", devices.__name__, *names]
            done = subprocess.run(run, capture_output=True, text=True, timeout=500)
            assert done.returncode == 0, done.stderr[-2000:]
            found.write_text(done.stdout)
    return json.loads(found.read_text())


@pytest.mark.ci
@pytest.mark.parametrize("case", devices.CASES, ids=lambda case: case.name)
def test_many_devices_are_equal_to_one(case, report):
    found = report["cases"][case.name]
    worst = {name: e for name, e in found["apart"].items() if not e < (1e-11 if case.exact else 1e-5)}
    assert not worst, f"these differ: {worst}"
    if case.way in ("batch", "heads") and not case.explicit:
        reads_all = case.way == "heads" and posenc.parse(case.text).reads == "heads"
        assert found["gathers"] == reads_all, "a device holds more than its share"


@pytest.mark.guard
@pytest.mark.ci  # as what it tries: one process with eight devices serves all of these
@pytest.mark.parametrize("fault", devices.FAULTS)
def test_a_fault_in_the_ring_is_found(fault, report):
    assert report["faults"][fault] > 1e-3


@pytest.mark.ci
def test_devices_pass_on_what_their_queries_cannot_see_without_a_look(report):
    """Of 8 × 8 meetings, those at or below the diagonal; and each with itself and what is just before."""
    assert report["looks"] == {"full": 64, "causal": 36, "Window(left=6, right=0, sinks=0, back=None, ahead=None)": 15}


def made(text, length, key_heads=4):
    dims = Dims(width=16, heads=4, head=4, trained=length, key_heads=key_heads)
    scheme = posenc.bind(posenc.parse(text), dims)
    return scheme, posenc.init(scheme, jax.random.key(0), dims), jnp.ones((length, 4, 4))


def arrays(jaxpr):
    """Every array of a program and of those within it."""
    return (value.aval for equation in equations(jaxpr) for value in equation.outvars)


def devices_own(jaxpr):
    """The program that each device runs."""
    for line in jaxpr.eqns:
        if line.primitive.name == "shard_map":
            yield line.params["jaxpr"]
        for value in line.params.values():
            if hasattr(inner := getattr(value, "jaxpr", value), "eqns"):
                yield from devices_own(inner)


@pytest.mark.parametrize("text", ["rope", "t5", "rope + kerple(weight=True)"])
def test_no_device_of_a_ring_holds_the_features_of_all_tokens(text, monkeypatch):
    monkeypatch.setattr(kernels, "block", lambda queries, keys: 16)
    length, mesh = 4096, AbstractMesh((64,), ("length",), axis_types=(AxisType.Auto,))
    scheme, params, q = made(text, length)
    run = jax.grad(lambda *qkv: sharding.ring(scheme, params, *qkv, mesh=mesh, axis="length").sum(), (0, 1, 2))
    programs = list(devices_own(jax.make_jaxpr(run)(q, q, q).jaxpr))
    sizes = [a.size for program in programs for a in arrays(program) if hasattr(a, "size")]
    assert len(programs) >= 2 and len(sizes) > 500
    assert max(sizes) < length * 4 * 2, "a band has a number for each gap and head, and tokens have four for each"


@pytest.mark.ci
@pytest.mark.parametrize(("text", "kernel"), [("t5", "tiled"), ("cope", "rows"), ("alibi", "dense")])
def test_batches_go_through_a_shard_map_of_the_users_own(text, kernel):
    """A loop over tiles begins with constants, which jax takes for the same on all devices."""
    scheme, params, _ = made(text, 8)
    q, k, v = np.random.default_rng(0).normal(size=(3, 2, 8, 4, 4)).astype(np.float32)
    mesh, cut = Mesh(jax.devices()[:2], ("batch",)), P("batch")
    call = lambda p, q, k, v: posenc.attend(scheme, p, q, k, v, kernel=kernel)  # noqa: E731
    specs = (P(), cut, cut, cut)
    over = jax.shard_map(call, mesh=mesh, in_specs=specs, out_specs=cut)
    gradient = lambda f: jax.jit(jax.grad(lambda *a: (f(*a) ** 2).sum(), (0, 1, 2, 3)))(params, q, k, v)  # noqa: E731
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-5), gradient(over), gradient(call))


@pytest.mark.ci
@pytest.mark.parametrize("entered", [True, False], ids=["mesh entered", "mesh of the arrays alone"])
def test_explicit_axes_are_taken_with_and_without_jit_and_kept(entered):
    scheme, params, _ = made("rope + alibi", 8)
    x, (q, k, v) = jnp.ones((2, 8, 16)), np.random.default_rng(0).normal(size=(3, 2, 8, 4, 4)).astype(np.float32)
    mesh, spec = jax.make_mesh((2,), ("it",), axis_types=(AxisType.Explicit,)), P(None, None, "it", None)
    put = lambda a: jax.device_put(a, jax.NamedSharding(mesh, spec))  # noqa: E731
    call = lambda q, k, v: posenc.attend(scheme, params, q, k, v)  # noqa: E731
    table = posenc.bind(posenc.parse("sinusoidal"), Dims(16, 4, 4, 8))
    with jax.set_mesh(mesh) if entered else contextlib.nullcontext():
        for run in (call, jax.jit(call)):
            out = run(*map(put, (q, k, v)))
            assert out.sharding.spec == spec
            np.testing.assert_allclose(out, call(q, k, v), atol=1e-6)
        over = jax.device_put(x, jax.NamedSharding(mesh, P("it")))
        shifted = posenc.embed(table, {"layer": {}, "heads": {}}, over)
    assert shifted.sharding.spec[0] == "it"
    np.testing.assert_allclose(shifted, posenc.embed(table, {"layer": {}, "heads": {}}, x), atol=1e-6)


AUTO = (AxisType.Auto,)
TWO = {"mesh": AbstractMesh((2,), ("length",), axis_types=AUTO), "axis": "length"}
THREE = AbstractMesh((3,), ("length",), axis_types=AUTO)


@pytest.mark.parametrize(
    ("text", "about", "why"),
    [
        ("cope", {}, "'cope'.* ring"),
        ("dape", {}, "'dape'.* ring"),
        ("rope", {"axis": "long"}, "'long'.*'length'"),
        ("rope", {"mesh": 2}, "mesh.* int"),
        ("rope", {"mesh": AbstractMesh((2,), ("length",), axis_types=(AxisType.Explicit,))}, "compiler's"),
        ("rope", {"mesh": THREE}, "8 queries.* 3 devices"),
        ("rope", {"k": jnp.ones((6, 4, 4)), "v": jnp.ones((6, 4, 4))}, "8 queries.* 6 keys"),
        ("rope", {"mask": "none"}, "mask is 'none'"),
        ("fox", {}, "'fox'.*pass x"),
    ],
)
def test_what_no_ring_can_do_is_refused_in_a_sentence(text, about, why):
    scheme, params, q = made(text, 8)
    k, v = about.get("k", q), about.get("v", q)
    with pytest.raises((ValueError, TypeError), match=why):
        sharding.ring(scheme, params, q, k, v, **TWO | {n: a for n, a in about.items() if n not in "kv"})


@pytest.mark.parametrize(
    ("about", "why"),
    [
        ({"axis": "keys"}, "'keys'.*'length'"),
        ({"mesh": THREE}, "8 queries.* 3 devices"),
        ({"kernel": "flash"}, "kernel is 'flash'"),
        ({"positions": np.zeros(3, int)}, "positions.* shape"),
    ],
)
def test_what_queries_cannot_be_given_is_refused_in_a_sentence(about, why):
    scheme, params, q = made("rope", 8)
    with pytest.raises((ValueError, TypeError), match=why):
        sharding.queries(scheme, params, q, q, q, **TWO | about)


@pytest.mark.parametrize("call", [sharding.ring, sharding.queries])
def test_nothing_in_is_nothing_out(call):
    scheme, params, _ = made("rope", 8)
    q = jnp.ones((0, 8, 4, 4))
    assert call(scheme, params, q, q, q, **TWO).shape == q.shape


@pytest.mark.ci
def test_queries_that_are_the_last_of_the_keys_may_lie_on_many_devices():
    scheme, params, _ = made("t5", 8)
    q, k, v = np.random.default_rng(0).normal(size=(3, 8, 4, 4)).astype(np.float32)
    mesh = Mesh(jax.devices()[:2], ("length",))
    out = sharding.queries(scheme, params, q[4:], k, v, query_start=4, mesh=mesh, axis="length")
    np.testing.assert_allclose(out, posenc.attend(scheme, params, q, k, v)[4:], atol=1e-6)
