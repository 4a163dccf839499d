"""What trained heads look at, for each scheme of `first_look`: python experiments/figures/patterns.py [RUN] [FOLDER]

With a run that kept its parameters, its weights are measured first and written beside the records. The committed ones
are of `posenc sweep experiments/first_look.py --only "task=token_k_back(k=3)" --seeds 1 --keep --name patterns`.
"""

import csv
import sys
from pathlib import Path

import numpy as np

from posenc.lab.explain import diagonals
from posenc.lab.figures.files import drawn
from posenc.lab.store import disk

FOLDER = Path(__file__).resolve().parent
MEASURED = FOLDER.parent / "records" / "first_look.patterns.csv"
TOKENS, BACK, TRAINED = 24, 3, 16


def measure(run):
    """Write the weights of the head of each scheme that looks most three places back: a row for each query."""
    with MEASURED.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("scheme", "layer", "head", "query", *range(TOKENS)))
        for one in diagonals.diagonals(run, TOKENS):
            for query, weights in enumerate(one.weights):
                writer.writerow((one.scheme, one.layer, one.head, query, *(f"{weight:.3f}" for weight in weights)))


def measured():
    """The heads of the committed file."""
    found = {}
    with MEASURED.open(newline="") as file:
        for row in csv.DictReader(file):
            weights = [float(row[str(key)]) for key in range(TOKENS)]
            found.setdefault((row["scheme"], int(row["layer"]), int(row["head"])), []).append(weights)
    return [diagonals.Diagonal(*key, BACK, TRAINED, np.array(weights)) for key, weights in found.items()]


def main(run=None, folder=FOLDER):
    """Measure, if a run is given, and draw as SVG, PDF and PNG, with a caption."""
    if run is not None:
        measure(run)
    found = measured()
    figure, about = diagonals.draw(found), diagonals.about(found)
    for kind in ("svg", "pdf", "png"):
        disk.write(Path(folder) / f"patterns.{kind}", drawn(figure, kind, "patterns", about))
    caption = f"{about} One seed of each scheme; parameters from {MEASURED.name}.\n"
    disk.write(Path(folder) / "patterns.caption.txt", caption.encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
