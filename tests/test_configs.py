"""Schemes in configs: `dataclasses.asdict` loses their names, and a text keeps them."""

import dataclasses
import json
from typing import Any

import jax
import pytest

import posenc

DIMS = posenc.Dims(width=16, heads=4, head=4, trained=8)
TEXTS = (
    "rope(base=500000.0)",
    "rope + alibi",
    "rope + window(4, sinks=1)",
    "(rope + kerple) @ random_sorted(64)",
    "learned + [rope, rope + window(4), nope]",
)


@dataclasses.dataclass(frozen=True)
class Config:
    """A model's config, as users have one."""

    width: int
    scheme: Any


@pytest.mark.parametrize("text", TEXTS)
def test_a_config_that_holds_the_text_comes_back_from_a_file(text):
    scheme = posenc.parse(text)
    written = json.dumps(dataclasses.asdict(Config(16, posenc.spec(scheme))))
    assert posenc.parse(Config(**json.loads(written)).scheme) == scheme


@pytest.mark.parametrize("text", TEXTS)
def test_a_scheme_that_asdict_took_apart_is_refused_wherever_a_scheme_is_expected(text):
    """asdict takes every dataclass apart, whoever's it is: no scheme can tell it not to."""
    taken = dataclasses.asdict(Config(16, posenc.parse(text)))["scheme"]
    assert "name" not in taken
    for use in (
        posenc.spec,
        lambda scheme: posenc.bind(scheme, DIMS),
        lambda scheme: posenc.init(scheme, jax.random.key(0), DIMS),
        lambda scheme: posenc.layer(scheme, 0),
    ):
        with pytest.raises(TypeError, match="posenc.parse.*{"):
            use(taken)
