"""Every scheme of the registry on the same probes in decoders: what each of them does.

Of 56 schemes 41 are trained; eleven share RoPE's parameters and differ from it beyond the length trained on, two equal
another on a line of text, and two are of the plane. A row is a scheme at its defaults, but for constants that belong to
a length, which a rule in `posenc.lab.spec.atlas` sets for 16 tokens; LSTM and GRU stand beside them. Probes ask for
offsets, a pointer, distances, indices, counts, a bit to keep, copies and parity. `atlas_encoders` has encoders,
`atlas_recall` one probe more, `atlas_contrasts` six seeds for what papers say.

Source: ours; the probes and the rule are in `posenc.lab.spec.atlas`, the schemes in docs/schemes.md.
Setting: two layers of width 64, four heads, trained on up to 16 tokens, 32 for the bit, or 8 symbols for copies and
parity, 2,000 steps of 32 rows at two rates; a small model that is trained for a minute says what a scheme can do at
all, and not what it does in a large one.
Cost: about 6 hours of one core for two seeds, estimated.
Command: posenc sweep experiments/atlas.py --only scheme=rope --keep, then posenc sweep experiments/atlas.py, then
python experiments/atlas.py atlas, which evaluates RoPE's models under the schemes that change it after training
Variation: posenc sweep experiments/atlas.py --only task=count_symbol scheme=rope,t5,fox --set length=32 --name doubled
Result: Medians of two seeds of the last token, and of copies of all; L is the longest size trained on. Of 46 rows,
LSTM and GRU among them, 39 learn the token three places back, 25 hold 0.9 to 2 L, and 20 to 4 L; of the pointer
it is 29, 15 and 13, of the distance of two marks 41, 4 and 1, of the index of a mark 43, 25 and 13, of the token at an
index 26, 6 and 5, of the count of a symbol 43, 12 and none, of the bit last written 42, 22 and 18, of copies 45, 6 and
1, of copies backwards 42, 2 and 1, of parity 34, 3 and 1. To 2 L PaTH holds eight of these ten, Shaw, LSTM and GRU six.
To 4 L Shaw, ConViT, PaTH and GRU hold four, no row more.

The token back: six schemes that add positions to the input know nothing beyond L: at 2 L the best has 0.11, below 0.15
for the token most frequent in a row. Tables and kernels of distance, ALiBi with steeper slopes, gates and xPos hold to
4 L. RoPE has 0.91 at 2 L and 0.63 at 4 L, with a base of 10 it has 0.99 there; its own models under frequencies scaled
by parts have 0.92 there, and under NTK 0.89. FIRE has 0.99 at L and 0.08 at 2 L. ALiBi with published slopes has 0.63
at a size trained on, KERPLE 0.86, GRAPE-AP 0.39, and their losses still fell by 55 %, 65 % and 23 % over the last half
of training: slow is not unable.

The pointer asks that content choose a distance. Where a score joins the two (Shaw, Transformer-XL, Music Transformer,
Inkling, DAPE, CoPE, xPos) it is right to 4 L, 1.00; biases by distance alone do not learn it, T5, ALiBi, KERPLE,
Sandwich and FIRE, of which FIRE has most at L, 0.76, but for log-CPB, 0.94; nor do gates, FoX 0.75 and stick-breaking
0.85. RoPE has 0.73 at 2 L.

The distance of two marks is learned without positions too, 0.94 at L, and few carry it: at 4 L Shaw has 0.93,
stick-breaking 0.84; RoPE has 0.71 at 2 L.

The index is the other way round: at 4 L learned vectors have 1.00, no positions 0.97, T5 0.95 and KERPLE 0.94, while
FoX, stick-breaking and Sandwich, which carry the token back, do not learn it, 0.70, 0.55 and 0.76 at L. RoPE has 0.54
at 2 L, and with a base of 10 0.15.

The token at one of the first four indices is held to 4 L by learned vectors and stick-breaking, 1.00, Shaw, Fourier
features, 0.98, and FoPE, 0.92, and to 2 L by PaTH too, 0.95. RoPE has 0.97 at L, 0.26 at 2 L, and 0.07 at 4 L, below
0.16 for the token most frequent in a row. Gates of FoX do not learn it, 0.71 at L, nor does T5, 0.77.

The count is what rows that look at the nearest do not learn: ALiBi with steeper slopes has 0.50 at L, Sandwich 0.40,
ConViT 0.75, where a guess has 0.11. Ten schemes hold it to 2 L, T5 and stick-breaking with 0.99, log-CPB with 0.96, no
positions with 0.95; RoPE has 0.22 there. At 4 L the best are GRU, 0.74, LSTM, 0.62, and selective RoPE, 0.56.

The bit last written is kept by what prefers the nearest, or forgets by what it reads: to 4 L by ALiBi, 0.91, KERPLE,
0.98, Sandwich, FoX, stick-breaking, 1.00, PaTH, and RoPE at random places, 0.99; to 2 L by FIRE, 0.94, Shaw, 0.92, and
CoPE, 0.90. There RoPE has 0.57 and learned vectors 0.61, where a guess has 0.51. No positions, 0.83 at L, RePo, 0.84,
T5, 0.88, and TAPA, 0.76, do not learn it; their losses still fell by 42 %, 45 %, 50 % and 44 %.

Copies are learned by all but TAPA, 0.37 at a size trained on. To 2 L they are held by ConViT, 0.99, KERPLE with DAPE,
of which the second version has 0.98, Sandwich and GRAPE-A, 0.96, and KERPLE, 0.90: all fall with distance. ALiBi has
0.82 there, no positions 0.31, learned vectors 0.14, RoPE 0.09, below 0.12 for knowing where an answer ends; at 4 L
ConViT has 0.96.

Copies backwards, where the way back grows with each token, are learned by all but four: no positions, RePo and RoPE at
random places have 0.89 at a size trained on, TAPA 0.44. To 2 L they are held by PaTH, 0.99, which has 0.92 at 4 L, and
by KERPLE with the second DAPE, 0.94. ConViT, FIRE and Sandwich have 0.78, 0.78 and 0.77 there, ALiBi 0.47, RoPE 0.26,
learned vectors 0.10.

Parity is learned by most, RoPE among them, 0.98, and is a guess at 2 L, 0.60 at best, but for PaTH, 0.99, GRU, 1.00,
and LSTM, 0.94, which carry a state along the row; at 4 L GRU has 0.97, PaTH 0.88. Learned vectors, 0.86, T5, 0.84, and
ConViT, 0.75, do not learn it.

In 51 cells rates that tie differ by 0.2 or more beyond L, most in GRAPE-M on the token back, by 0.67.
"""

from dataclasses import replace
from pathlib import Path

from posenc.lab.spec import atlas

plan = atlas.PLAN
titles = atlas.titles("decoder")
names = {"t5(buckets=16, reach=16) (model=decoder)": "t5, reach 16"}
counted = "tokens"


def runs():
    return atlas.every_run("decoder")


def figure(results):
    """Every row on every probe in one table."""
    from posenc.lab.figures.atlas import atlas_drawing

    return atlas_drawing(results)


def main(run, name="atlas"):
    """Add the probes that a sweep trained whole to the record of `atlas`, or of `atlas_encoders`, with RoPE's models
    under what changes it later."""
    from posenc.lab.spec.experiment_file import from_file

    path = Path(__file__).with_name(f"{name}.py")
    print(*extend_record(from_file(path), path.parent / "records" / f"{name}.json.gz", run), sep="\n")


def extend_record(experiment, record, run):
    """Add to a record the tasks of a run folder that it lacks and that are trained whole, and name them.

    RoPE's models of these tasks, whose parameters the sweep must have kept, are evaluated under the schemes that change
    RoPE after training.
    """
    from posenc.lab.results.results import load
    from posenc.lab.reuse.evaluate import ask
    from posenc.lab.store import folder as store
    from posenc.lab.store.records import write_bundle

    results = load(store.find(run))
    before = load(record).records if record.is_file() else ()
    trained = {id for group in results.records for id in group.ids}
    trials = _trials(experiment, {group.task.label for group in before})
    added = sorted(task for task, ids in trials.items() if ids <= trained)
    if added:
        ids = set().union(*(trials[task] for task in added))
        new = replace(results, records=tuple(group for group in results.records if ids.issuperset(group.ids)))
        changed = ask(new.only(scheme="rope"), schemes=[*atlas.AFTER_TRAINING.values()])
        write_bundle(record, experiment.name, (*before, *new.records, *changed.records), ())
    return added


def _trials(experiment, without):
    """Task to the ids of its trials, without some tasks."""
    from posenc.lab.run.plan import wanted
    from posenc.lab.train.training import resolve

    ids = {}
    for run in (run for run in experiment.runs if run.task not in without):
        ids.setdefault(run.task, set()).update(wanted(resolve(run), experiment.plan, {}))
    return ids


if __name__ == "__main__":
    import sys

    main(*sys.argv[1:])
