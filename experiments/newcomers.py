"""In decoders NAPE carries an offset to 16 times the trained length; Wall and FoX keep a bit to 8 times it.

Six seeds for what papers of 2025 and 2026 say of schemes that came to the atlas, on the nearest tasks.

Each claim was written down before its task was trained. Sizes reach 32 times the trained length of copies. They reach
16 times that of the token three back, and 8 times that of the bit last written.

Source: Vasylenko et al. (2025), arXiv 2506.16640, for NAPE and ASEntmax. RoPE on a grid is from arXiv 2607.16072, and
Wall from Tilde Research (2026). All were read in summaries, and none measured these tasks.

Setting: two layers of width 64, as in the atlas. Training has up to 16 tokens, 32 for the bit or 8 symbols for copies,
and 2,000 steps. NAPE has slopes 1 and 1/2 on two heads and none on the other two.

Cost: about two hours of one core.

Command: posenc sweep experiments/newcomers.py

Variation: posenc sweep experiments/newcomers.py --only task=flip_flop --set length=64 --name longer
"""

import dataclasses

from posenc.lab.results.published import Order
from posenc.lab.spec import atlas

NAPE = atlas.NAPE
SPARSE, GRID = atlas.CONSTANTS["asentmax"], atlas.CONSTANTS["rope_2d"]
DECODERS = {
    "copy": (NAPE, SPARSE, GRID, "alibi", "nope", "rope"),
    "offset": (NAPE, SPARSE, "alibi"),
    "memory": ("wall", "fox", "rope"),
}
plan = dataclasses.replace(atlas.PLAN, seeds=tuple(range(6)), sizes=(8, 16, 32, 64, 128, 256), rows=256)
titles = {atlas.PROBES[name].task: atlas.PROBES[name].title for name in DECODERS}
titles |= {atlas.PROBES["offset"].task: "token three back"}
names = {NAPE: "NAPE", SPARSE: "NAPE + ASEntmax"}
counted = "tokens"


def _order(probe, first, second, source):
    """Return an order by the metric of the task."""
    return Order(atlas.PROBES[probe].task, first, second, source, metric=atlas.PROBES[probe].metric, seen="copy")


published = [
    _order("copy", NAPE, "alibi", "Vasylenko et al. (2025), of copies beyond the trained length"),
    _order("copy", SPARSE, NAPE, "Vasylenko et al. (2025), of copies beyond the trained length"),
    _order("copy", GRID, "rope", "arXiv 2607.16072, of copies hundreds of times longer"),
    _order("offset", NAPE, "alibi", "Vasylenko et al. (2025), of n-back"),
    _order("offset", SPARSE, NAPE, "Vasylenko et al. (2025), of n-back"),
    _order("memory", "wall", "rope", "Tilde Research (2026), of loss beyond the trained length"),
    _order("memory", "fox", "rope", "Lin et al. (2025), of texts beyond the trained length"),
]

reading = """
ALiBi with slopes on two of four heads (NAPE) names the token three back at 16 times the trained length
({token_k_back|alibi(slopes=(1.0, 0.5, 0.0, 0.0))|256} at 256 tokens), where ALiBi does not learn it
({token_k_back|alibi|16} at 16). ASEntmax adds nothing that six seeds show
({token_k_back|asentmax + entmax + alibi(slopes=(1.0, 0.5, 0.0, 0.0))|256}). Wall and FoX keep the bit last written at
256 tokens ({flip_flop|wall|256}, {flip_flop|fox|256}; baseline {flip_flop|baseline|256}), and RoPE loses it at 64
({flip_flop|rope|64}). No scheme copies twice the trained length whole
({copy|alibi(slopes=(1.0, 0.5, 0.0, 0.0))|16} with NAPE, {copy|rope_2d @ grid|16} on a grid). Beyond training the grid
gets more single tokens right than RoPE, and is far from copying.
"""


def runs():
    return [run for probe, schemes in DECODERS.items() for run in atlas.runs(schemes, "decoder", [probe])]


def figure(results):
    """Accuracy by size, with the sizes trained on shaded."""
    from posenc.lab.figures.figures import length

    return length(results)
