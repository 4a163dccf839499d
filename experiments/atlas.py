"""Every scheme of the registry on the same probes, ten in decoders and eight in encoders: what each of them does.

Of 56 schemes 41 are trained; eleven share RoPE's parameters and differ from it beyond the length trained on, two equal
another on a line of text, and two are of the plane. A row is a scheme at its defaults, but for constants that belong to
a length, which a rule in `posenc.lab.spec.atlas` sets for 16 tokens; LSTM and GRU stand beside them. Probes ask for
offsets, a pointer, distances, indices, order, counts, a bit to keep, copies and parity. `atlas_recall` has one more.

Source: ours; the probes and the rule are in `posenc.lab.spec.atlas`, the schemes in docs/schemes.md. What Li, Chi,
Chen, Hua and Ruoss found is from memory.
Setting: two layers of width 64, four heads, trained on up to 16 tokens, or 8 symbols for copies and parity, 2,000 steps
of 32 rows at two rates; a small model that is trained for a minute says what a scheme can do at all, and not what it
does in a large one.
Cost: about 23 hours of one core for two seeds, estimated.
Command: posenc sweep experiments/atlas.py --only scheme=rope --keep, then posenc sweep experiments/atlas.py, then
python experiments/atlas.py atlas, which evaluates RoPE's models under the schemes that change it after training
Variation: posenc sweep experiments/atlas.py --only task=before scheme=rope,t5,fox --set length=32 --name doubled
Result: not run.
"""

from pathlib import Path

from posenc.lab.results.published import Order
from posenc.lab.spec import atlas

RECORD = Path(__file__).parent / "records" / "atlas.json.gz"

plan = atlas.PLAN
titles = {probe.task: probe.title for probe in atlas.PROBES.values()}
counted = "tokens"

OFFSET, COPY, REVERSE = (atlas.PROBES[name].task for name in ("offset", "copy", "reverse"))
ALIBI = "alibi(factor=64.0)"


def _in(model, task, first, second, source, **rest):
    return Order(task, f"{first} (model={model})", f"{second} (model={model})", source, **rest)


published = [
    _in("decoder", COPY, "nope", "rope", "Kazemnejad et al. (2023), figure 1, of copying and nine more", seen="paper"),
    _in("decoder", OFFSET, "fire", ALIBI, "Li et al. (2024), of perplexity beyond the trained length", seen="memory"),
    _in(
        "decoder", OFFSET, "kerple", ALIBI, "Chi et al. (2022), of perplexity beyond the trained length", seen="memory"
    ),
    _in(
        "decoder", OFFSET, "hope", "rope", "Chen et al. (2024), of perplexity beyond the trained length", seen="memory"
    ),
    _in("decoder", OFFSET, "fope", "rope", "Hua et al. (2025), of perplexity beyond the trained length", seen="memory"),
    _in(
        "decoder",
        REVERSE,
        "rope @ random_sorted(limit=128)",
        "rope",
        "Ruoss et al. (2023), Table 1, of encoders",
        seen="memory",
    ),
    _in(
        "encoder",
        OFFSET,
        "alibi(form='half', factor=64.0)",
        ALIBI,
        "ours: a penalty alike on both sides cannot tell them apart, so the other one alone can find an offset",
        learned=False,
        origin="ours",
    ),
]


def runs():
    return atlas.every_run(atlas.probes())


def figure(results):
    """Every row on every probe in one table."""
    from posenc.lab.figures.atlas import atlas_table
    from posenc.lab.results.atlas_cells import atlas_cells

    return atlas_table(atlas_cells(results))


def main(run):
    """Evaluate the models that a sweep trained under RoPE under what changes it later; write all as one record."""
    from posenc.lab.results.results import load
    from posenc.lab.reuse.evaluate import ask
    from posenc.lab.store import folder as store
    from posenc.lab.store.records import write_bundle

    results = load(store.find(run))
    changed = ask(results.only(scheme="rope"), schemes=[*atlas.AFTER_TRAINING.values()])
    print(write_bundle(RECORD, results.name, (*results.records, *changed.records), results.unfinished))


if __name__ == "__main__":
    import sys

    main(*sys.argv[1:])
