"""What is read of a config and what is left aside, and configs that no recording stands for."""

import dataclasses
import math
import re

import numpy as np
import pytest

import posenc
from posenc.huggingface import facts, from_hf, report
from posenc.naming import parse, spec
from tests.huggingface.test_reading import LLAMA, config_of


class Config:
    """What transformers' config objects have."""

    def __init__(self, **settings):
        self.settings = settings

    def to_dict(self):
        return self.settings


def test_a_config_object_is_read_as_its_dict():
    assert from_hf(Config(**LLAMA, rope_theta=500.0)) == from_hf(LLAMA | {"rope_theta": 500.0})
    for other in ("config.json", [LLAMA], dataclasses.make_dataclass("Other", ["rope_theta"])(1e4)):
        with pytest.raises(TypeError, match="config.json"):
            from_hf(other)


def test_a_report_says_what_was_used_and_what_was_left_aside():
    config = config_of("gemma2", num_hidden_layers=2, sliding_window=8, attn_logit_softcapping=50.0)
    made = report(config | {"query_pre_attn_scalar": 256, "hidden_act": "gelu"})
    assert made.scheme == from_hf(config) and (made.model_type, made.read_as) == ("gemma2", "gemma2")
    assert {"num_hidden_layers", "sliding_window"} <= set(made.used) and "hidden_act" not in made.used
    assert dict(made.aside).keys() == {"attn_logit_softcapping", "query_pre_attn_scalar"}
    assert "attend's cap" in str(made) and str(made).startswith("gemma2: [rope + window(8), rope]")
    other = report(config_of("mine", rope_theta=1e4, partial_rotary_factor=0.5), like="llama")
    assert (other.model_type, other.read_as) == ("mine", "llama") and "mine read as llama" in str(other)
    assert "partial_rotary_factor" in dict(other.aside), "the code of Llama does not read it"


def test_a_mask_or_a_scale_that_goes_with_a_scheme_is_named():
    """Llama 4's chunks, the choice of an indexer, and the scale of scores of DeepSeek-V3 as released."""
    chunks = dict(report(config_of("llama4_text", num_hidden_layers=4, attention_chunk_size=16)).aside)
    assert "i // 16 == j // 16" in chunks["attention_chunk_size"]
    assert "segments=1 + i // 16 and positions=i" in chunks["attention_chunk_size"]
    assert "attention_chunk_size" not in dict(report(config_of("llama4_text", no_rope_layers=[0])).aside)
    assert "mask=('causal', choice)" in dict(report(config_of("deepseek_v32")).aside)["indexer"]
    yarn = {
        "type": "yarn",
        "factor": 40,
        "original_max_position_embeddings": 4096,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
    }
    scale = dict(report(config_of("deepseek_v3", rope_scaling=yarn)).aside)["mscale_all_dim"]
    assert f"{(0.1 * math.log(40) + 1) ** 2 / 192**0.5:.8g}" in scale


def test_chunks_in_a_cache_are_documents_as_the_report_says():
    """The mask was compared with the model; a cache takes no array, and documents do the same there."""
    scheme, dims, i = from_hf(config_of("llama4_text", num_hidden_layers=1)), posenc.Dims(16, 2, 8, 64), np.arange(20)
    q, k, v = np.random.default_rng(0).normal(size=(3, 1, 20, 2, 8)).astype(np.float32)
    whole = posenc.attend(scheme, None, q, k, v, mask=("causal", i[:, None] // 8 == i // 8))
    cache = posenc.Cache.empty(scheme, None, dims, batch=1, capacity=20)
    for new in np.split(i, [11, 12, 17]):
        out, cache = posenc.attend(
            scheme, None, q[:, new], k[:, new], v[:, new], cache=cache, segments=1 + new // 8, positions=new
        )
        np.testing.assert_allclose(out, whole[:, new], atol=1e-6)


SMALL = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 4}
YARN = {"rope_type": "yarn", "rope_theta": 300.0, "factor": 4.0, "original_max_position_embeddings": 32}
V4 = {"type": "yarn", "factor": 16, "original_max_position_embeddings": 65536, "beta_fast": 32, "beta_slow": 1}
BARE = {"main": {"rope_type": "default"}, "compress": {"rope_type": "default"}}
MINISTRAL = "llama4(floor=16384, offset=0) + yarn(factor=16.0, original=16384, mscale_all_dim=1.0, base=1000000.0)"


def test_what_does_not_count_is_named_aside():
    """Not silently: `truncate` and a length beside sets by layer type, a share beside them, a base that stands in."""
    sets = {"full_attention": YARN | {"truncate": False}, "sliding_attention": {"rope_type": "default"}}
    kinds = {"layer_types": ["full_attention", "sliding_attention"] * 2, "original_max_position_embeddings": 16}
    aside = dict(report(config_of("olmo3", **SMALL, **kinds, rope_parameters=sets)).aside)
    assert {"truncate", "original_max_position_embeddings"} <= aside.keys()
    plain = {"rope_type": "default", "rope_theta": 300.0}
    sets = {"full_attention": plain, "sliding_attention": plain}
    made = report(config_of("laguna", **SMALL, head_dim=16, rope_parameters=sets, partial_rotary_factor=0.5))
    assert spec(made.scheme) == "rope(base=300.0)" and "partial_rotary_factor" in dict(made.aside)
    based = report(config_of("phi3", **SMALL, rope_theta=300.0, default_theta=700.0))
    assert spec(based.scheme) == "rope(base=300.0)" and "default_theta" in dict(based.aside)
    assert spec(from_hf(config_of("phi3", **SMALL, default_theta=700.0))) == "rope(base=700.0)", "it stands in"


@pytest.mark.parametrize(
    ("kind", "text", "scheme"),
    [
        ("voxtral", {"model_type": "llama"} | SMALL, "rope(base=100000000.0)"),
        ("voxtral", {"model_type": "llama", "rope_theta": 300.0} | SMALL, "rope(base=300.0)"),
        ("glmasr", {"model_type": "llama", "rope_theta": 300.0} | SMALL, "rope"),
        ("glmasr", {"model_type": "llama", "rope_parameters": {"rope_theta": 300.0}} | SMALL, "rope(base=300.0)"),
        ("gemma3n", {"model_type": "gemma3n_text", "layer_types": ["full_attention"]}, "rope(base=1000000.0)"),
    ],
)
def test_a_model_of_several_parts_lays_settings_under_its_text_part(kind, text, scheme):
    assert spec(from_hf({"model_type": kind, "text_config": text})) == scheme


@pytest.mark.parametrize(
    ("kind", "named", "read_as"),
    [
        ("llava", "mistral", "mistral"),
        ("llava", None, "llama"),
        ("kimi_k25", "kimi_k2", "deepseek_v3"),
        ("exaone4_5", "exaone4_5_text", "exaone4"),
        ("qwen3_vl", "qwen2", "qwen3_vl_text"),  # its code has a text part of its own, and reads no name
    ],
)
def test_a_text_part_is_read_as_the_type_that_transformers_builds(kind, named, read_as):
    text = {"model_type": named, "num_hidden_layers": 4, "head_dim": None}
    assert report(config_of(kind, text_config=text)).read_as == read_as


@pytest.mark.parametrize(
    ("config", "scheme"),
    [
        (config_of("ministral3"), MINISTRAL),
        (config_of("mistral3", text_config=config_of("ministral3", sliding_window=None)), MINISTRAL),
        (config_of("mistral4"), "llama4(offset=0) + yarn(factor=128.0, original=8192, mscale_all_dim=1.0, "
         "layout='interleaved', fraction=0.5, at='end')"),
        (config_of("deepseek_v4", rope_scaling=V4), "vo_rope(base=160000.0, layout='interleaved', fraction=0.125, "
         "at='end', factor=16.0, original=65536) + window(128)"),
        (config_of("deepseek_v4", partial_rotary_factor=0.25, rope_parameters=BARE),
         "vo_rope(layout='interleaved', fraction=0.25, at='end') + window(128)"),
    ],
)  # fmt: skip
def test_released_configs_of_mistral_and_deepseek_are_read(config, scheme):
    """Queries grow before YaRN, counted from 0; values turn by YaRN's frequencies too. The page promises both."""
    assert spec(from_hf(config)) == scheme and from_hf(config) == parse(scheme)
    assert "released" not in facts.compared()[config["model_type"]]


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (config_of("totally_new", rope_theta=1e4), "'totally_new'"),
        ({"rope_theta": 1e4}, "model_type=None"),
        (config_of("llama", rope_theta=None), "rope_theta.* None"),
        (config_of("nanochat"), "other way"),
        (config_of("whisper"), "sinusoidal"),
        (config_of("gptj", rope_theta=5e5), "rope_theta.* 500000.0"),
        (config_of("mistral", rope_parameters=YARN | {"llama_4_scaling_beta": 0.1}), "beta is 0.1, .*does not read it"),
        (
            config_of("qwen2_vl_text", rope_parameters=YARN | {"mrope_section": [16, 24, 24]}),
            r"'yarn'.*mrope_section.*\(16, 24, 24\).* text alone .*yarn\(",
        ),
        (config_of("recurrent_gemma", block_types=["attention"]), "compared with"),
        (config_of("granite_swa", num_hidden_layers=2, layer_rope_theta=[0, 7.0]), "layer_rope_theta.*7.0"),
        (config_of("flint", num_hidden_layers=4), "no period; give layer_types"),
        (config_of("glm4_moe", **SMALL, partial_rotary_factor=0.7), "partial_rotary_factor.* 0.7.* 11 of"),
        (config_of("gpt_neox", **SMALL, rotary_pct=0.7), "rotary_pct.* 0.7.* 11 of"),
        (config_of("gpt_neox", **SMALL, head_dim=32), "head_dim.*32"),
        (config_of("gpt_oss", **SMALL, head_dim=3), "has 3"),
        (config_of("laguna", **SMALL, head_dim=6), "partial_rotary_factor.* 0.5.* 3 of"),
        (
            config_of("qwen2_vl_text", **SMALL, rope_parameters={"mrope_section": [2, 2, 2]}),
            r"mrope_section.*\[2, 2, 2\].* 8",
        ),
        (config_of("gemma4_text", **SMALL, rope_scaling=None), "rope_scaling.* None"),
        (config_of("gemma2", sliding_window=9), "num_hidden_layers"),
        (config_of("bloom", is_causal=False), "is_causal.* False"),
        (config_of("ultrabert", attention_windows=[9, 0]), "attention_windows.*layer_types"),
        (config_of("glm5_next"), "text_config"),
        (config_of("qwen2_5_omni", thinker_config={}), "thinker_config, .*'qwen2_5_omni_thinker', which is read"),
        (config_of("mamba"), "no softmax"),
        (config_of("mistral_large4"), "learned number"),
        (config_of("gemma4_assistant", text_config={"model_type": "gemma4_text"}), "keys of another model"),
        (config_of("deepseek_v4", rope_scaling=V4 | {"type": "linear"}), "'linear' of the set 'compress'.*'yarn'"),
        (config_of("deepseek_v4", rope_scaling=V4 | {"beta_fast": 16}), r"'compress' is .*yarn\(.*beta_fast=16.0"),
        (config_of("deepseek_v4", rope_scaling=V4 | {"attention_factor": 1.2}), "factor=1.2.*attention_factor=1.0"),
        (config_of("deepseek_v4", rope_scaling={"type": "yarn", "factor": 4}), "lack original_max_position_embeddings"),
        (config_of("deepseek_v4", num_hidden_layers=2, compress_ratios=[0, 5]), "'compression of 5'"),
        (config_of("deepseek_v4", rope_parameters=BARE), "partial_rotary_factor is None"),
        (config_of("llava", rope_theta=1e4), "text_config"),
        # not read as the usual text part of the model
        (config_of("internvl", text_config={"model_type": "nanochat"}), "text part .*'nanochat'.*other way"),
        (config_of("llava", text_config={"model_type": "new"}), "text part .*'new'.*none of transformers"),
        (config_of("llava", text_config={"model_type": "qwen2_vl"}), "text part .*'qwen2_vl'.*parts of its own"),
        (config_of("llama", text_config={"model_type": "qwen2"}), "'llama' has no text part"),
    ],
)
def test_what_was_not_compared_is_refused_in_one_sentence(config, why):
    with pytest.raises(ValueError, match=why) as error:
        from_hf(config)
    assert "\n" not in str(error.value)


def test_parts_that_a_reason_names_are_read():
    """A reason that names another model type names one that is read."""
    for line in facts.compared().values():
        for named in re.findall(r"'(\w+)', which is read", line.get("refused", "")):
            assert "difference" in facts.compared()[named]


@pytest.mark.parametrize("like", ["lama", ["llama"]])
def test_a_type_to_read_a_config_as_must_be_known(like):
    with pytest.raises(ValueError, match=r"like is .*lama'\]?, which is none of the"):
        from_hf(LLAMA, like=like)
