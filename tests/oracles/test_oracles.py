"""Every scheme equals, in float64, a loop over queries and keys that was written from its equation alone.

A module here is named after a scheme and shares no code with posenc:

    def attend(scheme, heads, q, k, v, x, pos, seen) -> out     # heads: the merged parameters of each head
    def embed(scheme, layer, x, pos) -> x                       # for schemes that act on the input
    WIDTH = 8                                                   # for those that no other width serves
"""

import functools
import importlib
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc.core.scheme import SCHEMES
from tests.recording import stale

LENGTH, HEADS, HEAD, WIDTH, TRAINED = 7, 3, 4, 6, 7
COMPILED = "algebraic canon carope dape_v2 grape_m liere music_transformer path selective_rope".split()
"""Schemes of so many small operations that one program costs less than each by itself."""


def oracle(name):
    return importlib.import_module(f"tests.oracles.{name}")


def pytest_generate_tests(metafunc):
    if metafunc.function is test_a_scheme_equals_its_equation:
        names = stale() if metafunc.config.getoption("unverified") else posenc.names()
        ours = {name: cls for name in names if (cls := SCHEMES.find(name)).__module__.startswith("posenc.")}
        cases = {
            f"{name}-{n}": (cls, given) for name, cls in ours.items() for n, given in enumerate(({}, *cls.samples))
        }
        metafunc.parametrize(("cls", "given"), list(cases.values()), ids=list(cases))


def shaken(params, seed):
    """Parameters away from where they start: no zeros that hide a term, no ones that hide a factor."""
    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda a: jnp.asarray(a, float) * 0.7 + rng.normal(0.3, 0.5, a.shape), params)


def tokens(seed, axes=1, width=WIDTH):
    rng = np.random.default_rng(seed)
    q, k, v = (rng.normal(size=(LENGTH, HEADS, HEAD)) for _ in range(3))
    pos = np.cumsum(rng.integers(1, 4, (LENGTH, axes) if axes > 1 else LENGTH), 0) - 1
    return q, k, v, rng.normal(size=(LENGTH, width)), pos.astype(np.int32)


def test_a_scheme_equals_its_equation(cls, given, x64, record_property):
    module, apart = oracle(cls.name), []
    width = getattr(module, "WIDTH", WIDTH)

    def equal(ours, theirs):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)
        apart.append(float(np.abs(ours - theirs).max()))

    for causal in (True, False):
        dims = posenc.Dims(width, HEADS, HEAD, TRAINED, longest=64, causal=causal)
        scheme = posenc.bind(cls(**given), dims)
        if not causal and "bidirectional" in scheme.limits:
            continue
        attend = functools.partial(posenc.attend, scheme, mask="causal" if causal else "full")
        attend = jax.jit(attend) if cls.name in COMPILED else attend
        params = shaken(posenc.init(scheme, jax.random.key(3), dims), seed=4)
        q, k, v, x, pos = tokens(5, scheme.axes, width)
        if hasattr(module, "embed"):
            layer = jax.tree.map(np.asarray, params["layer"])
            ours = posenc.embed(scheme, params, x, positions=pos)
            equal(ours, module.embed(scheme, layer, x, pos))
        if hasattr(module, "attend"):
            heads = [jax.tree.map(lambda a, h=h: np.asarray(a)[h], params["heads"]) for h in range(HEADS)]
            heads = [{**{n: np.asarray(a) for n, a in params["layer"].items()}, **own} for own in heads]
            seen = np.tri(LENGTH, dtype=bool) if causal else np.ones((LENGTH, LENGTH), bool)
            ours = attend(params, q, k, v, x=x, positions=pos)
            equal(ours, module.attend(scheme, heads, q, k, v, x, pos, seen))
    record_property("oracle", [cls.name, max(apart)])


def test_an_oracle_shares_no_code_with_what_it_judges():
    oracles = (path for path in Path(__file__).parent.glob("*.py") if path.name != Path(__file__).name)
    assert not [path.name for path in oracles if re.search(r"(?m)^ *(from|import) (posenc|jax)\b", path.read_text())]


def test_a_fault_would_be_noticed(monkeypatch, x64):
    from posenc.schemes import alibi

    right = alibi.slope
    monkeypatch.setattr(alibi, "slope", lambda head, heads: right(head, heads) * (1 + 1e-6))
    with pytest.raises(AssertionError):
        test_a_scheme_equals_its_equation(alibi.ALiBi, {}, None, print)
