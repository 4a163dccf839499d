"""A number for each key that is added to its scores, such as the logarithm of an area or a count."""

from __future__ import annotations

from typing import Literal

import jax.numpy as jnp
import numpy as np

from posenc.core.scheme import Scheme, bias_dtype
from posenc.numerics.token_numbers import concrete


class KeyWeight(Scheme, name="key_weight"):
    """A number for each key, added to all of its scores (Bonev et al., 2025, §3; Bolya et al., 2023, §3).

        s_ij = q_i · k_j / √d + log(w_j),    or  + w_j  with form="plain"

    The weights w are its positions: `key_weight @ given('area')` counts each key w_j times, as if it stood there so
    often. Points of a sphere have areas, and a token that stands for several others has their count; softmax then is an
    integral, or a sum over the tokens before they were merged. With "log" a weight of 0 hides a key, up to a number
    near minus infinity, and one below 0 is refused, or gives NaN inside `jit`. "plain" adds the number itself.

    ```bibtex
    @inproceedings{bonev2025attention,
      title = {Attention on the Sphere},
      author = {Bonev, Boris and Rietmann, Max and Paris, Andrea and Carpentieri, Alberto and Kurth, Thorsten},
      booktitle = {Advances in Neural Information Processing Systems},
      year = {2025},
      eprint = {2505.11157},
    }
    @inproceedings{bolya2023token,
      title = {Token Merging: Your {ViT} But Faster},
      author = {Bolya, Daniel and Fu, Cheng-Yang and Dai, Xiaoliang and Zhang, Peizhao and Feichtenhofer, Christoph and
                Hoffman, Judy},
      booktitle = {International Conference on Learning Representations},
      year = {2023},
      eprint = {2210.09461},
    }
    ```
    """

    form: Literal["log", "plain"] = "log"

    family = "context"
    reads = "positions"
    coordinate = "area"
    samples = ({"form": "plain"},)

    def check_positions(self, p, position):
        values = concrete(position)
        if self.form == "log" and values is not None and values.size and np.min(values) < 0:
            raise ValueError(
                f"A weight of 'key_weight' is {np.min(values)}, which has no logarithm; give numbers of at least 0, or"
                " form='plain'."
            )

    def score(self, p, s, tile):
        w = tile.key_info.astype(bias_dtype(s))
        if self.form == "log":
            w = jnp.where(w == 0, LOWEST, jnp.log(jnp.where(w == 0, 1, w)))
        return s + w[None, :]


LOWEST = -1e9
"""The logarithm of a weight of 0: finite, and 0 after softmax beside any other key."""
