"""From one sequence to another, read by an encoder and written by a decoder (Sutskever et al., 2014, §2).

An encoder reads the source in both directions; a decoder reads BOS and its own output so far. A token's position in one
sequence determines the relevant position in the other, so these tasks test positions between two sequences.

@inproceedings{sutskever2014sequence, title={Sequence to Sequence Learning with Neural Networks},
  author={Sutskever, Ilya and Vinyals, Oriol and Le, Quoc V.}, booktitle={NeurIPS}, year={2014}}
@inproceedings{bahdanau2015neural, title={Neural Machine Translation by Jointly Learning to Align and Translate},
  author={Bahdanau, Dzmitry and Cho, Kyunghyun and Bengio, Yoshua}, booktitle={ICLR}, year={2015}}
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from posenc.lab.tasks.draw import INT, between, gather, integers
from posenc.lab.tasks.layout import translated
from posenc.lab.tasks.task import Layout, Sizes, Task

EVALUATION = (21, 24, 28, 32, 36, 40)
SUITE = ("translation",)


class S2SCopy(Task, name="s2s_copy"):
    """Copy the source (ours, after Sutskever et al., 2014).

    x₁ … xₙ; BOS  ->  x₁ … xₙ EOS        symbols uniform; all are scored
    """

    layout = Layout.SEQ2SEQ
    ability = "copying"
    suites = SUITE
    least = {"symbols": 2}
    sizes = Sizes(1, (1, 20), EVALUATION)

    symbols: int = 32

    alphabet = property(lambda task: task.symbols)

    def make(self, key, n, n_max):
        x = integers(key, n.shape[0], n_max, self.symbols)
        return translated(self, n, self.tokens(n_max), x, n, x, n)

    def answer(self, prompt):
        return [*prompt, self.special("EOS")]


class S2SReverse(Task, name="s2s_reverse"):
    """Write the source backwards (ours; Sutskever et al., 2014, §3.3, reversed sources to ease the first words).

    x₁ … xₙ; BOS  ->  xₙ … x₁ EOS        symbols uniform; all are scored
    """

    layout = Layout.SEQ2SEQ
    ability = "copying"
    suites = SUITE
    least = {"symbols": 2}
    sizes = Sizes(1, (1, 20), EVALUATION)

    symbols: int = 32

    alphabet = property(lambda task: task.symbols)

    def make(self, key, n, n_max):
        x = integers(key, n.shape[0], n_max, self.symbols)
        backwards = gather(x, n[:, None] - 1 - jnp.arange(n_max, dtype=INT)[None, :])
        return translated(self, n, self.tokens(n_max), x, n, backwards, n)

    def answer(self, prompt):
        return [*reversed(prompt), self.special("EOS")]


class ToyTranslation(Task, name="toy_translation"):
    """Translate into a language of another word order (ours, after the alignments of Bahdanau et al., 2015, figure 3).

    a a s v a o; BOS  ->  S A A O A V EOS        size = words: a verb, two nouns s and o, and n - 3 adjectives

    In the source adjectives precede their noun and the verb is between subject and object; in the translation a noun
    precedes its adjectives, whose order is kept, and the verb comes last. The number of the subject's adjectives is
    uniform on 0 … n - 3. Each language has `words` adjectives, then nouns, then verbs; word i of the source language
    is word 3·words + i of the other.
    """

    layout = Layout.SEQ2SEQ
    ability = "copying"
    suites = SUITE
    least = {"words": 1}
    samples = ({"words": 2},)
    sizes = Sizes(3, (3, 20), EVALUATION)

    words: int = 10

    alphabet = property(lambda task: 6 * task.words)
    choices = property(lambda task: 3 * task.words)

    @property
    def vocabulary(self):
        return dict(enumerate(letter + str(i) for letter in "anvANV" for i in range(self.words)))

    def make(self, key, n, n_max):
        words_key, subject_key = jax.random.split(key)
        i = jnp.arange(n_max, dtype=INT)[None, :]
        subject = between(subject_key, 0, n - 3)[:, None]  # the index of the subject's noun, after its adjectives
        verb, last = subject + 1, n[:, None] - 1
        kind = jnp.where(i == verb, 2, jnp.where((i == subject) | (i == last), 1, 0))
        x = kind * self.words + integers(words_key, n.shape[0], n_max, self.words)
        where = jnp.select(
            [i == 0, i <= subject, i == verb, i < last],
            [jnp.broadcast_to(subject, kind.shape), i - 1, jnp.broadcast_to(last, kind.shape), i],
            jnp.broadcast_to(verb, kind.shape),
        )
        y = 3 * self.words + gather(x, where)
        return translated(self, n, self.tokens(n_max), x, n, y, n, {"adjectives": subject[:, 0]})

    def answer(self, prompt):
        at = next(place for place, word in enumerate(prompt) if word >= 2 * self.words)
        phrases = [prompt[:at], prompt[at + 1 :]]
        translated_nouns = [word for *adjectives, noun in phrases for word in (noun, *adjectives)]
        return [*(3 * self.words + word for word in (*translated_nouns, prompt[at])), self.special("EOS")]
