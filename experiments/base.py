"""RoPE does not fade beyond its length, it aliases; with a base near that length it carries an offset 16 times as far.

A score under RoPE is a sum of cosines of the distance. Where whole turns of its fast pairs meet, a key has the phase of
the one that is asked for, and the larger the base, the fewer pairs turn at all within the trained length: two of eight
at 10,000, five at 10. The token three and five places back, with bases from 10 to 100,000, in encoders and decoders
trained on up to 16 tokens and evaluated on up to 256.

Source: Oka et al. (2026), Frequency Bands in RoPE, ICLR: a base near the training length extrapolates better, a larger
one worse. Xiaoran Liu et al. (2023), Scaling Laws of RoPE-based Extrapolation, arXiv 2310.05209, find a smaller base
and a larger one better after fine-tuning, which is not done here. The probes and the arithmetic are ours.
Setting: two layers of width 64, heads of 16 features, 16 tokens; theirs are language models, measured in perplexity.
Cost: about 40 minutes on 2 cores, estimated; the hardest is base 100,000 of an encoder.
Command: posenc sweep experiments/base.py
Variation: posenc sweep experiments/base.py --set length=32 sizes=16,32,40,48,64,128,256 --name doubled
Result: not run.
"""

from posenc.lab.results.published import Order
from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import Plan, Run

BASES = (10.0, 16.0, 100.0, 1000.0, 10000.0, 100000.0)
SCHEMES = {base: "rope" if base == 10000.0 else f"rope(base={base})" for base in BASES}
TASKS = {"token_k_back(k=3)": 3, "token_k_back(k=5)": 5}
MODELS = ("encoder", "decoder")

OKA = "Oka et al. (2026), abstract: a base set to the training length improves extrapolation"
FAR = "ours: five pairs tell distances at base 10; at 10,000 two do, and whole turns of both meet after 19 tokens"
NEAR = "ours: a key 19 after the target has its phase at base 10,000, within rows of 24; at 100,000 it is one 25 after"


def _order(task, model, first, second, source, **rest):
    names = (f"{SCHEMES[base]} (model={model})" for base in (first, second))
    return Order(task, *names, source, metric="token", **rest)


published = [
    *(_order(task, "decoder", 16.0, 10000.0, OKA, seen="copy") for task in TASKS),
    *(_order(task, model, 10.0, 10000.0, FAR, over=(256,), origin="ours") for task in TASKS for model in MODELS),
    *(_order(task, "encoder", 100000.0, 10000.0, NEAR, over=(24,), origin="ours") for task in TASKS),
]

titles = {"token_k_back(k=3)": "Token three places back", "token_k_back(k=5)": "Token five places back"}
counted = "tokens"
plan = Plan(steps=1000, seeds=(0, 1, 2, 3, 4, 5), lr=(1e-3, 3e-3), sizes=(8, 16, 20, 24, 32, 64, 128, 256))


def runs():
    base = Run(length=16, width=64, depth=2, heads=4, hidden=128, batch=32)
    return [
        run
        for task, back in TASKS.items()
        for run in grid(base, task=[task], model=MODELS, shortest=[back + 1], scheme=SCHEMES.values())
    ]
