"""Hugging Face's configs as schemes: the numbers of transformers, what has no scheme, and weights permuted."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

import posenc
from posenc.core.compose import Pattern, normal_form, without_window
from posenc.huggingface import from_hf
from tests.golden.spectrum import spectrum

RECORDED = json.loads(Path(__file__).with_name("frequencies.json").read_text())["cases"]
EVERY = pytest.mark.parametrize("case", RECORDED, ids=[f"{c['name']}-{c['length']}" for c in RECORDED])
LLAMA = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "max_position_embeddings": 2048}
YARN = {"rope_type": "yarn", "factor": 4.0}
MIMO = f"rope(fraction={64 / 192}) + window(129)"
LLAMA4 = "rope(base=500000.0, layout='interleaved'), "
V4 = "vo_rope({}layout='interleaved', fraction=0.125, at='end')"
GLM4V = {"head_dim": 128, "partial_rotary_factor": 0.5, "model_type": "glm4v_text"}
GLM4V_TEXT = "mrope(sections=(8, 12, 12), base=10000.0, layout='interleaved', fraction=0.5)"
QWEN = {"rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.25, "mrope_section": [11, 11, 10]}
QWEN = {"model_type": "qwen3_5_text", "head_dim": 256, "num_hidden_layers": 4, "rope_parameters": QWEN}
COHERE = "rope(layout='interleaved')"
QWEN_TEXT = "mrope(sections=(11, 11, 10), order='interleaved', base=10000000.0, fraction=0.25)"


def rope(**settings):
    return LLAMA | {"rope_parameters": settings}


def config_of(kind, **settings):
    return {"model_type": kind} | settings


def layers_of(scheme, depth):
    period = scheme.layers if isinstance(scheme, Pattern) else (scheme,)
    return [period[n % len(period)] for n in range(depth)]


def head_of(config):
    return config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]


def agree(config, length, sets):
    """Every layer that turns does so at the frequencies and with the attention factor of its type of layer."""
    scheme, head = from_hf(config), head_of(config)
    config_sets = {s["layer_type"]: s for s in sets}
    for layer in set(layers_of(scheme, config.get("num_hidden_layers", 1))):
        inner = without_window(layer)
        if posenc.spec(inner) == "nope":
            continue
        label = "full_attention" if normal_form(layer).window is None else "sliding_attention"
        theirs = config_sets.get(label, config_sets.get(None))
        inner = dataclasses.replace(inner, layout="half")  # the order of features is no matter of frequencies
        rates, size = spectrum(posenc.bind(inner, posenc.Dims(head, 1, head, 16)), head, length or 1)
        inv_freq = np.array(theirs["inv_freq"])
        still = inv_freq == 0
        np.testing.assert_allclose(rates[~still], inv_freq[~still], rtol=1e-6)
        np.testing.assert_allclose(rates[still], 0, atol=1e-12)
        np.testing.assert_allclose(size, theirs["attention_factor"], rtol=1e-6)


@EVERY
def test_frequencies_and_attention_factors_are_those_of_transformers(case):
    agree(case["config"], case["length"], case["sets"])


@EVERY
def test_layers_slide_as_in_transformers(case):
    config, width = case["config"], case["sliding_window"]
    depth = config.get("num_hidden_layers", 1)
    layers, types = layers_of(from_hf(config), depth), case["layer_types"]
    types = types or (["sliding_attention"] * depth if width else ["full_attention"] * depth)
    assert [normal_form(s).window is not None for s in layers] == [t == "sliding_attention" for t in types]
    assert {normal_form(s).window for s in layers} - {None} <= {width}


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (rope(rope_type="default", rope_theta=500000.0), "rope(base=500000.0)"),
        (rope(rope_type="linear", factor=8.0), "pi(factor=8.0)"),
        (rope(rope_type="dynamic", factor=2.0), "dynamic_ntk(factor=2.0, original=2048)"),
        (LLAMA | {"rope_theta": 1e4, "rope_scaling": {"type": "linear", "factor": 2}}, "pi(factor=2.0)"),
        (LLAMA | {"rope_theta": 1e4, "rope_scaling": None}, "rope"),
        (rope(rope_type="yarn", factor=4.0), "yarn(original=2048)"),
        (rope(rope_type="proportional", partial_rotary_factor=0.25), "rope(p=0.25)"),
        (rope(rope_type="proportional", partial_rotary_factor=0.5, factor=4.0), "rope(p=0.5) @ scale(factor=4.0)"),
        (LLAMA | {"rope_theta": 1e4, "partial_rotary_factor": 0.5}, "rope"),
        (config_of("phi", rope_theta=1e4, partial_rotary_factor=0.5), "rope(fraction=0.5)"),
        (config_of("gptj", n_embd=4096, n_head=16, rotary_dim=64), "rope(layout='interleaved', fraction=0.25)"),
        (config_of("gptj", head_dim=256), "rope(layout='interleaved', fraction=0.25)"),
        (config_of("cohere", rope_theta=8e6), "rope(base=8000000.0, layout='interleaved')"),
        (config_of("stablelm", rope_theta=1e4), "rope(fraction=0.25)"),
        (config_of("stablelm", rope_theta=1e4, partial_rotary_factor=1.0), "rope"),
        (config_of("qwen2", rope_theta=1e4, sliding_window=8, max_window_layers=0), "rope"),
        (config_of("llama4_text", rope_theta=5e5, no_rope_layers=[0]), "llama4"),
        (config_of("llama", rope_theta=1e4, text_config={}), "rope"),
        (config_of("deepseek_v3"), f"rope(layout='interleaved', fraction={64 / 192}, at='end')"),
        (config_of("deepseek_v3", rope_interleave=False), f"rope(fraction={64 / 192}, at='end')"),
        (config_of("hy_v4", qk_nope_head_dim=64), "rope(fraction=0.5, at='end')"),
        (config_of("kimi_linear", qk_rope_head_dim=64, num_hidden_layers=4), "nope"),
        (config_of("glm5_next_text", num_hidden_layers=4), "nope"),
        (config_of("llama4_text", num_hidden_layers=4), f"[{LLAMA4 * 3}llama4]"),
        (config_of("mimo_v2_flash", sliding_window_size=128, layer_types=["sliding_attention"]), MIMO),
        (config_of("glm4v", text_config=GLM4V), GLM4V_TEXT),
        (config_of("qwen3_5", text_config=QWEN), QWEN_TEXT),
        (config_of("cohere2", num_hidden_layers=4, sliding_window_pattern=10**30), f"{COHERE} + window(4096)"),
        (config_of("qwen3_next", num_hidden_layers=2, full_attention_interval=2), "rope(fraction=0.25)"),
        (config_of("deepseek_v4"), f"{V4.format('base=160000.0, ')} + window(128)"),
        (config_of("deepseek_v4", num_hidden_layers=2, compress_ratios=[0, 0]), f"{V4.format('')} + window(128)"),
        (config_of("bloom", n_head=8), "alibi"),
        (config_of("mpt", attn_config={"alibi": True}), "alibi"),
        (config_of("falcon", alibi=True, hidden_size=128, n_head=2), "alibi(factor=0.125)"),
        (config_of("falcon", alibi=False, rope_theta=1e4), "rope"),
        (config_of("t5", relative_attention_num_buckets=16), "t5(buckets=16)"),
        (config_of("gpt2", n_positions=1024), "learned"),
        (
            config_of(
                "gemma3", text_config={"rope_theta": 1e4, "sliding_window": None, "layer_types": ["full_attention"]}
            ),
            "rope",
        ),
    ],
)
def test_a_config_is_this_scheme(config, text):
    assert posenc.spec(from_hf(config)) == text


def test_layers_that_differ_are_a_pattern_of_the_shortest_period():
    sets = {"full_attention": {"rope_type": "linear", "factor": 8.0}, "sliding_attention": {"rope_type": "default"}}
    types = ["sliding_attention"] * 5 + ["full_attention"]
    gemma = config_of("gemma3_text", layer_types=types * 4, sliding_window=512, rope_parameters=sets)
    assert posenc.spec(from_hf(gemma)) == f"[{'rope + window(512), ' * 5}pi(factor=8.0, base=1000000.0)]"
    odd = gemma | {"layer_types": (types * 5)[:26]}
    assert len(from_hf(odd).layers) == 26, "26 layers are no multiple of six"
    assert posenc.spec(from_hf(gemma | {"layer_types": types[5:] * 4})) == "pi(factor=8.0, base=1000000.0)"


def test_phi_3_said_su_before_it_said_longrope():
    about = {"short_factor": [1.0] * 8, "long_factor": [2.0] * 8, "original_max_position_embeddings": 512}
    su, longrope = (LLAMA | {"rope_theta": 1e4, "rope_scaling": {"type": t, **about}} for t in ("su", "longrope"))
    assert from_hf(su) == from_hf(longrope)


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (rope(rope_type="spiral"), "rope_type.*'spiral'"),
        (rope(rope_type="default", mrope_section=[2, 3, 3]), "text alone"),
        (rope(rope_type="linear"), "lack factor; give it"),
        (rope(rope_type="linear", factor=2.0, beta_fast=3), "'linear'.*'beta_fast'"),
        (rope(rope_type="linear", factor=0.5), "at least 1"),
        (rope(rope_type="llama3", factor=8.0), "lack low_freq_factor"),
        (rope(rope_type="longrope", factor=8.0), "lack long_factor"),
        (
            config_of("llama", rope_parameters={"rope_type": "yarn", "factor": 4.0}),
            "lack original_max_position_embeddings",
        ),
        (
            config_of("llama", rope_parameters={"rope_type": "dynamic", "factor": 4.0}),
            "'dynamic'.*max_position_embeddings",
        ),
        (config_of("bert", position_embedding_type="relative_key"), "posenc reads 'absolute' only"),
        (config_of("deepseek_v3", qk_rope_head_dim=63), "qk_rope_head_dim 63.* even"),
        (config_of("deepseek_v3", qk_rope_head_dim=64, head_dim=128), "head_dim is 128.* 64"),
        (config_of("mistral4", rope_parameters=YARN | {"partial_rotary_factor": 0.25}), "partial_rotary.* 0.25.*64"),
        (config_of("qwen2", rope_theta=1e4, layer_types=["chunked_attention"]), "'chunked_attention'"),
        (config_of("qwen2", rope_theta=1e4, layer_types=["sliding_attention"]), "use_sliding_window"),
        (config_of("smollm3", rope_theta=1e4, num_hidden_layers=3, no_rope_layers=[1, 0]), "2 .*3 layers"),
        (config_of("llama", rope_parameters={"sliding_attention": {"rope_theta": 1e4}}), "type of"),
        (config_of("llama", rope_scaling="linear"), "rope_scaling.*'linear'"),
        (config_of("llama", rope_scaling={"rope_type": None}), "rope_type None"),
        (config_of("gemma3_text", num_hidden_layers=2, rope_parameters={"full_attention": 3}), "are 3"),
        (config_of("gptj", rotary_dim=64), "rotary_dim.* 64.*head_dim"),
        (config_of("gptj"), "give head_dim"),
        (config_of("falcon", alibi=True), "head_dim"),
        (
            config_of("llama4_text", rope_theta=5e5, num_hidden_layers=2, attention_chunk_size=None),
            "chunk_size is None",
        ),
        (config_of("gpt_oss", sliding_window=None), "sliding_window.* None"),
        (config_of("gpt_oss", num_hidden_layers=2, rope_theta=1e4), "rope_theta"),
        (config_of("exaone4", rope_theta=1e4, sliding_window_pattern="LXXG"), "sliding_window_pattern is 'LXXG'"),
        # a setting given as 0 differs from one left out
        (config_of("llama", rope_theta=0), "(rope_theta|rotary_emb_base) is 0"),
        (config_of("phi", rope_theta=1e4, partial_rotary_factor=0), "partial_rotary_factor.* 0"),
        (config_of("gptj", rotary_dim=0, head_dim=64), "rotary_dim.* 0"),
        (config_of("gptj", rotary_dim=32, n_embd=64, n_head=4), "rotary_dim.* 32.* 16"),
        (config_of("gpt_neox", rotary_pct=2.0), "rotary_pct.* 2.0"),
        (
            config_of("llama", rope_parameters=YARN | {"original_max_position_embeddings": 0}),
            "original_max_position_embeddings.* 0",
        ),
        (
            config_of("llama", rope_parameters={"rope_type": "yarn", "factor": 0}, max_position_embeddings=8),
            "'yarn' is 0",
        ),
        (
            rope(rope_type="longrope", long_factor=[1.0] * 8, short_factor=[1.0] * 8, factor=0),
            "'factor' of 'longrope' is 0",
        ),
        (config_of("mistral", rope_theta=1e4, sliding_window=0), "sliding_window.* 0"),
        (config_of("llama", rope_theta=1e4, num_hidden_layers=0), "num_hidden_layers.* 0"),
        (config_of("llama", rope_theta=1e4, head_dim=0), "head_dim.* 0"),
        (config_of("smollm3", rope_theta=1e4, no_rope_layer_interval=0), "no_rope_layer_interval.* 0"),
    ],
)
def test_a_config_that_has_no_scheme_is_refused(config, why):
    with pytest.raises(ValueError, match=why):
        from_hf(config)
