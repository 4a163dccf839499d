"""Every scheme of the registry on the same probes in decoders: what each of them does.

Of 56 schemes 41 are trained; eleven share RoPE's parameters and differ from it beyond the length trained on, two equal
another on a line of text, and two are of the plane. A row is a scheme at its defaults, but for constants that belong to
a length, which a rule in `posenc.lab.spec.atlas` sets for 16 tokens; LSTM and GRU stand beside them. Probes ask for
offsets, a pointer, distances, indices, counts, a bit to keep, copies and parity. `atlas_encoders` has encoders,
`atlas_recall` one probe more, `atlas_contrasts` six seeds for what papers say.

Source: ours; the probes and the rule are in `posenc.lab.spec.atlas`, the schemes in docs/schemes.md.
Setting: two layers of width 64, four heads, trained on up to 16 tokens, or 8 symbols for copies and parity, 2,000 steps
of 32 rows at two rates; a small model that is trained for a minute says what a scheme can do at all, and not what it
does in a large one.
Cost: about 6 hours of one core for two seeds, estimated.
Command: posenc sweep experiments/atlas.py --only scheme=rope --keep, then posenc sweep experiments/atlas.py, then
python experiments/atlas.py atlas, which evaluates RoPE's models under the schemes that change it after training
Variation: posenc sweep experiments/atlas.py --only task=count_symbol scheme=rope,t5,fox --set length=32 --name doubled
Result: not run.
"""

from pathlib import Path

from posenc.lab.spec import atlas

RECORD = Path(__file__).parent / "records" / "atlas.json.gz"

plan = atlas.PLAN
titles = atlas.titles("decoder")
counted = "tokens"


def runs():
    return atlas.every_run("decoder")


def figure(results):
    """Every row on every probe in one table."""
    from posenc.lab.figures.atlas import atlas_drawing

    return atlas_drawing(results)


def main(run):
    """Add the probes that a sweep trained whole to the record, with RoPE's models under what changes it later."""
    from posenc.lab.reuse.atlas_record import extend_record
    from posenc.lab.spec.experiment_file import from_file

    print(*extend_record(from_file(__file__), RECORD, run), sep="\n")


if __name__ == "__main__":
    import sys

    main(*sys.argv[1:])
