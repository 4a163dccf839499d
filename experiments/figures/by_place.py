"""Accuracy by place in a row of 64, for each scheme of `first_look`: python experiments/figures/by_place.py [FOLDER]

Dashed lines are where arithmetic says that an alias of RoPE comes into view or leaves it; it sees no record.
"""

import sys
from pathlib import Path

from posenc.lab.explain import aliases
from posenc.lab.explain.alias_figure import mark
from posenc.lab.figures import style
from posenc.lab.figures.curves import place_curve
from posenc.lab.figures.figures import save, worded
from posenc.lab.results.results import load
from posenc.lab.spec.experiment_file import from_file

EXPERIMENTS = Path(__file__).resolve().parent.parent
TASK, BACK, HEAD, TRAINED, ROW = "token_k_back(k=3)", 3, 16, 16, 64


def stretches():
    """Those that the aliases of RoPE cut the row into."""
    head = aliases.widest_head(aliases.frequencies("rope", HEAD, TRAINED), BACK, TRAINED)
    return aliases.stretches(aliases.find_aliases(head, ROW), BACK, ROW)


def by_place():
    """The figure with its caption, and the results that it shows."""
    results = worded(from_file(EXPERIMENTS / "first_look.py"), load(EXPERIMENTS / "records" / "first_look.json"))
    results = results.only(task=TASK)
    drawing = place_curve(results)
    drawing.figure.set_size_inches(style.PAGE_WIDTH, 3.0)
    mark(drawing.figure.axes[0], stretches(), 0.29)
    about = "Dashed lines, by arithmetic alone: where an alias of RoPE comes into view or leaves it."
    return drawing.figure, f"{drawing.caption}\n{about}", results


def main(folder=EXPERIMENTS / "figures"):
    """Write the figure as SVG, PDF and PNG, with its numbers and its caption."""
    figure, caption, results = by_place()
    for path in save(figure, Path(folder), "by_place", results, caption):
        print(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
