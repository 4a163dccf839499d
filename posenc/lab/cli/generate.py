"""`posenc generate`: what a kept model writes after a prompt, beside the text that truly follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import arg

from posenc.lab.cli.options import First, Flag, Text
from posenc.lab.cli.output import say, say_json
from posenc.lab.spec.modules import load_named

if TYPE_CHECKING:
    from posenc.lab.reuse.continuing import Passage, Writing


@dataclass(frozen=True)
class Generate:
    """Let a trained model go on with a prompt, token by token through a cache, and print what truly follows beside it.

    posenc generate mine --prompt "The first " --tokens 200 --temperature 0.8

    The run must have kept its parameters (`posenc sweep --keep`), of a task that goes on with a text: text, or one with
    a prompt and an answer. Beside each text stands the loss that the model gives it, in bits.
    """

    run: First
    """A run's name, or its folder."""
    prompt: Text = None
    """Beginning to go on with: text, or for other tasks symbols as `posenc describe TASK` writes them, with spaces
    between. Default: the beginning of a test row."""
    tokens: int = 200
    """How many tokens are written at most."""
    temperature: float = 1.0
    """Logits are divided by it before a token is drawn. Below 1 likely tokens become likelier, and at 0 the likeliest
    is taken."""
    key: int = 0
    """The number from which tokens are drawn: the same one draws the same text."""
    scheme: Annotated[str | None, arg(metavar="SCHEME", help_behavior_hint="")] = None
    """A scheme of the run. Default: the first of those that kept parameters."""
    json: Flag = False
    """Print JSON."""

    def __call__(self) -> int:
        load_named([self.scheme])
        from posenc.lab.reuse.continuing import go_on

        text = go_on(self.run, self.scheme, self.prompt, self.tokens, self.temperature, self.key)
        if self.json:
            say_json(self._as_json(text))
        else:
            say("\n".join(self._lines(text)))
        return 0

    def _lines(self, text: Writing) -> list[str]:
        knobs, task = text.line.knobs, text.task
        way = f"temperature {self.temperature:g}, key {self.key}" if self.temperature else "the likeliest tokens"
        lines = [f"{text.line.label} on {text.line.task}, seed {knobs.seed}, lr {knobs.lr:g}; {way}", ""]
        lines += [f"Prompt ({len(text.prompt)} tokens):", task.text_of(text.prompt), ""]
        lines += self._part("The model goes on", text, text.written)
        if text.true is None:
            return [*lines, "The test part does not have this prompt, so nothing truly follows it."]
        return [*lines, *self._part("What truly follows", text, text.true)]

    def _part(self, head: str, text: Writing, part: Passage) -> list[str]:
        length = f"{len(part.tokens)} tokens, {part.bits:.2f} bits each by this model"
        return [f"{head} ({length}):", text.task.text_of(part.tokens), ""]

    def _as_json(self, text: Writing) -> dict[str, Any]:
        def part(part: Passage) -> dict[str, Any]:
            return {"text": text.task.text_of(part.tokens), "tokens": part.tokens, "bits": round(part.bits, 6)}

        facts = {"scheme": text.line.label, "task": text.line.task, "trial": text.line.id}
        prompt = {"text": text.task.text_of(text.prompt), "tokens": text.prompt}
        true = None if text.true is None else part(text.true)
        return {**facts, "prompt": prompt, "written": part(text.written), "true": true}
