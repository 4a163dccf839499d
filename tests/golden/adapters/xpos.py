"""Scores of xPos. The reference centres its factors, so that queries and keys alone differ by a factor per pair."""

from collections.abc import Iterator

import numpy as np

import posenc
from tests.golden.case import Case, Check
from tests.golden.turned import turned

schemes = ("xpos",)


def compare(case: Case) -> Iterator[Check]:
    args, a = case.args, case.arrays
    scheme = posenc.parse(f"xpos(scale_base={args['scale_base']}, layout={args['layout']!r})")
    q = _one_head(turned(scheme, "query", a["q"][:, None], args["offset"] + np.arange(args["q_len"])))
    k = _one_head(turned(scheme, "key", a["k"][:, None], np.arange(args["k_len"])))
    yield Check("scores", q @ k.swapaxes(1, 2), a["scores"], case.forward)
    theirs = _sizes(a["q_out"])[:, :, None] * _sizes(a["k_out"])[:, None]
    yield Check("sizes of pairs, whatever the centre", _sizes(q)[:, :, None] * _sizes(k)[:, None], theirs, case.forward)


def _one_head(x) -> np.ndarray:
    return np.asarray(x)[:, 0]


def _sizes(x: np.ndarray) -> np.ndarray:
    """The length of each pair of features."""
    return np.hypot(x[..., ::2], x[..., 1::2])
