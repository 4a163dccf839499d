"""The few tests that show an installation to work, on every generation of jax: `pytest -m smoke`."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc.lab.cli import main

pytestmark = pytest.mark.smoke
DIMS = posenc.Dims(width=16, heads=2, head=8, trained=12)


@pytest.mark.nightly  # the contract holds more of it by day; `-m smoke` runs it on the other generation of jax
@pytest.mark.parametrize("name", posenc.names())
def test_every_scheme_attends_and_sees_no_future(name):
    scheme = posenc.bind(posenc.parse(name), DIMS)
    params = jax.jit(lambda key: posenc.init(scheme, key, DIMS))(jax.random.key(0))
    q, k, v = jax.random.normal(jax.random.key(1), (3, 12, 2, 8), jnp.float32)
    x = jax.random.normal(jax.random.key(2), (12, 16), jnp.float32)
    attend = jax.jit(lambda k, v, x: posenc.attend(scheme, params, q, k, v, x=x))
    out, other = attend(k, v, x), attend(k.at[7:].add(3.0), v.at[7:].add(3.0), x.at[7:].add(3.0))
    assert np.isfinite(out).all()
    np.testing.assert_array_equal(out[:7], other[:7])
    assert not np.allclose(out[7:], other[7:])


@pytest.mark.nightly  # lab/test_sweep.py and cli/test_training.py; `-m smoke` runs it on the other jax
def test_a_sweep_trains_and_is_tabulated(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("COLUMNS", raising=False)  # which folds tables, and workers of pytest-xdist may inherit
    monkeypatch.setenv("POSENC_RUNS", str(tmp_path / "runs"))
    small = "width=16 depth=1 heads=2 batch=4 length=8 steps=4 rows=8 sizes=8,12"
    words = f"sweep --grid scheme=rope task=reverse_string --set {small} --seeds 2 --name smoke"
    assert main(words.split()) == 0
    found = capsys.readouterr().out
    assert re.search("reverse_string +rope +2 +2 +0 +0 ", found), found
    assert main(["table", str(tmp_path / "runs" / "smoke")]) == 0
    assert capsys.readouterr().out.strip() in found
