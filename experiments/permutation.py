"""Without positions, attention that sees both ways cannot tell order at all; under a causal mask it can.

For a model that sees a set, the order of two marks is a fair bet. The scores of symmetric ALiBi, KERPLE and Sandwich
depend on how far apart tokens are, and not on which is to the left. Such schemes find the order, since the question
stands at the end. They cannot separate a token's left neighbour from its right. A decoder without any encoding finds
the token one position back, since its mask shows how many tokens stand before each.

Source: Vaswani et al. (2017), §3.5, that attention has no order. Haviv et al. (2022), Transformer Language Models
without Positional Encodings Still Learn Positional Information, arXiv 2203.16634, §5 and §6. There a decoder without
encoding learns positions, an encoder does not (table 4). A set gives 0.5 by arithmetic.

Setting: the tasks are ours. Both models have two layers of width 64.

Cost: about 45 minutes on one core.

Command: posenc sweep experiments/permutation.py

Variation: posenc sweep experiments/permutation.py --only model=decoder --set depth=1 --name one_layer
"""

from posenc.lab.results.published import Order, Published
from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import Plan, Run

SYMMETRIC = ["alibi", "kerple", "sandwich"]
SCHEMES = ["nope", *SYMMETRIC, "alibi(form='half')", "t5", "rope", "sinusoidal", "learned"]
BACK = "token_k_back(k=1)"
SIZES = (8, 12, 16)  # trained on


def either(n):
    """Right answers where the left of two neighbours is a guess between both, and the last of n tokens has one."""
    return ((n - 2) * (1 + 1 / 16) / 2 + 1) / (n - 1)


SET = "of a set with both marks, each order is as likely"
NEIGHBOURS = "of two neighbours, each is as likely the left"
HAVIV = "Haviv et al. (2022), §5, §6 and table 4: a causal mask tells positions"
PLACES = {"metric": "last", "over": "trained", "seen": "paper"}
published = [
    Published("before", "nope (model=encoder)", 0.5, SET, over="trained", origin="ours"),
    *(
        Order("before", f"{s} (model=encoder)", "nope (model=encoder)", SET, over="trained", origin="ours")
        for s in SCHEMES[1:]
    ),
    *(
        Published(
            "token_k_back",
            f"{s} (model=encoder)",
            sum(map(either, SIZES)) / 3,
            NEIGHBOURS,
            tolerance=0.03,
            over="trained",
            origin="ours",
        )
        for s in SYMMETRIC
    ),
    Order("token_k_back", "nope (model=decoder)", "nope (model=encoder)", HAVIV, **PLACES),
]

titles = {"before": "Which mark came first", "token_k_back": "Token one position back"}
counted = "tokens"
metric = "accuracy"
plan = Plan(steps=600, seeds=(0, 1, 2, 3, 4, 5), lr=(3e-3,), sizes=(*SIZES, 24, 32))
reading = """
Without positions an encoder cannot tell which mark came first ({before|nope|16}); with any encoding it can
({before|worst!nope|16} or more). Symmetric schemes cannot tell a left neighbour from a right one: ALiBi names
{token_k_back|alibi (model=encoder)|16} of the tokens one back. Two neighbours leave it a guess. A decoder finds the
token one back without any encoding, {token_k_back|nope (model=decoder)|16|last} at the last of 16 tokens. It loses it
beyond training: {token_k_back|nope (model=decoder)|32|last} at 32.
"""


def runs():
    base = Run(width=64, depth=2, heads=4, hidden=128, batch=32, length=16, shortest=4)
    both = grid(base, model=["encoder", "decoder"], task=[BACK], scheme=SCHEMES)
    return [*grid(base, task=["before"], scheme=SCHEMES), *both]


def figure(results):
    """Rows of schemes, columns of models and sizes: each run a dot, at one size."""
    from posenc.lab.figures.panel_captions import plain_caption
    from posenc.lab.figures.panels import Drawing
    from posenc.lab.figures.rows import Dots, rows
    from posenc.lab.results.floors import floors
    from posenc.lab.results.statistics import cells

    every, last = cells(results), results.shown("last")
    models = {results.label(r, trial): r.run["model"] for r in results.records for trial in r.trials}
    longest, far = max(n for c in every for n in c.inside), max(n for c in every for n in c.values)

    def column(task, model, size, along, shown):
        ours = {c.scheme: c for c in cells(shown) if (c.task, models[c.scheme]) == (task, model)}
        found = {s: ours.get(f"{s} (model={model})", ours.get(s)) for s in SCHEMES}
        runs = {s: c.values[size] for s, c in found.items() if c is not None and size in c.values}
        known = floors(shown.tasks()[task]).get(size, {}) if runs else {}
        return Dots(f"{titles[task]}:\n{model}, {size} tokens", along, runs, known)

    columns = [
        column("before", "encoder", longest, "accuracy", results),
        column("token_k_back", "encoder", longest, "accuracy (tokens)", results),
        column("token_k_back", "decoder", longest, "accuracy (last token)", last),
        column("token_k_back", "decoder", far, "accuracy (last token)", last),
    ]
    said = (
        f"Which of two marks came first (before), and the token one position back (token_k_back), at {longest} tokens,"
        f" the longest trained on, and at {far}: accuracy, accuracy (tokens) of all tokens, and accuracy (last token)"
        " (along) for each scheme"
    )
    return Drawing(rows(SCHEMES, [c for c in columns if c.runs], most=4), plain_caption(results, said, {}))
