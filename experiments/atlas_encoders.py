"""Every scheme of the registry on the same probes in encoders, which see no order but what a scheme tells them.

Rows and probes are those of `experiments/atlas.py`, without what is defined for decoders alone, and with the order of
two marks, which a decoder has by its mask. ALiBi has two more rows, with penalties that tell left from right.

Source: ours; rows and probes are in `posenc.lab.spec.atlas`, the schemes in docs/schemes.md.
Setting: two layers of width 64, four heads, trained on up to 16 tokens, 2,000 steps of 32 rows at two rates, as in
`experiments/atlas.py`.
Cost: about 4 hours of one core for two seeds, estimated.
Command: posenc sweep experiments/atlas_encoders.py --only scheme=rope --keep, then posenc sweep
experiments/atlas_encoders.py, then python experiments/atlas_encoders.py atlas_encoders, which evaluates RoPE's models
under the schemes that change it after training
Variation: posenc sweep experiments/atlas_encoders.py --only task=before scheme=rope,t5 --set length=32 --name longer
Result: not run.
"""

from pathlib import Path

from posenc.lab.spec import atlas

RECORD = Path(__file__).parent / "records" / "atlas_encoders.json.gz"

plan = atlas.PLAN
titles = atlas.titles("encoder")
counted = "tokens"


def runs():
    return atlas.every_run("encoder")


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
