"""Sun et al. (2023), eq. 17: a score of rotated pairs, each shrunk by ζ to the power of the distance."""

import math

from tests.oracles import loop


def attend(scheme, heads, q, k, v, x, pos, seen):
    d = q.shape[-1]

    def score(h, p, i, j):
        total, distance = 0.0, float(pos[i]) - float(pos[j])
        for pair in range(d // 2):
            a, b = (pair, pair + d // 2) if scheme.layout == "half" else (2 * pair, 2 * pair + 1)
            zeta = (2 * pair / d + scheme.gamma) / (1 + scheme.gamma)
            angle = distance * scheme.base ** (-2 * pair / d)
            same = q[i, h, a] * k[j, h, a] + q[i, h, b] * k[j, h, b]
            cross = q[i, h, a] * k[j, h, b] - q[i, h, b] * k[j, h, a]
            total += zeta ** (distance / scheme.scale_base) * (math.cos(angle) * same + math.sin(angle) * cross)
        return total / math.sqrt(d)

    return loop.attend(heads, q, k, v, seen, score)
