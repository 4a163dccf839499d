"""Addition of two numbers, in the formats of four papers, and of several numbers.

@inproceedings{cho2024position, title={Position Coupling: Improving Length Generalization of Arithmetic Transformers
  Using Task Structure}, author={Cho, Hanseul and Cha, Jaeyoung and others}, booktitle={NeurIPS}, year={2024},
  eprint={2405.20671}}
@inproceedings{mcleish2024transformers, title={Transformers Can Do Arithmetic with the Right Embeddings},
  author={McLeish, Sean and Bansal, Arpit and others}, booktitle={NeurIPS}, year={2024}, eprint={2405.17399}}
@misc{zhou2024transformers, title={Transformers Can Achieve Length Generalization But Not Robustly},
  author={Zhou, Yongchao and Alon, Uri and others}, year={2024}, eprint={2402.09371}}
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from posenc.lab.tasks import coupling
from posenc.lab.tasks.digits import (
    TEN,
    Other,
    carried,
    check_other,
    counts,
    digit_coordinates,
    largest,
    number,
    spelled,
    ways,
    written,
)
from posenc.lab.tasks.draw import INT, between
from posenc.lab.tasks.layout import prompted
from posenc.lab.tasks.task import Layout, Sizes, Task

PLUS, MARKERS = TEN, TEN + 1
WORDS = "abcdefghij"  # names of the operands in strata


class Format(NamedTuple):
    """How a sum is written, and from which numbers it is drawn."""

    operands: str
    result: str
    padded: str
    hints: int
    zero: bool
    sizes: Sizes


COUPLING = (31, 40, 50, 75, 100, 150, 200)
FORMS = {
    "coupling": Format("plain", "reversed", "both", 0, True, Sizes(1, (1, 30), COUPLING)),
    "abacus": Format("reversed", "reversed", "none", 0, False, Sizes(1, (1, 20), (21, 30, 50, 75, 100, 120, 160))),
    "zhou2024": Format("reversed", "reversed", "operands", 102, True, Sizes(1, (1, 40), (41, 50, 60, 75, 100))),
    "plain": Format("plain", "plain", "none", 0, True, Sizes(1, (1, 30), COUPLING)),
}


class Addition(Task, name="addition"):
    """Add two numbers, written as one of four papers writes them (Cho, McLeish, Zhou et al., 2024).

    The texts of 653 + 49, where SEP is their =:

        coupling   6 5 3 + 0 4 9 SEP 2 0 7 0 EOS                        Cho et al.
        abacus     3 5 6 + 9 4 SEP 2 0 7 EOS                            McLeish et al.
        zhou2024   a 3 b 5 c 6 + a 9 b 4 c 0 SEP a 2 b 0 c 7 EOS        Zhou et al. (from memory: no code is public)
        plain      6 5 3 + 4 9 SEP 7 0 2 EOS

    The answer and EOS are scored. `format` sets the fields below it, and each of them can be overridden: `operands` and
    `result` are "plain", the highest digit first, or "reversed"; `padded` writes leading zeros to the shorter of the
    "operands", or to "both" operands and answer, which is then one digit longer than the operands; `hints` is the
    number of markers: consecutive markers from a random one on precede the digits, the first of them the units; `zero`
    allows 0 as an operand of one digit. Digits are the tokens 0 … 9, then come + and the markers.

    n is the number of digits of the longer operand; that of the other is drawn as in the papers, where all pairs are
    equally likely; both are strata. Over n that law is proportional to 2n - 1, which a run has with
    `uniform="numbers"`; otherwise all n are equally likely. `other` fixes the pair: the first operand has n digits, the
    second as many ("same") or that number.

    Provides "digit" (a digit's place in its number as written, which is its weight where numbers are reversed) and
    "coupled" (digits of equal weight, and their markers, share a number). BOS, EOS and padding have 0, as have the two
    signs in "digit". The papers draw a random shift in training: `given("coupled", shift=…)`. An answer that starts
    with its highest digit and is not padded has no "coupled": the number at SEP would reveal the answer's length, and
    so whether the highest digits carry. The released code of Cho et al. numbers these too, but its settings reverse
    every sum; its BOS and EOS are one token, here two. The released generator of McLeish et al. writes no examples with
    hints; with both its flags for reversing it writes the answer plainly: `addition(format="abacus", result="plain")`.
    """

    layout = Layout.LM
    ability = "arithmetic"
    suites = ("arithmetic",)
    samples = (
        *({"format": name} for name in ("abacus", "zhou2024", "plain")),
        {"format": "plain", "hints": 45, "padded": "both", "other": "same"},
        {"format": "abacus", "other": 3, "zero": True},
    )

    format: Literal["coupling", "abacus", "zhou2024", "plain"] = "coupling"
    operands: Literal["plain", "reversed"] | None = None
    result: Literal["plain", "reversed"] | None = None
    padded: Literal["none", "operands", "both"] | None = None
    hints: int | None = None
    zero: bool | None = None
    other: Other = "any"

    alphabet = property(lambda task: MARKERS + task.form.hints)
    vocabulary = property(lambda task: {PLUS: "+"} | {MARKERS + s: f"H{s}" for s in range(task.form.hints)})
    choices = property(lambda task: TEN + task.form.hints)

    def validate(self):
        super().validate()
        check_other(self, self.other)
        hints, longest = self.form.hints, largest(1, self.other)
        if hints and hints <= longest:
            raise ValueError(f"hints must be 0, or at least {longest + 1}, one for each digit of a sum, not {hints}.")

    @property
    def form(self) -> Format:
        """The format, with the fields that settings override."""
        settings = {name: getattr(self, name) for name in ("operands", "result", "padded", "hints", "zero")}
        return FORMS[self.format]._replace(**{name: value for name, value in settings.items() if value is not None})

    @property
    def sizes(self):
        form = self.form
        if not form.hints:
            return form.sizes
        top = form.hints - 1  # an answer has one digit more
        beyond = tuple(n for n in form.sizes.evaluation if n <= top)
        return Sizes(1, (1, min(form.sizes.train[1], top)), beyond, top)

    def ways(self, n):
        return ways(n, 2, self.other)

    def tokens(self, n):
        return _length(n, 2, self.form, self.other)

    def make(self, key, n, n_max):
        return _sums(self, key, n, n_max, 2, self.form, self.other)

    def answer(self, prompt):
        form, text = self.form, prompt[1:-1]
        each = 1 if not form.hints else 2
        cut = text.index(PLUS)
        spelled_out = [text[:cut][each - 1 :: each], text[cut + 1 :][each - 1 :: each]]
        words = [word[::-1] if form.operands == "reversed" else word for word in spelled_out]
        total = str(sum(int("".join(map(str, word))) for word in words))
        if form.padded == "both":
            total = total.zfill(max(map(len, words)) + 1)
        digits = [int(c) for c in reversed(total)]
        if form.hints:
            units = min(text[:cut][::2])
            pairs = [[units + weight, digit] for weight, digit in enumerate(digits)]
            pairs = pairs if form.result == "reversed" else pairs[::-1]
            return [token for pair in pairs for token in pair] + [self.special("EOS")]
        return (digits if form.result == "reversed" else digits[::-1]) + [self.special("EOS")]


class AdditionMulti(Task, name="addition_multi"):
    """Add three numbers or more (Cho et al., 2024).

    1 2 + 0 7 + 9 9 SEP 8 1 1 EOS

    All numbers are padded to the longest, the answer to one digit more, and the answer is reversed. SEP is their =. The
    answer and EOS are scored. n is the number of digits of the longest; the other lengths are uniform given that; all
    are strata. `other` fixes them: the first number has n digits, the rest as many ("same") or that number. Provides
    "coupled" and "digit", as `addition` does. The paper adds 3 numbers, then 4. The newest script of the authors pads
    operands to the length of the answer; an older one, followed here, to the longest operand.
    """

    layout = Layout.LM
    ability = "arithmetic"
    suites = ("arithmetic",)
    least = {"numbers": 2}
    samples = ({"numbers": 4}, {"numbers": 10, "other": 2})
    alphabet, choices = MARKERS, TEN
    vocabulary = {PLUS: "+"}
    sizes = Sizes(1, (1, 40), (41, 50, 60, 75, 100))

    numbers: int = 3
    other: Other = "any"

    def validate(self):
        super().validate()
        check_other(self, self.other)
        if self.numbers > TEN:
            raise ValueError(
                f"'addition_multi' adds 2 to {TEN} numbers, so that the sum has one digit more, not {self.numbers}."
            )

    def ways(self, n):
        return ways(n, self.numbers, self.other)

    def tokens(self, n):
        return _length(n, self.numbers, FORMS["coupling"], self.other)

    def make(self, key, n, n_max):
        return _sums(self, key, n, n_max, self.numbers, FORMS["coupling"], self.other)

    def answer(self, prompt):
        text = "".join("+" if token == PLUS else str(token) for token in prompt[1:-1])
        numbers = text.split("+")
        total = str(sum(map(int, numbers))).zfill(len(numbers[0]) + 1)
        return [int(c) for c in reversed(total)] + [self.special("EOS")]


def _length(n, k, form, other):
    longest = largest(n, other)
    if form.padded == "none":
        digits = n + (k - 1) * (other if isinstance(other, int) else n)
    else:
        digits = k * longest
    return (2 if form.hints else 1) * (digits + longest + 1) + k - 1 + 3  # signs, then BOS, SEP and EOS


def _sums(task, key, n, n_max, k, form, other):
    """Examples of k numbers and their sum."""
    sizes, words, start = jax.random.split(key, 3)
    top = largest(n_max, other)
    digit_counts = counts(sizes, n, k, other)
    numbers = [
        number(word, c, top + 1, zero=form.zero)
        for word, c in zip(jax.random.split(words, k), digit_counts, strict=True)
    ]
    values = jnp.stack(numbers, axis=1)
    result = carried(jnp.sum(values, axis=1, dtype=INT), 9 * k)
    longest = jnp.max(jnp.stack(digit_counts), axis=0)
    lengths = digit_counts if form.padded == "none" else [longest] * k
    total = longest + 1 if form.padded == "both" else written(result)
    each, markers = 1, None
    if form.hints:
        each, markers = 2, MARKERS + between(start, 0, form.hints - longest - 1)
    length = task.tokens(n_max)
    prompt = spelled(values, lengths, length, sign=PLUS, backwards=form.operands == "reversed", markers=markers)
    answer = spelled(
        result[:, None], [total], each * (top + 1), sign=PLUS, backwards=form.result == "reversed", markers=markers
    )
    p = each * sum(lengths) + k - 1
    strata = {f"digits_{word}": c for word, c in zip(WORDS, digit_counts, strict=False)}
    batch = prompted(task, n, length, prompt, p, answer, each * total, strata)
    i = jnp.arange(length, dtype=INT)[None, :] - 1
    index, digit = digit_coordinates(i, [*lengths, total], each)
    batch = batch._replace(coords=batch.coords | {"digit": digit})
    if form.result == "plain" and form.padded != "both":
        return batch
    coupled = coupling.sums(
        index,
        [c[:, None] for c in lengths],
        total[:, None],
        reverse_input=form.operands == "reversed",
        reverse_output=form.result == "reversed",
    )
    inside = (i >= 0) & (i < (p + 1 + each * total)[:, None])
    return batch._replace(coords=batch.coords | {"coupled": jnp.where(inside, coupled, 0)})
