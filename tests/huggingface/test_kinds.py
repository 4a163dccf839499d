"""A config whose settings have another type or range than they can have is refused by name, and never guessed at."""

import math
import random

import pytest

from posenc.huggingface import from_hf, kinds, report
from posenc.huggingface.facts import types
from posenc.naming import parse, spec
from tests.contract.test_attention import refused

LLAMA = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "max_position_embeddings": 64}
SCALED = {"factor": 2.0, "original_max_position_embeddings": 16}
LONG = {"rope_type": "longrope", "long_factor": [2.0] * 8, "short_factor": [1.0] * 8} | SCALED


def scaled(**settings):
    return LLAMA | {"rope_scaling": settings}


def typed(kind, **settings):
    return {"model_type": kind, "num_hidden_layers": 4} | settings


HUGE = 10**400
GUESSED = {
    "text for false": (
        typed("falcon", alibi="false", hidden_size=64, num_attention_heads=4),
        "alibi is 'false'; it must be true",
    ),
    "letters for layers": (
        typed("smollm3", no_rope_layers="abcd"),
        "no_rope_layers is 'abcd'; it must be a list of 0 and 1",
    ),
    "NaN for a layer": (typed("smollm3", no_rope_layers=[math.nan, 0, 1, 1]), "no_rope_layers is"),
    "no heads": (
        LLAMA | {"num_attention_heads": 0},
        "num_attention_heads is 0; it must be a whole number of at least 1",
    ),
    "true for a number": (
        typed("smollm3", num_hidden_layers=True),
        "num_hidden_layers is True; it must be a number of layers",
    ),
    "no factors": (scaled(**LONG | {"long_factor": []}), "long_factor is .*a list of numbers above 0"),
    "few factors": (scaled(**LONG | {"long_factor": [2.0]}), "'long' of 'longrope' holds 1 numbers"),
    "a huge base": (LLAMA | {"rope_theta": HUGE}, "rope_theta is 10+...; it must be a finite number"),
    "an infinite base": (LLAMA | {"rope_theta": math.inf}, "rope_theta is inf"),
    "a base of text": (LLAMA | {"rope_theta": "10000"}, "rope_theta is '10000'"),
    "attn_config": (typed("mpt", attn_config=5), "attn_config is 5; it must be a dict"),
    "alibi of mpt": (typed("mpt", attn_config={"alibi": "no"}), "alibi is 'no'"),
    "text_config": (typed("gemma3", text_config=5), "text_config is 5; it must be a dict"),
    "a list of types": ({"model_type": ["llama"]}, "model_type is .*; it must be a text"),
    "a list of rope types": (scaled(rope_type=["yarn"]), "rope_type is .*; it must be a text"),
    "settings of numbers": (
        scaled(**{}) | {"rope_scaling": {1: 2}},
        "a setting called 1; the names of settings are texts",
    ),
    "factor of text": (scaled(rope_type="yarn", **SCALED | {"factor": "2"}), "factor is '2'"),
    "truncate of text": (scaled(rope_type="yarn", truncate="no", **SCALED), "truncate is 'no'"),
    "text for true": (typed("qwen2", use_sliding_window="true"), "use_sliding_window is 'true'; it must be true or"),
    "text for a list": (typed("qwen2", layer_types="full_attention"), "layer_types is .*; it must be a list of texts"),
    "many layers": (
        typed("smollm3") | {"num_hidden_layers": 10**8},
        "num_hidden_layers is 100000000; .* from 1 to 1024",
    ),
    "half a floor": (typed("llama4_text", floor_scale=2.7), "floor_scale is 2.7; it must be a whole number"),
    "layers before 0": (
        typed("qwen2", use_sliding_window=True, sliding_window=4, max_window_layers=-2),
        "max_window_layers is -2",
    ),
    "a huge window": (typed("mistral", sliding_window=10**30), "sliding_window is 10+; it must be a whole number"),
    "buckets of text": (typed("t5", relative_attention_num_buckets="32"), "relative_attention_num_buckets is '32'"),
}


@pytest.mark.parametrize("name", GUESSED)
def test_a_setting_of_another_type_is_refused_by_name(name):
    config, match = GUESSED[name]
    refused(ValueError, match, lambda: from_hf(config))


def test_what_released_configs_have_is_read():
    """Llama 4 has the number 4 for true, and an empty list for the default."""
    listed = {"layer_types": ["full_attention"] * 4}
    config = typed("llama4_text", attn_temperature_tuning=4, no_rope_layers=[], floor_scale=8192, **listed)
    assert spec(from_hf(config)) == spec(from_hf(typed("llama4_text", **listed)))
    assert spec(from_hf(scaled(**LONG))).startswith("longrope(")


ODD = [None, True, False, 0, -1, 3, HUGE, 1.5, -2.5, math.nan, math.inf, "", "false", "x", [], [1], ["x"], {}, {"a": 1}]
"""What JSON may hold in the place of anything."""


@pytest.mark.parametrize("seed", range(60))
def test_any_value_under_any_name_is_read_or_refused_in_one_sentence(seed):
    draw = random.Random(seed)
    names = [*kinds.KINDS, "no_rope_layer_interval", "sliding_window_pattern", "global_attn_every_n_layers"]
    for _ in range(40):
        config = {"model_type": draw.choice([*types()]), "hidden_size": 64, "num_attention_heads": 4}
        config["num_hidden_layers"] = draw.choice([2, 4, 8])
        inside = {name: draw.choice(ODD) for name in draw.sample(names, 2)}
        inside |= {"rope_type": draw.choice(["default", "linear", "yarn", "longrope", "llama3", "dynamic", "x"])}
        for name in draw.sample(names, draw.choice([1, 2, 3])):
            rotary = name in ("rope_scaling", "rope_parameters")
            config[name] = draw.choice([*ODD, inside] if rotary else ODD)
        if draw.random() < 0.5:
            config["rope_scaling"] = inside
        try:
            assert report(config).scheme == parse(spec(from_hf(config)))
        except (ValueError, TypeError) as refusal:
            sentence = str(refusal)
            assert type(refusal) is ValueError and sentence.endswith(".") and "\n" not in sentence, (config, refusal)
            vague = len(sentence) >= 500 or "object" in sentence or "not supported" in sentence
            assert not vague, (config, refusal)
