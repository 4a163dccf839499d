"""Generation: a model's text after a prompt, with the likeliest next token at each position, or a drawn one.

If the end of an answer is scored, the free-running exact match equals that of one pass under the true answer, since the
first error breaks both. `exact` shows the two side by side. Token accuracy differs: after an error a model that runs
free reads its own text. Positions that depend on the length of the whole text, such as random ones, use that of the
true answer. Schemes with the limit "reencoded" change earlier tokens as the text grows. There even the exact matches
may differ.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from posenc.lab.models.interface import Inputs, inputs
from posenc.lab.tasks import Batch, Layout, Task
from posenc.lab.tasks.measure import evaluation_key, measure, positions_key, score, tally

METRICS = ("exact", "token")
WAYS = ("teacher_forced", "free_running")


class Dice(NamedTuple):
    """How tokens are drawn."""

    key: PRNGKeyArray
    """That of the first place; each further one has its own."""
    temperature: Float[Array, ""]
    """Divisor of logits: below 1 likely tokens become likelier."""


def greedy(
    model: Any, inputs: Inputs, prompt: Bool[Array, "B T"], key: PRNGKeyArray, *, end: int | None = None, first: int = 1
) -> Int[Array, "B T"]:
    """The likeliest next token at every place, the text after each prompt being the model's own.

    `inputs.tokens` have room for what is written and `inputs.valid` says where text may stand. The first `first` tokens
    of all prompts are read at once, each further one by itself, until every text has said `end` or is full: places
    after that, and those whose logits are NaN, say -1. One program, whatever the prompts' lengths. Raises `ValueError`
    for a model that cannot go on token by token, and for prompts that are shorter than `first`.
    """
    _check(model, prompt, first)
    return _greedy(model, inputs, prompt, key, end=end, first=first)


def sample_text(
    model: Any, inputs: Inputs, prompt: Bool[Array, "B T"], key: PRNGKeyArray, dice: Dice, *, end: int | None = None
) -> Int[Array, "B T"]:
    """Generate as `greedy` does, with a next token that is drawn at every position; one program for all
    temperatures."""
    _check(model, prompt, 1)
    return _greedy(model, inputs, prompt, key, dice, end=end, first=1)


def _check(model: Any, prompt: Bool[Array, "B T"], first: int) -> None:
    if not hasattr(model, "proceed"):
        name = getattr(getattr(getattr(model, "shape", None), "model", None), "name", type(model).__name__)
        raise ValueError(f"{name!r} cannot go on token by token; take decoder or encoder_decoder.")
    if not isinstance(prompt, Tracer):
        many, length = np.asarray(prompt).sum(1), prompt.shape[1]
        if not (np.asarray(prompt) == (np.arange(length)[None, :] < many[:, None])).all() or not many.all():
            raise ValueError("A prompt is the beginning of a text, of one token at least, and has no holes.")
        if not 1 <= first <= many.min():
            raise ValueError(f"first is {first}, but the shortest prompt has {many.min()} tokens; take 1 to as many.")


@functools.partial(jax.jit, static_argnames=("end", "first"))
def _greedy(
    model: Any, inputs: Inputs, prompt: Array, key: Any, dice: Dice | None = None, *, end: int | None, first: int
) -> Array:
    jax.eval_shape(lambda: model(inputs, key))  # what a full pass refuses is refused here too
    length = prompt.shape[1]
    tokens, room = jnp.where(prompt, inputs.tokens, 0), inputs.valid.sum(1)
    scored = ~jnp.pad(prompt[:, 1:], ((0, 0), (0, 1)))  # from the last token of the prompt on

    def step(t, new, tokens, written, carry):
        logits, carry = model.proceed(carry, inputs._replace(tokens=tokens), key, t, new)
        following = _best(logits) if dice is None else _draw(dice, logits, t)
        return jax.lax.dynamic_update_slice_in_dim(written, following, t, 1), carry

    def go(state):
        t, tokens, written, carry = state
        before = jnp.maximum(written[:, t - 1], 0)
        tokens = tokens.at[:, t].set(jnp.where(prompt[:, t], tokens[:, t], before))
        return t + 1, tokens, *step(t, 1, tokens, written, carry)

    def on(state):
        t, _, written, _ = state
        ended = t >= room
        return (t < length) & ~(ended if end is None else ended | ((written == end) & scored).any(1)).all()

    written = jnp.full(prompt.shape, -1, jnp.int32)
    written, carry = step(0, first, tokens, written, model.begin(inputs, key, first))
    return jax.lax.while_loop(on, go, (jnp.int32(first), tokens, written, carry))[2]


def _best(logits: Float[Array, "B new C"]) -> Int[Array, "B new"]:
    return jnp.where(jnp.isnan(logits).any(-1), -1, jnp.argmax(logits, -1)).astype(jnp.int32)


def _draw(dice: Dice, logits: Float[Array, "B new C"], t: Int[Array, ""] | int) -> Int[Array, "B new"]:
    """A class drawn at each place, by the key of place t. The likeliest is at 0, so that no temperature makes it
    infinite or NaN."""
    below = logits.astype(jnp.float32) - logits.astype(jnp.float32).max(-1, keepdims=True)
    hot = below / jnp.maximum(dice.temperature, jnp.finfo(jnp.float32).tiny)
    classes = jax.random.categorical(jax.random.fold_in(dice.key, t), hot)
    return jnp.where(jnp.isnan(logits).any(-1), -1, classes).astype(jnp.int32)


def free_running(
    model: Any, task: Task, batch: Batch, key: PRNGKeyArray, *, first: int = 1
) -> dict[str, Int[Array, ""]]:
    """The sums of `posenc.lab.tasks.measure` where the model wrote the answers by itself."""
    if task.layout not in (Layout.LM, Layout.SEQ2SEQ):
        raise ValueError(f"{task.name!r} is answered in one pass, so nothing is written; take a task with a prompt.")
    written = greedy(model, inputs(batch), batch.prompt, key, end=task.special("EOS"), first=first)
    return tally((written == batch.targets) & batch.score, batch)


def exact(
    model: Any, task: Task, sizes: Sequence[int], *, rows: int = 256, seed: int = 0
) -> dict[int, dict[str, dict[str, float]]]:
    """Exact match and token accuracy at each size, teacher-forced and free-running, on the examples of evaluation.

    Both ways meet one draw of random positions. One program of each serves all sizes.
    """
    n_max = max(sizes)
    sample = jax.jit(functools.partial(task.sample, batch=rows, n_max=n_max))
    batches = {n: sample(evaluation_key(task, n), jnp.int32(n)) for n in sizes}
    first = min(int(batch.prompt.sum(1).min()) for batch in batches.values())
    forced = jax.jit(lambda model, batch, key: measure(model(inputs(batch), key), batch))
    scores = {}
    for n, batch in batches.items():
        key = positions_key(seed, "evaluation", n)
        sums = forced(model, batch, key), free_running(model, task, batch, key, first=first)
        scores[n] = {m: {way: score(s, m) for way, s in zip(WAYS, sums, strict=True)} for m in METRICS}
    return scores
