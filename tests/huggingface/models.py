"""Tiny random models of transformers, built from a config and run on a text of one repeated token."""

from __future__ import annotations

import contextlib
import copy
import importlib
import importlib.util
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import transformers
from transformers import CONFIG_MAPPING

from tests.huggingface.capture import Seen, Watch, constant, unrotated
from tests.huggingface.reasons import IMPLEMENTATION
from tests.huggingface.tiny import DECODER, LENGTH

AUTO = (
    "AutoModel",
    "AutoModelForCausalLM",
    "AutoModelForSeq2SeqLM",
    "AutoModelForImageTextToText",
    "AutoModelForMultimodalLM",
    "AutoModelForMaskedLM",
)
LARGEST = 40_000_000
"""The number of parameters beyond which a config is not tiny."""


def config_of(kind: str, settings: dict[str, Any]):
    """A type's config with these settings, as transformers reads a config.json. It writes into what it is given."""
    return CONFIG_MAPPING[kind].from_dict({"model_type": kind, **copy.deepcopy(settings)})


def build(config, make: Callable[[Any], torch.nn.Module] | None = None) -> torch.nn.Module:
    """A model with random weights, norms too, so that a rotation before a norm differs from one after it."""
    make = make or maker(config)
    with torch.device("meta"):
        size = sum(p.numel() for p in make(config).parameters())
    if size > LARGEST:
        raise MemoryError(f"the smallest config that was tried has {size // 10**6} million parameters")
    torch.manual_seed(0)
    model = make(config).eval().float()
    randomize(model)
    return model


def maker(config) -> Callable[[Any], torch.nn.Module]:
    """What makes a model of this config: transformers' own choice, or the class of its module that reads a text."""
    how = IMPLEMENTATION.get(config.model_type, "eager")
    for name in AUTO:
        auto = getattr(transformers, name, None)
        if auto is not None and type(config) in auto._model_mapping:
            return lambda c: auto.from_config(c, attn_implementation=how)
    for found in _classes(type(config)):
        if "input_ids" in inspect.signature(found.forward).parameters:
            return lambda c: found._from_config(c, attn_implementation=how)
    raise LookupError("transformers has no model of this type that reads a text")


def text_maker(whole) -> Callable[[Any], torch.nn.Module]:
    """What makes the part of a model of several parts that reads a text. `whole` is its config at any size."""
    with torch.device("meta"):
        model = maker(whole)(whole)
    part = type(whole.get_text_config())
    for one in model.modules():
        if type(getattr(one, "config", None)) is part and hasattr(one, "_from_config") and takes(one, "input_ids"):
            return lambda c: type(one)._from_config(c, attn_implementation="eager")
    raise LookupError("no part of its model reads a text")


def arguments(kind: type) -> tuple[str, ...] | None:
    """What the model of a class of configs takes in its call; None without a model."""
    mapping = transformers.AutoModel._model_mapping
    found = mapping[kind] if kind in mapping else next(iter(_classes(kind)), None)
    found = found[0] if isinstance(found, tuple) else found
    return None if found is None else tuple(inspect.signature(found.forward).parameters)


def _classes(kind: type) -> list[type]:
    """The models of a class of configs, in the module beside it."""
    name = kind.__module__.replace("configuration_", "modeling_")
    if importlib.util.find_spec(name) is None:
        return []
    found = vars(importlib.import_module(name)).values()
    models = [one for one in found if inspect.isclass(one) and issubclass(one, transformers.PreTrainedModel)]
    return [one for one in models if one.config_class is kind and "forward" in vars(one)]


def randomize(model: torch.nn.Module) -> None:
    """Random weights where transformers starts with ones and zeros."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for p in model.parameters():
            if p.is_floating_point() and (p.numel() < 2 or float(p.std()) == 0):
                p.add_(0.3 * torch.randn(p.shape, generator=generator))


def run(model: torch.nn.Module, positions: np.ndarray | None = None, turned: bool = True) -> Seen:
    """What the model computes with on a text of one token, again and again; without its rotation, if not `turned`."""
    lengths = (LENGTH, DECODER) if takes(model, "decoder_input_ids") else (LENGTH,)
    text = torch.full((1, LENGTH), 5)
    inputs: dict[str, Any] = {"input_ids": text}
    if takes(model, "decoder_input_ids"):
        inputs["decoder_input_ids"] = torch.full((1, DECODER), 5)
    if takes(model, "use_cache"):
        inputs["use_cache"] = False
    if positions is not None:
        inputs["position_ids"] = torch.tensor(positions.T[:, None])
    still = contextlib.nullcontext() if turned else unrotated(model)
    with torch.no_grad(), still, constant(model, lengths), Watch(lengths) as watch:
        model(**inputs)
    return watch.seen


def takes(model: torch.nn.Module, name: str) -> bool:
    """Whether the model's call has an argument of this name."""
    return name in inspect.signature(model.forward).parameters
