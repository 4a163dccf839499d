"""A scheme inside another library's attention does what `posenc.attend` does, or is refused by name."""

import equinox
import jax
import jax.numpy as jnp
import numpy as np
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


@pytest.mark.parametrize("kind", KINDS)
def test_without_positions_it_is_the_library_s_own(kind):
    make, run = KINDS[kind]
    own = linen.dot_product_attention if kind == "linen" else nnx.dot_product_attention
    ours = run(make(posenc.parse("nope"), mask="causal"))[0]
    theirs = run(own, mask=linen.make_causal_mask(X[..., 0]))[0]
    np.testing.assert_allclose(ours, theirs, atol=2e-6)


def test_parameters_inside_the_hook_learn():
    scheme, params = ready("t5")
    out = lambda params: (in_nnx(posenc.nnx.attention_fn(scheme, params))[0] ** 2).sum()  # noqa: E731
    assert jnp.any(jax.grad(out)(params)["heads"]["table"] != 0)


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
    with pytest.raises(ValueError, match="A mask was passed to the layer"):
        in_nnx(make(rope), mask=nnx.make_causal_mask(X[..., 0]))
    with pytest.raises(ValueError, match="is_causal contradicts mask='full'"):
        make(rope, mask="full")(*[X.reshape(B, L, H, D)] * 3, is_causal=True)
    for name in ("bias", "precision", "module"):
        with pytest.raises(ValueError, match=f"cannot heed {name}, which the layer passes on"):
            make(rope)(*[X.reshape(B, L, H, D)] * 3, **{name: 1})
    with pytest.raises(ValueError, match="drops no weights, and dropout_rate is 0.5"):
        make(rope)(*[X.reshape(B, L, H, D)] * 3, dropout_rate=0.5, deterministic=False)


@pytest.mark.parametrize("text", ["rope", "rope(frequencies='learned')", "log_n + rope(fraction=0.5)", "xpos"])
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


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("alibi", "'alibi' acts on 'score'"),
        ("rope + shaw", "'rope' \\+ 'shaw' acts on 'score'"),
        ("ssmax", "'ssmax' acts on 'locate'"),
        ("transformer_xl", "'transformer_xl' gives queries and keys more features"),
        ("learned", "'learned' acts on 'embed'"),
    ],
)
def test_what_process_heads_does_not_see_is_refused(text, why):
    with pytest.raises(ValueError, match=why + ".*use posenc.equinox.Attention"):
        posenc.equinox.process_heads(ready(text)[0])


def test_masks_that_process_heads_does_not_see_are_refused():
    with pytest.raises(ValueError, match=r"window\(2\) narrows a mask, which is Equinox's here"):
        posenc.equinox.process_heads(posenc.parse("rope + window(2)"))
    with pytest.raises(ValueError, match="'xpos' is causal only: .*; give Equinox a causal mask"):
        posenc.equinox.process_heads(ready("xpos")[0])


def test_heads_that_a_scheme_cannot_serve_are_refused():
    rope = posenc.equinox.process_heads(posenc.parse("rope"))
    with pytest.raises(ValueError, match="turns pairs of features, and a head has 7"):
        rope(*[jnp.zeros((L, H, 7))] * 3)
    with pytest.raises(ValueError, match="serves self-attention"):
        rope(jnp.zeros((L, H, D)), jnp.zeros((L + 1, H, D)), jnp.zeros((L + 1, H, D)))
    scheme, params = ready("rope(frequencies='learned')")
    with pytest.raises(ValueError, match="'frequency' of 'rope' has the shape"):
        posenc.equinox.process_heads(scheme, params)(*[jnp.zeros((L, H + 1, D))] * 3)
