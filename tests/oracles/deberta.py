"""He et al., 2021, §3.1, eq. 2 to 4: A = Q K + Q K^r_δ + K Q^r_δ, over √(3d); δ clips, or goes by logarithms (v2)."""

import math

from tests.oracles.loop import attend as loop


def bucket(distance, buckets, reach):
    """The v2 code: sign(x) (m + ⌈(m - 1) log(|x| / m) / log((reach - 1) / m)⌉) beyond m, half of the buckets."""
    m, size = buckets // 2, abs(distance)
    if buckets == reach or size <= m:
        return distance
    far = m + math.ceil(math.log(size / m) / math.log((reach - 1) / m) * (m - 1))
    return far if distance > 0 else -far


def attend(scheme, heads, q, k, v, x, pos, seen):
    def row(distance):
        return max(0, min(2 * scheme.buckets - 1, bucket(int(distance), scheme.buckets, scheme.reach) + scheme.buckets))

    def score(h, p, i, j):
        total, terms = q[i, h] @ k[j, h], 1
        if scheme.terms in ("both", "c2p"):
            total, terms = total + q[i, h] @ (p["table"][row(pos[i] - pos[j])] @ p["key"] + p["key_bias"]), terms + 1
        if scheme.terms in ("both", "p2c"):
            distance = pos[j] - pos[i] if scheme.mirrored else pos[i] - pos[j]
            total, terms = total + k[j, h] @ (p["table"][row(distance)] @ p["query"] + p["query_bias"]), terms + 1
        return float(total) / math.sqrt(terms * q.shape[2])

    return loop(heads, q, k, v, seen, score)
