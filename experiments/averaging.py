"""An average of all tokens counts; to look one up takes weights, additive or by products.

One layer of one head of 64 features makes its scores in four ways. They are all equal, by a small layer for each pair,
by products, or by products over the root of the width. Counting needs no more than the average. The average does not
keep the token three back, or the one beside a key.

Source: Bahdanau et al. (2014), Neural Machine Translation by Jointly Learning to Align and Translate, arXiv 1409.0473.
Vaswani et al. (2017), §3.2.1, after Britz et al. (2017), say that additive scores do better than products without the
root if the head is wide. An average cannot look up, by arithmetic, because it weighs all tokens equally.

Setting: small tasks of ours in place of translation, with sinusoids at the input of every model. For keys, a
convolution mixes the embedding of a token with the one before it, so that one look-up is enough.

Cost: about 7 minutes on 2 cores.

Command: posenc sweep experiments/averaging.py

Variation: posenc sweep experiments/averaging.py --only attention=dot --set steps=5000 --name longer
"""

import dataclasses

from posenc.lab.results.published import Order, Published
from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import Plan, Run

SCORES = ["average", "additive", "dot", "scaled_dot"]
COUNT, BACK = "count_symbol", "token_k_back(k=3)"
RECALL = "associative_recall(keys=8, values=8, repeat=True)"

AVERAGE, ADDITIVE, DOT = (f"sinusoidal (attention={kind})" for kind in SCORES[:3])
COUNTS, ALIKE = "counts are averages", "an average weighs all tokens alike"
LAST = {"metric": "last", "over": "trained"}  # some of the earlier tokens can be guessed from a set
published = [
    Published(COUNT, AVERAGE, 0.95, COUNTS, relation="at least", over="trained", origin="ours"),
    *(
        Order(task, f"sinusoidal (attention={kind})", AVERAGE, ALIKE, origin="ours", **LAST)
        for task in (BACK, RECALL)
        for kind in SCORES[1:]
    ),
    *(Order(task, ADDITIVE, DOT, "Vaswani et al. (2017), §3.2.1", **LAST, seen="paper") for task in (BACK, RECALL)),
]

titles = {COUNT: "How often a symbol occurs", BACK: "Token three positions back", RECALL: "Value beside a key"}
names = {"sinusoidal (attention=scaled_dot)": "divided products", "sinusoidal (attention=dot)": "products"}
counted = {COUNT: "tokens", BACK: "tokens", RECALL: "pairs"}
plan = Plan(steps=1000, seeds=(3, 4, 5, 6, 7, 8), tuning=(0, 1, 2), lr=(3e-4, 1e-3, 3e-3))
reading = """
An average of all tokens counts ({count_symbol|sinusoidal (attention=average)|16}) but at the last token it looks up
{token_k_back|sinusoidal (attention=average)|16|last} by position and
{associative_recall|sinusoidal (attention=average)|8|last} by key. Additive and divided scores do all three:
{token_k_back|sinusoidal (attention=additive)|16|last} and {token_k_back|sinusoidal (attention=scaled_dot)|16|last} by
position. Products without the root do not learn to count: {count_symbol|sinusoidal (attention=dot)|16}. A smaller
learning rate may cure that, because the smallest rate was the best one. No kind of score finds the position at length
20; the best reaches {token_k_back|best|20|last}.
"""


def runs():
    base = Run(scheme="sinusoidal", model="decoder", width=64, depth=1, heads=1, hidden=128, batch=32, length=16)
    places = dataclasses.replace(base, shortest=4)
    pairs = dataclasses.replace(base, length=8, stem="conv(k=2)")
    settings = [(base, COUNT), (places, BACK), (pairs, RECALL)]
    return [run for each, task in settings for run in grid(each, task=[task], attention=SCORES)]
