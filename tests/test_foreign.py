"""A scheme inside another library's attention does what `posenc.attend` does, or is refused by name."""

import equinox
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen, nnx

import posenc
import posenc.equinox
import posenc.linen
import posenc.nnx

B, L, H, D = 2, 9, 4, 8
DIMS = posenc.Dims(width=H * D, heads=H, head=D, trained=L)
X = jax.random.normal(jax.random.key(0), (B, L, H * D))
POSITIONS = jnp.cumsum(jnp.arange(L) % 3 + 1)


def ready(text):
    scheme = posenc.bind(posenc.parse(text), DIMS)
    return scheme, posenc.init(scheme, jax.random.key(1), DIMS)


def in_nnx(fn, x=X, **about):
    layer = nnx.MultiHeadAttention(H, H * D, decode=False, attention_fn=fn, rngs=nnx.Rngs(0))
    return layer(x, **about), [layer.query(x), layer.key(x), layer.value(x)], layer.out


def in_linen(fn, x=X, **about):
    layer = linen.MultiHeadDotProductAttention(num_heads=H, attention_fn=fn)
    weights = layer.init(jax.random.key(2), x)["params"]
    heads = [jnp.einsum("blw,whd->blhd", x, weights[n]["kernel"]) for n in ("query", "key", "value")]
    return (
        layer.apply({"params": weights}, x, **about),
        heads,
        lambda o: jnp.einsum("blhd,hdw->blw", o, weights["out"]["kernel"]),
    )


KINDS = {"nnx": (posenc.nnx.attention_fn, in_nnx), "linen": (posenc.linen.attention_fn, in_linen)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["rope", "alibi", "t5", "shaw", "transformer_xl", "log_n + rope + kerple"])
def test_flax_s_attention_under_a_scheme_is_attend(kind, text):
    make, run = KINDS[kind]
    scheme, params = ready(text)
    about = {"positions": POSITIONS, "segments": (jnp.arange(L) >= 4) + 1, "mask": posenc.Window(3, 0)}
    out, heads, project = run(make(scheme, params, **about))
    np.testing.assert_allclose(out, project(posenc.attend(scheme, params, *heads, **about)), atol=2e-6)


def test_an_optimizer_of_nnx_trains_the_parameters_inside_the_hook():
    fn = posenc.nnx.attention_fn(*ready("rope + kerple"), sinks=jnp.zeros(H))
    layer = nnx.MultiHeadAttention(H, H * D, decode=False, attention_fn=fn, rngs=nnx.Rngs(0))
    optimizer, before = nnx.Optimizer(layer, optax.adam(1e-2), wrt=nnx.Param), jax.tree.map(jnp.copy, nnx.state(fn))

    @nnx.jit
    def step(layer, optimizer):
        value, gradient = nnx.value_and_grad(lambda layer: (layer(X) ** 2).mean())(layer)
        optimizer.update(layer, gradient)
        return value

    values = [step(layer, optimizer) for _ in range(3)]
    assert values[2] < values[1] < values[0]
    moved = jax.tree.map(lambda a, b: bool((a != b).all()), nnx.state(layer.attention_fn), before)
    assert len(jax.tree.leaves(moved)) == 3 and all(jax.tree.leaves(moved))


REAL = (jnp.arange(L) < 7)[None, :] | (jnp.arange(B) == 0)[:, None]
PADDING = linen.make_attention_mask(REAL, REAL)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mask", ["causal", "full"])
def test_a_mask_of_the_layer_is_the_library_s_own(kind, mask):
    make, run = KINDS[kind]
    own = linen.dot_product_attention if kind == "linen" else nnx.dot_product_attention
    ours = run(make(posenc.parse("nope"), mask=mask), mask=PADDING)[0]
    whole = linen.combine_masks(PADDING, linen.make_causal_mask(X[..., 0])) if mask == "causal" else PADDING
    np.testing.assert_allclose(ours[REAL], run(own, mask=whole)[0][REAL], atol=2e-6)
    assert (ours[~REAL] == 0).all(), "a query that sees nothing receives zeros"


@pytest.mark.parametrize("text", ["rope + alibi", "rope + window(3)", "shaw"])
def test_a_mask_of_the_layer_narrows_that_of_the_scheme_and_the_hook(text):
    scheme, params = ready(text)
    out, heads, project = in_nnx(posenc.nnx.attention_fn(scheme, params, mask=posenc.Window(4, 0)), mask=PADDING)
    visible = (PADDING[:, 0] != 0) & (
        jnp.tri(L, dtype=bool) & ~jnp.tri(L, k=-3 if "window" in text else -5, dtype=bool)
    )[None]
    plain = posenc.parse("rope") if "window" in text else scheme
    np.testing.assert_allclose(out, project(posenc.attend(plain, params, *heads, mask=visible)), atol=2e-6)


def test_dropout_of_the_layer_is_that_of_attend():
    scheme, params = ready("rope + alibi")
    q, k, v = jax.random.normal(jax.random.key(4), (3, B, L, H, D))
    fn, key = posenc.linen.attention_fn(scheme, params, scale=0.5, cap=2.0), jax.random.key(5)
    passed = {"dropout_rng": key, "dropout_rate": 0.5, "broadcast_dropout": False}
    expected = posenc.attend(scheme, params, q, k, v, scale=0.5, cap=2.0, dropout=0.5, dropout_key=key)
    np.testing.assert_array_equal(fn(q, k, v, **passed, deterministic=False), expected)
    calm = fn(q, k, v, **passed, deterministic=True)
    np.testing.assert_array_equal(calm, posenc.attend(scheme, params, q, k, v, scale=0.5, cap=2.0))
    about = {"decode": False, "attention_fn": fn, "dropout_rate": 0.5, "broadcast_dropout": False}
    layer = nnx.MultiHeadAttention(H, H * D, **about, rngs=nnx.Rngs(0))
    assert not np.allclose(layer(X, deterministic=False), layer(X, deterministic=True))


def test_what_the_hook_of_flax_cannot_pass_on_is_refused():
    make, rope = posenc.nnx.attention_fn, posenc.parse("rope")
    for text, why in (
        ("sinusoidal", "'sinusoidal' needs the input of attention"),
        ("fox", "'fox' needs the input of attention"),
        ("rope @ random_sorted(64)", "This scheme has coordinates"),
    ):
        with pytest.raises(ValueError, match=why):
            make(posenc.parse(text))
    with pytest.raises(ValueError, match="'t5' has parameters; make them with posenc.init"):
        in_nnx(make(ready("t5")[0]))
    with pytest.raises(ValueError, match="mask='full'"):
        make(rope, mask="full")(*[X.reshape(B, L, H, D)] * 3, is_causal=True)
    for name in ("bias", "precision", "qk_attn_weights_einsum"):
        with pytest.raises(ValueError, match=name):
            make(rope)(*[X.reshape(B, L, H, D)] * 3, **{name: 1})
    with pytest.raises(ValueError, match="broadcast_dropout=False"):
        make(rope)(*[X.reshape(B, L, H, D)] * 3, dropout_rate=0.5, deterministic=False)


@pytest.mark.parametrize(
    ("text", "given", "mask", "why"),
    [
        ("rope", "causal", PADDING.repeat(H, 1), r"\(2, 4, 9, 9\).*4 heads"),
        ("rope", "causal", PADDING[..., :1, :], "1 queries.* 9 keys"),
        ("xpos", "full", PADDING, "'xpos'.*causal only"),
        ("rope", "causal", jnp.where(PADDING > 0, 0.0, -1e9), "0 and 1"),
        ("rope", "causal", PADDING * jnp.nan, "0 and 1"),
        ("rope", "causal", PADDING[..., :5], r"\(2, 1, 9, 5\).*9 keys"),
        ("rope", posenc.Prefix(2), PADDING, "'causal', 'full'"),
    ],
)
def test_masks_of_a_layer_that_attend_cannot_take_are_refused(text, given, mask, why):
    q = X.reshape(B, L, H, D)
    with pytest.raises(ValueError, match=why):
        posenc.linen.attention_fn(ready(text)[0], mask=given)(q[:, : mask.shape[-2]], q, q, mask=mask)


@pytest.mark.parametrize("text", ["fire", "xpos", "t5", "kerple", "rope + window(4, sinks=1)"])
@pytest.mark.parametrize("seen", [PADDING, PADDING * np.tri(L)[None, None]], ids=["padding", "causal padding"])
def test_a_mask_of_the_layer_narrows_a_causal_one_under_schemes_that_are_causal_only_too(text, seen):
    scheme, params = ready(text)
    q = X.reshape(B, L, H, D)
    real = np.asarray(REAL)
    ours = posenc.linen.attention_fn(scheme, params)(q, q, q, mask=seen)
    expected = posenc.attend(scheme, params, q, q, q, segments=real.astype(np.int32))
    for row, known in enumerate(real):
        np.testing.assert_allclose(ours[row, known], expected[row, known], atol=1e-5)


@pytest.mark.parametrize("text", ["rope", "t5"])
def test_input_positions_of_the_layer_are_the_positions_of_its_call(text):
    scheme, params = ready(text)
    q, positions = X.reshape(B, L, H, D), 3 + 2 * np.arange(L)
    ours = posenc.linen.attention_fn(scheme, params)(q, q, q, input_positions=positions)
    np.testing.assert_array_equal(ours, posenc.attend(scheme, params, q, q, q, positions=positions))
    with pytest.raises(ValueError, match="input_positions.*positions"):
        posenc.linen.attention_fn(scheme, params, positions=positions)(q, q, q, input_positions=positions)
    with pytest.raises(ValueError, match="something_new"):
        posenc.linen.attention_fn(scheme, params)(q, q, q, something_new=positions)


def test_flax_s_cache_is_refused_since_it_does_not_say_where_a_query_stands():
    layer = nnx.MultiHeadAttention(
        H, H * D, decode=True, attention_fn=posenc.nnx.attention_fn(posenc.parse("rope")), rngs=nnx.Rngs(0)
    )
    layer.init_cache(X.shape)
    with pytest.raises(ValueError, match="decode"):
        layer(X[:, :1])


@pytest.mark.parametrize(
    "text",
    [
        "rope",
        "rope(frequencies='learned')",
        "log_n + rope(fraction=0.5)",
        "xpos",
        "ssmax",
        "key_offset + rope",
        "dynamic_ntk",
        "{rope, nope}",
    ],
)
def test_equinox_s_attention_with_processed_heads_is_attend(text):
    scheme, params = ready(text)
    layer = equinox.nn.MultiheadAttention(H, H * D, key=jax.random.key(3))
    x = X[0]
    mask = jnp.tri(L, dtype=bool)
    about = {"positions": POSITIONS, "mask": "causal"}
    out = layer(x, x, x, mask=mask, process_heads=posenc.equinox.process_heads(scheme, params, **about))
    heads = [jax.vmap(p)(x).reshape(L, H, D) for p in (layer.query_proj, layer.key_proj, layer.value_proj)]
    mixed = posenc.attend(scheme, params, *heads, positions=POSITIONS, mask="causal")
    np.testing.assert_allclose(out, jax.vmap(layer.output_proj)(mixed.reshape(L, -1)), atol=2e-6)
    implied = layer(x, x, x, process_heads=posenc.equinox.process_heads(scheme, params, mask="causal"))
    assert not np.allclose(implied, layer(x, x, x), atol=1e-3)


def test_processed_heads_of_tokens_without_a_place_are_not_turned():
    q = X[0].reshape(L, H, D)
    process = posenc.equinox.process_heads("rope + unplaced", positions=jnp.arange(L) - 1)
    np.testing.assert_allclose(process(q, q, q)[0][0], q[0], atol=1e-7)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("alibi", "'alibi' acts on 'score'"),
        ("rope + shaw", "'rope' \\+ 'shaw' acts on 'score'"),
        ("kv_shift + rope", "'kv_shift' \\+ 'rope' acts on 'value'"),
        ("{vo_rope, rope}", "acts on 'value'"),
        ("repo", "'repo' reads the features of tokens"),
        ("transformer_xl", "'transformer_xl' gives queries and keys more features"),
        ("learned", "'learned' acts on 'embed'"),
    ],
)
def test_what_process_heads_does_not_see_is_refused(text, why):
    with pytest.raises(ValueError, match=why + ".*use posenc.equinox.Attention"):
        posenc.equinox.process_heads(ready(text)[0])


def test_a_hook_takes_a_text_whose_settings_need_no_sizes():
    for hook, text in ((posenc.nnx.attention_fn, "rope + alibi"), (posenc.equinox.process_heads, "rope")):
        q = jnp.sin(jnp.arange(L * H * D, dtype=jnp.float32)).reshape(L, H, D)
        for by_text, by_scheme in zip(
            *(jax.tree.leaves(hook(s)(q, q, q)) for s in (text, posenc.parse(text))), strict=True
        ):
            np.testing.assert_array_equal(by_text, by_scheme)
        with pytest.raises(ValueError, match="'rope'"):
            hook("roep")
        with pytest.raises(ValueError, match="'log_n' leaves trained open; call posenc.bind"):
            hook("log_n")


def test_masks_that_process_heads_does_not_see_are_refused():
    with pytest.raises(ValueError, match=r"window\(2\).*Equinox"):
        posenc.equinox.process_heads(posenc.parse("rope + window(2)"))
    with pytest.raises(ValueError, match="'xpos' is causal only: .*; give Equinox a causal mask"):
        posenc.equinox.process_heads(ready("xpos")[0])
    with pytest.raises(ValueError, match="mask='full'"):
        posenc.equinox.process_heads(posenc.parse("rope"), mask=None)


def test_heads_that_a_scheme_cannot_serve_are_refused():
    rope = posenc.equinox.process_heads(posenc.parse("rope"))
    with pytest.raises(ValueError, match="has 7"):
        rope(*[jnp.zeros((L, H, 7))] * 3)
    with pytest.raises(ValueError, match="serves self-attention"):
        rope(jnp.zeros((L, H, D)), jnp.zeros((L + 1, H, D)), jnp.zeros((L + 1, H, D)))
    scheme, params = ready("rope(frequencies='learned')")
    with pytest.raises(ValueError, match="'frequency' of 'rope' has the shape"):
        posenc.equinox.process_heads(scheme, params)(*[jnp.zeros((L, H + 1, D))] * 3)


@pytest.mark.parametrize("text", ["rope + alibi", "{rope, nope}"])
def test_layers_sow_the_weights(text):
    """In Flax NNX and in Linen, [batch, heads, queries, keys] as Flax's own attention keeps them."""
    scheme, params = ready(text)
    layer = in_nnx_layer(posenc.nnx.attention_fn(scheme, params))
    _, kept = nnx.capture(layer, nnx.Intermediate)(X, sow_weights=True)
    (sown,) = jax.tree.leaves(nnx.as_pure(kept["attention_weights"]))
    values = jnp.eye(L, D)[None, :, None]
    q, k = (proj(X) for proj in (layer.query, layer.key))
    mixed = posenc.attend(scheme, params, q, k, jnp.broadcast_to(values, q.shape))
    assert sown.shape == (B, H, L, L)
    np.testing.assert_allclose(jnp.moveaxis(sown, 1, 2)[..., : min(L, D)], mixed[..., : min(L, D)], atol=1e-6)
    np.testing.assert_allclose(sown.sum(-1), 1, atol=1e-5)
    one = linen.MultiHeadDotProductAttention(H, attention_fn=posenc.linen.attention_fn(scheme, params))
    variables = one.init(jax.random.key(0), X)
    _, state = one.apply(variables, X, sow_weights=True, mutable="intermediates")
    (kept,) = state["intermediates"]["attention_weights"]
    np.testing.assert_allclose(kept.sum(-1), 1, atol=1e-5)


def in_nnx_layer(fn):
    return nnx.MultiHeadAttention(H, H * D, attention_fn=fn, decode=False, rngs=nnx.Rngs(0))
