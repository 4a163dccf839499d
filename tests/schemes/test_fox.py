"""FoX, and what it ties together: ALiBi and CABLE."""

import jax.numpy as jnp
import numpy as np

from posenc.schemes.alibi import slope
from tests.schemes.helpers import DIMS, attend, made, tokens


def constant(params, b):
    heads = {"w": jnp.zeros_like(params["heads"]["w"]), "b": jnp.broadcast_to(jnp.asarray(b, jnp.float32), (4,))}
    return params | {"heads": heads}


def strong(seed=0):
    """Gates that differ from token to token far more than at the start."""
    scheme, params = made("fox", seed=seed)
    return scheme, params | {"heads": {"w": params["heads"]["w"] * 50, "b": params["heads"]["b"] + 0.3}}


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
