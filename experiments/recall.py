"""Attention recalls a value by its key, where states of fixed size do not; a fixed convolution cannot choose.

In MQAR several keys appear again among fillers, and the model names their values. In selective copying symbols are
scattered among blanks, and the model writes them in order. Schemes differ little, since keys are found by content;
selective copying also needs the order.

Source: Arora et al. (2024), Zoology, arXiv 2312.04927, figure 2. There attention solves MQAR at every width, gated
convolutions and RWKV only if they are wide. Gu and Dao (2024), Mamba, arXiv 2312.00752, §3.1 and E.1, for selective
copying. Its table 1 has no model of ours, so the orders on it are ours.

Setting: width 64, 64 symbols in place of 8192, and 8 pairs in 64 tokens in place of 4 to 64 in up to 512. Selective
copying has 4 symbols out of 64 tokens in place of 16 out of 4096. GRU, LSTM and a convolution without gates stand for
the models of figure 2. A convolution of two taps comes before every model. It puts a key and its value into one token,
the work of attention's first layer (`--set stem=none --name without` leaves it out).

Cost: about 75 minutes on one core.

Command: posenc sweep experiments/recall.py

Variation: posenc sweep --preset mqar --grid scheme=learned,nope,rope width=64,128,256,512
"""

from posenc.lab.results.published import Order, Published
from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import Plan, Run

MQAR, COPY = "mqar(symbols=64, pairs=8)", "selective_copy(data=4, symbols=8)"
SCHEMES, NETWORKS = ["nope", "learned", "rope"], ["gru", "lstm", "convolution"]

ZOOLOGY = "Arora et al. (2024), figure 2"
INSTEAD = f"{ZOOLOGY}, of gated convolutions and RWKV, for which it stands"
CHOOSES = "what is the same at every token cannot choose which to copy"
published = [
    Published(MQAR, "learned (model=decoder)", 0.99, ZOOLOGY, relation="at least", over="trained", seen="paper"),
    *(
        Order(MQAR, "learned (model=decoder)", f"nope (model={network})", INSTEAD, over="trained", seen="paper")
        for network in NETWORKS
    ),
    *(
        Order(COPY, chooser, "nope (model=convolution)", CHOOSES, over="trained", origin="ours")
        for chooser in ("rope (model=decoder)", "nope (model=lstm)")
    ),
]

titles = {MQAR: "Values by their keys", COPY: "Symbols among blanks"}
names = {"nope": "attention, no positions"}
counted = "tokens"
metric = {MQAR: "accuracy"}  # of all its keys, none of which is later than another by rule
plan = Plan(steps=1500, seeds=(0, 1, 2, 3, 4, 5), lr=(3e-3,), sizes=(64, 96, 128))
reading = """
Attention recalls values at twice the trained length ({mqar|rope|128} with RoPE). GRU and LSTM stay at
{mqar|nope (model=gru)|64} and {mqar|nope (model=lstm)|64}; their training may be too short. Selective copying shows
the opposite: at 128 tokens GRU copies {selective_copy|nope (model=gru)|128}, LSTM
{selective_copy|nope (model=lstm)|128}, and RoPE {selective_copy|rope|128}. RoPE copies {selective_copy|rope|64} at
the trained length.
"""


def runs():
    base = Run(model="decoder", width=64, depth=2, batch=32, length=64, shortest=64, buckets=1, stem="conv(k=2)")
    tasks = [MQAR, COPY]
    return [*grid(base, task=tasks, scheme=SCHEMES), *grid(base, task=tasks, scheme=["nope"], model=NETWORKS)]
