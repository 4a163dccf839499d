"""Hugging Face's rotary settings as schemes, and schemes as those: one set of settings for each kind of layer.

Version 5 keeps them in `rope_parameters`, flat or under the types of layers, where None is a layer that turns nothing;
version 4 in `rope_theta`, `rope_scaling` and names that differ from model to model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from posenc import scaling
from posenc.compose import Placed
from posenc.coordinates import COORDINATES
from posenc.naming import spec
from posenc.rotation import Layout
from posenc.schemes.by_parts import Llama3, YaRN
from posenc.schemes.interpolated import PI, DynamicNTK
from posenc.schemes.longrope import LongRoPE
from posenc.schemes.rope import RoPE

Set = Mapping[str, Any]
LENGTH = "original_max_position_embeddings"
COMMON = {"rope_type", "type", "rope_theta", "partial_rotary_factor"}
BASES = {
    "gemma3": 1e6, "gemma3_text": 1e6, "gpt_oss": 150000.0, "llama4": 5e5, "llama4_text": 5e5, "olmo3": 5e5,
    "smollm3": 2e6,
}  # fmt: skip
"""The rope_theta of models whose configs may leave it out; of the others it is 10000."""


HINTS = {
    "hope": " Write the same as 'rope' with p, the share of pairs that it keeps.",
    "ntk": " Write the same as 'rope' with the base that it raises.",
}


def read(config: Set, types: frozenset[str], layout: Layout) -> dict[str, Any]:
    """The scheme of each type of layer, None where it turns nothing."""
    given = config.get("rope_parameters")
    found = config.get("rope_scaling") if given is None else given
    if found is not None and not isinstance(found, Mapping):
        raise ValueError(f"The rotary settings of this config are {found!r}; they are a dict, or left out.")
    if found and all(value is None or isinstance(value, Mapping) for value in found.values()):
        if missing := sorted(types - found.keys()):
            raise ValueError(f"rope_parameters has no settings for {missing[0]!r}, only for {', '.join(found)}.")
        return {t: None if found[t] is None else _scheme(found[t], config, layout) for t in types}
    if found is None and not config.keys() & {"rope_theta", "rotary_emb_base", "rotary_dim", "rope_local_base_freq"}:
        raise ValueError(
            f"Nothing in this config says how model_type={config.get('model_type')!r} turns its queries and keys; give"
            " rope_parameters, or rope_theta."
        )
    whole = _scheme(found or {}, config, layout)
    sets = dict.fromkeys(types, whole)
    if "rope_local_base_freq" in config and "sliding_attention" in types:
        sets["sliding_attention"] = RoPE(config["rope_local_base_freq"], layout)
    return sets


def write(scheme: Any, interleaved: bool, version: int) -> dict[str, Any]:
    """The settings of one scheme as a part of a config."""
    label = spec(scheme)
    inner = scheme.scheme if isinstance(scheme, Placed) else scheme
    if type(inner) not in WORDS:
        hint = HINTS.get(getattr(inner, "name", ""), "")
        raise ValueError(f"Hugging Face has no word for {label}; it has {', '.join(TYPES)}.{hint}")
    if getattr(inner, "original", 0) is None:
        raise ValueError(f"{label} leaves original open; call posenc.bind(scheme, dims) first.")
    if (inner.layout == "interleaved") != interleaved:
        raise ValueError(
            f"{label} has the layout {inner.layout!r}, which a config does not say but the model's code; name a"
            " model_type that has it, such as 'gptj' for 'interleaved' and 'llama' for 'half', or permute the weights."
        )
    said, around = WORDS[type(inner)](inner, scheme)
    said |= {"partial_rotary_factor": inner.fraction} if inner.fraction != 1 else {}
    if version == 5:
        return {"rope_parameters": {**said, "rope_theta": inner.base}} | around
    out = {"rope_theta": inner.base} | around
    if "partial_rotary_factor" in said:
        out["partial_rotary_factor"] = said.pop("partial_rotary_factor")
    return out | {"rope_scaling": None if said["rope_type"] == "default" else said}


def _scheme(given: Set, config: Set, layout: Layout) -> Any:
    """One set of settings, with what stands around it in the config."""
    kind = given.get("rope_type", given.get("type", "default"))
    kind = {"su": "longrope"}.get(kind, kind)
    if kind not in TYPES:
        raise ValueError(f"No rope_type is called {kind!r}. Known: {', '.join(TYPES)}.")
    if given.get("mrope_section"):
        raise ValueError("mrope_section turns parts of a head by several coordinates; that is 'mrope', not read here.")
    words, build = TYPES[kind]
    if odd := sorted(given.keys() - COMMON - words - {LENGTH, "mrope_section"}):
        raise ValueError(
            f"The rope_type {kind!r} has no setting {odd[0]!r}; it has {', '.join(sorted(words | COMMON))}."
        )
    usual = BASES.get(config.get("model_type"), 10000.0)
    base = given.get("rope_theta") or config.get("rope_theta") or config.get("rotary_emb_base") or usual
    return build(_Set(given, config, {"base": float(base), "layout": layout, "fraction": _fraction(given, config)}))


def _fraction(given: Set, config: Set) -> float:
    """The share of a head that is turned; a whole number of features, where the head's width is known."""
    part = given.get("partial_rotary_factor") or config.get("partial_rotary_factor") or config.get("rotary_pct")
    head = config.get("head_dim")
    if head is None and (width := config.get("hidden_size", config.get("n_embd"))):
        heads = config.get("num_attention_heads", config.get("n_head"))
        head = None if heads is None else width // heads
    if part is None and head and config.get("rotary_dim"):
        return config["rotary_dim"] / head
    if part is None:
        return 0.25 if config.get("model_type") == "gpt_neox" else 1.0
    return int(head * part) / head if head and given.get("rope_type") != "proportional" else part


class _Set:
    """Settings under their names there, and what every rotary scheme takes under its names here."""

    def __init__(self, given: Set, config: Set, about: dict[str, Any]):
        self.given, self.config, self.about = given, config, about

    def need(self, name: str) -> Any:
        """A setting that must be there."""
        if self.given.get(name) is None:
            raise ValueError(f"The rotary settings {dict(self.given)!r} lack {name}; give it.")
        return self.given[name]

    def some(self, **names: str) -> dict[str, Any]:
        """The settings that are there, by our names for theirs."""
        return {ours: self.given[n] for ours, n in names.items() if self.given.get(n) is not None}

    def original(self) -> int:
        """The length before stretching: as Phi-3 says it, in the settings, or the model's length."""
        said = self.config.get(LENGTH) or self.given.get(LENGTH) or self.config.get("max_position_embeddings")
        if said is None:
            raise ValueError(f"The rotary settings {dict(self.given)!r} lack {LENGTH}; give it.")
        return said

    def factor(self) -> float:
        """How many times longer; where it is left out, by the model's length."""
        if self.given.get("factor") is not None:
            return self.given["factor"]
        if (longest := self.config.get("max_position_embeddings")) is None:
            raise ValueError(f"The rotary settings {dict(self.given)!r} lack factor; give it.")
        return longest / self.original()


def _default(s: _Set) -> Any:
    return RoPE(**s.about)


def _linear(s: _Set) -> Any:
    return PI(s.need("factor"), **s.about)


def _dynamic(s: _Set) -> Any:
    if (longest := s.config.get("max_position_embeddings")) is None:
        raise ValueError("The rope_type 'dynamic' goes by max_position_embeddings, which this config lacks; give it.")
    return DynamicNTK(s.need("factor"), longest, **s.about)


def _yarn(s: _Set) -> Any:
    names = {n: n for n in ("attention_factor", "beta_fast", "beta_slow", "truncate")}
    given = {n: value for n, value in s.some(**names).items() if value or n in ("truncate", "attention_factor")}
    both = s.some(mscale="mscale", mscale_all_dim="mscale_all_dim")
    if "attention_factor" not in given and len(both) == 2 and all(both.values()):  # else the authors take neither
        given |= both
    return YaRN(s.factor(), s.original(), **given, **s.about)


def _longrope(s: _Set) -> Any:
    long, short = (tuple(s.need(name)) for name in ("long_factor", "short_factor"))
    factor = max(1.0, s.factor())  # at 1 and below their attention factor is 1
    return LongRoPE(long, short, factor, s.original(), **s.some(magnitude="attention_factor"), **s.about)


def _llama3(s: _Set) -> Any:
    low, high = s.need("low_freq_factor"), s.need("high_freq_factor")
    return Llama3(s.need("factor"), s.original(), low, high, **s.about)


def _proportional(s: _Set) -> Any:
    scheme = RoPE(**(s.about | {"fraction": 1.0}), p=s.about["fraction"])
    return scheme if s.given.get("factor", 1) == 1 else Placed(scheme, COORDINATES.find("scale")(s.given["factor"]))


TYPES: dict[str, tuple[set[str], Callable[[_Set], Any]]] = {
    "default": (set(), _default),
    "linear": ({"factor"}, _linear),
    "dynamic": ({"factor"}, _dynamic),
    "yarn": (
        {"factor", LENGTH, "attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate"}, _yarn
    ),
    "longrope": ({"short_factor", "long_factor", LENGTH, "attention_factor", "factor"}, _longrope),
    "llama3": ({"factor", LENGTH, "low_freq_factor", "high_freq_factor"}, _llama3),
    "proportional": ({"factor"}, _proportional),
}  # fmt: skip
"""The rope types that are read, with the settings that each has."""

Said = tuple[dict[str, Any], dict[str, Any]]


def _say_rope(scheme: RoPE, given: Any) -> Said:
    factor = 1.0
    if isinstance(given, Placed):
        if not isinstance(given.coordinates, COORDINATES.find("scale")):
            raise ValueError(f"Of coordinates, a config can say 'scale' alone, not {spec(given)}.")
        factor = given.coordinates.factor
    if scheme.frequencies == "learned" or (scheme.p != 1 and scheme.fraction != 1):
        raise ValueError(f"Hugging Face has no word for {spec(scheme)}: frequencies are fixed, and p or fraction is 1.")
    if scheme.p != 1:
        more = {} if factor == 1 else {"factor": factor}
        return {"rope_type": "proportional", "partial_rotary_factor": scheme.p, **more}, {}
    return ({"rope_type": "default"} if factor == 1 else {"rope_type": "linear", "factor": factor}), {}


def _say_dynamic(scheme: DynamicNTK, given: Any) -> Said:
    if scheme.rule != "ntk":
        raise ValueError(f"Hugging Face's 'dynamic' has the rule 'ntk' alone, not {scheme.rule!r}.")
    return {"rope_type": "dynamic", "factor": scheme.factor}, {"max_position_embeddings": scheme.original}


def _say_yarn(scheme: YaRN, given: Any) -> Said:
    if scheme.extrapolation_factor != 1:
        raise ValueError("Hugging Face's 'yarn' has no extrapolation_factor; leave it at 1.")
    if (scheme.mscale, scheme.mscale_all_dim) != (1, 0) and not (scheme.mscale and scheme.mscale_all_dim):
        raise ValueError("Hugging Face's 'yarn' takes mscale and mscale_all_dim where both are above 0; say the ratio.")
    said = {n: getattr(scheme, n) for n in ("factor", "beta_fast", "beta_slow", "truncate")}
    said |= {"rope_type": "yarn", LENGTH: scheme.original}
    if scheme.attention_factor != "log":
        said["attention_factor"] = scheme.attention_factor
    elif scheme.mscale_all_dim:
        said |= {"mscale": scheme.mscale, "mscale_all_dim": scheme.mscale_all_dim}
    return said, {}


def _say_longrope(scheme: LongRoPE, given: Any) -> Said:
    if scheme.switch != "length" or scheme.start:
        raise ValueError("Hugging Face's 'longrope' switches by length, for all positions; it cannot say otherwise.")
    if scheme.long is None or scheme.short is None:
        raise ValueError(f"{spec(scheme)} leaves its factors open; call posenc.bind(scheme, dims) first.")
    lists = {"long_factor": list(scheme.long), "short_factor": list(scheme.short)}
    said = {"rope_type": "longrope", "factor": scheme.factor, LENGTH: scheme.original, **lists}
    if (m := scheme.magnitude) != "su":
        said["attention_factor"] = scaling.magnitude(scheme.factor) if m == "yarn" else m
    return said, {}


def _say_llama3(scheme: Llama3, given: Any) -> Said:
    names = "factor", "low_freq_factor", "high_freq_factor"
    return {"rope_type": "llama3", LENGTH: scheme.original, **{n: getattr(scheme, n) for n in names}}, {}


WORDS: dict[type, Callable[[Any, Any], Said]] = {
    RoPE: _say_rope,
    PI: lambda scheme, given: ({"rope_type": "linear", "factor": scheme.factor}, {}),
    DynamicNTK: _say_dynamic,
    YaRN: _say_yarn,
    LongRoPE: _say_longrope,
    Llama3: _say_llama3,
}
