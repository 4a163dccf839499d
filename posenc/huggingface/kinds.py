"""The type and the range of every setting that is read of a config, checked as it is read.

JSON holds anything under any name, and Python would take the text "false" for true. None stands for left out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from posenc.language.echo import echoed
from posenc.numerics.sizes import FAR

DEEPEST = 1024
"""Layers of the deepest model."""


class Kind(NamedTuple):
    """Values that a setting may have."""

    fits: Callable[[Any], bool]
    what: str
    """The values in words."""


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < FAR


def _number(value: Any) -> bool:
    real = isinstance(value, int | float) and not isinstance(value, bool)
    return real and abs(value) <= sys.float_info.max  # no infinity, and NaN compares with nothing


def _flag(value: Any) -> bool:
    """Some configs of Llama 4 have a whole number in the place of true."""
    return isinstance(value, bool) or _is_integer(value) and value >= 0


def _each(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list | tuple) and all(map(fits, value))


TEXT = Kind(lambda value: isinstance(value, str), "a text")
TEXTS = Kind(_each(TEXT.fits), "a list of texts")
FLAG = Kind(_flag, "true or false")
SIDES = Kind(lambda value: isinstance(value, bool) or value in ("all", "vision"), "true, false, 'all' or 'vision'")
COUNT = Kind(lambda value: _is_integer(value) and value >= 1, f"a whole number of at least 1 and below {FAR}")
WHOLE = Kind(_is_integer, f"a whole number below {FAR}")
PLACE = Kind(lambda value: _is_integer(value) and value >= 0, "a number of layers, at least 0")
WIDTH = Kind(PLACE.fits, "a number of features, at least 0")
DEPTH = Kind(lambda value: _is_integer(value) and 1 <= value <= DEEPEST, f"a number of layers from 1 to {DEEPEST}")
NUMBER = Kind(_number, "a finite number")
NUMBERS = Kind(_each(_number), "a list of finite numbers")
POSITIVE = Kind(lambda value: _each(_number)(value) and value and min(value) > 0, "a list of numbers above 0")
FLAGS = Kind(_each(lambda value: isinstance(value, bool) or value in (0, 1)), "a list of 0 and 1, one for each layer")
COUNTS = Kind(_each(COUNT.fits), "a list of whole numbers of at least 1")
RATIOS = Kind(_each(PLACE.fits), "a list of whole numbers, at least 0")
DICT = Kind(lambda value: isinstance(value, Mapping), "a dict")

NAMED: dict[Kind, str] = {
    TEXT: "model_type rope_type type position_embedding_type",
    TEXTS: "layer_types",
    FLAG: "is_causal alibi rope use_sliding_window use_mem_rope attn_temperature_tuning truncate rope_interleave",
    SIDES: "use_bidirectional_attention",
    COUNT: """hidden_size n_embd d_model num_attention_heads n_head n_heads head_dim max_position_embeddings
              original_max_position_embeddings relative_attention_num_buckets relative_attention_max_distance
              floor_scale rotary_dim local_attention kv_channels attention_head_dim attention_chunk_size""",
    WHOLE: "sliding_window sliding_window_size",
    PLACE: "max_window_layers",
    WIDTH: "qk_nope_head_dim qk_rope_head_dim",
    DEPTH: "num_hidden_layers n_layer",
    NUMBER: """rope_theta default_theta global_rope_theta local_rope_theta rope_local_base_freq partial_rotary_factor
               compress_rope_theta attn_scale alibi_bias_max factor attention_factor beta_fast beta_slow mscale
               mscale_all_dim low_freq_factor high_freq_factor short_mscale long_mscale llama_4_scaling_beta""",
    NUMBERS: "layer_rope_theta",
    POSITIVE: "long_factor short_factor",
    FLAGS: "no_rope_layers",
    RATIOS: "compress_ratios",
    COUNTS: "mrope_section",
    DICT: "text_config attn_config rope_scaling rope_parameters",
}
KINDS = {name: kind for kind, names in NAMED.items() for name in names.split()}


def check(name: str, called: str, value: Any) -> None:
    """Refuse a value that the setting of this name cannot have. `called` is how the config calls it."""
    kind = KINDS.get(name)
    if kind is not None and value is not None and not kind.fits(value):
        raise ValueError(f"{called} is {echoed(value)}; it must be {kind.what}.")


def check_names(config: Mapping[Any, Any]) -> None:
    """Refuse a dict whose names are not texts."""
    if odd := [name for name in config if not isinstance(name, str)]:
        raise ValueError(f"The config has a setting called {echoed(odd[0])}; the names of settings are texts.")
