"""Schemes of distance do not notice where a text begins, if what is before it is masked, before training and after.

A whole model is measured twice, untrained and trained. The first is how much its outputs change when a text is moved
further along, with the tokens before it masked. The second is how much its last output changes when one earlier token
is replaced. Then the trained model's accuracy behind fillers is measured, at offsets beyond the trained ones.

Source: Vaswani et al. (2017), Press et al. (2022), Su et al. (2021) and others state what each scheme depends on;
`posenc list` shows it. A function of distances does not change under translation, by arithmetic.

Setting: decoders of two layers and width 64 on a task of ours, the token three positions back, behind 1 to 8 fillers.

Cost: about 40 minutes on one core.

Command: posenc sweep experiments/invariance.py --keep, then python experiments/invariance.py runs/invariance, which
writes its measurements beside the record

Variation: posenc sweep experiments/invariance.py --set steps=2000 --name longer
"""

import csv
from pathlib import Path

from posenc.lab.results.published import Order
from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import Plan, Run

SCHEMES = ["nope", "sinusoidal", "learned", "t5", "alibi", "kerple", "fire", "sandwich", "rope", "xpos", "cope", "fox"]
TASK = "shifted(task='token_k_back(k=3, symbols=16)', size=16)"
MEASURED = Path(__file__).parent / "records" / "invariance.measured.csv"
SHIFTS, LENGTH, ROWS = (1, 2, 4, 8, 16, 32, 64, 128), 16, 64

published = [
    Order(TASK, relative, absolute, "distances do not change under translation", metric="last", origin="ours")
    for relative in ("t5", "alibi", "rope")
    for absolute in ("sinusoidal", "learned")
]

titles = {TASK: "Token three positions back, behind fillers"}
counted = "fillers"
plan = Plan(steps=600, seeds=(0, 1, 2, 3, 4, 5), lr=(3e-3,), sizes=(1, 4, 8, 12, 16, 32, 64, 128))
reading = """
T5, ALiBi, KERPLE and RoPE do not change their outputs when a text moves behind masked tokens (see the figure).
Learned and sinusoidal encodings and FIRE do change them. The first two solve 8 fillers ({|learned|8},
{|sinusoidal|8}) and fail behind 12 ({|learned|12}, {|sinusoidal|12}). Invariance is not enough for distance tasks.
xPos reaches {|xpos|128} behind 128 visible fillers, RoPE {|rope|128} with seeds from {|rope|128|min}, and T5
{|t5|128}.
"""


def runs():
    base = Run(task=TASK, model="decoder", width=64, depth=2, heads=4, hidden=128, batch=32, length=8, longest=144)
    return grid(base, scheme=SCHEMES)


def figure(results):
    """Draw rows of schemes: accuracy behind seen fillers, and the change under translation and the influence of trained
    models."""
    from statistics import median

    from posenc.lab.figures.panel_captions import plain_caption
    from posenc.lab.figures.panels import Drawing
    from posenc.lab.figures.rows import Dots, Grid, rows
    from posenc.lab.results.floors import floors
    from posenc.lab.results.statistics import cells

    shown = {c.scheme: c.values for c in cells(results) if c.n}
    far, most = max(n for of in shown.values() for n in of), max(SHIFTS)
    (task,) = results.tasks().values()
    up, here = "accuracy (last token)", floors(task).get(far, {})
    parts = [Dots(f"Behind {far} fillers, seen", up, {s: of[far] for s, of in shown.items()}, here)]
    before, after = ({s: of[most] for s, of in _read("moved", state).items()} for state in ("untrained", "trained"))
    if after:
        parts.append(Dots(f"Moved by {most}, masked", "change of outputs", after))
    if found := _read("influence", "trained"):
        shares = {s: {x: median(values) for x, values in of.items()} for s, of in found.items()}
        parts.append(Grid("Influence of a token", "positions back", shares))
    notice = {s: median(values) for s, values in before.items() if max(values) > 1e-4}
    said = (
        f"{TASK}: {up} behind {far} fillers, of which at most 8 were trained; change of outputs (along), the mean total"
        f" variation between what a trained model says of a text and of the same text {most} positions further along,"
        " where what is before it is masked; and the influence of the token so many positions back (along), the change"
        " of the last output when it is another, the median of models from 0 (white) to 1 (dark blue), from"
        f" records/{MEASURED.name}. Before training a move by {most} changes only outputs of"
        f" {', '.join(f'{s} ({v:.2g})' for s, v in notice.items()) or 'none'}"
    )
    return Drawing(rows([s for s in SCHEMES if s in shown], parts), plain_caption(results, said, {}))


def meter():
    """Return a function of a model that measures its outputs when a text is moved, or one token is another. It gives
    (what, x, value).

    Models of one scheme share what it compiles.
    """
    import jax
    import jax.numpy as jnp

    from posenc.lab.models.interface import Inputs

    symbols, total = 16, LENGTH + max(SHIFTS)
    words, others = jax.random.split(jax.random.key(0))
    x = jax.random.randint(words, (ROWS, LENGTH), 0, symbols)
    other = (x + 1 + jax.random.randint(others, x.shape, 0, symbols - 1)) % symbols

    @jax.jit
    def outputs(model, text, shift):
        place = jnp.arange(total) - shift
        real = jnp.broadcast_to((place >= 0) & (place < LENGTH), (ROWS, total))
        tokens = jnp.where(real, jnp.take(text, jnp.clip(place, 0, LENGTH - 1), axis=1), 0)
        probabilities = jax.nn.softmax(model(Inputs(tokens, real), jax.random.key(0)), -1)
        return jax.lax.dynamic_slice_in_dim(probabilities, shift, LENGTH, 1)

    def change(a, b):
        return float(0.5 * jnp.abs(a - b).sum(-1).mean())

    def measure(model):
        plain = outputs(model, x, 0)
        found = [("moved", shift, change(outputs(model, x, shift), plain)) for shift in SHIFTS]
        for back in range(LENGTH):
            place = LENGTH - 1 - back
            another = outputs(model, x.at[:, place].set(other[:, place]), 0)
            found.append(("influence", back, change(another[:, -1], plain[:, -1])))
        return found

    return measure


def main(run):
    """Measure every model that a sweep kept, and the same before its first step; write both as CSV."""
    import jax

    from posenc.lab.models.interface import build
    from posenc.lab.reuse.kept import restored
    from posenc.lab.run import plan
    from posenc.lab.store import checkpoints
    from posenc.lab.store import folder as store

    folder, rows, measure = store.find(run), [], meter()
    kept = set(checkpoints.kept(folder))
    for line in store.read_plan(folder):
        if line.id in kept:
            resolved, seed = plan.planned_run(line.run), line.knobs.seed
            make = jax.jit(lambda key, resolved=resolved: build(resolved.scheme, resolved.shape, key))
            start = make(jax.random.fold_in(jax.random.key(seed), 0))
            for state, model in (("untrained", start), ("trained", restored(resolved, folder, line.id))):
                for what, x, value in measure(model):
                    rows.append((line.label, state, seed, what, x, round(value, 5)))
    with MEASURED.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("scheme", "state", "seed", "what", "x", "value"))
        writer.writerows(sorted(rows))
    print(f"{MEASURED}: {len(rows)} measurements of {len(kept)} trials")


def _read(what, state):
    """Scheme to place to one value for each seed, of what was measured."""
    points: dict[str, dict[int, list[float]]] = {}
    if MEASURED.is_file():
        with MEASURED.open(newline="") as file:
            for row in csv.DictReader(file):
                if (row["what"], row["state"]) == (what, state):
                    points.setdefault(row["scheme"], {}).setdefault(int(row["x"]), []).append(float(row["value"]))
    return points


if __name__ == "__main__":
    import sys

    main(*sys.argv[1:])
