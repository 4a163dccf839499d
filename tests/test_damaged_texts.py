"""A scheme's text with a few characters changed is read as what it says, or refused in one sentence at once."""

import random
import time

import pytest

import posenc

TEXTS = [
    "rope(base=500000.0) + alibi",
    "[rope + window(512, sinks=4), rope + window(512, sinks=4), nope]",
    "learned + [rope, rope, rope, nope]",
    "(rope + alibi) @ random_sorted(2048, resample='layer') + t5(buckets=32, reach=128)",
    "longrope(long=(1.5, 2.0), short=(1.0, 1.0), factor=4.0, original=64)",
    "learned @ segments('inside') + rope @ segments('which')",
    "shaw(reach=16, values=False) + log_n(trained=40)",
]
PIECES = [*"()[],+@='#\\\n:.-0…٣\x00", *"1e400 nan inf None True 2**9 mine:Mine window(3) **".split()]
PIECES += ["9" * 30, *["0x" + "f" * 3600, " # and"] * 6, " + rope", "lambda: 0"]


def damaged(text, draw):
    for _ in range(draw.choice([1, 1, 2, 3])):
        at, width = draw.randrange(len(text) + 1), draw.choice([0, 0, 1, 4])
        text = text[:at] + draw.choice([*PIECES, ""]) + text[at + width :]
    return text


@pytest.mark.ci
@pytest.mark.timeout(30)
@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_text_is_read_as_what_it_says_or_refused_in_one_sentence(seed):
    draw = random.Random(seed)
    for _ in range(200):
        text, start = damaged(draw.choice(TEXTS), draw), time.monotonic()
        try:
            scheme = posenc.parse(text)
        except (ValueError, TypeError) as refusal:
            sentence = str(refusal)
            assert type(refusal) is ValueError and sentence.rstrip()[-1] in ".?", (text, sentence)
            assert "Traceback" not in sentence and "Exceeds the limit" not in sentence and len(sentence) < 900, sentence
        else:
            written = posenc.spec(scheme)
            assert posenc.parse(written) == scheme and "#" not in text, (text, written)
        assert time.monotonic() - start < 5, text
