"""VO-RoPE: values rotated by their position, and outputs rotated back."""

from __future__ import annotations

from jaxtyping import Array, Num

from posenc.core.scheme import Scheme, later
from posenc.numerics import rotary, scaling
from posenc.numerics.rotation import End, Layout, check_base, check_share, frequencies, rotate


class VORoPE(Scheme, name="vo_rope"):
    """RoPE on values, undone on outputs, so that each value arrives rotated by its distance (Su, 2025, "the second type
    of rotary position encoding").

        o_i = R(-p_i) Σ_j a_ij R(p_j) v_j = Σ_j a_ij R(p_j - p_i) v_j

    Queries and keys are rotated too, as in RoPE, unless `queries_and_keys=False`, which leaves the weights a_ij to
    other schemes, or to content alone. R is RoPE's, with its `base`, `layout`, `fraction` and `at`; the width of values
    may differ from that of keys, and each turns its own fraction. Written from the equations of a blog. DeepSeek-V4 has
    one head that is key and value at once and turns its last features, as transformers' `deepseek_v4` shows: with keys
    passed as values too, that is `vo_rope(fraction=…, at="end", layout="interleaved")`. It is also called RoVE.

    With a `factor` above 1 and the original length, `original`, frequencies are those of `yarn`. Features keep their
    size, so scores are those of `yarn(attention_factor=1.0)`. DeepSeek-V4 has this on its layers that compress.

    ```bibtex
    @misc{su2025second,
      title = {The Road to Transformer Upgrades: 19. The Second Type of Rotary Position Encoding},
      author = {Su, Jianlin},
      year = {2025},
      howpublished = {https://kexue.fm/archives/10862},
    }
    ```
    """

    queries_and_keys: bool = True
    base: float = 10000.0
    layout: Layout = "half"
    fraction: float = later(1.0)
    at: End = later("start")
    factor: float = later(1.0)
    original: int = later(0)

    family = "rotary"
    samples = (
        {"queries_and_keys": False},
        {"base": 100.0, "layout": "interleaved"},
        {"fraction": 0.5, "at": "end"},
        {"factor": 4.0, "original": 64, "base": 50.0},
    )

    def validate(self):
        check_base("vo_rope", self.base)
        check_share("vo_rope", "fraction", self.fraction)
        scaling.check_longer("vo_rope", self.factor)
        if (self.factor > 1) != (self.original != 0):
            raise ValueError(
                f"'vo_rope' has factor={self.factor} and original={self.original}; give a factor above 1 and the"
                " original length, or neither."
            )
        if self.factor > 1:
            scaling.check_original("vo_rope", self.original)
            scaling.check_falling("vo_rope", self.base)

    def angular_frequencies(self, width):
        plain = frequencies(width, self.base)
        if self.factor == 1:
            return plain
        spread = scaling.spread(*scaling.ROTATIONS, self.base, width // 2, self.original)
        return scaling.yarn(plain, self.factor, spread)

    bind = rotary.bind

    def overrides(self, *hooks):
        unused = () if self.queries_and_keys else ("query", "key")
        return Scheme.overrides(self, *(h for h in hooks if h not in unused))

    def query(self, p, q, info):
        return (self._rotate(q, info, 1) if self.queries_and_keys else q), info

    def key(self, p, k, info):
        return (self._rotate(k, info, 1) if self.queries_and_keys else k), info

    def value(self, p, v, info):
        return self._rotate(v, info, 1)

    def output(self, p, o, info):
        return self._rotate(o, info, -1)

    def _rotate(self, x: Array, position: Num[Array, " L"], sign: int) -> Array:
        return rotate(x, sign * rotary.angles_of(self, {}, x, position), self.layout, self.at)
