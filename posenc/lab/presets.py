"""Published settings by name: `posenc run --preset ruoss --task parity_check`, and `PRESETS["ruoss"].run` in a file.

A preset is one cell of what was published, a task and a scheme of the paper, with all else of its setting that `Run`
and `Plan` can say; what they cannot is listed in `left_out`. Whatever is said beside a preset overrides it. No jax.
"""

from __future__ import annotations

from dataclasses import dataclass

from posenc.lab.run import Plan, Run

EVIDENCE = {
    "code": "read in the authors' code",
    "issue": "said by the authors in a public issue",
    "memory": "from memory of the paper, so look before quoting",
}


@dataclass(frozen=True)
class Preset:
    """The setting of one paper, as far as ours can say it."""

    name: str
    idea: str
    """What was trained there."""
    source: str
    run: Run
    plan: Plan
    evidence: tuple[str, ...]
    """How the numbers are known, of `EVIDENCE`."""
    left_out: tuple[str, ...]
    """What was done there and how it is here, where that differs."""


_EVERY = (
    Preset(
        "ruoss",
        "Encoders on the fifteen string tasks of the Chomsky hierarchy, lengths to 40, evaluated to 500.",
        "Ruoss et al. (2023), Randomized Positional Encodings Boost Length Generalization of Transformers, arXiv "
        "2305.16843; setting of Delétang et al. (2023), arXiv 2207.02098",
        Run(
            task="reverse_string",
            scheme="rope @ random_sorted(2048, 'layer')",
            model="encoder",
            width=64,
            depth=5,
            heads=8,
            hidden=256,
            norm="post",
            batch=128,
            length=40,
            longest=500,
            lengths="step",
            schedule="constant",
            dropout=0.1,
        ),
        Plan(
            steps=1_000_000,
            seeds=tuple(range(10)),
            lr=(1e-4, 3e-4, 5e-4),
            sizes=(41, 61, 81, 101, 151, 201, 301, 401, 500),
            rows=512,
            warmup=0.0,
            clip=1.0,
        ),
        ("code", "issue"),
        (
            "every size from 41 to 500 evaluated, here nine of them",
            "the best of all runs reported, here the median beside it",
            "one-hot tokens through a linear map scaled by the root of the width, here an embedding",
            "2 million steps, if the memory of Ruoss et al. is right; the authors' issue says 1 million",
        ),
    ),
    Preset(
        "kazemnejad",
        "Decoders of T5-base size on copying, sorting and arithmetic, lengths to 20, evaluated to 40.",
        "Kazemnejad et al. (2023), The Impact of Positional Encoding on Length Generalization in Transformers, arXiv "
        "2305.19466",
        Run(
            task="copy",
            scheme="nope",
            model="decoder",
            width=768,
            depth=12,
            heads=12,
            hidden=3072,
            norm="pre",
            batch=64,
            length=20,
            lengths="example",
            schedule="linear",
            dropout=0.1,
        ),
        Plan(
            steps=40_000,
            seeds=(0, 1, 2),
            lr=(3e-5,),
            sizes=(20, 21, 24, 28, 32, 36, 40),
            rows=1024,
            weight_decay=0.05,
            warmup=0.06,
        ),
        ("code",),
        (
            "a fixed set of 100,000 examples, here fresh ones in every step",
            "words around the task and the tokenizer of T5, here its symbols alone",
            "scores of the T5 scheme without division by the root of the head, in every scheme of theirs that is T5's",
        ),
    ),
    Preset(
        "zhou",
        "Decoders on decimal addition, reversed and with index hints, 1 to 40 digits, evaluated to 100.",
        "Zhou et al. (2024), Transformers Can Achieve Length Generalization But Not Robustly, arXiv 2402.09371",
        Run(
            task="addition(format='zhou2024')",
            scheme="fire @ random_sorted(2048)",
            model="decoder",
            width=512,
            depth=6,
            heads=8,
            hidden=2048,
            norm="pre",
            batch=128,
            length=40,
            lengths="example",
        ),
        Plan(steps=50_000, seeds=tuple(range(10)), lr=(3e-4,), sizes=(40, 50, 60, 70, 80, 90, 100), rows=1024),
        ("memory",),
        (
            "a feed-forward layer with a gate (GeGLU)",
            "30 million fixed examples, here fresh ones in every step",
            "index hints from a set of 102 symbols, whose exact order no code tells",
        ),
    ),
    Preset(
        "abacus",
        "Decoders on addition with both operands to 20 digits and all numbers reversed, evaluated to 100.",
        "McLeish et al. (2024), Transformers Can Do Arithmetic with the Right Embeddings, arXiv 2405.17399",
        Run(
            task="addition(format='abacus')",
            scheme="abacus @ given('digit', shift=99)",
            model="decoder",
            width=1024,
            depth=16,
            heads=16,
            hidden=2048,
            norm="post",
            batch=8192,
            length=20,
            longest=160,
            lengths="example",
        ),
        Plan(
            steps=20_000,
            seeds=(0, 1, 2),
            lr=(1e-4,),
            sizes=(20, 40, 60, 80, 100, 120, 160),
            rows=512,
            weight_decay=0.01,
            clip=0.5,
        ),
        ("code",),
        (
            "a budget of 24 GPU hours, which is no number of steps: the 20,000 here are ours",
            "20 million fixed examples, here fresh ones in every step",
            "a gated feed-forward layer, looped blocks, input injection, DeepNorm's initial values",
            "moments of AdamW of .9 and .98, here .9 and .999; a fall at the end of the budget only, here a cosine",
            "100 pairs for each cell of a grid of operand lengths, here sizes",
        ),
    ),
    Preset(
        "coupling",
        "Decoders of one layer on addition with digits of one weight at one position, to 30 digits, evaluated to 200.",
        "Cho et al. (2024), Position Coupling: Improving Length Generalization of Arithmetic Transformers Using Task "
        "Structure, arXiv 2405.20671",
        Run(
            task="addition(format='coupling')",
            scheme="learned @ given('coupled', shift=170, each='example')",
            model="decoder",
            width=512,
            depth=1,
            heads=4,
            hidden=2048,
            norm="pre",
            batch=1000,
            length=30,
            longest=200,
            lengths="example",
        ),
        Plan(
            steps=50_000,
            seeds=tuple(range(8)),
            lr=(1e-4,),
            sizes=(30, 50, 100, 150, 200),
            rows=1024,
            warmup=0.01,
        ),
        ("code",),
        (
            "1 million fixed examples (newer scripts: 100,000), here fresh ones in every step",
            "a gated feed-forward layer, and norms both before and after each branch",
            "moments of AdamW of .9 and .95, here .9 and .999",
            "positions to 202, as in the paper; newer scripts say 150",
            "8 runs as 4 seeds by 2 sets of data, here 8 seeds",
        ),
    ),
    Preset(
        "mqar",
        "Two layers of one head recalling 4 to 16 pairs of keys and values among 64 to 256 tokens.",
        "Arora et al. (2024), Zoology: Measuring and Improving Recall in Efficient Language Models, arXiv 2312.04927, "
        "figure 2",
        Run(
            task="mqar",
            scheme="learned",
            model="decoder",
            width=64,
            depth=2,
            heads=1,
            norm="pre",
            batch=256,
            length=256,
            lengths="step",
        ),
        Plan(
            steps=25_000,
            seeds=(0,),
            lr=(1e-4, 4.64e-4, 2.15e-3, 1e-2),
            sizes=(64, 128, 256),
            rows=1024,
            weight_decay=0.1,
        ),
        ("code",),
        (
            "no feed-forward layer, here one; dropout in attention alone, here none",
            "64 epochs of 100,000 fixed examples, here as many steps with fresh ones",
            "a test set that stops training at 99 %",
            "the best rate for each width 64 to 512 reported; set width for the others",
            "lengths 64, 128 and 256 trained apart, here a size per step between the smallest and 256",
        ),
    ),
    Preset(
        "cope",
        "Decoders of four layers that follow up to 512 statements and say the value of a counter.",
        "Golovneva et al. (2024), Contextual Position Encoding: Learning to Count What's Important, arXiv 2405.18719",
        Run(
            task="counting_cope",
            scheme="cope",
            model="decoder",
            width=256,
            depth=4,
            heads=4,
            norm="post",
            batch=64,
            length=512,
            lengths="example",
            schedule="constant",
            dropout=0.1,
        ),
        Plan(steps=15_600, seeds=(0, 1, 2), lr=(7e-5,), sizes=(128, 256, 512), rows=1024, warmup=0.0),
        ("code",),
        (
            "100 epochs of 10,000 fixed programs, here as many steps with fresh ones",
            "embedding and readout as one matrix",
            "programs beyond 512 tokens cut from the left",
        ),
    ),
    Preset(
        "flipflop",
        "Six layers of GPT-2's shape that remember one bit over 512 tokens.",
        "Liu et al. (2023), Exposing Attention Glitches with Flip-Flop Language Modeling, arXiv 2306.00946",
        Run(
            task="flip_flop",
            scheme="learned",
            model="decoder",
            width=512,
            depth=6,
            heads=8,
            norm="pre",
            batch=16,
            length=512,
            schedule="linear",
        ),
        Plan(
            steps=10_000,
            seeds=tuple(range(10)),
            lr=(3e-4,),
            sizes=(512, 1024),
            rows=4096,
            weight_decay=0.1,
            warmup=0.005,
        ),
        ("memory",),
        (
            "evaluation with another share of ignored pairs, .98 and .1, than the .8 of training",
            "error rates of some hundred thousand sequences, here 4,096",
            "learned positions with GPT-2's initial values and its activation",
        ),
    ),
)
PRESETS = {preset.name: preset for preset in _EVERY}
