"""To recall a value by its key is attention's; a state of fixed size runs out, and a fixed convolution cannot choose.

Several keys asked for anew among fillers (MQAR), and symbols scattered among blanks to be said in order (selective
copying). Between schemes there is little, since keys are found by content; selective copying needs to know the order.

Source: Arora et al. (2024), Zoology, arXiv 2312.04927, figure 2: attention solves MQAR at every width, gated
convolutions only where they are wide; Gu and Dao (2024), Mamba, arXiv 2312.00752, table 1: convolutions that are the
same at every token fail at selective copying.
Setting: width 64, 64 symbols for 8192, 8 pairs in 64 tokens for 4 to 64 in up to 256; 4 symbols to copy out of
64 tokens for 16 out of 4096. Recurrent networks and a convolution stand for theirs. Before every model stands a
convolution of two taps, which puts a key and its value into one token: what attention needs its first layer for
(`--set stem=none --name bare` leaves it out).
Cost: about 30 minutes on 2 cores, estimated and not measured.
Command: posenc sweep experiments/recall.py
Variation: posenc sweep --preset mqar --grid scheme=learned,nope,rope width=64,128,256,512
Result: not run.
"""

from posenc.lab.experiment import grid
from posenc.lab.published import Order, Published
from posenc.lab.run import Plan, Run

MQAR, COPY = "mqar(symbols=64, pairs=8)", "selective_copy(data=4, symbols=8)"
SCHEMES, NETWORKS = ["nope", "learned", "rope"], ["gru", "lstm", "convolution"]

ZOOLOGY, MAMBA = "Arora et al. (2024), figure 2", "Gu and Dao (2024), table 1"
published = [
    Published(MQAR, "learned (model=decoder)", 0.99, ZOOLOGY, relation="at least", over="trained"),
    *(
        Order(MQAR, "learned (model=decoder)", f"nope (model={network})", ZOOLOGY, over="trained")
        for network in NETWORKS
    ),
    Order(COPY, "rope (model=decoder)", "nope (model=convolution)", MAMBA, over="trained"),
    Order(COPY, "nope (model=lstm)", "nope (model=convolution)", MAMBA, over="trained"),
]

plan = Plan(steps=1500, seeds=(0, 1, 2), lr=(3e-3,), sizes=(64, 96, 128))


def runs():
    base = Run(model="decoder", width=64, depth=2, batch=32, length=64, shortest=64, buckets=1, stem="conv(k=2)")
    tasks = [MQAR, COPY]
    return [*grid(base, task=tasks, scheme=SCHEMES), *grid(base, task=tasks, scheme=["nope"], model=NETWORKS)]
