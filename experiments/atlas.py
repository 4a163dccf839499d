"""Every scheme of the registry on the same tasks in decoders: what each of them does.

Most schemes are trained. Those of `AFTER_TRAINING` share RoPE's parameters and differ from it beyond the trained
length. Two equal another on a line of text, and some are of the plane. A row is a scheme at its defaults, apart from
constants that belong to a length. A rule in `posenc.lab.spec.atlas` sets these for 16 tokens. LSTM and GRU are added.
Tasks ask for offsets, a pointer, distances, indices, counts, a bit to keep, copies and parity. `atlas_encoders` has
encoders, `atlas_recall` one task more, `atlas_contrasts` six seeds for claims of papers.

Source: ours. The tasks and the rule are in `posenc.lab.spec.atlas`, the schemes in docs/schemes.md.

Setting: two layers of width 64, four heads, 2,000 steps of 32 rows at two rates. Training has up to 16 tokens, 32 for
the bit, or 8 symbols for copies and parity. A small model that trains for a minute shows what a scheme can do at all,
and not what it does in a large one.

Cost: about 7 hours of one core for two seeds, estimated.

Command: posenc sweep experiments/atlas.py --only scheme=rope --keep, then posenc sweep experiments/atlas.py. Then
python experiments/atlas.py atlas evaluates RoPE's models under the schemes that change it after training.

Variation: posenc sweep experiments/atlas.py --only task=count_symbol scheme=rope,t5,fox --set length=32 --name doubled
"""

from dataclasses import replace
from pathlib import Path

from posenc.lab.spec import atlas

plan = atlas.PLAN
titles = atlas.titles("decoder")
names = {"t5(buckets=16, reach=16) (model=decoder)": "t5, reach 16"}
counted = "tokens"
reading = """
Up to 4 L, {token_k_back|count|64|last} of {token_k_back|schemes|16} rows find the token three back and
{index_of_token|count|64|last} the index of a mark, counted at the last token. Scores that join content and distance,
such as Shaw's, follow a pointer to 4 L ({pointer_back|shaw|64}). Canon mixes neighbours and has no position in its
scores, and it holds offset, pointer, index, look-up and copy to 4 L. All others that copy to 2 L have scores that fall
with distance: ConViT copies {copy|convit(axes=1)|16|accuracy} of the symbols there, Canon {copy|canon|16|accuracy} and
RoPE {copy|rope|16|accuracy}. Parity beyond training takes a state: PaTH reaches {parity_check|path|16} at 2 L, and RoPE
{parity_check|rope|16}.
"""


def runs():
    return atlas.every_run("decoder")


def figure(results):
    """Every row on every task in one table."""
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
