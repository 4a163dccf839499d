"""A learned number for each offset of two tokens in a plane."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from posenc.core.scheme import Scheme, bias_dtype, bound_setting, by_settings, check_whole
from posenc.numerics.token_numbers import LARGER, concrete


class Relative2D(Scheme, name="relative_2d"):
    """A learned number per head for each offset in rows and columns (Liu et al., 2021, Swin, §3.2).

        s_ij + t_h[row_i - row_j + H - 1, column_i - column_j + W - 1],   (2H - 1)(2W - 1) numbers

    H is `height`, W is `width`; left open, both are the size of tables, which serves the index as row and column at
    once: set them. Positions are whole, (row, column), from 0 to H - 1 and W - 1. The table is stored as one list, row
    by row, as in Swin, BEiT, MaxViT and CoAtNet of timm; those of TensorFlow's MaxViT count key minus query, which
    reverses it. A sum `t5 @ given('row') + t5 @ given('col')` is separable only, and another function. The list starts
    at N(0, 0.02²).

    With `class_token` a token whose row is negative stands nowhere: three numbers more, at the end of the list, are for
    such a query with a token, for a token with such a key, and between two of them (BEiT).

    ```bibtex
    @inproceedings{liu2021swin,
      title = {Swin Transformer: Hierarchical Vision Transformer using Shifted Windows},
      author = {Liu, Ze and Lin, Yutong and Cao, Yue and Hu, Han and Wei, Yixuan and Zhang, Zheng and Lin, Stephen and
                Guo, Baining},
      booktitle = {IEEE/CVF International Conference on Computer Vision},
      year = {2021},
      eprint = {2103.14030},
    }
    ```
    """

    height: int | None = None
    width: int | None = None
    class_token: bool = False

    family = "table"
    axes = 2
    reads = by_settings(lambda self: "positions" if self.class_token else "distance")
    extrapolates = "not: offsets beyond the table are refused"
    samples = ({"class_token": True}, {"height": 64, "width": 70})

    def validate(self):
        for name in ("height", "width"):
            if (size := getattr(self, name)) is not None and size < 1:
                raise ValueError(f"The setting {name!r} of 'relative_2d' is {size}; it must be at least 1.")

    def bind(self, dims):
        size = lambda count: dims.table if count is None else count  # noqa: E731
        return dataclasses.replace(self, height=size(self.height), width=size(self.width))

    def check_positions(self, p, position):
        check_whole("relative_2d", position)
        numbers = concrete(position)
        if numbers is None or not numbers.size:
            return
        here = numbers.reshape(-1, 2)
        here = here[here[:, 0] >= 0] if self.class_token else here
        wrong = ((here < 0) | (here >= np.array(self._sizes())[None])).any(-1)
        if wrong.any():
            (height, width), first = self._sizes(), here[wrong][0]
            larger = f"give a larger height or width, or {LARGER}"
            advice = larger if (first >= 0).all() else "count rows and columns from 0"
            raise ValueError(
                f"Position {tuple(first.tolist())} lies outside the plane of 'relative_2d', {height} by {width};"
                f" {advice}."
            )

    def init_head(self, key, dims):
        return {"table": 0.02 * jax.random.normal(key, (self._offsets() + 3 * self.class_token,))}

    def score(self, p, s, tile):
        row = self._row(tile.distance)
        if self.class_token:
            query_alone, key_alone = (info[:, 0] < 0 for info in (tile.query_info, tile.key_info))
            query_alone, key_alone = query_alone[:, None], key_alone[None, :]
            nowhere = self._offsets() + jnp.where(query_alone & key_alone, 2, jnp.where(query_alone, 0, 1))
            row = jnp.where(query_alone | key_alone, nowhere, row)
        bias = p["table"].astype(bias_dtype(s)).at[row].get(mode="fill", fill_value=jnp.nan)
        return s + bias

    def _row(self, distance: Int[Array, "Q K 2"]) -> Int[Array, "Q K"]:
        """The place of each offset in the list; one beyond its end where the offset has none."""
        height, width = self._sizes()
        down, right = distance[..., 0] + height - 1, distance[..., 1] + width - 1
        inside = (down >= 0) & (down < 2 * height - 1) & (right >= 0) & (right < 2 * width - 1)
        return jnp.where(inside, down * (2 * width - 1) + right, self._offsets() + 3)

    def _sizes(self) -> tuple[int, int]:
        return bound_setting(self.height), bound_setting(self.width)

    def _offsets(self) -> int:
        height, width = self._sizes()
        return (2 * height - 1) * (2 * width - 1)
