"""Every scheme of the registry trains in a sweep as a user's: on two cores, with all of XLA's threads, and to its end.

A batch of LAPACK's calls can wait for ever for the threads of another. No other test would see it: here programs are of
a size at which XLA shares out the batch, which a smaller model is not. So `.ci/run` sweeps the schemes whose programs
call LAPACK, and the one that once hung; all others are swept at night.
"""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

import posenc
from posenc.lab.store import folder as store
from tests.jaxprs import equations

pytestmark = [pytest.mark.ci, pytest.mark.timeout(600)]

LIMIT = 500
"""Seconds for one sweep of `TOGETHER` schemes: one or two minutes, more where other programs use the machine."""
TOGETHER = 9
ON_TASKS = {
    "addition": {"abacus": "abacus @ given('digit')", "key_weight": "key_weight(form='plain') @ given('digit')"},
    "minesweeper": {
        **{name: f"{name} @ axes('row', 'col')" for name in ("convit", "liere", "sinusoidal_2d")},
        **{name: f"{name} @ axes('row', 'col')" for name in ("relative_2d", "rope_2d", "rope_axes")},
        "mrope": "mrope @ axes('row', 'row', 'col')",
    },
}
"""The schemes that read the coordinates of a task, each with one that offers them."""
HUNG = "path"
SOLVING = [HUNG, "algebraic", "liere(axes=1)"]
LAPACK = set("cholesky eig eigh geqrf householder_product lu qr schur svd triangular_solve tridiagonal_solve".split())
"""Operations that are calls of LAPACK on a CPU."""
SETTINGS = "model=decoder width=32 depth=1 heads=4 hidden=64 shortest=5 buckets=1 steps=20 rows=16".split()
LENGTH = "batch=32 length=16 sizes=16".split()
SQUARES = "batch=8 length=5 sizes=5".split()
"""In place of `LENGTH` where an example is as long as the square of its size."""
ON_TWO_CORES = """
import os, sys
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
from posenc.__main__ import main
sys.exit(main())
"""


def cases():
    """A task and the schemes that one sweep trains on it."""
    texts = [list(texts.values()) for texts in ON_TASKS.values()]
    placed = {name for texts in ON_TASKS.values() for name in texts}
    rest = [name for name in posenc.names() if name not in placed]
    parts = [rest[n : n + TOGETHER] for n in range(0, len(rest), TOGETHER)]
    night = [*zip(ON_TASKS, texts, strict=True), *(("token_k_back(k=3)", part) for part in parts)]
    return [("token_k_back(k=3)", SOLVING), *(pytest.param(*case, marks=pytest.mark.nightly) for case in night)]


def calls_lapack(name):
    scheme, dims = posenc.parse(name), posenc.Dims(width=32, heads=4, head=8, trained=16, longest=16)
    scheme = posenc.bind(scheme, dims)
    params = posenc.init(scheme, jax.random.key(0), dims)
    q, x = jnp.zeros((2, 16, 4, 8)), jnp.zeros((2, 16, 32))

    def attend(p, q):
        return posenc.attend(scheme, p, q, q, q, x=x).sum()

    program = jax.make_jaxpr(jax.grad(attend, argnums=(0, 1), allow_int=True))(params, q)
    return any(equation.primitive.name in LAPACK for equation in equations(program.jaxpr))


def test_the_schemes_that_call_lapack_are_those_that_are_swept():
    swept = {posenc.spec(posenc.parse(text)).partition("(")[0] for text in SOLVING}
    assert {name for name in posenc.names() if calls_lapack(name)} == swept - {HUNG}


def test_a_triangular_solve_is_seen(monkeypatch):
    """As in the scheme that hung."""
    solve = lambda below: jax.lax.linalg.triangular_solve(below, jnp.eye(below.shape[-1]), left_side=True)  # noqa: E731
    monkeypatch.setattr("posenc.numerics.householder.inverse_of_unit_triangle", lambda b: jax.vmap(solve)(b))
    assert calls_lapack(HUNG)


@pytest.mark.parametrize(("task", "schemes"), cases(), ids=lambda a: a if isinstance(a, str) else a[0].split()[0])
def test_every_scheme_trains_in_a_sweep_and_none_hangs(task, schemes, tmp_path):
    size = SQUARES if task == "minesweeper" else LENGTH
    grid = ["--grid", "scheme=" + ",".join(schemes), f"task={task}", "--seeds", "2", "--name", "each"]
    command = [sys.executable, "-c", ON_TWO_CORES, "sweep", *grid, "--set", *SETTINGS, *size]
    own = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}  # which the tests have changed
    own |= {"POSENC_RUNS": str(tmp_path), "JAX_PLATFORMS": "cpu"}
    try:
        done = subprocess.run(command, env=own, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired as late:
        said = (late.stderr or b"").decode().splitlines()
        pytest.fail(f"The sweep hangs, or takes more than {LIMIT} s; it said last:\n" + "\n".join(said[-2:]))
    assert done.returncode == 0, done.stderr
    assert store.status(tmp_path / "each").counts["done"] == 2 * len(schemes), done.stderr
