"""What trained heads look at, for each scheme of `first_look`: python experiments/figures/patterns.py [RUN] [FOLDER]

With a run that kept its parameters, its weights are measured first and written beside the records. The committed ones
are of `posenc sweep experiments/first_look.py --only "task=token_k_back(k=3)" --seeds 1 --keep --name patterns`; those
sums were measured later than the heads, on the same trials trained again.
"""

import csv
import sys
from pathlib import Path

import numpy as np

from posenc.lab.explain import aliases, diagonals
from posenc.lab.explain.alias_figure import ALIAS
from posenc.lab.figures.files import render
from posenc.lab.store import disk

FOLDER = Path(__file__).resolve().parent
HEADS = FOLDER.parent / "records" / "first_look.patterns.csv"
SUMS = FOLDER.parent / "records" / "first_look.sums.csv"
TOKENS, BACK, TRAINED, FEATURES = 24, 3, 16, 16


def measure(run):
    """Write the weights of the head of each scheme that looks most three positions back, and the sum over all heads: a
    row for each query."""
    heads, sums = [], []
    for one in diagonals.diagonals(run, TOKENS):
        for query in range(TOKENS):
            heads.append((one.scheme, one.layer, one.head, query, *(f"{w:.3f}" for w in one.weights[query])))
            sums.append((one.scheme, query, *(f"{w:.3f}" for w in one.total[query])))
    for path, names, rows in ((HEADS, ("scheme", "layer", "head"), heads), (SUMS, ("scheme",), sums)):
        with path.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([(*names, "query", *range(TOKENS)), *rows])


def measured():
    """The heads and the sums of the committed files."""
    totals = {scheme: weights for (scheme,), weights in _read(SUMS, "scheme").items()}
    heads = _read(HEADS, "scheme", "layer", "head")
    return [
        diagonals.Diagonal(scheme, int(layer), int(head), BACK, TRAINED, weights, totals[scheme])
        for (scheme, layer, head), weights in heads.items()
    ]


def _read(path, *names):
    """What these columns hold to the weights of its queries on its keys."""
    rows = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            weights = [float(row[str(key)]) for key in range(TOKENS)]
            rows.setdefault(tuple(row[name] for name in names), []).append(weights)
    return {key: np.array(weights) for key, weights in rows.items()}


def main(run=None, folder=FOLDER):
    """Measure, if a run is given, and draw as SVG, PDF and PNG, with a caption."""
    if run is not None:
        measure(run)
    panels = measured()
    head = aliases.widest_head(aliases.frequencies("rope", FEATURES, TRAINED), BACK, TRAINED)
    near = [alias.distance for alias in aliases.find_aliases(head, TOKENS)]
    figure, about = diagonals.draw(panels), diagonals.caption(panels)
    for axes in figure.axes[[one.scheme for one in panels].index("rope") :: len(panels)]:
        for distance in near:  # beside the end of its diagonal
            ahead = distance > 0
            place = (distance - 1, 1.5) if ahead else (TOKENS + distance + 0.5, TOKENS - 2)
            axes.text(*place, f"{distance:+}", ha="right" if ahead else "left", va="center", size=6.5, color=ALIAS)
    for kind in ("svg", "pdf", "png"):
        disk.write(Path(folder) / f"patterns.{kind}", render(figure, kind, "patterns", about))
    said = (
        f"Orange: aliases of rope, by arithmetic alone, at {' and '.join(f'{d:+}' for d in near)} from the query, where"
        f" a key has nearly the phases of the one {BACK} positions back."
    )
    caption = f"{about}\n{said} One seed of each scheme; weights from {HEADS.name} and {SUMS.name}.\n"
    disk.write(Path(folder) / "patterns.caption.txt", caption.encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
