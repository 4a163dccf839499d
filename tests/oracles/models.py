"""Models token by token, from their equations: one sequence, real tokens only, float64, plain loops."""

import math

import numpy as np

EPSILON = 1e-6


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def rnn(p, x, h, settings):
    (state,) = h
    fresh = np.tanh(x @ p["dense_i"]["kernel"] + p["dense_i"]["bias"] + state @ p["dense_h"]["kernel"])
    return fresh, (fresh,)


def gru(p, x, h, settings):
    (state,) = h
    now, past = x @ p["dense_i"]["kernel"] + p["dense_i"]["bias"], state @ p["dense_h"]["kernel"]
    d = len(state)
    fresh = np.zeros(d)
    for n in range(d):
        r, z = sigmoid(now[n] + past[n]), sigmoid(now[d + n] + past[d + n])
        new = math.tanh(now[2 * d + n] + r * past[2 * d + n])
        fresh[n] = (1 - z) * new + z * state[n]
    return fresh, (fresh,)


def lstm(p, x, h, settings):
    state, memory = h
    told = x @ p["dense_i"]["kernel"] + state @ p["dense_h"]["kernel"] + p["dense_h"]["bias"]
    d = len(state)
    fresh, kept = np.zeros(d), np.zeros(d)
    for n in range(d):
        i, f, o = (sigmoid(told[n + d * gate]) for gate in (0, 1, 3))
        kept[n] = f * memory[n] + i * math.tanh(told[n + 2 * d])
        fresh[n] = o * math.tanh(kept[n])
    return fresh, (fresh, kept)


CELLS = {"rnn": (rnn, 1), "gru": (gru, 1), "lstm": (lstm, 2), "rnnsearch": (gru, 1)}


def run(kind, p, x):
    cell, parts = CELLS[kind]
    h, found = (np.zeros(p["dense_h"]["kernel"].shape[0]),) * parts, []
    for token in x:
        out, h = cell(p, token, h, {})
        found.append(out)
    return np.array(found)


def layers(kind, p, x):
    for n in sorted(p["blocks"]):
        block = p["blocks"][n]
        h = run(kind, block["ahead"], x)
        if "back" in block:
            h = np.concatenate([h, run(kind, block["back"], x[::-1])[::-1]], 1)
        x = h
    return x


def recurrent(kind, p, tokens, causal, source=None):
    return layers(kind, p, p["embedding"][tokens]) @ p["readout"]


def norm(x, scale):
    centred = x - x.mean()
    return centred / math.sqrt((centred**2).mean() + EPSILON) * scale


def convolution(kind, p, tokens, causal, source=None):
    x, blocks = p["embedding"][tokens], p["blocks"]
    for filters, bias, scale in zip(blocks["filters"], blocks["bias"], blocks["scale"], strict=True):
        k, inside, out = len(filters), [norm(token, scale) for token in x], []
        past = k - 1 if causal else k // 2
        for t in range(len(x)):
            total = bias.copy()
            for n in range(k):
                at = t + n - past
                if 0 <= at < len(x):
                    total = total + inside[at] @ filters[n]
            out.append(x[t] + np.maximum(total, 0))
        x = np.array(out)
    return np.array([norm(token, p["scale"]) for token in x]) @ p["readout"]


def averaging(kind, p, tokens, causal, source=None):
    e, out = p["embedding"][tokens], []
    for t in range(len(tokens)):
        x = e[: t + 1].mean(0) if causal else e.mean(0)
        for w, b in zip(p["inner"], p["bias"], strict=True):
            x = np.maximum(x @ w + b, 0)
        out.append(x @ p["readout"])
    return np.array(out)


def search(kind, p, tokens, causal, source=None):
    y, h = p["embedding"][tokens], layers(kind, p, p["embedding"][tokens if source is None else source])
    d = y.shape[1]
    s, out = np.tanh(h[0, d:] @ p["start"]), []
    for told in y:
        e = [np.tanh(s @ p["from_state"] + one @ p["from_source"]) @ p["to_score"] for one in h]
        a = np.exp(np.array(e) - max(e))
        c = (a / a.sum()) @ h
        z = np.concatenate([s, told, c]) @ p["output"]
        out.append(np.array([max(z[2 * n], z[2 * n + 1]) for n in range(d)]) @ p["readout"])
        s, _ = gru(p["writer"], np.concatenate([told, c]), (s,), {})
    return np.array(out)


MODELS = {name: recurrent for name in ("rnn", "gru", "lstm")}
MODELS |= {"convolution": convolution, "averaging": averaging, "rnnsearch": search}


def scores(attention, p, q, k):
    """The score of one query and one key of one head."""
    match attention:
        case "scaled_dot":
            return float(q @ k) / math.sqrt(len(q))
        case "dot":
            return float(q @ k)
        case "additive":
            return float(np.tanh(q @ p["from_query"] + k @ p["from_key"]) @ p["to_score"])
        case "average":
            return 0.0
