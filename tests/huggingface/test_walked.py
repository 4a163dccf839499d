"""Configs that say one thing twice, or leave something out: what transformers builds of each, or a refusal."""

import json

import pytest

from posenc.huggingface import from_hf
from posenc.huggingface.facts import types
from posenc.naming import spec
from tests.huggingface import walk

FOUND, SIZES = walk.read(), walk.sizes()


def read(config):
    """The text of a scheme; None where a config is refused, which one sentence says."""
    try:
        return spec(from_hf(config))
    except ValueError as refusal:
        assert str(refusal).endswith(".") and "\n" not in str(refusal), (config, refusal)
        return None


@pytest.mark.ci
@pytest.mark.parametrize("part", range(8))
def test_every_config_is_read_as_transformers_builds_it_or_refused(part):
    """No config is read as another model; what transformers does not run has no right answer."""
    for kind in sorted(types())[part::8]:
        for (name, config), outcome in zip(walk.walk(SIZES[kind], types()[kind]), FOUND[kind], strict=True):
            text = read(config)
            if outcome != walk.UNBUILT:
                assert text == (None if outcome == walk.REFUSED else outcome), (kind, name, config)


def test_every_type_that_is_read_was_walked():
    digests = json.loads(walk.FILE.read_text(encoding="utf-8"))["digests"]
    assert digests.keys() == FOUND.keys() == types().keys()
    changed = [kind for kind, size in SIZES.items() if digests[kind] != walk.digest(kind, size)]
    assert not changed, f"run python -m tests.huggingface.record_walk {' '.join(changed)}"
    outcomes = [one for every in FOUND.values() for one in every]
    assert len(outcomes) > 20_000 and sum(isinstance(one, str) for one in outcomes) > len(outcomes) // 2


def test_the_stored_answers_are_those_of_transformers_rules():
    """Answers that a reader would guess wrong, and that faults as they were did not give."""
    where = {
        (kind, name): outcome
        for kind in types()
        for (name, _), outcome in zip(walk.walk(SIZES[kind], types()[kind]), FOUND[kind], strict=True)
    }
    assert where["mistral", "is_causal: false"] == "rope + window(19)"
    assert where["gemma4_text", "layer_types: all sliding"].endswith("rope(base=1000000.0, p=0.25)]")
    assert "original=32" in where["olmo3", "sets, yarn, two lengths"]
    assert "truncate" not in where["olmo3", "sets, truncate: false"]
    assert "truncate=False" in where["llama", "truncate: null"], "null is no default here"
    assert where["minimax_m2", "rotary_dim: 8"] == "rope(base=5000000.0, fraction=0.5)"
    assert where["modernbert", "sliding_window: 5"].endswith("rope + window(11)]")
