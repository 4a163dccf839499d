"""The figure of the README, from committed records: python experiments/figures/front.py [FOLDER]

Two probes at the last token of a row, and sorting with its floors.
"""

import sys
from dataclasses import replace
from pathlib import Path

from posenc.lab.figures.across import panels
from posenc.lab.figures.figures import save, size_panel
from posenc.lab.figures.own import worded
from posenc.lab.results.results import load
from posenc.lab.results.statistics import cells
from posenc.lab.spec.experiment_file import from_file

EXPERIMENTS = Path(__file__).resolve().parent.parent
PARTS = (("first_look", "token_k_back(k=3)"), ("first_look", "index_of_token(indices=8)"), ("length", "bucket_sort"))


def front():
    """The figure with its caption, and the results that it shows."""
    made, shown, names = [], [], {}
    for letter, (name, task) in zip("abc", PARTS, strict=True):
        results = worded(from_file(EXPERIMENTS / f"{name}.py"), load(EXPERIMENTS / "records" / f"{name}.json"))
        results = results.only(task=task)
        panel = size_panel(results, results.tasks()[task], [c for c in cells(results) if c.n])
        made.append(replace(panel, title=f"({letter}) {panel.title}"))
        shown.append(results)
        names |= results.words.names
    records = tuple(record for results in shown for record in results.records)
    together = replace(shown[0], name="front", records=records, words=replace(shown[0].words, names=names))
    return panels(together, made), together


def main(folder=EXPERIMENTS / "figures"):
    """Write the figure as SVG, PDF and PNG, with its numbers and its caption."""
    drawing, results = front()
    for path in save(drawing.figure, Path(folder), "front", results, drawing.caption):
        print(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
