"""In encoders RoPE aliases beyond the trained length; with base 10 it finds most offsets at 16 times that length.

A score under RoPE is a sum of cosines of the distance. If whole turns of its fast pairs meet, a wrong key has the
phases of the right one: an alias. With a larger base fewer pairs turn over the trained distances, and aliases are
nearer. Six of eight turn at base 10, and two at 10,000; docs/rope-aliases.md has the arithmetic. The tasks are the
token three and five back, with bases from 10 to 100,000. Encoders and decoders train on up to 16 tokens and are
evaluated on up to 256. Six seeds left an order undecided, so every setting was given four more.

Source: Oka et al. (2026), Frequency Bands in RoPE, ICLR: a base near the training length extrapolates better, a larger
one worse. Xiaoran Liu et al. (2023), Scaling Laws of RoPE-based Extrapolation, arXiv 2310.05209, find a smaller base
and a larger one better after fine-tuning, which is not done here. The tasks and the arithmetic are ours.

Setting: two layers of width 64, heads of 16 features, 16 tokens. The papers have language models, measured in
perplexity.

Cost: 77 minutes on 2 cores by --dry-run.

Command: posenc sweep experiments/base.py

Variation: posenc sweep experiments/base.py --set length=32 sizes=16,32,40,48,64,128,256 --name doubled
"""

from posenc.lab.results.published import Order
from posenc.lab.spec.experiment import grid
from posenc.lab.spec.run import Plan, Run

BASES = (10.0, 16.0, 100.0, 1000.0, 10000.0, 100000.0)
SCHEMES = {base: "rope" if base == 10000.0 else f"rope(base={base})" for base in BASES}
TASKS = {"token_k_back(k=3)": 3, "token_k_back(k=5)": 5}
MODELS = ("encoder", "decoder")

OKA = "Oka et al. (2026), abstract: aligning the base with the training length improves extrapolation"
FAR = "ours: within 256 tokens no key comes within half the margin of the target at base 10, within a sixth at 10,000"
NEAR = "ours: a key 19 after the target is its alias at base 10,000, within rows of 24; at 100,000 one 25 after it is"


def _order(task, model, first, second, source, **rest):
    names = (f"{SCHEMES[base]} (model={model})" for base in (first, second))
    return Order(task, *names, source, metric="token", **rest)


published = [
    *(_order(task, "decoder", 16.0, 10000.0, OKA, seen="paper") for task in TASKS),
    *(_order(task, model, 10.0, 10000.0, FAR, over=(256,), origin="ours") for task in TASKS for model in MODELS),
    *(_order(task, "encoder", 100000.0, 10000.0, NEAR, over=(24,), origin="ours") for task in TASKS),
]

titles = {"token_k_back(k=3)": "Token three positions back", "token_k_back(k=5)": "Token five positions back"}
counted = "tokens"
HEAD, LENGTH, ROW, WITHIN = 16, 16, 64, 0.5
plan = Plan(steps=1000, seeds=tuple(range(10)), lr=(1e-3, 3e-3), sizes=(8, 16, 20, 24, 32, 64, 128, 256))
reading = """
At length 256, 16 times the trained length, encoders with base 10 find
{token_k_back(k=3)|rope(base=10.0) (model=encoder)|256} of the tokens three back. With base 10,000 they find
{token_k_back(k=3)|rope (model=encoder)|256}, and every seed is behind. Decoders show the same order:
{token_k_back(k=3)|rope(base=10.0) (model=decoder)|256} against {token_k_back(k=3)|rope (model=decoder)|256}. Encoders
fall in steps where arithmetic predicts an alias, decoders fall smoothly. The rate matters at this length: decoders
with base 16 find {token_k_back(k=3)|rope(base=16.0) (model=decoder)|256|lr=0.001} at 0.001 and
{token_k_back(k=3)|rope(base=16.0) (model=decoder)|256|lr=0.003} at 0.003.
"""


def runs():
    base = Run(length=LENGTH, width=4 * HEAD, depth=2, heads=4, hidden=128, batch=32)
    return [
        run
        for task, back in TASKS.items()
        for run in grid(base, task=[task], model=MODELS, shortest=[back + 1], scheme=SCHEMES.values())
    ]


def figure(results):
    """Accuracy by position in a row of 64, over the aliases that arithmetic predicts; below, all tokens by size."""
    from posenc.lab.figures import style
    from posenc.lab.figures.captions import numbers
    from posenc.lab.figures.panel_captions import ending
    from posenc.lab.figures.panels import Drawing

    place_shares, size_shares = read(results)
    runs = numbers(len(values) for points in place_shares.values() for values in points.values())
    with style.canvas(style.PAGE_WIDTH, 6.3) as page:
        above, below = page.subfigures(2, 1, height_ratios=[3, 2])
        draw_places(above, place_shares)
        draw_sizes(below, size_shares)
    about = (
        f"Above: accuracy for the token {' or '.join(f'{back} positions back' for back in TASKS.values())} (up) against"
        f" position (along) in rows of {ROW}, by base; the darker the ground, the more and the stronger aliases of an"
        f" encoder are in view, by arithmetic alone; n = {runs} runs.\nBelow: accuracy over all tokens (up) against"
        " tokens (along). Lines are medians of seeds, bands their exact 95% interval."
    )
    return Drawing(page, "\n".join([about, *ending(results)]))


def read(results):
    """By task, model and base, one value for each seed: the shares at each place of rows of 64, and at each size."""
    from posenc.lab.figures.curves import at_chosen_rates
    from posenc.lab.metrics import share
    from posenc.lab.results.rates import seed_values

    bases = {scheme: base for base, scheme in SCHEMES.items()}
    place_shares, size_shares = {}, {}
    for task, label, trial in at_chosen_rates(results):
        scheme, _, settings = label.partition(" (model=")
        key = task.label, settings.removesuffix(")") or MODELS[0], bases[scheme]
        run = trial.knobs.lr, trial.knobs.seed
        if ROW in (trial.places or {}):
            width, scored = task.places[ROW]["width"], task.places[ROW]["scored"]
            for n, (right, of) in enumerate(zip(trial.places[ROW]["right"], scored, strict=True)):
                if of:
                    place = n * width + (width - 1) / 2  # the middle of a bin
                    place_shares.setdefault(key, {}).setdefault(place, {})[run] = right / of
        for size, counts in trial.evaluations.items():
            size_shares.setdefault(key, {}).setdefault(size, {})[run] = share(counts, "token")
    return tuple({key: seed_values(of) for key, of in shares.items()} for shares in (place_shares, size_shares))


def draw_places(figure, place_shares):
    """A row for each task, a column for each base, a line for each model."""
    from posenc.lab.explain import aliases
    from posenc.lab.explain.alias_figure import shade
    from posenc.lab.figures import style
    from posenc.lab.figures.panels import line, shares

    looks = {
        "encoder": style.Look(style.HUES["rotary"], "", "-"),
        "decoder": style.Look(style.HUES["absolute"], "", "-"),
    }
    grid = figure.subplots(len(TASKS), len(BASES), sharex=True, sharey=True)
    for row, (task, back) in zip(grid, TASKS.items(), strict=True):
        for axes, base in zip(row, BASES, strict=True):
            head = aliases.widest_head(aliases.frequencies(SCHEMES[base], HEAD, LENGTH), back, LENGTH)
            shade(axes, aliases.stretches(aliases.find_aliases(head, ROW, WITHIN), back, ROW), WITHIN)
            for model, look in looks.items():
                if points := place_shares.get((task, model, base)):
                    line(axes, points, look, model)
            shares(axes)
            axes.set(xlim=(0, ROW - 1), xticks=[0, 20, 40, 60])
            axes.set_xlabel("position" * (task == [*TASKS][-1]))
        row[0].set_ylabel(f"{back} positions back")
    for axes, base in zip(grid[0], BASES, strict=True):
        axes.set_title(f"base {base:,.0f}", size=8)
    style.legend(figure, looks)


def draw_sizes(figure, size_shares):
    """A panel for each task and model, a line for each base."""
    from posenc.lab.figures import style
    from posenc.lab.figures.panels import along, bracket, line, shares

    looks = style.looks((f"base {base:,.0f}", "rotary") for base in BASES)
    panels = [(task, model) for task in TASKS for model in MODELS]
    for axes, (task, model) in zip(figure.subplots(1, len(panels), sharey=True), panels, strict=True):
        for base in BASES:
            if points := size_shares.get((task, model, base)):
                line(axes, points, looks[f"base {base:,.0f}"], f"base {base:,.0f}")
        sizes = sorted({size for key, points in size_shares.items() if key[:2] == (task, model) for size in points})
        if sizes:
            along(axes, sizes, "tokens", log=True)
            powers = [size for size in sizes if size.bit_count() == 1]
            axes.set_xticks(powers, map(str, powers), size=7)
            bracket(axes, TASKS[task] + 1, LENGTH)
        shares(axes)
        axes.set_title(f"{model}, {TASKS[task]} back", size=8, pad=18)
    figure.axes[0].set_ylabel("all tokens")
    style.legend(figure, looks)
