"""A model of 16 tokens reads 256 when its rotations are rescaled: methods that need training, and methods that do not.

Decoders are trained under RoPE on up to 16 tokens. Then ten methods extend their context to 2, 4, 8 and 16 times as
much: without further training, by an evaluation of the same parameters under another scheme, and after 5 % of the steps
at the longer length. Three tasks: the token three places back, recall by key (MQAR), and a needle among fillers.

Source: Chen et al. (2023), Position Interpolation, arXiv 2306.15595; bloc97 (2023), NTK-aware scaling; emozilla (2023),
dynamic NTK; Peng et al. (2024), YaRN, arXiv 2309.00071; Ding et al. (2024), LongRoPE, arXiv 2402.13753; Llama 3.1; Jin
et al. (2024), SelfExtend, arXiv 2401.01325; Su (2023), ReRoPE, kexue.fm/archives/9708.
Setting: two layers and width 64 for 32 and 4096, 16 tokens for 2048 and more, tasks for perplexity. Constants of
schemes are scaled with the length: base 10, so that 60 % of eight pairs turn less than once within 16 tokens (30 % of
64 pairs in Llama 2 within 4096); ramps of yarn, by_parts and llama3 that keep and divide corresponding pairs; windows
of half the length for self_extend and rerope, groups as large as the factor needs. LongRoPE's factors come from a
search that is not made here: longrope is pi beyond 16 tokens, with its magnitude.
Cost: about 40 minutes on 2 cores.
Command: posenc sweep experiments/extension.py --keep, then python -m experiments.extension runs/extension, which
evaluates the kept models under the other schemes and writes the record
Variation: posenc sweep experiments/extension.py --only scheme=rope(base=10.0) then=none --set length=32 --name longer
Result: not run.
"""

from pathlib import Path

from posenc.lab.results.published import Order
from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import THEN, WITH, Plan, Run

LENGTH, FACTORS = 16, (1, 2, 4, 8, 16)
SIZES = tuple(f * LENGTH for f in FACTORS)
ROPE = "rope(base=10.0)"
TASKS = {"token_k_back(k=3)": "Token three places back", "mqar(symbols=64, pairs=4)": "Recall by key", "needle(width=1)": "Needle"}
BY_FACTOR = {
    "pi": "pi(factor={f:.1f}, base=10.0)",
    "ntk": "ntk(factor={f:.1f}, base=10.0)",
    "longrope": "longrope(factor={f:.1f}, base=10.0)",
    "by_parts": "by_parts(factor={f:.1f}, blend=(1.07, 0.94), keep=(1.5, 1.1), base=10.0)",
    "yarn": "yarn(factor={f:.1f}, beta_fast=1.65, base=10.0)",
    "llama3": "llama3(factor={f:.1f}, high_freq_factor=1.2, base=10.0)",
    "self_extend": "self_extend(group={group}, window=8, base=10.0)",
}
"""Method to its scheme for a factor."""
BY_LENGTH = {
    "rope": ROPE,
    "dynamic_ntk": "dynamic_ntk(base=10.0)",
    "rerope": "rerope(window=8, base=10.0)",
    "log_n": f"log_n + {ROPE}",
}
"""Method to its scheme for every length."""
METHODS = {
    "all pairs alike": ("rope", "pi", "ntk", "dynamic_ntk", "longrope", "log_n"),
    "by pair or distance": ("rope", "by_parts", "yarn", "llama3", "self_extend", "rerope"),
}
TUNED = 16
"""The factor of the methods that are trained further, at as many times the length."""
RECORD = Path(__file__).parent / "records" / "extension.json"


def scheme(method, factor):
    """The text of a method's scheme for a context so many times as long; self_extend's group just reaches it."""
    text = BY_LENGTH.get(method) or BY_FACTOR[method]
    return text.format(f=factor, group=2 * factor - 1)
