"""The atlas of decoders and of encoders side by side, of all probes that have a record:
python experiments/figures/atlas_both.py [FOLDER]
"""

import sys
from dataclasses import replace
from pathlib import Path

from posenc.lab.figures.atlas import atlas_drawing
from posenc.lab.figures.figures import save
from posenc.lab.results.results import load
from posenc.lab.spec import atlas
from posenc.lab.spec.committed import record_of

EXPERIMENTS = Path(__file__).resolve().parent.parent


def every_record():
    """Return the results of all records of the atlas as one."""
    paths = [record_of(EXPERIMENTS / f"{name}.py") for name in atlas.EXPERIMENTS]
    first, *others = (load(path) for path in paths if path.is_file())
    return replace(first, records=(*first.records, *(record for of in others for record in of.records)))


def main(folder=EXPERIMENTS / "figures"):
    """Write the figure as SVG, PDF and PNG, with its numbers and its caption."""
    results = every_record()
    drawing = atlas_drawing(results)
    for path in save(drawing.figure, Path(folder), "atlas_both", results, drawing.caption, drawing.rows):
        print(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
