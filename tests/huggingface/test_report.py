"""What is read of a config and what is left aside, and configs that no recording stands for."""

import dataclasses

import pytest

from posenc.huggingface import from_hf, report
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
        with pytest.raises(TypeError, match="give the dict that config.json holds, or a config object of transformers"):
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


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (config_of("totally_new", rope_theta=1e4), "'totally_new' is not read.*give that type as like"),
        ({"rope_theta": 1e4}, "model_type=None is not read"),
        (config_of("llama", rope_theta=None), "rope_theta is None; give the base"),
        (config_of("nanochat"), "turns the other way"),
        (config_of("whisper"), "sinusoidal"),
        (config_of("gptj", rope_theta=5e5), "ignores rope_theta, which is 500000.0"),
        (
            config_of("ministral3", rope_parameters={"rope_type": "yarn", "llama_4_scaling_beta": 0.1}),
            "llama_4_scaling_beta is 0.1",
        ),
        (
            config_of("qwen2_vl_text", rope_parameters={"rope_type": "yarn", "mrope_section": [16, 24, 24]}),
            r"no 'yarn' with an mrope_section; without the scaling it is 'mrope\(sections=\(16, 24, 24\)",
        ),
        (config_of("recurrent_gemma", block_types=["attention"]), "compared with"),
        (config_of("granite_swa", num_hidden_layers=2, layer_rope_theta=[0, 7.0]), "layer_rope_theta has the base 7.0"),
        (config_of("flint", num_hidden_layers=4), "no period; give layer_types"),
    ],
)
def test_what_was_not_compared_is_refused_in_one_sentence(config, why):
    with pytest.raises(ValueError, match=why) as error:
        from_hf(config)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("like", ["lama", ["llama"]])
def test_a_type_to_read_a_config_as_must_be_known(like):
    with pytest.raises(ValueError, match=r"like is .*lama'\]?, which is none of the"):
        from_hf(LLAMA, like=like)
