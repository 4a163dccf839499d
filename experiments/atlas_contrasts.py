"""Six seeds for what papers say of schemes in the atlas, each on the task nearest to what they measured.

The atlas has two seeds, which decide nothing between schemes that are close. These orders were written down before the
schemes were trained here, and use the metric of the task. Canon's come from its two seeds in the atlas. The prediction
for its index in encoders is in experiments/both.py, which trains longer.

Source: ours. The tasks are those of `experiments/atlas.py`. The findings of Li, Chen, Hua, Ruoss, Yang, Lin and Tan are
from memory, and that of Allen-Zhu (2025), arXiv 2512.17351, is from its summary.

Setting: as in `experiments/atlas.py`. Two layers of width 64 train for 2,000 steps on up to 16 tokens, or 8 symbols for
copies. The papers trained language models; their texts beyond the trained length have thousands of tokens.

Cost: about an hour and a quarter of one core, half of it for the bit.

Command: posenc sweep experiments/atlas_contrasts.py

Variation: posenc sweep experiments/atlas_contrasts.py --only scheme=hope,rope --set length=32 --name longer
"""

import dataclasses

from posenc.lab.results.published import Order
from posenc.lab.spec import atlas

plan = dataclasses.replace(atlas.PLAN, seeds=tuple(range(6)))
ALIBI, HALF = "alibi(factor=64.0)", "alibi(form='half', factor=64.0)"
DECODERS = {
    "offset": ("fire", "kerple", ALIBI, "hope", "fope", "rope", "canon"),
    "memory": ("cope", "path", "fox", "stick_breaking", "rope"),
    "copy": ("nope", "rope", "canon"),
    "reverse": ("rope @ random_sorted(limit=128)", "rope"),
}
TWO_SEEDS = "ours: the rows of two seeds in the atlas, which are among these six"
titles = {atlas.PROBES[name].task: atlas.PROBES[name].title for name in (*DECODERS, "index")}
counted = "tokens"


def _order(probe, first, second, source, seen="memory", **rest):
    """An order in decoders, by the metric of the task."""
    task, names = atlas.PROBES[probe].task, (f"{scheme} (model=decoder)" for scheme in (first, second))
    return Order(task, *names, source, metric=atlas.PROBES[probe].metric, seen=seen, **rest)


published = [
    _order("copy", "nope", "rope", "Kazemnejad et al. (2023), figure 1, of copying and nine more", "paper"),
    _order("offset", "fire", ALIBI, "Li et al. (2024), of perplexity beyond the trained length"),
    _order("offset", "hope", "rope", "Chen et al. (2024), of perplexity beyond the trained length"),
    _order("offset", "fope", "rope", "Hua et al. (2025), of perplexity beyond the trained length"),
    _order("reverse", "rope @ random_sorted(limit=128)", "rope", "Ruoss et al. (2023), Table 1, of encoders"),
    _order("memory", "path", "rope", "Yang et al. (2025), of flip-flops"),
    _order("memory", "fox", "rope", "Lin et al. (2025), of texts beyond the trained length"),
    _order("memory", "stick_breaking", "rope", "Tan et al. (2025), of recall and beyond the trained length"),
    Order(
        atlas.PROBES["offset"].task,
        f"{HALF} (model=encoder)",
        f"{ALIBI} (model=encoder)",
        "ours: the same penalty on both sides cannot separate them, so only unequal penalties find an offset",
        learned=False,
        origin="ours",
    ),
    _order("copy", "canon", "nope", "Allen-Zhu (2025), of models without positions", "copy", over="trained"),
    *(_order(probe, "canon", "rope", TWO_SEEDS, None, origin="ours") for probe in ("offset", "copy")),
]
reading = """
Three published orders do not hold for the token three back: at the last of 64 tokens RoPE reaches
{token_k_back|rope (model=decoder)|64|last}, FIRE {token_k_back|fire (model=decoder)|64|last} and HoPE
{token_k_back|hope (model=decoder)|64|last}. An encoder with ALiBi needs the two sides to differ: one-sided slopes
reach {token_k_back|alibi(form='half', factor=64.0) (model=encoder)|64}, symmetric ones
{token_k_back|alibi(factor=64.0) (model=encoder)|64}. At 2 L Canon copies {copy|canon (model=decoder)|16|accuracy} of
the symbols, RoPE {copy|rope (model=decoder)|16|accuracy}, and a decoder without positions
{copy|nope (model=decoder)|16|accuracy}. In an encoder Canon finds {token_k_back|canon (model=encoder)|64} of the tokens
three back at 4 L and {index_of_token|canon|64} of the indices, not learned ({index_of_token|canon|16} at L). PaTH
remembers the bit at 4 L ({flip_flop|path|128}); RoPE guesses ({flip_flop|rope|128}).
"""


def runs():
    made = [run for probe, schemes in DECODERS.items() for run in atlas.runs(schemes, "decoder", [probe])]
    penalties = atlas.runs((HALF, ALIBI), "encoder", ["offset"])
    return [*made, *penalties, *atlas.runs(("canon",), "encoder", ["offset", "index"])]


def figure(results):
    """The offset and the bit last written, by size; the text has the numbers of copies, which end with training."""
    from posenc.lab.figures.figures import length

    return length(results.only(task=[atlas.PROBES[name].task for name in ("offset", "memory")]))
