"""Phases and scores by distance at two bases of RoPE: python experiments/figures/aliases.py [FOLDER]

Arithmetic alone, of the heads of `first_look`: 16 features, rows of up to 16 tokens, the token three positions back.
"""

import sys
from pathlib import Path

from posenc.lab.explain import alias_figure, aliases
from posenc.lab.figures.files import render
from posenc.lab.store import disk

FOLDER = Path(__file__).resolve().parent
BACK, HEAD, TRAINED, ROW = 3, 16, 16, 64
SCHEMES = ("rope", "rope(base=10.0)")
ABOUT = (
    f"Left: the phase of each pair of features at every distance, dark where it is that of the key {BACK} positions"
    f" back. Right: the score of the head that finds this key by the widest margin in rows of up to {TRAINED} tokens,"
    " scaled so that this key has 1 and the nearest other distance within training 0. Orange: distances beyond training"
    f" that come within {aliases.WITHIN:g} of it."
)


def main(folder=FOLDER):
    """Draw as SVG, PDF and PNG, with a caption."""
    heads = {text: aliases.widest_head(aliases.frequencies(text, HEAD, TRAINED), BACK, TRAINED) for text in SCHEMES}
    figure = alias_figure.draw(heads, ROW)
    for kind in ("svg", "pdf", "png"):
        disk.write(Path(folder) / f"aliases.{kind}", render(figure, kind, "aliases", ABOUT))
    disk.write(Path(folder) / "aliases.caption.txt", f"{ABOUT}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
