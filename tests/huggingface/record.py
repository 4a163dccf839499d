"""Every model type of transformers beside the scheme that `from_hf` reads: `python -m tests.huggingface.record`.

Needs torch and transformers 5.23.0, in an environment of its own. It writes posenc/huggingface/compared.json, the table
of all model types, and recorded.json and recorded.npz in this folder, from which the tests compare without either.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import io
import json
import logging
import signal
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from transformers import CONFIG_MAPPING, AutoConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

import posenc
from posenc.core.compose import parts
from posenc.huggingface import facts as facts_of
from posenc.huggingface import from_hf
from posenc.huggingface.facts import CHUNKED, Facts
from posenc.naming import spec
from posenc.schemes.learned import Learned
from posenc.schemes.t5 import T5
from tests.huggingface import reasons, store
from tests.huggingface.capture import Attention, Seen
from tests.huggingface.compare import HIDDEN, TOLERANCE, Layer, difference, input_difference, layer_of, softmax
from tests.huggingface.models import arguments, build, config_of, run, text_maker
from tests.huggingface.tiny import LENGTH, shrink
from tests.huggingface.variants import THREE_AXES, variants

VERSION = "5.23.0"
SECONDS = 120
AXES = np.stack([np.arange(LENGTH) // 3, np.arange(LENGTH) % 5, np.arange(LENGTH) % 7], -1)
"""Positions of tokens in time, height and width; at the first token all are 0."""
TABLE = Path(facts_of.__file__).with_name("compared.json")


UNROTATED = object()
"""The model itself without its rotation, in the place of a plain one."""


class Differs(Exception):
    """A model computes something else than the scheme."""


class Refused(Exception):
    """A config that `from_hf` refuses, or with which transformers cannot run."""


def layers(config: Any, plain: Any, positions: Any = None, make: Any = None) -> tuple[list[Layer], Seen]:
    """The attentions of a text with itself, in order, with queries and keys before rotation from a `plain` model.

    At the first token a plain rotation does nothing, but some rope types multiply by a factor. `UNROTATED` takes
    the model itself without its rotation, for code that also moves features.
    """
    model = build(config, make)
    seen = run(model, positions)
    if plain is UNROTATED:
        before = run(model, turned=False).attentions
    else:
        before = run(build(plain, make)).attentions if plain is not None else seen.attentions
    if len(before) != len(seen.attentions):
        raise Differs("the number of attentions depends on the rope type")
    tables = [p.detach().numpy() for name, p in model.named_parameters() if "relative_attention_bias" in name]
    cap = getattr(config.get_text_config(), "attn_logit_softcapping", None)
    found = []
    for a, b, chunk in zip(seen.attentions, before, _chunks(config, len(before)), strict=True):
        length = a.logits.shape[-2]
        if a.logits.shape[-1] not in (length, length + 1):
            continue  # of a decoder with its encoder
        found.append(dataclasses.replace(_layer(a, b, cap, tables), positions=positions, chunk=chunk))
    return found, seen


def _chunks(config: Any, depth: int) -> list[int | None]:
    """The size of the chunks of each layer, whose tokens see no others."""
    text = config.get_text_config()
    kinds = getattr(text, "layer_types", None) or []
    if CHUNKED not in kinds:
        return [None] * depth
    return [text.attention_chunk_size if kind == CHUNKED else None for kind in kinds]


def beside(kind: str, config: dict[str, Any], facts: Facts) -> Any:
    """What gives queries and keys before rotation, for `layers`; None where the first token of the model does."""
    if facts.joined is not None:
        return UNROTATED
    return config_of(kind, reasons.plain(config, facts)) if reasons.scaled(config, facts) else None


def _layer(a: Attention, plain: Attention, cap: float | None, tables: list[np.ndarray]) -> Any:
    length = a.logits.shape[-2]
    logits = a.logits[..., :length]
    if a.q is None or plain.q is None:
        raise Differs("no product of queries and keys was recorded for its scores")
    q, k = plain.q[:, 0], plain.k[:, 0]
    groups = a.q.shape[0] // a.k.shape[0]
    product = np.einsum("hqd,hkd->hqk", a.q, np.repeat(a.k, groups, 0))
    linear = cap * np.arctanh(np.clip(logits / cap, -0.999999, 0.999999)) if cap else logits
    scale = _slope(product, linear, logits > HIDDEN)
    seen = logits > HIDDEN
    causal = not np.triu(seen.any(0), 1).any()
    return Layer(q, k, scale, cap, causal, softmax(logits), tables or None)


def _slope(x: np.ndarray, y: np.ndarray, seen: np.ndarray) -> float:
    """How much y grows with x among the pairs that are seen; each row of y may have a number added."""
    x, y = (
        np.where(seen, a, 0) - np.where(seen, a, 0).sum(-1, keepdims=True) / seen.sum(-1, keepdims=True) for a in (x, y)
    )
    square = (np.where(seen, x, 0) ** 2).sum()
    return float(f"{(np.where(seen, x * y, 0)).sum() / square:.6g}") if square > 1e-3 else 1.0


def _check_input(kind: str, config: dict[str, Any], seen: Seen, scheme: Any) -> np.ndarray | None:
    """What is added to the input; of learned tables only the row at which they begin is compared."""
    facts = facts_of.types().get(kind)
    if facts is None or not posenc.acts_on_input(scheme):
        return None
    first = config.get("pad_token_id", 1) + 1 if facts.row == "padding" else facts.row
    if not seen.tables or any(table["first"] != first for table in seen.tables):
        raise Differs(f"its tables are read from the rows {[t['first'] for t in seen.tables]}, not {first}")
    if not all(table["added"] for table in seen.tables):
        raise Differs("its rows are not added to the input")
    if isinstance(scheme, Learned):
        return None
    worst = max(input_difference(scheme, table["rows"]) for table in seen.tables)
    if worst > TOLERANCE:
        raise Differs(f"what it adds to the input differs by {worst:.2g}")
    return seen.tables[0]["rows"]


def one(kind: str) -> tuple[dict[str, Any], list[store.Case]]:
    """The line of one model type in the table, and its recorded cases."""
    if kind in reasons.NOTES:
        return {"refused": reasons.NOTES[kind]}, []
    default = CONFIG_MAPPING[kind]().to_dict()
    types = facts_of.types()
    text = (default.get("text_config") or {}).get("model_type")
    facts = types.get(kind) or types.get(text)
    if facts is None:
        return {"refused": reasons.of(default, arguments(CONFIG_MAPPING[kind]))}, []
    try:
        return whole(kind, default, text, facts)
    except Exception:
        if kind in types:
            raise
        return part(kind, default, text, facts)


def part(kind: str, default: dict[str, Any], text: str, facts: Facts) -> tuple[dict[str, Any], list[store.Case]]:
    """The same of a model that does not run on a text alone: the part of it that reads a text, made tiny, is run."""
    config = {"model_type": text} | shrink(default["text_config"]) | reasons.SETTINGS.get(text, {})
    config |= {"model_type": text}
    scheme = from_hf(config)
    plain = beside(text, config, facts)
    found, _ = layers(config_of(text, config), plain, make=text_maker(config_of(kind, reasons.WHOLE.get(kind, {}))))
    worst, kept = judge(scheme, found)
    if worst > TOLERANCE:
        raise Differs(f"the weights of its text part differ by {worst:.2g}")
    line = text_of(kind, text) | {"difference": float(f"{worst:.1g}"), "configs": 1} | released(kind, default, text)
    return line, [store.Case(kind, "text part", {"model_type": kind, "text_config": config}, spec(scheme), kept)]


def text_of(kind: str, text: str | None) -> dict[str, Any]:
    """The usual type of a model's text part, and whether its code takes any other that a config names."""
    any_text = CONFIG_MAPPING[kind].sub_configs.get("text_config") is AutoConfig
    return {"text": text} | ({"any_text": True} if any_text else {})


def whole(
    kind: str, default: dict[str, Any], text: str | None, facts: Facts
) -> tuple[dict[str, Any], list[store.Case]]:
    """The same of a model that runs on a text."""
    types = facts_of.types()
    cases, worst, refused = [], 0.0, {}
    for name, config in configs(kind, default, text, facts):
        try:
            largest, case = compare(kind, name, config, text, facts)
        except Refused as error:
            refused[name] = str(error)
            continue
        if largest > TOLERANCE:
            raise Differs(f"config {name!r}: its weights differ by {largest:.2g}")
        worst = max(worst, largest)
        cases.append(case)
    if not cases:
        raise Differs(f"its default is refused: {next(iter(refused.values()))}")
    if refused:
        print("   ", kind, {name: why[:100] for name, why in refused.items()})
    line = {} if kind in types else text_of(kind, text)
    line |= {"difference": float(f"{worst:.1g}"), "configs": len(cases)}
    return line | released(kind, default, None if kind in types else text), cases


def released(kind: str, default: dict[str, Any], text: str | None) -> dict[str, str]:
    """Why `from_hf` refuses a config of the size and the settings of released ones; nothing where it reads it."""
    config = json.loads(json.dumps(default, default=str)) | reasons.RELEASED.get(kind, {})
    if text in reasons.RELEASED:
        config["text_config"] |= reasons.RELEASED[text]
    try:
        from_hf(config, like=text or kind)
    except ValueError as error:
        return {"released": str(error).removesuffix(".")}
    return {}


def configs(kind: str, default: dict[str, Any], text: str | None, facts: Facts) -> Iterator[tuple[str, dict[str, Any]]]:
    """The configs of a type that are compared; of a type that is read by its text part the default alone."""
    sizes = {"model_type": kind} | shrink(default) | reasons.SETTINGS.get(kind, {})
    if text:
        sizes["text_config"] |= reasons.SETTINGS.get(text, {})
    written = json.loads(json.dumps(config_of(kind, sizes).to_diff_dict()))
    if kind not in facts_of.types():
        yield "written", written
        return
    yield from variants(sizes, written, facts)
    for name, config in reasons.MORE.get(kind, {}).items():
        yield name, sizes | config


def compare(kind: str, name: str, config: dict[str, Any], text: str | None, facts: Facts) -> tuple[float, store.Case]:
    """The largest difference of one config, and what is stored of it; `Refused` where from_hf or transformers does."""
    try:
        known = kind in facts_of.types()
        scheme = from_hf(config.get("text_config") or config, like=kind if known else text)
    except ValueError as error:
        raise Refused(str(error)) from error
    try:
        plain = beside(kind, config, facts)
        with contextlib.redirect_stderr(io.StringIO()):
            found, seen = layers(config_of(kind, config), plain, AXES if name == THREE_AXES else None)
    except Differs:
        raise
    except Exception as error:
        if name in ("written", "sizes"):
            raise
        raise Refused(f"transformers: {type(error).__name__}") from error
    largest, kept = judge(scheme, found)
    return largest, store.Case(kind, name, config, spec(scheme), kept, _check_input(kind, config, seen, scheme))


def judge(scheme: Any, found: list[Layer], done: dict[Any, Any] | None = None) -> tuple[float, list[Layer]]:
    """The largest difference of any layer, and the layers, each with the table of buckets that is its own.

    `done` keeps the differences of layers that come again.
    """
    done = {} if done is None else done
    if not found:
        raise Differs("no attention of all tokens with all tokens was seen")
    worst, kept = 0.0, []
    for n, layer in enumerate(found):
        here = layer_of(scheme, n)
        of_buckets = any(isinstance(s, T5) for s in parts(here.scheme))
        tables = (layer.table or []) if of_buckets else [None]
        if not tables:
            raise Differs("its model has no table of buckets")
        key = here, layer.q.tobytes(), layer.k.tobytes(), layer.weights.tobytes(), layer.scale
        if key not in done:
            done[key] = min((difference(here, dataclasses.replace(layer, table=t)), m) for m, t in enumerate(tables))
        worst = max(worst, done[key][0])
        kept.append(dataclasses.replace(layer, table=tables[done[key][1]]))
    return worst, kept


def alarm(*_: Any) -> None:
    raise TimeoutError(f"it took more than {SECONDS} s")


def main() -> None:
    """Record the model types named, or all of them and write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("types", nargs="*", help="model types to compare, without writing anything; all if left out")
    parser.add_argument("--write", action="store_true", help="write the lines of the named types, and keep all others")
    named, write = (lambda given: (given.types, given.write or not given.types))(parser.parse_args())
    if transformers.__version__ != VERSION:
        sys.exit(f"This records transformers {VERSION}; {transformers.__version__} is installed.")
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    signal.signal(signal.SIGALRM, alarm)
    table, cases = {}, []
    for kind in named or CONFIG_MAPPING_NAMES:
        signal.alarm(SECONDS)
        try:
            table[kind], new = one(kind)
            cases += new
        except Exception as error:  # noqa: BLE001  each type is judged on its own; its line says why it is refused
            table[kind] = {"refused": reasons.failed(kind, error)}
            if kind in facts_of.types():
                print("FAILED", kind, type(error).__name__, str(error)[:300], flush=True)
        finally:
            signal.alarm(0)
        if named:
            print(kind, table[kind], flush=True)
    if write:
        if named:
            table = json.loads(TABLE.read_text(encoding="utf-8")) | table
            cases = [case for case in store.read() if case.type not in named] + cases
        cases.sort(key=lambda case: case.type)
        source = f"transformers {VERSION}, torch {torch.__version__.partition('+')[0]}"
        source = "; ".join(sorted({source, *store.source().split("; ")})) if named else source
        TABLE.write_text(_lines(table), encoding="utf-8")
        store.write(cases, source)
    agreed = [line for line in table.values() if "difference" in line]
    print(
        f"{len(agreed)} of {len(table)} agree; largest difference {max((a['difference'] for a in agreed), default=0)}"
    )


def _lines(table: dict[str, Any]) -> str:
    """One line for each model type."""
    return (
        "{\n" + ",\n".join(f"{json.dumps(kind)}: {json.dumps(line)}" for kind, line in sorted(table.items())) + "\n}\n"
    )


if __name__ == "__main__":
    main()
