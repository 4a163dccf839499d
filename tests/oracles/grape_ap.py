"""Zhang et al. (2025), GRAPE-AP: a query's penalties for all tokens after the key, its own among them."""

import math

from tests.oracles import loop
from tests.oracles.alibi import slopes


def attend(scheme, heads, q, k, v, x, pos, seen):
    m = slopes(len(heads))
    n = scheme.features if scheme.source == "input" else q.shape[-1]

    def features(h, p, t):
        return p["w"] @ x[t] if scheme.source == "input" else {"key": k, "value": v}[scheme.source][t, h]

    def met(h, p, i, t):
        """a_i · R(-p_l) norm(a_l), a pair at a time: pairs (c, c + n/2), all turned by the same angle."""
        a, b = features(h, p, i), features(h, p, t)
        size = math.sqrt(sum(c * c for c in b) / n + 2.0**-23)
        cos, sin = math.cos(pos[t]) / size, math.sin(pos[t]) / size
        pairs = [(c, c + n // 2) for c in range(n // 2)]
        return sum(a[c] * (b[c] * cos + b[e] * sin) + a[e] * (b[e] * cos - b[c] * sin) for c, e in pairs)

    def score(h, p, i, j):
        penalties = [-m[h] * math.log(1 + math.exp(-met(h, p, i, t) / n)) for t in range(j + 1, i + 1)]
        return loop.dot(q, k, h, i, j) + sum(penalties)

    return loop.attend(heads, q, k, v, seen, score)
