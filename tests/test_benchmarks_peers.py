"""The benchmarks against other libraries: who is asked, how operations are counted, and what is said without them.

Nothing here is timed: what a test of speed says depends on the machine's mood.
"""

import io
import math
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import against, peers, side, step

ROOT = Path(__file__).parent.parent
TOY = """
import sys
from benchmarks import side
name = sys.argv[-1]
if name == "broken":
    raise SystemExit("it broke")
if name == "dies":
    print('{"units": 1, "compile_s": 0, "scratch": 0, "probe": null, "peaks": false}', flush=True)
    raise SystemExit("it died")
side.serve(side.Ready(lambda: None, 2.0, 0.5, 1024, None if name == "plain" else lambda: 10.0, (3.0, 4.0)))
"""


def row(name, seconds, **more):
    given = {"units": 1.0, "compile_s": 0.1, "scratch": 2**20, "peaks": (1e9, 1e9), "probe": (1.0, 2.0)}
    return side.Row(name, seconds, **given | more)


def test_what_runs_in_the_peers_python_imports_no_jax_and_no_torch():
    code = (
        "import sys, benchmarks.against, benchmarks.step; print({'jax', 'torch', 'posenc', 'numpy'} & {*sys.modules})"
    )
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert said.stdout == "set()\n"


def test_peers_that_are_not_installed_are_told_of_with_the_command(monkeypatch, tmp_path):
    monkeypatch.delenv("PEERS", raising=False)
    assert "PEERS" in peers.versions() and peers.INSTALL in peers.versions()
    monkeypatch.setenv("PEERS", "/no/such/python")
    assert "'/no/such/python'" in peers.versions() and "No such file or directory" in peers.versions()
    bare = tmp_path / "python"
    bare.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'torch'\" >&2\nexit 1\n")
    bare.chmod(0o755)
    monkeypatch.setenv("PEERS", str(bare))
    assert repr(str(bare)) in peers.versions() and "'torch'" in peers.versions()


def test_candidates_alternate_in_processes_of_their_own(monkeypatch, tmp_path):
    (tmp_path / "toy.py").write_text(TOY)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{tmp_path}")
    other = tmp_path / "other"
    other.write_text(f'#!/bin/sh\necho here > {tmp_path}/used\nexec {sys.executable} "$@"\n')
    other.chmod(0o755)
    rows = side.compare("toy", ["one", "plain"], 3, {"plain": str(other)})
    assert [len(r.seconds) for r in rows.values()] == [3, 3]
    assert (tmp_path / "used").exists()
    assert rows["one"].peaks == (10.0, 10.0) and rows["plain"].peaks == ()
    assert rows["one"][2:5] == (2.0, 0.5, 1024) and rows["one"].probe == (3.0, 4.0)
    for name in ("broken", "dies"):
        with pytest.raises(RuntimeError, match=f"The candidate '{name}' ended before it answered"):
            side.compare("toy", ["one", name], 3)


def test_rows_of_a_machine_that_changed_are_marked():
    assert row("a", (1.0, 1.4)).marks == "" and row("a", (1.0, 1.6)).marks == "noisy"
    assert row("a", (1.0,), peaks=(1.0, 1.14)).marks == "" and row("a", (1.0,), peaks=(1.16, 1.0)).marks == "drifted"
    assert row("a", (2.0,), units=6.0, peaks=(5.0, 7.0)).efficiency == 0.5
    assert "may not be quoted" in side.caution([row("a", (1.0, 1.6))], False, 2.0)
    assert side.caution([row("a", (1.0,))], False, 2.0) == "" and "do not judge the bars" in side.caution([], True, 0.0)


def test_a_benchmark_takes_the_options_that_it_heeds(monkeypatch, capsys):
    def asked(*words, **how):
        monkeypatch.setattr(sys, "argv", ["benchmark", *words])
        return side.arguments("What it does.", **how)

    assert asked().rounds == 5 and asked("--quick").rounds == side.QUICK < 5
    assert asked(rounds=7).rounds == 7 and asked("--quick", "--rounds", "9", rounds=7).rounds == 9
    assert asked("--bars", bars="few").bars
    monkeypatch.setattr("sys.stdin", io.StringIO("go\n"))
    with pytest.raises(SystemExit) as end:
        asked("--candidate", "a", candidate=lambda name: side.Ready(lambda: print(name), 1.0, 0.5))
    assert end.value.code is None and "\na\n" in capsys.readouterr().out
    for words, why in (
        (["--rounds", "0"], "must be a whole number from 1 up"),
        (["--candidate", "a"], "unrecognized arguments"),
    ):
        with pytest.raises(SystemExit):
            asked(*words)
        assert why in capsys.readouterr().err


def test_operations_of_a_step_are_those_of_our_models_products():
    from posenc.core.scheme import Dims
    from posenc.lab.models.interface import Inputs, Shape
    from posenc.lab.models.transformer import Transformer
    from posenc.naming import bind, parse

    size = step.Size(depth=2, width=32, heads=2, hidden=48, vocab=11, length=12, batch=3)
    dims = Dims(width=32, heads=2, head=16, trained=12, longest=12, causal=True)
    shape = Shape(dims, size.depth, size.hidden, size.vocab, size.vocab)
    tokens = jnp.zeros((size.batch, size.length), jnp.int32)

    def forward(key):
        return Transformer(bind(parse("nope"), dims), shape, key)(Inputs(tokens, tokens == 0), key)

    by_pair = size.depth * size.batch * 2 * 2 * size.width * size.length**2  # the dense square, of which half is useful
    assert products(jax.make_jaxpr(forward)(jax.random.key(0)).jaxpr) == size.operations / 3 + by_pair / 2


def products(jaxpr):
    """Floating-point operations of all products in a program."""
    total = 0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            left = equation.invars[0].aval.shape
            total += 2 * math.prod(equation.outvars[0].aval.shape) * math.prod(left[n] for n in contracted)
        inner = [getattr(p, "jaxpr", p) for p in equation.params.values() if hasattr(p, "eqns") or hasattr(p, "jaxpr")]
        total += equation.params.get("length", 1) * sum(map(products, inner))
    return total


@pytest.mark.ci
def test_a_step_of_ours_has_as_many_numbers_in_matrices_as_the_peers():
    size = step.Size(depth=1, width=16, heads=2, hidden=32, vocab=7, length=8, batch=2)
    ready = step.ours(size)
    ready.go()
    ready.go()  # the donated state went round
    assert ready.probe == (size.matrices + size.vocab * size.width,)  # and the embedding, which multiplies nothing
    assert ready.units == size.operations


@pytest.mark.parametrize("backward", [False, True])
def test_ours_in_jax_computes_what_it_is_compared_with(backward):
    given = against.inputs(24)
    alibi = {n: against.in_jax(n, backward, given).probe for n in ("posenc alibi", "three lines of einsum, alibi")}
    assert len(alibi["posenc alibi"]) == (32 if backward else 8)
    np.testing.assert_allclose(*alibi.values(), rtol=1e-4, atol=1e-5)
    nothing = against.in_jax("jax.nn, no positions", backward, given).probe
    assert np.abs(np.subtract(nothing, alibi["posenc alibi"])).max() > 0.01


def test_t5_is_compared_with_its_learned_table():
    given = against.inputs(24)
    table = given["table"][
        np.minimum(np.arange(24)[:, None] - np.arange(24), 16)
    ]  # 16 exact buckets, then by logarithm
    far = np.arange(24)[:, None] - np.arange(24) > 16
    buckets = 16 + np.floor(np.log(np.maximum(np.arange(24)[:, None] - np.arange(24), 16) / 16) / np.log(8) * 16)
    table = np.where(far[:, :, None], given["table"][buckets.astype(int)], table)
    s = np.einsum("qhd,khd->hqk", given["q"], given["k"]) + table.transpose(2, 0, 1)
    p = np.exp(np.where(np.tri(24, dtype=bool), s, -np.inf))
    out = np.einsum("hqk,khd->qhd", p / p.sum(-1, keepdims=True), given["v"])
    found = against.in_jax("posenc t5", True, given).probe
    np.testing.assert_allclose(found[:8], out[-1, :, 0], rtol=1e-4, atol=1e-5)
    assert len(found) == 40 and np.abs(found[32:]).min() > 0  # the last are of the table's gradient


def test_candidates_that_differ_where_they_should_agree_are_not_compared():
    rows = {"posenc alibi": row("a", (1.0,)), "x-transformers alibi": row("b", (1.0,), probe=(1.0, 2.1))}
    with pytest.raises(RuntimeError, match="x-transformers alibi"):
        against.agree(rows)
    against.agree(rows | {"x-transformers alibi": row("b", (1.0,), probe=(1.0, 2.0001))})
    against.agree({"posenc rope": row("a", (1.0,)), "jax.nn, no positions": row("b", (1.0,), probe=(5.0, 5.0))})
    with pytest.raises(RuntimeError, match="equally many"):
        step.agree({step.OURS: row("a", (1.0,)), step.PLAIN: row("b", (1.0,), probe=(7.0,))})
