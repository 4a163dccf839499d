"""One layer does induction if its keys carry the token before.

At a trigger the model names the token that followed the trigger's first appearance. Two plain layers do it with a head
that looks one back and a head that searches. Schemes that mix each key with the token before leave only the search.

Source: Jordan et al. (2024), modded-nanogpt, record 49, for the key offset. Xu et al. (2024), KV shifting attention,
arXiv 2411.19574, say that one layer suffices. Canon layers are from Allen-Zhu (2025), arXiv 2512.17351, and induction
by two layers is from Olsson et al. (2022).

Setting: width 64, 8 to 32 tokens and 15 symbols. Schemes have one layer, and plain ones also two as a control. The
authors trained language models, so that only the order applies.

Cost: about 40 minutes on one core.

Command: posenc sweep experiments/induction.py

Variation: posenc sweep experiments/induction.py --set length=64 steps=6000 --name longer
"""

from posenc.lab.results.published import Order
from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import Plan, Run

TASK = "induction"
PLAIN = ["nope", "rope"]
CARRY = ["key_offset + rope(fraction=0.5)", "kv_shift + rope", "canon + rope", "canon"]
ONE = " (depth=1)"

published = [
    Order(
        TASK,
        f"kv_shift + rope{ONE}",
        f"rope{ONE}",
        "Xu et al. (2024), of induction in one layer",
        over="trained",
        seen="copy",
    ),
    Order(
        TASK,
        f"key_offset + rope(fraction=0.5){ONE}",
        f"rope{ONE}",
        "Jordan et al. (2024), record 49: the offset lets one layer do induction",
        over="trained",
        seen="copy",
    ),
    *(
        Order(
            TASK,
            f"{scheme}{ONE}",
            f"rope{ONE}",
            "a filter over the token before leaves only the search",
            over="trained",
            origin="ours",
        )
        for scheme in CARRY[2:]
    ),
]

titles = {TASK: "Token after the earlier trigger"}
counted = "tokens"
plan = Plan(steps=3000, seeds=(0, 1, 2, 3, 4, 5), lr=(3e-3,), sizes=(16, 32, 64, 128))
reading = """
One layer of RoPE guesses ({induction|rope (depth=1)|32} at 32 tokens). With a key offset, or with Canon layers and no
rotation, it names the token up to four times the longest size trained on
({induction|key_offset + rope(fraction=0.5) (depth=1)|128} and {induction|canon (depth=1)|128} at 128). Where every
feature rotates, one layer falls off there: {induction|kv_shift + rope (depth=1)|128} with a shift and
{induction|canon + rope (depth=1)|128} with Canon layers. Two plain layers learn the trained sizes and have
{induction|nope (depth=2)|128} without positions and {induction|rope (depth=2)|128} with RoPE at 128. One learning rate
was tried, so that speed of learning is not compared.
"""


def runs():
    base = Run(model="decoder", width=64, batch=32, length=32, shortest=8, buckets=1)
    one = grid(base, task=[TASK], scheme=[*PLAIN, *CARRY], depth=[1])
    return [*one, *grid(base, task=[TASK], scheme=PLAIN, depth=[2])]


def figure(results):
    """Accuracy by size, with the sizes trained on shaded."""
    from posenc.lab.figures.figures import length

    return length(results)
