"""Attention patterns of a trained model: the weight of each head on each token, averaged over test sequences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
from einops import rearrange

from posenc.core.parameters import join
from posenc.lab.explain.induced import View, weights
from posenc.lab.models.interface import inputs
from posenc.lab.models.layers import attention_arguments
from posenc.lab.models.transformer import Transformer
from posenc.lab.reuse.kept import kept_trial, restored
from posenc.lab.run import plan
from posenc.lab.store.schema import PlannedTrial
from posenc.lab.tasks.measure import evaluation_key
from posenc.lab.train.training import ResolvedRun, stages

ROWS = 32


def trained(run: str, text: str, size: int) -> list[View]:
    """One view per layer and head, of the first trial of that scheme whose parameters were kept (`kept_trial`)."""
    folder, line = kept_trial(run, text)
    _, layers = of_trial(run, folder, line, size)
    return [
        View(f"layer {layer + 1}, head {head + 1}: mean weight on {line.task}", a)
        for layer, heads in enumerate(layers)
        for head, a in enumerate(heads)
    ]


def of_trial(run: str, folder: Path, line: PlannedTrial, size: int) -> tuple[ResolvedRun, list[np.ndarray]]:
    """The run of a kept trial, and the weights of its model on test sequences of a size, as `patterns` gives them."""
    resolved = stages(plan.planned_run(line.run), line.steps)[-1][0]
    if not resolved.shape.model.goes_on:
        raise ValueError(
            f"{run!r} trained {resolved.run.model!r}; attention patterns need the model 'encoder' or 'decoder'."
        )
    batch = resolved.task.sample(evaluation_key(resolved.task, size), size, batch=ROWS, n_max=size)
    return resolved, patterns(restored(resolved, folder, line.id), resolved, batch)


def patterns(model: Transformer, resolved: ResolvedRun, batch: Any) -> list[np.ndarray]:
    """Per layer the weights of every head, `[H, T, T]`, the mean over the batch."""
    key, entered = jax.random.key(0), inputs(batch)
    x, layer_weights = model.enter(entered, key), []
    for n in range(resolved.shape.depth):
        turn, which = divmod(n, len(model.layers))
        block = jax.tree.map(lambda a, turn=turn: a[turn], model.blocks[which])
        shared, arguments = model.shared(which), attention_arguments(model.layers[which], n, entered, key)
        layer_weights.append(np.asarray(_weights(block.attention, block.before(x, 0), shared, arguments)))
        x = block(x, **arguments, tied=shared)
    return layer_weights


def _weights(attention: Any, x: Any, shared: Any, arguments: dict[str, Any]) -> Any:
    dims = attention.dims
    q = rearrange(x @ attention.query.get_value().astype(x.dtype), "b l (h d) -> b l h d", h=dims.heads)
    k, _ = rearrange(x @ attention.key_value.get_value().astype(x.dtype), "b l (n g d) -> n b l g d", n=2, d=dims.head)
    params = join(shared, attention.position.get_value())
    mask = "causal" if dims.causal else "full"
    return weights(attention.scheme, params, q, k, x=x, mask=mask, **arguments).mean(0)
