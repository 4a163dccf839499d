"""The figure of the README, from committed records: python experiments/figures/front.py [FOLDER]

A table of abilities, and accuracy by place in a row of 64. A column of the table takes the runs of one model on one
task of one record; of the schemes in it those of the rows; the last token where every token of a row is scored, but all
of a sorted string, whose last one is nearly always the same, and whole answers where one is written; and the size that
is nearest to twice the longest trained on, but for copies, of which none is right there.
"""

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

from posenc.lab.explain.alias_figure import ALIAS
from posenc.lab.figures import style
from posenc.lab.figures.across import by_merit, draw
from posenc.lab.figures.captions import FLOORS, numbers
from posenc.lab.figures.curves import place_panels
from posenc.lab.figures.figures import save, worded
from posenc.lab.figures.floor_lines import settle
from posenc.lab.results.results import load
from posenc.lab.results.statistics import HOLDS, cells
from posenc.lab.spec.experiment_file import executed, from_file

FOLDER = Path(__file__).resolve().parent
EXPERIMENTS = FOLDER.parent
abilities = executed(FOLDER / "_abilities.py")
Ability = abilities.Ability
SCHEMES = {name: (name,) for name in ("nope", "sinusoidal", "learned", "t5", "alibi", "rope")}
SCHEMES["rope"] += ("rope(fraction=0.25)",)  # as published, in copying
BACK, INDEX = "token_k_back(k=3)", "index_of_token(indices=8)"
COLUMNS = (
    Ability("token\n3 back", "first_look", BACK, "encoder", "last"),
    Ability("index\nbelow 8", "first_look", INDEX, "encoder", "accuracy"),
    Ability("order\nof two", "permutation", "before", "encoder", "accuracy"),
    Ability("sort", "length", "bucket_sort", "encoder", "accuracy"),
    Ability("token\n1 back", "permutation", "token_k_back", "decoder", "last"),
    Ability("index\nbelow 8", "sites", INDEX, "decoder", "accuracy"),
    Ability("pointer", "sites", "pointer_back(reach=4)", "decoder", "accuracy"),
    Ability("last bit\nwritten", "flipflop", "flip_flop", "decoder", "last"),
    Ability("copy all", "copying", "copy(symbols=20)", "decoder", "exact", times=1.3),
)
place = executed(FOLDER / "by_place.py")


@cache
def results_of(name):
    """The committed results of an experiment, in its words."""
    return worded(from_file(EXPERIMENTS / f"{name}.py", yes=True), load(EXPERIMENTS / "records" / f"{name}.json"))


def table():
    """The columns of abilities."""
    return [abilities.column(results_of(ability.record), ability, SCHEMES) for ability in COLUMNS]


def front():
    """The figure with its caption, the numbers of its table, and the results that it shows."""
    columns, first = table(), results_of("first_look").only(task=place.TASK)
    (panel,) = place_panels(first)
    looks = style.looks((c.scheme, c.family) for c in cells(first))
    with style.canvas(style.PAGE_WIDTH, 2.75) as figure:
        left, right = figure.subplots(1, 2, width_ratios=(1.75, 1))
        abilities.draw(left, columns, list(SCHEMES), "(a) At about twice the trained length")
        draw(right, panel, looks, 2)
        right.set_title(f"(b) Token 3 back, in a row of {place.ROW}", pad=abilities.TITLED)
        for part in place.stretches()[1:]:
            right.axvline(part.first - 0.5, color=ALIAS, linewidth=0.8, linestyle=(0, (3, 2)), zorder=1)
        style.legend(figure, {scheme: looks[scheme] for scheme in by_merit([panel])})
        settle(figure)
    names = dict.fromkeys(one.record for one in COLUMNS)
    records = tuple(record for name in names for record in results_of(name).records)
    return figure, caption(columns, panel), columns, replace(first, name="front", records=records)


def caption(columns, panel):
    """What both panels show, in five lines."""
    measured = [
        f"{one.heading.replace(chr(10), ' ')} ({one.ability.model}): {one.ability.task} of {one.ability.record} at"
        f" {one.size}, by {one.ability.metric}"
        for one in columns
    ]
    runs = numbers(len(cell.values[one.size]) for one in columns for cell in one.runs.values())
    by_place = numbers(len(values) for of in panel.points.values() for values in of.values())
    floors = sorted({one.floor[0] for one in columns}, key=list(FLOORS).index)
    steps = " and ".join(str(part.first) for part in place.stretches()[1:])
    return "\n".join(
        [
            f"(a) Accuracy, the median of n = {runs} runs: {'; '.join(measured)}.",
            f"Blue is how far that is on the way from the best floor ({', '.join(FLOORS[name] for name in floors)}) to"
            f" 1; grey is a scheme whose median is below {HOLDS:g} at a size trained on, so that a longer one tells"
            " nothing; – was not run. rope copies as rope(fraction=0.25); copying models have three layers.",
            f"(b) {panel.up} (up) against {panel.along} (along), n = {by_place} runs: {place.TASK} of first_look, an"
            f" encoder trained on up to {place.TRAINED} tokens, in rows of {place.ROW}; lines are medians, bands the"
            " exact 95% interval of the median; the dotted line is a uniform guess.",
            f"Dashed lines, by arithmetic alone: an alias of rope comes into view or leaves it, at positions {steps}.",
        ]
    )


def main(folder=FOLDER):
    """Write the figure as SVG, PDF and PNG, with the numbers of its table and its caption."""
    figure, text, columns, results = front()
    for path in save(figure, Path(folder), "front", results, text, abilities.rows(columns, list(SCHEMES))):
        print(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
