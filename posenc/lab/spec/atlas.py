"""The atlas: the tasks on which every scheme is trained, and the rows that stand for the registry. No jax.

A row is a scheme as it is trained here, a probe a task with its trained sizes; a model is a decoder or an encoder.
`experiments/atlas.py` trains decoders, `experiments/atlas_encoders.py` encoders, `experiments/atlas_recall.py` the task
that takes longest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from posenc.lab.spec.run import WITH, Plan, Run
from posenc.language import grammar
from posenc.language.modules import declarations

LENGTH = 16
MODELS = ("decoder", "encoder")
EXPERIMENTS = ("atlas", "atlas_encoders", "atlas_recall")
PLAN = Plan(steps=2000, seeds=(0, 1), lr=(1e-3, 3e-3), rows=512)


class Probe(NamedTuple):
    """A task with the sizes trained on."""

    title: str
    task: str
    shortest: int
    length: int = LENGTH
    models: tuple[str, ...] = MODELS
    steps: int = PLAN.steps
    metric: str = "last"
    """Metric of how far a scheme extrapolates: the last answer, or for a text or keys in any order the share of
    answers."""
    in_encoders: str = "last"
    """Metric in encoders. The last token has no tokens behind it, so that it needs no sense of direction. If each token
    is answered, all at untrained positions count, and within L all."""

    def metric_in(self, model: str) -> str:
        """Return the metric of how far a scheme extrapolates in a model."""
        return self.in_encoders if model == "encoder" else self.metric


PROBES = {
    "offset": Probe("token three positions back", "token_k_back(k=3)", 4, in_encoders="beyond"),
    "pointer": Probe("token up to four positions back", "pointer_back(reach=4)", 8),
    "distance": Probe("distance of two marks", "distance(reach=8)", 9),
    "index": Probe("which of the first 8 positions", "index_of_token(indices=8)", 8),
    "look-up": Probe("token at an index below four", "token_at_index(indices=4)", 8),
    "order": Probe("order of two marks", "before", 4, models=("encoder",)),
    "count": Probe("how many there are", "count_symbol", 8),
    "memory": Probe("the bit last written", "flip_flop", 8, 32, ("decoder",)),
    "recall": Probe("values by their keys", "mqar(symbols=64, power=1.0)", 32, 32, ("decoder",), 4000, "accuracy"),
    "copy": Probe("copy", "copy(symbols=16)", 2, 8, ("decoder",), metric="accuracy"),
    "reverse": Probe("copy backwards", "reverse(symbols=16)", 2, 8, ("decoder",), metric="accuracy"),
    "parity": Probe("parity", "parity_check", 1, 8),
}
"""Task by its name, those of distance first. Decoders have the order of two marks by their mask, whatever the scheme.
Encoders cannot go on with a text. Memory and recall, the dearest, are asked of decoders alone."""

NAPE = "alibi(slopes=(1.0, 0.5, 0.0, 0.0))"
"""ALiBi on half of the heads, as Vasylenko et al. (2025) mix it with none."""
CONSTANTS = {
    "alibi": "alibi(factor=64.0)",
    "t5": "t5(buckets=16, reach=16)",
    "deberta": "deberta(reach=16)",
    "convit": "convit(axes=1)",
    "liere": "liere(axes=1)",
    "dape": "kerple + dape",
    "dape_v2": "kerple + dape_v2",
    "ssmax": "ssmax + rope",
    "key_offset": "key_offset + rope(fraction=0.5)",
    "kv_shift": "kv_shift + rope",
    "rope_2d": "rope_2d @ grid",
    "scale_invariant": "rope(p=0.5) + scale_invariant",
    "dual_triangle": "rope(layout='interleaved') + dual_triangle",
    "asentmax": f"asentmax + entmax + {NAPE}",
}
"""Scheme to what is trained for it where that is not its default. A reach in tokens is the length trained on, since
farther buckets are never trained. Slopes fall over 16 tokens by what the published ones do over 1,024. Schemes of the
plane take a line, or a text as lines of eight tokens, and additions are added to what their papers add them to."""
BESIDE = ("alibi", "rope(base=10.0)", "rope @ random_sorted(limit=128)", NAPE)
"""More rows: published slopes, a base near the length, random positions of RoPE, and slopes for half of the heads."""
ENCODERS = ("alibi(form='half', factor=64.0)", "alibi(form='split', factor=64.0)")
"""More rows of encoders: penalties that tell left from right."""
RECURRENT = ("lstm", "gru")
"""Models without attention, which have rows as decoders."""
AFTER_TRAINING = {
    **{name: name for name in "pi ntk by_parts yarn longrope dynamic_ntk rerope".split()},
    "llama3": "llama3(factor=4.0, base=10000.0)",
    "self_extend": "self_extend(group=7)",
    "log_n": "log_n + rope",
    "llama4": "llama4(floor=16) + rope",
}
"""Scheme to the text under which RoPE's trained parameters are evaluated, for a context four times as long. Schemes
that stretch all positions, such as `pi`, are not RoPE within the trained length either."""
EQUAL = {"mrope": "rope", "abacus": "learned"}
"""Scheme to the row that it equals on a line of text: M-RoPE at the base of that row, Abacus at the index."""
IN_THE_PLANE = ("relative_2d", "rope_axes", "sinusoidal_2d")
"""Schemes without a row, since a line of text has no second coordinate."""

OF_AREAS = ("key_weight",)
"""Schemes without a row, since the tokens of a text have no areas and stand for no others."""

WITHOUT = frozenset({*AFTER_TRAINING, *EQUAL, *IN_THE_PLANE, *OF_AREAS})
"""Schemes that are not trained."""


def rows(model: str) -> tuple[str, ...]:
    """The schemes that are trained in a model, as texts; a new scheme of the registry is one of them."""
    names = [name for name in declarations("schemes") if name not in WITHOUT]
    texts = (*(CONSTANTS.get(name, name) for name in names), *BESIDE, *ENCODERS)
    return tuple(text for text in texts if has_row(text, model))


def has_row(text: str, model: str) -> bool:
    """Tell whether a row is one of a model: some are not defined in encoders, and some are of encoders alone."""
    if model == "decoder":
        return text not in ENCODERS
    return text not in RECURRENT and not causal_only(text)


def row_of(text: str) -> str:
    """The row of a scheme: itself where it has one, of "t5" the one with the atlas's constants, of "mrope" RoPE's."""
    if text in AFTER_TRAINING:
        return f"{AFTER_TRAINING[text]}{WITH}rope"
    return text if text in BESIDE else CONSTANTS.get(text, EQUAL.get(text, text))


def causal_only(text: str) -> bool:
    """Tell whether a scheme of the registry declares, whatever its settings, that it does not serve an encoder."""
    limits = (declarations("schemes")[name].get("limits", "") for name in names_in(text))
    return any("'bidirectional': " in source and "self.bidirectional" not in source for source in limits)


def probes(steps: int = PLAN.steps) -> tuple[str, ...]:
    """Return the probes that train for this number of steps."""
    return tuple(name for name, probe in PROBES.items() if probe.steps == steps)


def experiment(model: str, probe: str) -> str:
    """The experiment that trains a probe in a model."""
    decoders, encoders, recall = EXPERIMENTS
    return encoders if model == "encoder" else decoders if PROBES[probe].steps == PLAN.steps else recall


def titles(model: str, steps: int = PLAN.steps) -> dict[str, str]:
    """Return task to its title, for the probes of a model that train for this number of steps."""
    of_model = (PROBES[name] for name in probes(steps) if model in PROBES[name].models)
    return {probe.task: probe.title for probe in of_model}


def runs(schemes: Iterable[str], model: str, probes: Iterable[str] = PROBES) -> Iterator[Run]:
    """The runs of these schemes in a model, probe after probe, so that a probe is whole before the next begins."""
    schemes = tuple(schemes)
    for probe in (PROBES[name] for name in probes):
        if model in probe.models:
            sizes = {"length": probe.length, "shortest": probe.shortest, "buckets": 1}
            for text in schemes:
                own = {"scheme": text, "model": model, "hidden": 128}
                if text in RECURRENT:
                    own = {"scheme": "nope", "model": text}
                yield Run(task=probe.task, width=64, depth=2, heads=4, batch=32, **own, **sizes)


def every_run(model: str, steps: int = PLAN.steps) -> list[Run]:
    """Return the runs of every row in a model, on the probes that train for this number of steps."""
    return list(runs((*rows(model), *(RECURRENT if model == "decoder" else ())), model, probes(steps)))


def names_in(text: str) -> Iterator[str]:
    """The schemes that a text adds, without their coordinates."""
    for part in grammar.addends(grammar.read(text)):
        called = part.what if isinstance(part, grammar.Located) else part
        if isinstance(called, grammar.Call):
            yield called.name
