"""Continuations of a prompt by a kept model, and the model's loss on the true one.

The model reads its own text token by token through a cache, in one program whatever the prompt and the temperature. The
loss of a continuation is its cross-entropy under the model, given prompt and continuation so far. For the model's own
text it shows how sure the model was, for the true text how well it predicts.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from posenc.lab.models.interface import Inputs
from posenc.lab.reuse.kept import kept_trial, restored
from posenc.lab.run import plan
from posenc.lab.store.schema import PlannedTrial
from posenc.lab.tasks import Layout, Task
from posenc.lab.tasks.measure import evaluation_key, positions_key
from posenc.lab.train import generate
from posenc.lab.train.training import ResolvedRun, stages

ROOM = 64
"""Texts have room for a multiple of this number of tokens, so that prompts of many lengths share a program."""
MOST = 2**14
"""The most tokens that are written."""
SHOWN = 32
"""The number of tokens of a test row that are the prompt if none is typed."""


class Passage(NamedTuple):
    """A continuation, by the model or the true one, with its loss."""

    tokens: list[int]
    loss: float
    """Nats per token."""

    @property
    def bits(self) -> float:
        return self.loss / math.log(2)


class Writing(NamedTuple):
    """A prompt and what follows it."""

    line: PlannedTrial
    task: Task
    prompt: list[int]
    written: Passage
    true: Passage | None
    """As many tokens of the true text, where the task knows it."""


def go_on(run: str, scheme: str | None, prompt: str | None, many: int, temperature: float, key: int) -> Writing:
    """Return what the model of a kept trial writes after a prompt, or after the beginning of a test row.

    At the temperature 0 each token is the likeliest. Raises `ValueError` for models and tasks that write no text, for
    prompts of other symbols, and for numbers without a meaning.
    """
    _check_numbers(many, temperature, key)
    folder, line = kept_trial(run, scheme)
    resolved = stages(plan.planned_run(line.run), line.steps)[-1][0]
    task, model = resolved.task, restored(resolved, folder, line.id)
    _check_writer(run, resolved, model)
    read = _first_row(task) if prompt is None else _read(task, prompt)
    room = _room(task, model, line.label, read, many)
    context, is_prompt = _inputs(task, read, room, len(read) + many)
    places, end = positions_key(line.knobs.seed, "evaluation", 0), _end(task)
    if temperature:
        dice = generate.Dice(jax.random.key(key), jnp.float32(temperature))
        output = generate.sample_text(model, context, is_prompt, places, dice, end=end)
    else:
        output = generate.greedy(model, context, is_prompt, places, end=end)
    tokens = _until(end, np.asarray(output)[0, len(read) - 1 : len(read) - 1 + many].tolist())
    if not tokens:
        raise ValueError(f"The model of {line.label!r} has no numbers after this prompt: its logits are not finite.")
    passage = lambda text: Passage(text, _loss(model, task, read, text, room, places))  # noqa: E731
    truth = _truth(task, read, many)
    return Writing(line, task, read, passage(tokens), passage(truth) if truth else None)


def _room(task: Task, model: Any, label: str, prompt: list[int], many: int) -> int:
    """Return the tokens of a text with room for a prompt and the continuation. It is a multiple of `ROOM`, or the most
    that the model serves. Raises `ValueError` for more tokens than it serves."""

    def refused(length: int) -> str:
        try:
            jax.eval_shape(lambda: model(_inputs(task, prompt, length, length)[0], jax.random.key(0)))
        except ValueError as error:
            return str(error)
        return ""

    total = len(prompt) + many
    if not refused(room := -(-total // ROOM) * ROOM):
        return room
    if not (why := refused(total)):
        return total
    if alone := refused(len(prompt) + 1):
        raise ValueError(f"{label!r} serves no token after a prompt of {len(prompt)}: {alone}")
    served, beyond = len(prompt) + 1, total
    while beyond - served > 1:
        middle = (served + beyond) // 2
        served, beyond = (served, middle) if refused(middle) else (middle, beyond)
    most = served - len(prompt)
    raise ValueError(f"--tokens is {many}; after a prompt of {len(prompt)} give --tokens at most {most}, since {why}")


def _check_numbers(many: int, temperature: float, key: int) -> None:
    if not 1 <= many <= MOST:
        raise ValueError(f"--tokens is {many}; take 1 to {MOST}.")
    if not 0 <= temperature < math.inf:
        raise ValueError(f"--temperature is {temperature}; take 0, at which each token is the likeliest, or more.")
    if not 0 <= key < 2**32:
        raise ValueError(f"--key is {key}; take 0 to {2**32 - 1}.")


def _check_writer(run: str, resolved: ResolvedRun, model: Any) -> None:
    """Refuse a model or a task that goes on with no text, and a scheme that reads more than a typed prompt has."""
    task = resolved.task
    if not (hasattr(model, "proceed") and resolved.shape.dims.causal):
        raise ValueError(f"{run!r} trained {resolved.run.model!r}, which cannot go on token by token; take a decoder.")
    if not task.continues and task.layout is not Layout.LM:
        raise ValueError(f"{task.name!r} writes no text after a prompt; take text, or a task of the layout lm.")
    if more := [name for name in resolved.step.coordinates if name != "separator"]:
        raise ValueError(
            f"{resolved.run.scheme!r} reads the coordinate {more[0]!r}, which a prompt has not; take another scheme of"
            f" {run!r}."
        )


def _end(task: Task) -> int | None:
    """The token after which an answer is complete."""
    return task.special("EOS") if task.layout is Layout.LM else None


def _until(end: int | None, tokens: list[int]) -> list[int]:
    """Tokens up to the end of an answer, itself included, or to the first that is none."""
    kept: list[int] = []
    for token in tokens:
        if token < 0:
            break
        kept.append(token)
        if token == end:
            break
    return kept


def _truth(task: Task, prompt: list[int], most: int) -> list[int] | None:
    """Return the true continuation of a prompt. It is None for a prompt that the task does not make, which its oracle
    need not understand."""
    try:
        return task.continuation(prompt, most)
    except Exception:
        return None


def _first_row(task: Task) -> list[int]:
    """The beginning of a test row, or of a task with answers its prompt."""
    n = task.sizes.below(min(max(SHOWN, task.sizes.smallest), task.sizes.train[1]))
    batch = jax.device_get(task.sample(evaluation_key(task, n), n, batch=1, n_max=n))
    return batch.tokens[0][batch.prompt[0]].tolist()


def _read(task: Task, prompt: str) -> list[int]:
    """The tokens of a typed prompt; those of an answer's prompt with the marks around it, which may be typed too."""
    marked = task.layout is Layout.LM
    tokens = task.tokenise(prompt.strip().removeprefix("BOS").removesuffix("SEP") if marked else prompt)
    if not tokens:
        raise ValueError("--prompt is empty; type what the model is to go on with, or leave it out.")
    return [task.special("BOS"), *tokens, task.special("SEP")] if marked else tokens


def _inputs(task: Task, tokens: list[int], room: int, length: int) -> tuple[Inputs, Bool[Array, "1 room"]]:
    """A prompt as a model reads it, in a text of this length, and where it stands."""
    index = np.arange(room)[None, :]
    padded = np.full((1, room), task.special("PAD"), np.int32)
    padded[0, : len(tokens)] = tokens
    coords = {}
    if task.layout is Layout.LM:
        at = tokens.index(task.special("SEP"))
        coords = {"separator": jnp.asarray(index == at, jnp.int32)}
    return Inputs(jnp.asarray(padded), jnp.asarray(index < length), coords), jnp.asarray(index < len(tokens))


def _loss(model: Any, task: Task, prompt: list[int], text: list[int], room: int, key: Any) -> float:
    """The mean cross-entropy of a continuation, in nats per token."""
    length = len(prompt) + len(text)
    context, _ = _inputs(task, [*prompt, *text], room, length)
    losses = _losses(model, context, key)[0, len(prompt) - 1 : length - 1]
    return float(np.asarray(losses, np.float64).mean())


@jax.jit
def _losses(model: Any, context: Inputs, key: Any) -> Float[Array, "1 room-1"]:
    """The cross-entropy of each token but the first."""
    logits = jax.nn.log_softmax(model(context, key).astype(jnp.float32))
    following: Int[Array, "1 room-1"] = jnp.minimum(context.tokens[:, 1:], logits.shape[-1] - 1)  # padding is not asked
    return -jnp.take_along_axis(logits[:, :-1], following[..., None], -1)[..., 0]
