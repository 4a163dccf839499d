"""Accuracy by place in a row of 64 on the offset probe, of twelve schemes of the atlas in decoders, small multiples:
python experiments/figures/atlas_places.py [FOLDER]
"""

import sys
from pathlib import Path

from posenc.lab.figures.curves import place_curve
from posenc.lab.figures.figures import save, worded
from posenc.lab.results.results import load
from posenc.lab.spec import atlas
from posenc.lab.spec.committed import record_of
from posenc.lab.spec.experiment_file import from_file

EXPERIMENT = Path(__file__).resolve().parent.parent / "atlas.py"
SCHEMES = (
    "nope",
    "learned",
    "sinusoidal",
    "rope",
    "rope(base=10.0)",
    "hope",
    "alibi(factor=64.0)",
    "t5(buckets=16, reach=16)",
    "shaw",
    "fire",
    "cope",
    "fox",
)
"""Those without positions or with them at the input, rotary ones, those of distances in the score, those of content."""


def main(folder=EXPERIMENT.parent / "figures"):
    """Write the figure as SVG, PDF and PNG, with its numbers and its caption."""
    results = worded(from_file(EXPERIMENT), load(record_of(EXPERIMENT)))
    labels = [f"{scheme} (model=decoder)" for scheme in SCHEMES]
    results = results.only(task=atlas.PROBES["offset"].task, scheme=labels)
    drawing = place_curve(results)
    for path in save(drawing.figure, Path(folder), "atlas_places", results, drawing.caption):
        print(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
