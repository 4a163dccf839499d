"""FoX: gates that add up, restart with each document, and tie forgetting to ALiBi."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc.numerics import segment_scans
from posenc.schemes.alibi import slope
from tests.schemes.helpers import DIMS, attend, made, tokens


def constant(params, b):
    heads = {"w": jnp.zeros_like(params["heads"]["w"]), "b": jnp.broadcast_to(jnp.asarray(b, jnp.float32), (4,))}
    return params | {"heads": heads}


def strong(seed=0):
    """Gates that differ from token to token far more than at the start."""
    scheme, params = made("fox", seed=seed)
    return scheme, params | {"heads": {"w": params["heads"]["w"] * 50, "b": params["heads"]["b"] + 0.3}}


def located(scheme, params, x, segment=None, start=None):
    """The running sums of head 0, and the carry."""
    n = len(x)
    segment = np.ones(n, np.int32) if segment is None else np.asarray(segment, np.int32)
    at = posenc.At(np.arange(n), np.arange(n), jnp.asarray(segment), np.arange(n) + 1, jnp.int32(0), 1)
    p = {name: a[0] for name, a in params["heads"].items()}
    start = scheme.carry(DIMS) if start is None else start
    return jax.jit(lambda p, x, segment, start: scheme.locate(p, x, at._replace(segment=segment), start))(
        p, x, at.segment, start
    )


def test_a_constant_gate_is_alibi_of_the_slope_of_its_logarithm():
    scheme, params = made("fox")
    m = np.asarray(slope(jnp.arange(4), 4), np.float64)
    q, k, v, x = tokens(9)
    logit = -np.log(np.expm1(m))  # log σ(b) = -m
    ours = attend(scheme, constant(params, logit), q, k, v, x)
    np.testing.assert_allclose(ours, attend(*made("alibi"), q, k, v), atol=2e-6)


def cable(q, k, v, x, w, b):
    """CABLE (Veisi et al., 2025) as it is written: unscaled scores less a softplus of every token after the key."""
    penalty = np.log1p(np.exp(x @ w.T + b))  # [L, H]
    out = np.zeros_like(v)
    for h in range(q.shape[1]):
        for i in range(len(q)):
            s = [q[i, h] @ k[j, h] - penalty[j + 1 : i + 1, h].sum() for j in range(i + 1)]
            e = np.exp(s - np.max(s))
            out[i, h] = e @ v[: i + 1, h] / e.sum()
    return out


def test_cable_is_fox_with_the_opposite_gate_up_to_the_scale_of_its_scores():
    """Theorem: log σ(-h) = -softplus(h). The authors' code leaves 1/√d out, so queries here are longer by √d."""
    scheme, params = strong()
    w, b = (np.asarray(params["heads"][name], np.float64) for name in ("w", "b"))
    q, k, v, x = tokens(9)
    ours = attend(scheme, params, q * DIMS.head**0.5, k, v, x)
    np.testing.assert_allclose(ours, cable(*(a.astype(float) for a in (q, k, v, x)), -w, -b), atol=1e-5)
    assert np.abs(ours - cable(*(a.astype(float) for a in (q, k, v, x)), w, b)).max() > 1e-2


@pytest.mark.parametrize("segments", [[1, 1, 1, 2, 2, 2, 2, 3], [5, 5, 4, 4, 4, 4, 7, 7]])
def test_the_sum_restarts_with_each_document_exactly(segments):
    scheme, params = strong()
    x = tokens(8)[3]
    c, _ = located(scheme, params, x, segments)
    segments = np.array(segments)
    for one in set(segments):
        alone, _ = located(scheme, params, x[segments == one])
        np.testing.assert_allclose(c[segments == one], alone, atol=1e-6)


def test_a_forgotten_restart_would_be_noticed(monkeypatch):
    monkeypatch.setattr(segment_scans, "_add", lambda a, b: (a[0] + b[0], a[1] | b[1]))
    with pytest.raises(AssertionError):
        test_the_sum_restarts_with_each_document_exactly([1, 1, 1, 2, 2, 2, 2, 3])


def test_the_scores_of_masked_keys_are_finite_and_gates_start_half_open():
    scheme, params = made("fox", posenc.Dims(width=256, heads=8, head=2, trained=8))
    w = np.asarray(params["heads"]["w"])
    assert w.shape == (8, 256) and abs(w.std() / 0.02 - 1) < 0.05 and (params["heads"]["b"] == 0).all()
    c, _ = located(*strong(), np.full((6, 6), 1e4, np.float32))
    assert np.isfinite(c).all()
