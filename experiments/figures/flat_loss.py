"""What ten models lose above the exact least by place, on copies and on a chain that a window of 16 tokens explains:
python experiments/figures/flat_loss.py [FOLDER]
"""

import sys
from dataclasses import replace
from pathlib import Path

from posenc.lab.figures.curves import excess_curve
from posenc.lab.figures.figures import save
from posenc.lab.results.results import load
from posenc.lab.results.words import Words
from posenc.lab.spec.committed import record_of
from posenc.lab.spec.experiment_file import executed, from_file

EXPERIMENTS = Path(__file__).resolve().parent.parent
COPIES, CHAIN = EXPERIMENTS / "language.py", EXPERIMENTS / "language_control.py"
SCHEMES = [*executed(COPIES).SHOWN, "learned"]


def main(folder=EXPERIMENTS / "figures"):
    """Write the figure as SVG, PDF and PNG, with its numbers and its caption."""
    copies, chain = (load(record_of(path)) for path in (COPIES, CHAIN))
    words, control = (from_file(path).words for path in (COPIES, CHAIN))
    both = replace(copies, records=(*copies.records, *chain.records)).only(scheme=SCHEMES).shown()
    both = replace(both, words=Words(**{**words, "titles": {**words["titles"], **control["titles"]}}))
    drawing = excess_curve(both)
    for path in save(drawing.figure, Path(folder), "flat_loss", both, drawing.caption):
        print(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
