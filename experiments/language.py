"""Beyond the trained length a flat loss is that of a window or of the whole context: exact losses tell which.

The text copies parts of itself, its least loss is known token by token, and half a nat lies more than 64 tokens back.
`language_control` has a source whose memory ends after 16 tokens, on which every local scheme must be flat.

Source: ours. The orders are those of perplexity on text. Press et al. (2022), ALiBi. Chi et al. (2022), KERPLE. Chi et
al. (2023), Sandwich. Sun et al. (2023), xPos. Li et al. (2024), FIRE. Lin et al. (2025), FoX. Tan et al. (2025),
stick-breaking. Peng et al. (2024) and Su (2023), of RoPE stretched without training. They are from memory but for xPos
and FoX, read in the papers, and ALiBi, whose caption others quote. Haviv et al. (2022) say in their introduction that
models without positions come near those with them inside the trained length. That is likeness, and so not among the
orders.

Setting: two layers of width 64, four heads, 2,000 steps of 16 rows. Texts have 64 tokens of 16 symbols, in place of 512
and more of text. A convolution of three taps comes before every model; without it copies are hardly learned in these
steps. Nats of papers do not compare with these.

Cost: about 3 hours of one core.

Command: posenc sweep experiments/language.py --only scheme=rope --keep, then posenc sweep experiments/language.py. Then
python experiments/language.py language evaluates the kept models of RoPE under the schemes that stretch it and writes
the record.

Variation: posenc sweep experiments/language.py --set stem=none steps=8000 batch=32 --name without
"""

from pathlib import Path

from posenc.lab.results.published import Order
from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import WITH, Plan, Run

RECORD = Path(__file__).parent / "records" / "language.json.gz"

COPIES = "copies"
SCHEMES = "nope sinusoidal learned rope alibi kerple sandwich fire t5 xpos fox stick_breaking cope".split()
NEAR, FAR = (128, 256), (512, 1024)
STRETCHED = {"ntk": "ntk", "yarn": "yarn", "rerope": "rerope(window=32)"}
STRETCHED |= {"log_n": "log_n + rope"}
"""Schemes under which RoPE's parameters are evaluated, for four times the length; YaRN without its further training."""
SHOWN = "nope sinusoidal rope alibi t5 kerple fire fox".split()
"""Schemes that one panel can hold; "nope" is the LSTM too. Results without any of them are drawn whole."""

plan = Plan(steps=2000, seeds=(0, 1, 2, 3, 4, 5), lr=(1e-3, 3e-3), sizes=(64, 128, 256, 512, 1024), rows=256)
titles = {COPIES: "A text that copies itself"}
names = {"nope (model=lstm)": "LSTM"}
counted = "tokens"


def _order(first, second, source, **rest):
    labels = (f"{scheme} (model=decoder)" for scheme in (first, second))
    return Order(COPIES, *labels, source, **({"metric": "gain", "seen": "memory"} | rest))


published = [
    _order("alibi", "sinusoidal", "Press et al. (2022), caption of figure 1, of longer inputs", seen="copy"),
    _order("kerple", "alibi", "Chi et al. (2022), of perplexity beyond the trained length"),
    _order("sandwich", "rope", "Chi et al. (2023), of perplexity beyond the trained length"),
    _order("xpos", "rope", "Sun et al. (2023), table 1, of length extrapolation", seen="paper"),
    _order("fire", "alibi", "Li et al. (2024), of perplexity at two and four times the trained length", over=NEAR),
    _order("fire", "kerple", "Li et al. (2024), of perplexity at two and four times the trained length", over=NEAR),
    _order("fox", "rope", "Lin et al. (2025), abstract, of length extrapolation", seen="paper"),
    _order("stick_breaking", "rope", "Tan et al. (2025), of perplexity beyond the trained length"),
    _order(f"{STRETCHED['ntk']}{WITH}rope", "rope", "Peng et al. (2024), §3.1, without further training", over=NEAR),
    _order(f"{STRETCHED['rerope']}{WITH}rope", "rope", "Su (2023), table 1, without further training", over=NEAR),
    _order(
        "nope",
        "alibi",
        "a penalty on distance ends in a window, and a copy may stand anywhere; so it was in a pilot of one seed",
        over=FAR,
        origin="ours",
        seen=None,
    ),
]
reading = """
No scheme keeps its loss beyond the trained length. At 1,024 tokens FIRE gains {|fire (model=decoder)|1024} of what
there is to gain and RoPE {|rope (model=decoder)|1024}; at the trained 64 both gain about {|rope (model=decoder)|64}.
FIRE matches an optimal predictor with {|fire (model=decoder)|1024|memory} tokens of context, ALiBi one with
{|alibi (model=decoder)|1024|memory}, and RoPE one with {|rope (model=decoder)|1024|memory}. Stretched without
training, YaRN gains {|yarn, trained with rope (model=decoder)|256} at 256 tokens, where RoPE gains
{|rope (model=decoder)|256}. FIRE is ahead of KERPLE in every seed, but by less than the tolerance.
"""


def runs():
    sizes = {"length": 64, "shortest": 64, "longest": 1024, "buckets": 1}
    base = Run(task=COPIES, model="decoder", width=64, depth=2, heads=4, batch=16, stem="conv(k=3)", **sizes)
    return [*grid(base, scheme=SCHEMES), *grid(base, scheme=["nope"], model=["lstm"])]


def figure(results):
    """The excess over the exact loss by place, and what readers of 16 and 64 tokens lose."""
    from posenc.lab.figures.curves import excess_curve

    shown = results.only(scheme=SHOWN)
    return excess_curve(shown if shown.records else results)


def main(run):
    """Evaluate the kept models of RoPE under what stretches it, and write all as one record."""
    from posenc.lab.results.results import load
    from posenc.lab.reuse.evaluate import ask
    from posenc.lab.store import folder as store
    from posenc.lab.store.records import write_bundle

    results = load(store.find(run))
    kept = results.only(scheme="rope")
    stretched = ask(kept, schemes=[*STRETCHED.values()], sizes=(64, *NEAR))
    write_bundle(RECORD, results.name, (*results.records, *stretched.records), results.unfinished)


if __name__ == "__main__":
    import sys

    main(*sys.argv[1:])
