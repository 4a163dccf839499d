"""Six seeds for what papers say of schemes in the atlas, each on the probe that comes nearest to what they measured.

The atlas has two seeds, which decide nothing between schemes that are close. These orders were written down before the
probes were trained.

Source: ours; the tasks are probes of `experiments/atlas.py`. What Li, Chi, Chen, Hua, Ruoss, Golovneva, Yang, Lin and
Tan found is from memory.
Setting: as in `experiments/atlas.py`: two layers of width 64, trained on up to 16 tokens, or 8 symbols for copies, in
2,000 steps; the papers trained language models, and what they call beyond the trained length is thousands of tokens.
Cost: about an hour of one core, of which half for the bit.
Command: posenc sweep experiments/atlas_contrasts.py
Variation: posenc sweep experiments/atlas_contrasts.py --only scheme=hope,rope --set length=32 --name longer
Result: The last of 64 tokens, medians of six seeds, all at 0.99 or more of 16 but KERPLE: ALiBi with slopes for this
length 1.00, FIRE 0.07, RoPE 0.75, HoPE 0.23, FoPE 0.20; FIRE, HoPE and FoPE differ from their papers here. KERPLE has
0.87 at 16, and its loss still fell by 66 %, so its order stays open. In encoders, of the tokens beyond 16 in 64, a
penalty alike on both sides has 0.51, one of one side 0.99. Copies backwards at random positions had 0.32 of the answers
right at 8 symbols, the loss falling by 50 %, and 0.10 at 10, where plain RoPE has 0.00: that much agrees, and at 16
neither has any. Copies without positions had 0.51 at 8, falling by 81 %, and 0.02 at 10, with RoPE 1.00 and 0.00. The
last bit of 128 tokens, where half is a guess: PaTH 1.00, FoX 0.99, stick-breaking 1.00, CoPE 0.55, RoPE 0.54; of 64
CoPE has 0.97 and RoPE 0.56, so three orders agree and CoPE's stays open.
"""

import dataclasses

from posenc.lab.results.published import Order
from posenc.lab.spec import atlas

plan = dataclasses.replace(atlas.PLAN, seeds=tuple(range(6)))
OFFSET, COPY, REVERSE, MEMORY = (atlas.PROBES[name].task for name in ("offset", "copy", "reverse", "memory"))
ALIBI, HALF = "alibi(factor=64.0)", "alibi(form='half', factor=64.0)"
titles = {task: title for task, title in atlas.titles("decoder").items() if task in (OFFSET, COPY, REVERSE, MEMORY)}
counted = "tokens"


def _order(task, first, second, source, seen="memory"):
    return Order(task, f"{first} (model=decoder)", f"{second} (model=decoder)", source, seen=seen)


published = [
    _order(COPY, "nope", "rope", "Kazemnejad et al. (2023), figure 1, of copying and nine more", "paper"),
    _order(OFFSET, "fire", ALIBI, "Li et al. (2024), of perplexity beyond the trained length"),
    _order(OFFSET, "kerple", ALIBI, "Chi et al. (2022), of perplexity beyond the trained length"),
    _order(OFFSET, "hope", "rope", "Chen et al. (2024), of perplexity beyond the trained length"),
    _order(OFFSET, "fope", "rope", "Hua et al. (2025), of perplexity beyond the trained length"),
    _order(REVERSE, "rope @ random_sorted(limit=128)", "rope", "Ruoss et al. (2023), Table 1, of encoders"),
    _order(MEMORY, "cope", "rope", "Golovneva et al. (2024), of flip-flops"),
    _order(MEMORY, "path", "rope", "Yang et al. (2025), of flip-flops"),
    _order(MEMORY, "fox", "rope", "Lin et al. (2025), of texts beyond the trained length"),
    _order(MEMORY, "stick_breaking", "rope", "Tan et al. (2025), of recall and beyond the trained length"),
    Order(
        OFFSET,
        f"{HALF} (model=encoder)",
        f"{ALIBI} (model=encoder)",
        "ours: a penalty alike on both sides cannot tell them apart, so the other one alone can find an offset",
        learned=False,
        origin="ours",
    ),
]


def runs():
    decoders = {
        "offset": ("fire", "kerple", ALIBI, "hope", "fope", "rope"),
        "copy": ("nope", "rope"),
        "reverse": ("rope @ random_sorted(limit=128)", "rope"),
        "memory": ("cope", "path", "fox", "stick_breaking", "rope"),
    }
    made = [run for probe, schemes in decoders.items() for run in atlas.runs(schemes, "decoder", [probe])]
    return [*made, *atlas.runs((HALF, ALIBI), "encoder", ["offset"])]
