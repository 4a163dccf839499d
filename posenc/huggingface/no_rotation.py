"""Models without a rotation, or with one only in some configs: ALiBi, T5's buckets, tables of positions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from posenc.huggingface.facts import Facts
from posenc.huggingface.settings import Settings, head_size
from posenc.language.echo import echoed
from posenc.schemes.alibi import ALiBi
from posenc.schemes.learned import Learned
from posenc.schemes.nope import NoPE
from posenc.schemes.sinusoidal import Sinusoidal
from posenc.schemes.t5 import T5

Config = Mapping[str, Any]


def read_without_rotation(config: Config, facts: Facts) -> Any:
    """The scheme of a model without a rotation; None where this config has one."""
    return READERS[facts.scheme](config, facts) if facts.scheme in READERS else None


def _check_causal(config: Config) -> None:
    """Refuse a model that sees both ways with penalties or buckets that count back only."""
    if not config.get("is_causal", True):
        raise ValueError(
            f"is_causal is {echoed(config['is_causal'])}, and the code of this model type counts distances for tokens"
            " that see back only; leave it out."
        )


def _alibi(config: Config, facts: Facts) -> Any:
    _check_causal(config)
    return ALiBi()


def _falcon(config: Config, facts: Facts) -> Any:
    if not config.get("alibi", False):
        return None
    _check_causal(config)
    if (head := head_size(config, facts)) is None:
        raise ValueError("Falcon's slopes depend on the size of a head, which this config lacks; give head_dim.")
    return ALiBi(factor=head**-0.5)  # the code adds penalties before it divides scores by the root of a head's size


def _mpt(config: Config, facts: Facts) -> Any:
    _check_causal(config)
    attention = Settings(config.get("attn_config") or {}, {})
    if attention.get("alibi_bias_max", 8) != 8:
        raise ValueError(f"alibi_bias_max is {attention['alibi_bias_max']}; posenc has the slopes of 8 only.")
    if not attention.get("alibi", True) or attention.get("rope"):
        raise ValueError(
            "transformers' code of this model type has ALiBi whatever attn_config says; give alibi as true."
        )
    return ALiBi()


def _t5(config: Config, facts: Facts) -> Any:
    _check_causal(config)
    return T5(config.get("relative_attention_num_buckets", 32), config.get("relative_attention_max_distance", 128))


def _learned(config: Config, facts: Facts) -> Any:
    if (kind := config.get("position_embedding_type", "absolute")) != "absolute":
        raise ValueError(f"position_embedding_type is {echoed(kind)}; posenc reads 'absolute' only.")
    return Learned()


def _sinusoidal(config: Config, facts: Facts) -> Any:
    return Sinusoidal(layout="halves")


def _nope(config: Config, facts: Facts) -> Any:
    return NoPE()


def _esm(config: Config, facts: Facts) -> Any:
    kind = config.get("position_embedding_type", "absolute")
    if kind not in ("absolute", "rotary"):
        raise ValueError(f"position_embedding_type is {echoed(kind)}; posenc reads 'absolute' and 'rotary'.")
    return Learned() if kind == "absolute" else None


def _granite_hybrid(config: Config, facts: Facts) -> Any:
    kind = config.get("position_embedding_type")
    if kind not in (None, "nope", "rope"):
        raise ValueError(f"position_embedding_type is {echoed(kind)}; posenc reads 'rope', 'nope' and none.")
    return None if kind == "rope" else NoPE()


def _zamba2(config: Config, facts: Facts) -> Any:
    return None if config.get("use_mem_rope", False) else NoPE()


READERS: dict[str, Callable[[Config, Facts], Any]] = {
    "alibi": _alibi, "falcon": _falcon, "mpt": _mpt, "t5": _t5, "learned": _learned, "nope": _nope,
    "sinusoidal": _sinusoidal, "esm": _esm, "granitemoehybrid": _granite_hybrid, "zamba2": _zamba2,
}  # fmt: skip
"""How the schemes without rotation are read."""
