"""Every line of docs/coming-over.md: what another package computes, and our text for it.

`theirs` imports the package and returns NumPy; nothing here imports posenc or jax, so that `record` runs beside any of
these packages. Their weights are drawn by NumPy, and what is done with them for posenc is written in `params`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

BATCH, HEADS, LENGTH, HEAD = 1, 2, 6, 8
Kind = Literal["queries", "scores", "bias", "added"]


class Line(NamedTuple):
    """One line; `kind` says what is compared.

    "queries" are turned queries `[L, H, d]`, "scores" products of turned queries and keys `[H, L, L]`, "bias" what is
    added to scores `[H, L, L]`, and "added" what is added to the input `[L, width]`.
    """

    package: str
    """As pip names it."""
    name: str
    """What it is called there, as the page has it."""
    text: str
    """Our text for it."""
    kind: Kind
    theirs: Callable[[], np.ndarray]
    positions: Any = None
    params: Callable[[], Any] = lambda: None
    causal: bool = True


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    """Numbers that both sides get."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def queries() -> np.ndarray:
    return draw(LENGTH, HEADS, HEAD)


def keys() -> np.ndarray:
    return draw(LENGTH, HEADS, HEAD, seed=1)


GRID = np.stack(np.meshgrid(np.arange(2), np.arange(3), indexing="ij"), -1).reshape(-1, 2)
"""Rows and columns of two by three patches, row by row."""
SQUARE = np.stack(np.meshgrid(np.arange(3), np.arange(3), indexing="ij"), -1).reshape(-1, 2)
SPACE = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 1, 1], [2, 3, 1], [2, 4, 5]])
"""Time, row and column of six tokens."""


def _torch(x: np.ndarray) -> Any:
    """`[L, H, d]` as PyTorch has it, `[1, H, L, d]`."""
    import torch

    return torch.from_numpy(np.ascontiguousarray(x.swapaxes(0, 1)))[None]


def _ours(x: Any) -> np.ndarray:
    """`[1, H, L, d]` as `[L, H, d]`."""
    return x.detach().numpy()[0].swapaxes(0, 1)


def x_transformers(**settings: Any) -> np.ndarray:
    import torch
    from x_transformers.x_transformers import RotaryEmbedding, apply_rotary_pos_emb

    freqs, scale = RotaryEmbedding(HEAD, **settings)(torch.arange(LENGTH))
    return _ours(apply_rotary_pos_emb(_torch(queries()), freqs, scale))


def x_transformers_alibi() -> np.ndarray:
    from x_transformers.x_transformers import AlibiPositionalBias

    return np.tril(AlibiPositionalBias(HEADS, HEADS)(LENGTH, LENGTH).numpy())


def x_transformers_t5() -> np.ndarray:
    import torch
    from x_transformers.x_transformers import RelativePositionBias

    bias = RelativePositionBias(HEAD**0.5, causal=True, heads=HEADS)
    bias.relative_attention_bias.weight.data = torch.from_numpy(draw(32, HEADS, seed=2))
    return np.tril(bias(LENGTH, LENGTH).detach().numpy())


def x_transformers_absolute() -> np.ndarray:
    import torch
    from x_transformers.x_transformers import AbsolutePositionalEmbedding

    table = AbsolutePositionalEmbedding(16, 32)
    table.emb.weight.data = torch.from_numpy(draw(32, 16, seed=2))
    return table(torch.zeros(1, LENGTH, 16)).detach().numpy()


def x_transformers_sinusoidal() -> np.ndarray:
    import torch
    from x_transformers.x_transformers import ScaledSinusoidalEmbedding

    return ScaledSinusoidalEmbedding(16)(torch.zeros(1, LENGTH, 16)).detach().numpy()


def rotary_embedding_torch() -> np.ndarray:
    from rotary_embedding_torch import RotaryEmbedding

    return _ours(RotaryEmbedding(HEAD).rotate_queries_or_keys(_torch(queries())))


def rotary_embedding_torch_xpos() -> np.ndarray:
    from rotary_embedding_torch import RotaryEmbedding

    q, k = RotaryEmbedding(HEAD, use_xpos=True).rotate_queries_and_keys(_torch(queries()), _torch(keys()))
    return (q @ k.mT).detach().numpy()[0]


def torchtune() -> np.ndarray:
    import torch
    from torchtune.modules import RotaryPositionalEmbeddings

    return RotaryPositionalEmbeddings(HEAD)(torch.from_numpy(queries())[None]).numpy()[0]


def torchtune_llama3() -> np.ndarray:
    import torch
    from torchtune.models.llama3_1 import Llama3ScaledRoPE

    rope = Llama3ScaledRoPE(HEAD, base=500000, scale_factor=8, old_context_len=64)
    return rope(torch.from_numpy(queries())[None]).numpy()[0]


def timm_sincos(interleave: bool) -> np.ndarray:
    from timm.layers.pos_embed_sincos import build_sincos2d_pos_embed

    return build_sincos2d_pos_embed([2, 3], dim=16, interleave_sin_cos=interleave).numpy()


def timm_relative() -> np.ndarray:
    import torch
    from timm.layers.pos_embed_rel import RelPosBias

    bias = RelPosBias((2, 3), HEADS)
    bias.relative_position_bias_table.data = torch.from_numpy(draw(15, HEADS, seed=2))
    return bias.get_bias().detach().numpy()[0]


def timm_rotary() -> np.ndarray:
    import torch
    from timm.layers.pos_embed_sincos import RotaryEmbeddingCat, apply_rot_embed_cat

    rope = RotaryEmbeddingCat(HEAD, in_pixels=False, feat_shape=[2, 3])
    return _ours(apply_rot_embed_cat(_torch(queries()), rope.get_embed([2, 3]).to(torch.float32)))


def diffusers_flux() -> np.ndarray:
    import torch
    from diffusers.models.embeddings import apply_rotary_emb
    from diffusers.models.transformers.transformer_flux import FluxPosEmbed

    turns = FluxPosEmbed(10000, [2, 4, 2])(torch.from_numpy(SPACE).float())
    return _ours(apply_rotary_emb(_torch(queries()), turns))


def diffusers_sincos() -> np.ndarray:
    from diffusers.models.embeddings import get_2d_sincos_pos_embed

    return get_2d_sincos_pos_embed(16, 3, base_size=3, output_type="pt").numpy()


def diffusers_sinusoidal() -> np.ndarray:
    import torch
    from diffusers.models.embeddings import SinusoidalPositionalEmbedding

    return SinusoidalPositionalEmbedding(16)(torch.zeros(1, LENGTH, 16)).numpy()[0]


def fair_esm() -> np.ndarray:
    from esm.rotary_embedding import RotaryEmbedding

    q = _torch(queries())[0]
    return RotaryEmbedding(HEAD)(q, q)[0].detach().numpy().swapaxes(0, 1)


def equinox_rotary() -> np.ndarray:
    import equinox
    import jax

    turn = equinox.nn.RotaryPositionalEmbedding(HEAD)
    return np.asarray(jax.vmap(turn, 1, 1)(queries()))


def keras_hub_rotary() -> np.ndarray:
    import keras_hub

    return np.asarray(keras_hub.layers.RotaryEmbedding(sequence_axis=1, feature_axis=-1)(queries()[None]))[0]


def keras_hub_sine() -> np.ndarray:
    import keras_hub

    return np.asarray(keras_hub.layers.SinePositionEncoding()(np.zeros((1, LENGTH, 16), np.float32)))[0]


def mlx_rope(traditional: bool) -> np.ndarray:
    import mlx.core as mx
    import mlx.nn

    turned = mlx.nn.RoPE(HEAD, traditional=traditional)(mx.array(queries().swapaxes(0, 1)[None]))
    return np.asarray(turned)[0].swapaxes(0, 1)


def gemma_rope() -> np.ndarray:
    """The one file is run: the package as a whole imports TensorFlow."""
    import importlib.util

    if (package := importlib.util.find_spec("gemma")) is None:
        raise ModuleNotFoundError("No module named 'gemma'")
    file = Path(package.submodule_search_locations[0]) / "gm" / "math" / "_positional_embeddings.py"
    spec = importlib.util.spec_from_file_location("gemma_positional_embeddings", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    turned = module.apply_rope(queries()[None], np.arange(LENGTH)[None], base_frequency=10000)
    return np.asarray(turned)[0]


T5 = lambda: {"layer": {}, "heads": {"table": draw(32, HEADS, seed=2).T * np.float32(HEAD**0.5)}}  # noqa: E731
SWIN = lambda: {"layer": {}, "heads": {"table": draw(15, HEADS, seed=2).T}}  # noqa: E731
TABLE = lambda: {"layer": {"table": draw(32, 16, seed=2) * np.float32(16**-0.5)}, "heads": {}}  # noqa: E731
SCALE = lambda: {"layer": {"scale": np.float32(16**-0.5)}, "heads": {}}  # noqa: E731
LINES = (
    Line("x-transformers", "RotaryEmbedding", "rope(layout='interleaved')", "queries", x_transformers),
    Line("x-transformers", "RotaryEmbedding(interpolation_factor=4)", "pi(layout='interleaved')", "queries",
         lambda: x_transformers(interpolation_factor=4.0)),
    Line("x-transformers", "AlibiPositionalBias", "alibi", "bias", x_transformers_alibi),
    Line("x-transformers", "RelativePositionBias", "t5", "bias", x_transformers_t5, params=T5),
    Line("x-transformers", "AbsolutePositionalEmbedding", "learned", "added", x_transformers_absolute, params=TABLE),
    Line("x-transformers", "ScaledSinusoidalEmbedding", "sinusoidal(layout='halves', learned_scale=True)", "added",
         x_transformers_sinusoidal, params=SCALE),
    Line("rotary-embedding-torch", "RotaryEmbedding", "rope(layout='interleaved')", "queries", rotary_embedding_torch),
    Line("rotary-embedding-torch", "RotaryEmbedding(use_xpos=True)", "xpos(scale_base=512.0)", "scores",
         rotary_embedding_torch_xpos),
    Line("torchtune", "RotaryPositionalEmbeddings", "rope(layout='interleaved')", "queries", torchtune),
    Line("torchtune", "Llama3ScaledRoPE(old_context_len=64)", "llama3(original=64, layout='interleaved')", "queries",
         torchtune_llama3),
    Line("timm", "build_sincos2d_pos_embed", "sinusoidal_2d(form='axes', layout='sines_first')", "added",
         lambda: timm_sincos(False), GRID),
    Line("timm", "build_sincos2d_pos_embed(interleave_sin_cos=True)", "sinusoidal_2d(form='axes')", "added",
         lambda: timm_sincos(True), GRID),
    Line("timm", "RelPosBias((2, 3))", "relative_2d(height=2, width=3)", "bias", timm_relative, GRID, SWIN, False),
    Line("timm", "RotaryEmbeddingCat(in_pixels=False)", "rope_2d(base=10000.0)", "queries", timm_rotary, GRID),
    Line("diffusers", "FluxPosEmbed(axes_dim=[2, 4, 2])", "rope_axes(widths=(2, 4, 2))", "queries", diffusers_flux,
         SPACE),
    Line("diffusers", "get_2d_sincos_pos_embed", "sinusoidal_2d(form='axes', order='swapped')", "added",
         diffusers_sincos, SQUARE),
    Line("diffusers", "SinusoidalPositionalEmbedding", "sinusoidal", "added", diffusers_sinusoidal),
    Line("fair-esm", "RotaryEmbedding", "rope", "queries", fair_esm),
    Line("equinox", "nn.RotaryPositionalEmbedding", "rope", "queries", equinox_rotary),
    Line("keras-hub", "RotaryEmbedding", "rope", "queries", keras_hub_rotary),
    Line("keras-hub", "SinePositionEncoding", "sinusoidal", "added", keras_hub_sine),
    Line("mlx", "nn.RoPE", "rope", "queries", lambda: mlx_rope(False)),
    Line("mlx", "nn.RoPE(traditional=True)", "rope(layout='interleaved')", "queries", lambda: mlx_rope(True)),
    Line("gemma", "apply_rope", "rope", "queries", gemma_rope),
)  # fmt: skip
