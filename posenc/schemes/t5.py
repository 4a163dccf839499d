"""T5: a learned number for each bucket of distances."""

from __future__ import annotations

import dataclasses

import jax

from posenc.core.scheme import Scheme, bias_dtype, bound_setting, by_settings, check_whole
from posenc.numerics.bias import bucket, check_reach


class T5(Scheme, name="t5"):
    """A learned number per head for each bucket of distances, near ones exact, far ones by logarithm (Raffel et al.,
    2020, §2.1).

        s_ij = q_i · k_j + t_h[bucket(p_i - p_j)],   no division by √d

    All layers share one table. With `bidirectional` half of the buckets are for keys after the query; otherwise all are
    for the past, and keys after the query, which must then be masked, fall into bucket 0. The authors round a float32
    logarithm on the device; here buckets are integer thresholds computed on the host, equal to theirs at every
    distance. The initial table is N(0, 1 / width), as in the authors' later code.

    ```bibtex
    @article{raffel2020exploring,
      title = {Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer},
      author = {Raffel, Colin and Shazeer, Noam and Roberts, Adam and Lee, Katherine and Narang, Sharan and
                Matena, Michael and Zhou, Yanqi and Li, Wei and Liu, Peter J.},
      journal = {Journal of Machine Learning Research},
      volume = {21},
      number = {140},
      year = {2020},
    }
    ```
    """

    buckets: int = 32
    reach: int = 128
    """The distance from which all keys share a bucket."""
    bidirectional: bool | None = None
    """True if keys after the query have their own buckets; True for models that are not causal, unless set."""

    family = "table"
    extrapolates = "some: 1.5 to 2 times the length on copy-like tasks (Kazemnejad et al., 2023)"
    reads = "distance"
    tied = frozenset({"table"})
    limits = by_settings(
        lambda self: {
            "cross": "its distances are within one sequence",
            **({"bidirectional": "its buckets are for keys before the query"} if self.bidirectional is False else {}),
        }
    )
    samples = ({"bidirectional": True, "buckets": 8, "reach": 6}, {"bidirectional": False, "buckets": 4, "reach": 5})

    def validate(self):
        side = ", half of them on each side" if self.bidirectional else ""
        least = 4 if self.bidirectional else 2
        if self.buckets < least or self.buckets % least:
            raise ValueError(f"'t5' has buckets={self.buckets}; it must be a multiple of {least}{side}.")
        exact = self.buckets // least
        check_reach("t5", self.reach)
        if self.reach <= exact:
            raise ValueError(
                f"'t5' has reach={self.reach}; it must be more than the {exact} distances with their own bucket."
            )

    def bind(self, dims):
        bidirectional = self.bidirectional if self.bidirectional is not None else not dims.causal
        return dataclasses.replace(self, bidirectional=bidirectional)

    def check_positions(self, p, position):
        check_whole("t5", position)

    def init_head(self, key, dims):
        return {"table": dims.width**-0.5 * jax.random.normal(key, (self.buckets,))}

    def scale(self, d):
        return 1.0

    def score(self, p, s, tile):
        row = bucket(tile.distance, self.buckets, self.reach, bound_setting(self.bidirectional))
        return s + p["table"].astype(bias_dtype(s))[row]
