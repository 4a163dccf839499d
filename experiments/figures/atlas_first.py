"""Fifteen well-known rows of the atlas, with titles of tasks: python experiments/figures/atlas_first.py [FOLDER]"""

import sys
from pathlib import Path

from posenc.lab.figures.atlas import atlas_drawing
from posenc.lab.figures.figures import save
from posenc.lab.spec.experiment_file import executed

FIGURES = Path(__file__).resolve().parent
ROWS = (
    "nope",
    *("sinusoidal", "learned", "fourier"),
    *("shaw", "t5(buckets=16, reach=16)", "alibi", "alibi(factor=64.0)", "kerple", "fire"),
    *("rope", "rope(base=10.0)", "rope @ random_sorted(limit=128)"),
    *("fox", "path"),
)


def main(folder=FIGURES):
    """Write the figure as SVG, PDF and PNG, with its numbers and its caption."""
    results = executed(FIGURES / "atlas_both.py").every_record()
    drawing = atlas_drawing(results, ROWS, titled=True)
    for path in save(drawing.figure, Path(folder), "atlas_first", results, drawing.caption, drawing.rows):
        print(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
