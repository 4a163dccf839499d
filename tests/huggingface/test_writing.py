"""Schemes as Hugging Face's configs: what is written is read back as it was, and what has no word is refused."""

import json
from pathlib import Path

import numpy as np
import pytest

import posenc
from posenc.huggingface import from_hf, permute, to_hf

RECORDED = json.loads(Path(__file__).with_name("frequencies.json").read_text())["cases"]
SAID = [
    "rope",
    "rope(base=500000.0, fraction=0.5)",
    "rope(p=0.25)",
    "rope(p=0.5) @ scale(factor=4.0)",
    "pi(factor=8.0, fraction=0.5)",
    "dynamic_ntk(factor=2.0, original=2048)",
    "yarn(original=4096, truncate=False, beta_fast=16.0, beta_slow=2.0)",
    "yarn(original=4096, attention_factor=0.9)",
    "yarn(original=4096, mscale=0.707, mscale_all_dim=0.5)",
    "longrope(long=(2.0, 3.0), short=(1.0, 1.5), original=512, factor=8.0)",
    "longrope(long=(2.0, 3.0), short=(1.0, 1.5), original=512, magnitude=1.2)",
    "llama3(original=8192, factor=32.0)",
]
LISTS = [
    "[rope + window(512), nope]",
    "[rope + window(512), rope + window(512), pi(factor=8.0)]",
    "[rope, rope, rope, nope]",
    "[yarn(original=4096) + window(128), yarn(original=4096)]",
    "[rope + window(64), dynamic_ntk(factor=2.0, original=2048)]",
]


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("text", [*SAID, "alibi", "t5(buckets=16)", "learned", "rope + window(512)"])
def test_a_scheme_comes_back_from_a_config(text, version):
    scheme = posenc.parse(text)
    config = json.loads(json.dumps(to_hf(scheme, version=version)))
    assert from_hf(config) == scheme and to_hf(text, version=version) == config
    assert ("rope_parameters" in config) <= (version == 5) and ("rope_theta" in config) <= (version == 4)


@pytest.mark.parametrize("text", LISTS)
def test_a_pattern_comes_back_from_a_config(text):
    scheme = posenc.parse(text)
    assert from_hf(json.loads(json.dumps(to_hf(scheme, layers=2 * len(scheme.layers))))) == scheme
    assert to_hf(scheme)["num_hidden_layers"] == len(scheme.layers)


def test_a_recorded_config_survives_both_ways():
    for case in RECORDED:
        scheme, depth, kind = (from_hf(case["config"]), *map(case["config"].get, ("num_hidden_layers", "model_type")))
        assert from_hf(to_hf(scheme, layers=depth, model_type=kind)) == scheme, case["name"]


BY_MODEL = [
    ("rope", "gpt_neox", None),
    ("rope(fraction=0.5)", "gpt_neox", None),
    ("rope", "smollm3", 4),
    ("[rope, rope, nope]", "smollm3", 6),
    ("[rope, nope + window(8)]", "smollm3", 4),
    ("[rope(layout='interleaved'), nope]", "llama4_text", 4),
    ("[rope(layout='interleaved'), llama4(strength=0.2, floor=64)]", "llama4_text", 4),
    ("[rope(layout='interleaved') + window(8), nope]", "cohere2", 2),
    ("rope + window(8)", "qwen2", 2),
    ("[rope + window(8), rope]", "gemma2", 2),
    ("[rope + window(8), rope(base=1000000.0)]", "gemma3_text", 2),
    ("rope(base=5.0) + window(8)", "gemma3_text", 2),
    ("rope(layout='interleaved')", "glm", None),
    ("rope(layout='interleaved')", "gptj", None),
    ("rope(layout='interleaved', fraction=0.25)", "codegen", None),
    ("mrope(sections=(16, 24, 24))", "qwen2_vl_text", 2),
    ("mrope(sections=(24, 20, 20), order='interleaved', base=5000000.0)", "qwen3_vl_text", None),
    ("mrope(sections=(8, 12, 12), layout='interleaved', base=10000.0)", "glm4v_text", None),
    ("alibi", "mpt", None),
    ("t5(buckets=16)", "mt5", None),
    ("learned", "bert", None),
]


@pytest.mark.parametrize(("text", "kind", "depth"), BY_MODEL)
def test_a_scheme_comes_back_from_the_config_of_a_model(text, kind, depth):
    """Whatever the model does unless told is told."""
    config = json.loads(json.dumps(to_hf(posenc.parse(text), model_type=kind, layers=depth)))
    assert config["model_type"] == kind
    assert from_hf(config) == posenc.parse(text)


def test_settings_stand_where_the_code_of_a_model_looks_for_them():
    """What from_hf would read from anywhere, transformers reads under these names alone."""
    neox = to_hf(posenc.parse("rope(base=500.0)"), model_type="gpt_neox", version=4)
    assert (neox["rotary_emb_base"], neox["rotary_pct"]) == (500, 1)
    assert to_hf(posenc.parse("rope"), model_type="gpt_neox")["rope_parameters"]["partial_rotary_factor"] == 1
    assert to_hf(posenc.parse("rope"), model_type="smollm3", layers=2)["no_rope_layers"] == [1, 1]
    gemma = to_hf(posenc.parse("rope + window(8)"), model_type="gemma3_text", layers=2)
    assert gemma["rope_parameters"].keys() == {"sliding_attention"}
    assert to_hf(posenc.parse("rope + window(8)"), model_type="qwen3", layers=2)["use_sliding_window"] is True
    cohere = posenc.parse("[rope(layout='interleaved') + window(8), nope]")
    assert "no_rope_layers" not in to_hf(cohere, model_type="cohere2")


@pytest.mark.parametrize(
    ("text", "kind", "depth", "why"),
    [
        ("rope", "bloom", None, "model_type='bloom' cannot express rope; it would be read as alibi"),
        ("alibi", "llama", None, "model_type='llama' cannot express alibi; it would be read as rope"),
        ("alibi", "gpt2", None, "cannot express alibi; it would be read as learned"),
        ("learned", "mpt", None, "cannot express learned; it would be read as alibi"),
        ("learned", None, 3, "layers is 3, but no config of learned lists them; leave it out"),
        ("alibi", "bloom", 3, "leave it out"),
        ("[rope(layout='interleaved'), nope]", "cohere2", None, "it would be read as nope"),
        ("[rope, nope]", "mistral", None, "it would be read as rope"),
        ("[rope + window(8), nope]", "gemma3_text", None, r"read as \[rope [+] window\(8\), rope\(base=1000000.0\)\]"),
        ("[rope(layout='interleaved'), llama4, nope]", "llama4_text", None, "cannot express"),
        ("[rope, llama4]", "smollm3", None, r"it would be read as \[rope, nope\]"),
        ("rope(layout='interleaved', base=500.0)", "gptj", None, "plain rotations of the base 10000.0 only"),
        ("rope(layout='interleaved', fraction=0.6)", "codegen", None, "64 features of no whole head"),
        ("rope", "smollm3", None, "differ unless a config lists them; give layers"),
        ("rope", "gemma2", None, "give layers"),
        ("rope + window(8)", "qwen2", None, "give layers"),
        ("rope @ scale(0.5)", None, None, "cannot express rope @ scale.*it must be at least 1"),
    ],
)
def test_what_a_model_cannot_say_is_refused(text, kind, depth, why):
    with pytest.raises(ValueError, match=why):
        to_hf(posenc.parse(text), model_type=kind, layers=depth)


def test_temperatures_go_back_into_the_config_of_llama_4():
    config = {"model_type": "llama4_text", "num_hidden_layers": 8, "layer_types": ["full_attention"] * 8}
    config |= {"rope_theta": 5e5, "floor_scale": 4096, "attn_scale": 0.2, "attn_temperature_tuning": True}
    written = to_hf(from_hf(config))
    assert written["no_rope_layers"] == [1, 1, 1, 0]
    assert (written["attn_scale"], written["floor_scale"], written["attn_temperature_tuning"]) == (0.2, 4096, True)
    assert from_hf(written) == from_hf(config)
    plain = to_hf(from_hf(config | {"attn_temperature_tuning": False}), model_type="llama4_text")
    assert plain["attn_temperature_tuning"] is False and "floor_scale" not in plain


def test_the_same_numbers_under_another_name_come_back_as_that():
    assert posenc.spec(from_hf(to_hf(posenc.parse("rope @ scale(4.0)")))) == "pi"
    assert posenc.spec(from_hf(to_hf(posenc.parse("rope @ scale(1.0)")))) == "rope"
    assert (
        posenc.spec(from_hf(to_hf(posenc.parse("[rope @ scale(4.0) + window(8), nope]")))) == "[pi + window(8), nope]"
    )
    su = "longrope(long=(2.0, 3.0), short=(1.0, 1.5), original=512, magnitude={})"
    back = from_hf(to_hf(posenc.parse(su.format("'yarn'"))))
    assert posenc.spec(back) == posenc.spec(posenc.parse(su.format(0.1 * np.log(4.0) + 1)))


def test_a_layout_is_said_by_the_model():
    scheme = posenc.parse("rope(layout='interleaved')")
    assert from_hf(to_hf(scheme, model_type="cohere")) == scheme
    with pytest.raises(ValueError, match="'interleaved', which the code of a model fixes.*permute the weights"):
        to_hf(scheme)
    with pytest.raises(ValueError, match="'half', which the code of a model fixes"):
        to_hf(posenc.parse("rope"), model_type="cohere")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ntk", "no rope_type for ntk; it has one for rope, pi.*'rope' with the base that it raises"),
        ("hope(trained=64)", "no rope_type for hope.*'rope' with p"),
        ("by_parts(original=64)", "no rope_type for by_parts"),
        ("xpos", "no rope_type for xpos"),
        ("rope + fox", "no rope_type for rope [+] fox"),
        ("yarn", "leaves original open; call posenc.bind"),
        ("yarn(original=64, extrapolation_factor=0.5)", "no extrapolation_factor"),
        ("yarn(original=64, mscale=0.7)", "where both are above 0"),
        ("dynamic_ntk(rule='yarn', original=64)", "the rule 'ntk' only, not 'yarn'"),
        ("longrope(original=64)", "leaves its factors open"),
        ("longrope(original=64, switch='never')", "switches by length"),
        ("rope(frequencies='learned')", "frequencies must be fixed"),
        ("rope(p=0.5, fraction=0.5)", "p or fraction 1"),
        ("rope @ random_sorted(2048)", "'scale' with 'rope' only, not rope @ random_sorted"),
        ("yarn(factor=4.0, original=64) @ random_sorted(2048)", "'scale' with 'rope' only, not yarn"),
        ("pi(factor=4.0) @ scale(2.0)", "'scale' with 'rope' only, not pi"),
        ("llama3(original=64) @ offset", "'scale' with 'rope' only, not llama3"),
        ("[rope @ offset, nope]", "'scale' with 'rope' only"),
        ("alibi @ scale(2.0)", "no rope_type for alibi @ scale"),
        ("nope @ scale(2.0)", "no rope_type for nope @ scale"),
        ("nope", "none to write"),
        ("mrope", "leaves sections open; call posenc.bind"),
        ("mrope(sections=(8, 12, 12)) @ offset", "no rope_type for mrope"),
        ("alibi(form='half')", "ALiBi has no settings, so it cannot express ALiBi.form='half'"),
        ("t5(bidirectional=True)", "T5 has buckets and reach only"),
        ("learned + [rope, nope]", "a scheme added to the input before the layers"),
        ("[rope + window(4), rope + window(8)]", "one sliding_window"),
        ("[rope, pi]", "layers differ in more"),
    ],
)
def test_what_hugging_face_cannot_say_is_refused(text, why):
    with pytest.raises(ValueError, match=why):
        to_hf(posenc.parse(text))


def test_arguments_of_a_wrong_kind_are_refused():
    with pytest.raises(TypeError, match="give the dict that config.json holds"):
        from_hf("config.json")
    with pytest.raises(ValueError, match="version is 3; it must be 4 or 5"):
        to_hf(posenc.parse("rope"), version=3)
    with pytest.raises(ValueError, match="a multiple of the period, 2"):
        to_hf(posenc.parse("[rope, nope]"), layers=3)
    with pytest.raises(ValueError, match="one set of rotary settings for all layers"):
        to_hf(posenc.parse("[rope + window(4), pi]"), version=4)
    with pytest.raises(ValueError, match="one max_position_embeddings"):
        to_hf(posenc.parse("[dynamic_ntk(original=4) + window(4), dynamic_ntk(original=8)]"))
    with pytest.raises(ValueError, match="'half' or 'interleaved'"):
        permute(np.zeros(4), "halves")
    with pytest.raises(ValueError, match="a head has 5; take an even width"):
        permute(np.zeros(5), "half")
