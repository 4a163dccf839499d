"""Scale, cap, sinks, dropout and masks of every kind: each kernel against the equation in float64, and by gradient."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import posenc
from posenc.attention import kernels

B, L, H, D = 2, 23, 4, 4
DIMS = posenc.Dims(width=H * D, heads=H, head=D, trained=L, key_heads=2)
SEGMENTS = np.repeat([1, 2, 0], [9, 12, 2]).astype(np.int32)
SINKS = np.array([0.5, -1.0, 2.0, 0.0])
ALLOWED = np.random.default_rng(3).random((B, L, L)) < 0.6
KEY = jax.random.key(7)
ALONE = {
    "scale": {"scale": 0.7},
    "a cap": {"cap": 0.8},
    "a cap of the product": {"cap": 0.8, "cap_of": "score"},
    "sinks": {"sinks": SINKS},
    "dropout": {"dropout": 0.3, "dropout_key": KEY},
    "a prefix": {"mask": posenc.Prefix(6)},
    "a prefix for each": {"mask": posenc.Prefix(np.array([3, 11]))},
    "first tokens beside a window": {"mask": posenc.Window(3, 0, sinks=2)},
    "an array": {"mask": ALLOWED},
}
CASES = ALONE | {
    "packed prefix": {"mask": posenc.Prefix(4), "segments": SEGMENTS},
    "packed first tokens": {"mask": posenc.Window(3, 0, sinks=2), "segments": SEGMENTS},
    "all": {"scale": 0.7, "cap": 0.8, "sinks": SINKS, "mask": posenc.Window(4, 0, sinks=1), "segments": SEGMENTS,
            "dropout": 0.3, "dropout_key": KEY},
}  # fmt: skip


def arrays(kind=np.float64):
    draw = np.random.default_rng(0).normal
    return [draw(size=(B, L, heads, D)).astype(kind) for heads in (H, 2, 2)]


def seen(mask, segments):
    """Who sees whom, pair by pair."""
    begins = [min(j for j in range(L) if segments[j] == segments[i]) if segments[i] else i for i in range(L)]
    out = np.zeros((B, L, L), bool)
    for b, i, j in np.ndindex(B, L, L):
        since = j - begins[i]
        if isinstance(mask, np.ndarray):
            sees = mask[b, i, j]
        elif isinstance(mask, posenc.Prefix):
            sees = j <= i or since < np.broadcast_to(mask.length, B)[b]
        elif isinstance(mask, posenc.Window):
            sees = j <= i and (j >= i - mask.left or since < mask.sinks)
        else:
            sees = j <= i
        out[b, i, j] = sees and segments[i] == segments[j] and segments[j] > 0
    return out


def equation(q, k, v, bias, mask="causal", segments=None, scale=D**-0.5, cap=None, sinks=None, kept=1.0, cap_of="sum"):
    """Attention under an additive bias, in float64."""
    k, v = (np.repeat(a, H // a.shape[2], 2) for a in (k, v))
    bound = lambda s, of: s if cap is None or cap_of != of else cap * np.tanh(s / cap)  # noqa: E731
    s = bound(np.einsum("bqhd,bkhd->bhqk", q, k) * scale, "score") + bias
    s = bound(s, "sum")
    visible = seen(mask, np.ones(L, int) if segments is None else segments)[:, None]
    e = np.where(visible, np.exp(s), 0)
    beside = 0 if sinks is None else np.exp(sinks)[None, :, None, None] * visible.any(-1, keepdims=True)
    total = e.sum(-1, keepdims=True) + beside
    weights = e / np.where(total > 0, total, 1) * kept
    return np.einsum("bhqk,bkhd->bqhd", weights, v)


def run(text, kernel, about):
    scheme = posenc.bind(posenc.parse(text), DIMS)
    params = posenc.init(scheme, jax.random.key(0), DIMS)
    return lambda q, k, v, **more: posenc.attend(scheme, params, q, k, v, kernel=kernel, **(about | more))


@pytest.mark.parametrize(
    ("case", "kernel"),
    [
        (case, kernel)
        for case in CASES
        for kernel in ("dense", "rows", "tiled")
        if (case, kernel) != ("an array", "tiled")
    ],
)
def test_every_kernel_is_the_equation_with_its_gradient(case, kernel, x64, monkeypatch):
    monkeypatch.setattr(kernels, "block", lambda queries, keys: 4)
    about, (q, k, v) = CASES[case], arrays()
    kept = 1.0
    if "dropout" in about:
        ones = jnp.broadcast_to(jnp.eye(L)[None, :, None, :], (B, L, 2, L)) * 1.0
        plain = posenc.attend(posenc.parse("nope"), {}, q, k, ones, mask="full", kernel="dense")
        drop = {name: about[name] for name in ("dropout", "dropout_key")}
        kept = posenc.attend(posenc.parse("nope"), {}, q, k, ones, mask="full", kernel="dense", **drop) / plain
        kept = np.asarray(kept).transpose(0, 2, 1, 3)
        assert {*np.unique(kept.round(6))} == {0.0, round(1 / 0.7, 6)} and abs((kept == 0).mean() - 0.3) < 0.03
    numbers = {name: value for name, value in about.items() if not name.startswith("dropout")}
    apart = np.arange(L)[:, None] - np.arange(L)[None, :]
    bias = -np.abs(apart) * np.array([2.0 ** -(2 * h) for h in range(1, H + 1)])[:, None, None]
    call = jax.jit(run("alibi", kernel, about))
    np.testing.assert_allclose(call(q, k, v), equation(q, k, v, bias, **numbers, kept=kept), atol=1e-10)
    learned = {"sinks": about["sinks"]} if "sinks" in about else {}
    loss = lambda qkv, learned: (call(*qkv, **learned) ** 2).sum()  # noqa: E731
    theirs = lambda qkv, learned: (run("alibi", "dense", about)(*qkv, **learned) ** 2).sum()  # noqa: E731
    ours, theirs = (jax.jit(jax.grad(f, (0, 1)))((q, k, v), learned) for f in (loss, theirs))
    step = 1e-6 * np.random.default_rng(1).normal(size=q.shape)
    slope = (loss((q + step, k, v), learned) - loss((q - step, k, v), learned)) / 2
    np.testing.assert_allclose((ours[0][0] * step).sum(), slope, rtol=1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-9), ours, theirs)


@pytest.mark.parametrize("case", sorted(CASES.keys() - {"an array", "packed prefix"}))
def test_a_cache_gives_what_the_whole_sequence_gives(case):
    about, (q, k, v) = dict(CASES[case]), arrays(np.float32)
    scheme = posenc.bind(posenc.parse("alibi"), DIMS)
    segments = about.pop("segments", np.ones(L, np.int32))
    about = {name: np.float32(a) if name == "sinks" else a for name, a in about.items()}
    cache = posenc.Cache.empty(scheme, {}, DIMS, batch=B, capacity=L, dtype=jnp.float32)
    call = lambda cache, segments, *qkv: posenc.attend(scheme, {}, *qkv, segments=segments, cache=cache, **about)  # noqa: E731
    step, outs = jax.jit(call), []
    for start, end in ((0, 11), (11, 12), (12, L)):
        out, cache = step(cache, segments[start:end], *(a[:, start:end] for a in (q, k, v)))
        outs.append(out)
    whole = step(None, segments, q, k, v)
    np.testing.assert_allclose(np.concatenate(outs, 1), whole, atol=1e-5)


def decoded(q, k, v, about, segments=None, ring=False, size=4, wrap=lambda f: f):
    """By a cache, so many tokens at a time."""
    scheme = posenc.parse("nope" if not ring else "nope + window(4)")
    call = lambda cache, segments, *qkv: posenc.attend(scheme, {}, *qkv, segments=segments, cache=cache, **about)  # noqa: E731
    step = wrap(call)
    cache, outs = posenc.Cache.empty(scheme, {}, DIMS, batch=B, capacity=L, dtype=q.dtype, ring=ring), []
    for at in range(0, L, size):
        own = None if segments is None else segments[at : at + size]
        out, cache = step(cache, own, *(a[:, at : at + size] for a in (q, k, v)))
        outs.append(out)
    return jnp.concatenate(outs, 1)


def test_a_prefix_that_is_not_whole_in_its_cache_is_refused_and_inside_jit_gives_nan():
    q, k, v = arrays(np.float32)
    with pytest.raises(ValueError, match="6 tokens.* 4 "):
        decoded(q, k, v, {"mask": posenc.Prefix(6)})
    with pytest.raises(ValueError, match="ring"):
        decoded(q, k, v, {"mask": posenc.Prefix(2)}, ring=True)
    call = jax.jit(lambda q, k, v, length: decoded(q, k, v, {"mask": posenc.Prefix(length)}))
    for length, unknown in ((4, 0), (6, 4), (9, 8)):
        out, whole = call(q, k, v, length), posenc.attend(posenc.parse("nope"), {}, q, k, v, mask=posenc.Prefix(length))
        assert np.isnan(out[:, :unknown]).all()
        np.testing.assert_allclose(out[:, unknown:], whole[:, unknown:], atol=1e-5)


def test_each_document_in_a_cache_has_a_prefix_that_must_be_whole():
    """The second document begins at 9, in a call that ends at 12: a prefix of 3 is whole there, and one of 4 is not."""
    q, k, v = arrays(np.float32)
    for length, unknown in ((3, []), (4, [9, 10, 11])):
        about = {"mask": posenc.Prefix(length)}
        out = decoded(q, k, v, about, SEGMENTS, wrap=jax.jit)
        whole = jax.jit(
            lambda *qkv, about=about: posenc.attend(posenc.parse("nope"), {}, *qkv, segments=SEGMENTS, **about)
        )(q, k, v)
        rest = np.setdiff1d(np.arange(L), unknown)
        assert np.isnan(out[:, unknown]).all()
        np.testing.assert_allclose(out[:, rest], whole[:, rest], atol=1e-5)


@pytest.mark.parametrize(
    ("about", "why"),
    [
        ({"scale": 0}, "scale.* 0"),
        ({"scale": float("nan")}, "scale.* nan"),
        ({"cap": -1.0}, "cap.* -1.0"),
        ({"cap": 1.0, "cap_of": "bias"}, "cap_of.*'bias'.*'sum', 'score'"),
        ({"cap_of": "score"}, "cap_of='score'.*pass cap"),
        ({"sinks": np.zeros(3, np.float32)}, r"sinks.*\(3,\).*\(4,\)"),
        ({"scale": 1 + 0j}, r"scale.*\(1\+0j\)"),
        ({"dropout": 0.5}, "dropout_key"),
        ({"dropout": 1.0, "dropout_key": KEY}, "dropout.* 1.0"),
        ({"mask": np.ones((3, L), bool)}, r"mask.*\(3, 23\).*\(2, 23, 23\)"),
        ({"mask": np.ones((L, L))}, "mask.* float64"),
        ({"mask": np.ones((L, L), bool), "kernel": "tiled"}, "segments"),
        ({"mask": posenc.Prefix(-1)}, "prefix.* -1"),
        ({"mask": posenc.Prefix(None)}, "prefix.* None"),
        ({"mask": posenc.Prefix(2.5)}, "prefix.* 2.5"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(about, why):
    with pytest.raises((ValueError, TypeError), match=why):
        posenc.attend(posenc.parse("nope"), {}, *arrays(np.float32), **about)


@pytest.mark.parametrize("text", ["tapa", "path", "wall", "dual_triangle", "rerope", "{nope, self_extend}"])
def test_a_cap_of_the_product_is_refused_where_a_scheme_makes_others(text):
    scheme, x = posenc.bind(text, DIMS), np.zeros((B, L, H * D), np.float32)
    params, why = posenc.init(scheme, jax.random.key(0), DIMS), "products of queries and keys of its own.*leave cap_of"
    posenc.attend(scheme, params, *arrays(np.float32), x=x, cap=1.0)
    with pytest.raises(ValueError, match=why):
        posenc.attend(scheme, params, *arrays(np.float32), x=x, cap=1.0, cap_of="score")


@pytest.mark.parametrize("kernel", ["dense", "rows", "tiled"])
def test_what_a_scheme_does_to_the_product_it_does_to_the_bounded_one(kernel, x64):
    """The decay of `algebraic` multiplies q·k alone, and so what a cap leaves of it."""
    (q, k, v), scheme = arrays(), posenc.bind("algebraic(decay=0.9)", DIMS)
    params = posenc.init(scheme, jax.random.key(0), DIMS)
    a, b = posenc.rotate(posenc.bind("algebraic", DIMS), params, q, k)
    decay = 0.9 ** np.abs(np.arange(L)[:, None] - np.arange(L))
    s = 0.8 * np.tanh(np.einsum("bqhd,bkhd->bhqk", a, b) * D**-0.5 / 0.8) * decay
    weights = jax.nn.softmax(jnp.where(np.tri(L, dtype=bool), s, -jnp.inf), -1)
    expected = np.einsum("bhqk,bkhd->bqhd", weights, np.repeat(v, 2, 2))
    out = posenc.attend(scheme, params, q, k, v, cap=0.8, cap_of="score", kernel=kernel)
    np.testing.assert_allclose(out, expected, atol=1e-10)


def test_an_array_for_the_mask_holds_the_window_too():
    scheme, q, k, v = posenc.parse("rope + window(3)"), *arrays(np.float32)
    with pytest.raises(ValueError, match=r"window\(3\).*'causal'"):
        posenc.attend(scheme, {}, q, k, v, mask=np.tri(L, dtype=bool))
    seen = np.arange(L) % 4 > 0
    for named, width in (("causal", 3), ("full", 3), (posenc.Window(5, 0), 3)):
        distance = np.arange(L)[:, None] - np.arange(L)
        near = abs(distance) <= 1 if named == "full" else (distance >= 0) & (distance < width)
        ours = posenc.attend(scheme, {}, q, k, v, mask=(named, np.broadcast_to(seen, (L, L))))
        alone = posenc.attend(posenc.parse("rope"), {}, q, k, v, mask=near & seen)
        np.testing.assert_allclose(ours, alone, atol=1e-6)


def test_a_window_has_at_most_as_many_first_tokens_as_it_sees():
    with pytest.raises(ValueError, match="4 tokens.*5 sinks"):
        posenc.Window(3, 0, sinks=5)
    with pytest.raises(ValueError, match="4 tokens.*5 sinks"):
        posenc.parse("rope + window(4, sinks=5)")
    scheme = posenc.parse("rope + window(4, sinks=2)")
    assert posenc.spec(scheme) == "rope + window(4, sinks=2)"
    q, k, v = arrays(np.float32)
    ours = posenc.attend(scheme, {}, q, k, v)
    np.testing.assert_array_equal(
        ours, posenc.attend(posenc.parse("rope"), {}, q, k, v, mask=posenc.Window(3, 0, sinks=2))
    )


ROWS = {
    "`scale`": {"scale": 0.5},
    "`cap`": {"cap": 2.0},
    "`sinks`": {"sinks": np.zeros(H, np.float32)},
    "`dropout`": {"dropout": 0.1, "dropout_key": KEY},
    "`Window(..., sinks=)`": {"mask": posenc.Window(3, 0, sinks=2)},
    "`Prefix`": {"mask": posenc.Prefix(5)},
    "array of booleans": {"mask": np.tri(8, dtype=bool)},
}


def attention(column, q):
    """What stands over a column of the table, as a function of the options."""
    nope = posenc.parse("nope")
    over = {"mesh": jax.sharding.Mesh(jax.devices()[:2], ("length",)), "axis": "length"}
    cache = posenc.Cache.empty(nope, {}, posenc.Dims(16, 4, 4, 8), batch=2, capacity=8, dtype=q.dtype)
    return {
        "with a `cache`": lambda **about: posenc.attend(nope, {}, q, q, q, cache=cache, **about),
        "`sharding.queries`": lambda **about: posenc.sharding.queries(nope, {}, q, q, q, **over, **about),
        "`sharding.ring`": lambda **about: posenc.sharding.ring(nope, {}, q, q, q, **over, **about),
    }.get(column, lambda **about: posenc.attend(nope, {}, q, q, q, kernel=column.strip("`"), **about))


def test_the_table_of_the_guide_is_what_is_taken_and_what_is_refused():
    page = (Path(posenc.__file__).parents[1] / "docs" / "model.md").read_text(encoding="utf-8")
    lines = page.partition("<!-- weighting -->\n")[2].partition("\n\n")[0].splitlines()
    (head, _, *rows) = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert [row[0] for row in rows] == [*ROWS]
    for name, *cells in rows:
        for column, cell in zip(head[1:], cells, strict=True):
            call = attention(column, jnp.ones((2, 8, 4, 4)))
            if cell != "no":
                assert jax.tree.leaves(jax.eval_shape(lambda call=call, name=name: call(**ROWS[name])))
                continue
            with pytest.raises((ValueError, TypeError)):
                jax.eval_shape(lambda call=call, name=name: call(**ROWS[name]))
