"""Rescaled rotations extend the context of a model trained with RoPE: some without training, most after a little.

Decoders are trained under RoPE on up to 16 tokens. Then ten methods extend their context to 2, 4, 8 and 16 times as
much. Some runs have no further training: the same parameters are evaluated under another scheme. Others train as many
steps again at 8 times the length. The tasks are the token three back, recall by key (MQAR), and a needle among fillers.

Source: Chen et al. (2023), Position Interpolation, arXiv 2306.15595. bloc97 (2023), NTK-aware scaling. emozilla (2023),
dynamic NTK. Peng et al. (2024), YaRN, arXiv 2309.00071. Ding et al. (2024), LongRoPE, arXiv 2402.13753. Llama 3.1. Jin
et al. (2024), SelfExtend, arXiv 2401.01325. Su (2023), ReRoPE, kexue.fm/archives/9708.

Setting: two layers and width 64 in place of 32 and 4096, 16 tokens in place of 2048 and more, and accuracy on tasks in
place of perplexity on text. The base stays 10,000. So one of eight pairs turns within 16 tokens; 45 of 64 do within the
4096 of Llama 2. RoPE fails beyond all the same. In a pilot of one seed, right in every row of 16 tokens, it had 0.58,
0.77 and 0.54 of the answers at 256. Ramps in turns keep that pair and divide the others. Those of yarn and by_parts are
as published, and that of llama3 goes from 1 to 2 turns. Windows are half the length, for self_extend and rerope, and
groups as large as the factor needs. LongRoPE's factors come from a search that is not made here. Here longrope is pi
beyond 16 tokens, with its magnitude. log n scales the scores of a model that was trained without it, where Su trained
with it. As in recall.py, a convolution of two taps comes before the model of recall.

Cost: about 2 hours and a half on one core, a third for each task.

Command: posenc sweep experiments/extension.py --keep, then python -m experiments.extension runs/extension, which
evaluates the kept models under the other schemes and writes the record

Variation: posenc sweep experiments/extension.py --only then=none --set scheme="rope(base=10.0)" --name turning
"""

from dataclasses import replace
from pathlib import Path

from posenc.lab.results.published import Order
from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import THEN, WITH, Plan, Run

LENGTH, FACTORS = 16, (1, 2, 4, 8, 16)
SIZES = tuple(f * LENGTH for f in FACTORS)
BACK, RECALL, NEEDLE = "token_k_back(k=3)", "mqar(symbols=64, pairs=3, power=1.0)", "needle(width=1)"
titles = TASKS = {BACK: "Token three positions back", RECALL: "Recall by key", NEEDLE: "Needle among fillers"}
SCHEMES = {
    "rope": "rope",
    "pi": "pi(factor={f}.0)",
    "ntk": "ntk(factor={f}.0)",
    "dynamic_ntk": "dynamic_ntk",
    "longrope": "longrope(factor={f}.0)",
    "log_n": "log_n + rope",
    "by_parts": "by_parts(factor={f}.0)",
    "yarn": "yarn(factor={f}.0)",
    "llama3": "llama3(factor={f}.0, high_freq_factor=2.0, base=10000.0)",
    "self_extend": "self_extend(group={group}, window=8)",
    "rerope": "rerope(window=8)",
}
"""Method to its scheme for a context `f` times as long; the groups of self_extend just reach so far."""
METHODS = {"rope": "RoPE", "pi": "PI", "ntk": "NTK", "dynamic_ntk": "dynamic NTK", "longrope": "LongRoPE"}
METHODS |= {"log_n": "log n", "by_parts": "NTK by parts", "yarn": "YaRN", "llama3": "Llama 3"}
METHODS |= {"self_extend": "SelfExtend", "rerope": "ReRoPE"}
"""The names that figures use."""
SHARE, TUNED = 0.5, 8
"""The share of the steps at 16 tokens, and the factor of what is trained after it."""
RECORD = Path(__file__).parent / "records" / "extension.json"

PENG, SU = "Peng et al. (2024)", "Su (2023), table 1"
WITHOUT = [
    ("ntk", "rope", f"bloc97 (2023); {SU}", "copy"),
    ("ntk", "pi", f"bloc97 (2023); {PENG}, §3.1", "paper"),
    ("by_parts", "ntk", f"{PENG}, §3.2", "paper"),
    ("dynamic_ntk", "rope", f"emozilla (2023); {PENG}, §3.3", "paper"),
    ("self_extend", "rope", "Jin et al. (2024), §4", "copy"),
    ("rerope", "rope", SU, "copy"),
    ("log_n", "rope", f"{SU}, of a model trained with it", "copy"),
]
"""The order of methods without further training; the source, and where it was seen."""
AFTER = [
    ("pi", "rope", "Chen et al. (2023), §3.2", "paper"),
    ("pi", "ntk", f"{PENG}, §3.1", "paper"),
    ("by_parts", "pi", f"{PENG}, §3.2", "paper"),
]
"""The order after further training, at its length. All are right there in the end, so it counts how few steps each
needs."""
FURTHER = [("yarn", "pi", f"{PENG}, §3.4", "paper")]
"""The order after further training, beyond its length."""


def scheme(method, factor):
    """Return the text of a method's scheme for a context that is `factor` times as long."""
    return SCHEMES[method].format(f=factor, group=2 * factor - 1)


def label(method, factor, tuned):
    """Return the label of a method in results: trained further at its length, or evaluated with the parameters of
    rope."""
    text = scheme(method, TUNED if tuned else factor)
    short = text.replace("factor=8.0, " if method == "llama3" else "(factor=4.0)", "")  # as it is by default
    if tuned:
        return f"rope{THEN}{short}, length={TUNED * LENGTH}"
    return short if method == "rope" else f"{short}{WITH}rope"


ONE = {("ntk", "rope"): "NTK over RoPE", ("dynamic_ntk", "rope"): "NTK over RoPE"}
"""At one length the two methods are one function."""
published = [
    Order(
        *(task, label(first, factor, tuned), label(second, factor, tuned), source, metric),
        **{"over": (factor * LENGTH,), "seen": seen, "about": about},
        fact=f"{ONE[first, second]}: {task}" if (first, second) in ONE else "",
    )
    for task, metric in ((BACK, "beyond"), (RECALL, "beyond"), (NEEDLE, None))
    for tuned, factor, orders, about in (
        (False, FACTORS[-1], WITHOUT, "score"),
        (True, TUNED, AFTER, "steps"),
        (True, FACTORS[-1], FURTHER, "score"),
    )
    for first, second, source, seen in orders
]

counted = "tokens"
plan = Plan(steps=800, seeds=(0, 1, 2, 3, 4, 5), lr=(3e-3,), sizes=SIZES)
reading = """
Without further training ReRoPE finds {|rerope(window=8), trained with rope|256} of the tokens at length 256, and RoPE
itself {|rope|256}. NTK reaches {|ntk(factor=16.0), trained with rope|256}, but YaRN only
{|yarn(factor=16.0), trained with rope|256}. Position interpolation falls to
{|pi(factor=16.0), trained with rope|256}, because neighbours are then less than a step apart. After 400 steps at
length 128 every method finds at least 0.9 there. At length 256 interpolation then reaches
{|rope, then pi(factor=8.0), length=128|256} and LongRoPE {|rope, then longrope(factor=8.0), length=128|256}.
"""


def runs():
    base = Run(model="decoder", scheme="rope", width=64, depth=2, heads=4, hidden=128, batch=32)
    base = replace(base, length=LENGTH, longest=SIZES[-1], buckets=2)
    further = [f"{SHARE} {scheme(method, TUNED)}, length={TUNED * LENGTH}" for method in SCHEMES]
    about = {BACK: (4, "none"), RECALL: (12, "conv(k=2)"), NEEDLE: (4, "none")}
    each = [replace(base, task=task, shortest=shortest, stem=stem) for task, (shortest, stem) in about.items()]
    return [run for one in each for run in grid(one, then=[None, *further])]


def figure(results):
    """Accuracy against the factor of the length: each task without further training, then after it."""
    from posenc.lab.figures.across import panels
    from posenc.lab.figures.captions import metric_named
    from posenc.lab.figures.panels import Panel
    from posenc.lab.results.floors import floors

    shown = []
    later = "after more training"
    for tuned, what in ((False, "without training"), (True, later)):
        some = replace(results, records=tuple(r for r in results.records if bool(r.run.get("then")) == tuned))
        found = {}
        for row in some.rows():
            found.setdefault((row.task, row.scheme, row.size), []).append(row.value)
        for task, record in some.tasks().items():
            points = {name: _points(found, task, method, tuned) for method, name in METHODS.items()}
            points = {name: of for name, of in points.items() if of}
            at = {f: floors(record).get(f * LENGTH, {}) for f in FACTORS}
            about = f"{later} at {TUNED} times it" if tuned else "at multiples of the length trained on"
            if "NTK" in points and points["NTK"] == points.get("dynamic NTK"):  # one function at one length
                del points["dynamic NTK"]
                about += ", where dynamic NTK has the numbers of NTK"
            panel = Panel(points, "times the length", metric_named(record.metric), f"{TASKS[task]}, {what}", about, at)
            shown += [replace(panel, log=True, ends=(0, 1), bars=True)] * bool(points)
    return panels(results, shown, most=len(METHODS), columns=max(2, len(shown) // 2))


def _points(found, task, method, tuned):
    """Factor to one value for each run; what has the factor 1 is rope."""
    each = {f: found.get((task, label(method, f, tuned), f * LENGTH)) for f in FACTORS}
    if not tuned:
        each[1] = each[1] or found.get((task, "rope", LENGTH))
    return {f: values for f, values in each.items() if values}


def main(run):
    """Evaluate the models that a sweep trained under rope alone under the other schemes; write all as one record."""
    from posenc.lab.results.results import load
    from posenc.lab.reuse.evaluate import ask
    from posenc.lab.store import folder as store
    from posenc.lab.store.records import write_bundle

    results = load(store.find(run))
    kept, found = results.only(scheme="rope"), list(results.records)
    fixed = [method for method, text in SCHEMES.items() if "{" not in text and method != "rope"]
    found += ask(kept, schemes=[scheme(method, 1) for method in fixed], sizes=SIZES).records
    for factor in FACTORS[1:]:
        stretched = [scheme(method, factor) for method in SCHEMES if "{" in SCHEMES[method]]
        found += ask(kept, schemes=stretched, sizes=(factor * LENGTH,)).records
    print(write_bundle(RECORD, results.name, tuple(found), results.unfinished))


if __name__ == "__main__":
    import sys

    main(*sys.argv[1:])
