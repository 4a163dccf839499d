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
