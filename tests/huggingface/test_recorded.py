"""`from_hf` beside the models of transformers: attention weights from recorded queries and keys, type by type."""

import dataclasses
import math
import re

import pytest

import posenc
from posenc.huggingface import facts, from_hf, report
from tests.huggingface import store
from tests.huggingface.compare import TOLERANCE, difference, input_difference, layer_of

CASES: dict[str, list[store.Case]] = {}
for case in store.read():
    CASES.setdefault(case.type, []).append(case)
KNOWN = sorted(facts.types())
READ_JOINED = [kind for kind, one in facts.types().items() if one.joined]


def largest(scheme, case):
    return max(difference(layer_of(scheme, n), layer) for n, layer in enumerate(case.layers))


@pytest.mark.parametrize("kind", sorted(CASES))
def test_weights_are_those_of_the_model(kind):
    """Every recorded config of a type, every layer, all heads and distances, masks among them."""
    for case in CASES[kind]:
        assert largest(from_hf(case.config), case) < TOLERANCE, case.name


@pytest.mark.parametrize("part", range(5))
def test_every_recorded_config_is_read_as_the_scheme_that_was_compared(part):
    every = [case for cases in CASES.values() for case in cases]
    for case in every[part::5]:
        assert posenc.spec(from_hf(case.config)) == case.scheme, (case.type, case.name, case.config)


def test_a_scale_of_scores_that_is_not_the_usual_one_is_named():
    """Where `attend` needs another scale than 1/√d, `report` says so, also where the config leaves it out."""
    found = set()
    for case in [case for cases in CASES.values() for case in cases]:
        for layer in case.layers:
            unusual = not math.isclose(layer.scale, layer.q.shape[-1] ** -0.5, rel_tol=1e-3)
            if unusual and layer.scale != 1:  # 1 also stands for a scale that could not be measured
                said = [name for name, why in report(case.config).aside if "attend's scale" in why]
                assert said, (case.type, case.name, layer.scale)
                found |= {*said}
    assert found == {"mscale_all_dim", "query_pre_attn_scalar", "attention_multiplier", "half"}


def test_what_is_added_to_the_input_is_what_the_model_adds():
    found = [case for cases in CASES.values() for case in cases if case.added is not None]
    assert found and {case.scheme for case in found} == {"sinusoidal(layout='halves')"}
    for case in found:
        assert input_difference(from_hf(case.config), case.added) < TOLERANCE
        assert input_difference(posenc.parse("sinusoidal"), case.added) > 0.1


def test_every_type_that_is_read_was_compared_and_agrees():
    table = facts.compared()
    assert {kind for kind, line in table.items() if "difference" in line} == CASES.keys()
    assert set(KNOWN) <= CASES.keys(), set(KNOWN) - CASES.keys()
    assert max(line["difference"] for line in table.values() if "difference" in line) < TOLERANCE
    assert len(CASES) >= 150 and len(table) == 804


def test_every_other_type_is_refused_by_name():
    for kind, line in facts.compared().items():
        if "refused" in line:
            with pytest.raises(ValueError, match=kind):
                from_hf({"model_type": kind, "rope_theta": 1e4, "text_config": {"model_type": "llama"}})


def test_a_wrong_reading_is_seen():
    """Faults as they were: another layout, a layer that rotates, a window one key off, another base or share."""
    by_name = {(case.type, case.name): case for cases in CASES.values() for case in cases}
    for at, right, wrong in (
        (("cohere", "sizes"), "layout='interleaved'", "layout='half'"),
        (("exaone4", "sizes"), "nope", "rope"),
        (("mistral", "sizes"), "window(9)", "window(8)"),
        (("mixtral", "sizes"), "base=1000000.0", "base=900000.0"),
        (("phi", "sizes"), "fraction=0.5", "fraction=0.25"),
        (("modernbert", "sizes"), "rope(base=160000.0)", "rope(base=10000.0)"),
        (("llama", "yarn"), "factor=4.0", "factor=4.2"),
        (("falcon", "alibi"), "factor=0.25", "factor=0.3"),
        (("t5", "buckets"), "reach=20", "reach=24"),
        (("deepseek_v3", "sizes"), "at='end'", "at='start'"),
        (("deepseek_v3", "sizes"), "layout='interleaved', ", ""),
        (("axk1", "halves"), "rope(", "rope(layout='interleaved', "),
        (("hy_v4", "sizes"), "rope(", "rope(layout='interleaved', "),
        (("qwen3_5_text", "three axes"), "order='interleaved'", "order='chunked'"),
        (("glm4v_moe_text", "three axes"), "sections=(2, 3, 3)", "sections=(3, 3, 2)"),
        (("deepseek_v4", "bases"), "base=300.0", "base=50.0"),
        (("deepseek_v4", "bases"), "at='end'", "at='start'"),
        (("deepseek_v4", "scaled"), "factor=4.0", "factor=4.2"),
        (("ministral3", "steps"), "offset=0", "offset=1"),
        (("mistral4", "steps"), "offset=0", "offset=1"),
        (("mistral4", "yarn"), "llama4(strength=0.3, floor=16, offset=0) + ", ""),
        (("mimo_v2_flash", "sizes"), "window(9)", "window(8)"),
    ):
        text = posenc.spec(from_hf(by_name[at].config))
        text = text if right in text else text.replace("yarn(", f"yarn({right}, ")
        assert right in text, (at, text)
        planted = posenc.parse(text.replace(right, wrong, 1))
        assert largest(planted, by_name[at]) > 10 * TOLERANCE, at
    chunked = by_name["llama4_text", "sizes"]
    assert {layer.chunk for layer in chunked.layers} == {12, None}
    whole = chunked._replace(layers=[dataclasses.replace(layer, chunk=None) for layer in chunked.layers])
    assert largest(from_hf(chunked.config), whole) > 0.01


def test_the_scale_that_a_report_names_is_that_of_the_model():
    """DeepSeek's scores: mscale_all_dim enters their scale, squared; without it the scale is that of both parts."""
    named = 0
    for case in (case for kind, cases in CASES.items() if kind in READ_JOINED for case in cases):
        aside = dict(report(case.config).aside).get("mscale_all_dim")
        named += aside is not None
        scale = float(re.search(r"pass (\S+) as", aside)[1]) if aside else case.layers[0].q.shape[-1] ** -0.5
        assert all(math.isclose(layer.scale, scale, rel_tol=2e-6) for layer in case.layers), (case.type, case.name)
    assert named >= len(READ_JOINED)
