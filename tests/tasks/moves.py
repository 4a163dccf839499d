"""How a prompt of each task may be rearranged so that no answer changes: what is noise is drawn among noise again, what
an order does not matter to changes its order. Where nothing may be moved, a sentence says why.

A move takes a generator, the task and one prompt, and gives another prompt; `MOVES` and `FIXED` name every task once.
"""

from itertools import chain, groupby


def among(rng, prompt, at):
    """The tokens at these places change places with one another."""
    moved = list(prompt)
    for to, source in zip(at, rng.permutation(at), strict=True):
        moved[to] = prompt[source]
    return moved


def shuffled(rng, parts, sign=()):
    """Parts in another order, with a sign between them."""
    parts = [parts[i] for i in rng.permutation(len(parts))]
    return [token for n, part in enumerate(parts) for token in (*(sign if n else ()), *part)]


def split(text, sign):
    """What stands between the signs."""
    parts = [[]]
    for token in text:
        if token == sign:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def all_of_it(rng, task, prompt):
    return among(rng, prompt, [i for i, token in enumerate(prompt) if token < task.alphabet])


def noise(rng, task, prompt):
    """Everything but marks, which are the tokens behind `symbols`."""
    return among(rng, prompt, [i for i, token in enumerate(prompt) if token < task.symbols])


def what_lies_between(rng, task, prompt):
    return among(rng, prompt, range(1, len(prompt) - 1))


def other_symbols(rng, task, prompt):
    """All but the one asked for, in both copies alike."""
    half, hole = len(prompt) // 2, prompt.index(2)
    at = [i for i in range(half) if i != hole % half]
    order = rng.permutation(at).tolist()
    moved = list(prompt)
    for to, source in zip(at, order, strict=True):
        moved[to], moved[to + half] = prompt[source], prompt[source + half]
    return moved


def popped(rng, task, prompt):
    """What was pushed and is popped again may have been either symbol."""
    stack, gone, other = [], [], {0: 1, 1: 0, 3: 4, 4: 3}
    for i, token in enumerate(prompt):
        if token != 2:
            stack.append(i)
        elif stack:
            gone.append(stack.pop())
    return [other[token] if i in gone and rng.random() < 0.5 else token for i, token in enumerate(prompt)]


def operands(sign, told=slice(1, -1)):
    """Numbers in another order; the sign stands between them."""

    def move(rng, task, prompt):
        start, stop, _ = told.indices(len(prompt))
        return [*prompt[:start], *shuffled(rng, split(prompt[start:stop], sign), [sign]), *prompt[stop:]]

    return move


def terms(rng, task, prompt):
    """Of a polynomial: what stands between its plus signs, behind the comma."""
    cut = prompt.index(16) + 1
    return [*prompt[:cut], *shuffled(rng, split(prompt[cut:-1], 13), [13]), prompt[-1]]


def clauses(rng, task, prompt):
    """Of five tokens each."""
    text = prompt[1:-2]
    return [prompt[0], *shuffled(rng, [text[i : i + 5] for i in range(0, len(text), 5)]), *prompt[-2:]]


def entries(rng, task, prompt):
    """Of a list of labels and numbers; equal numbers keep their order."""
    listed = split(prompt[1:-1], 11)
    same = {tuple(entry[1:]): iter([e for e in listed if e[1:] == entry[1:]]) for entry in listed}
    moved = [next(same[tuple(listed[i][1:])]) for i in rng.permutation(len(listed))]
    return [prompt[0], *[token for n, entry in enumerate(moved) for token in ([11] * (n > 0) + entry)], prompt[-1]]


def statements(rng, task, prompt):
    """Those that do nothing, to anywhere between the others."""
    base, at, own, idle = 11 + task.variables, 1, [], 0
    while prompt[at] != base + 4:
        size = 1 if prompt[at] == base + 3 else 4 if prompt[at + 1] == base else 2
        if size == 1:
            idle += 1
        else:
            own.append(prompt[at : at + size])
        at += size
    order = rng.permutation([True] * len(own) + [False] * idle)
    rest = iter(own)
    return [prompt[0], *[token for mine in order for token in (next(rest) if mine else [base + 3])], *prompt[at:]]


def pairs(rng, task, prompt):
    """Of keys and values; where each key that comes again asks, the noise between the pairs."""
    if task.repeat:
        return among(rng, prompt, [i for i, token in enumerate(prompt) if token >= task.keys + task.values])
    if task.fuzzy:
        runs = [list(run) for _, run in groupby(prompt[1:-1], lambda token: token >= task.keys)]
        told, asked = [k + v for k, v in zip(runs[:-1:2], runs[1::2], strict=True)], runs[-1]
    else:
        told, asked = [prompt[i : i + 2] for i in range(1, len(prompt) - 2, 2)], prompt[-2:-1]
    return [prompt[0], *shuffled(rng, told), *asked, prompt[-1]]


def pairs_and_fillers(rng, task, prompt):
    told = 2 * task.pairs
    head = shuffled(rng, [prompt[i : i + 2] for i in range(0, told, 2)])
    rest = [i for i in range(told, len(prompt)) if prompt[i] not in prompt[0:told:2]]
    return among(rng, head + prompt[told:], rest)


def blanks(rng, task, prompt):
    """The data keep their order, among blanks anywhere."""
    data = iter([token for token in prompt if token != task.symbols])
    kept = rng.permutation([token != task.symbols for token in prompt])
    return [next(data) if keep else task.symbols for keep in kept]


def all_but_what_followed(rng, task, prompt):
    told = prompt.index(task.symbols) + 1
    return among(rng, prompt, [i for i, token in enumerate(prompt) if token < task.symbols and i != told])


def haystack(rng, task, prompt):
    """Needles and fillers, each needle in one piece, anywhere."""
    if task.name == "needle":
        mark, long, cut = task.alphabet - 3, 3 + task.width, prompt.index(task.alphabet - 1)
    else:
        mark, long, cut = task.alphabet - 1, 1 + task.digits, len(prompt) - 1
    parts, at = [], 1
    while at < cut:
        size = long if prompt[at] == mark else 1
        parts.append(prompt[at : at + size])
        at += size
    moved = [parts[i] for i in rng.permutation(len(parts))]
    if getattr(task, "per_key", 1) > 1:  # values of one key are told in the order of the text
        needles = iter(part for part in parts if part[0] == mark)
        moved = [next(needles) if part[0] == mark else part for part in moved]
    return [prompt[0], *chain.from_iterable(moved), *prompt[cut:]]


def ignored_bits(rng, task, prompt):
    return among(rng, prompt, [i + 1 for i in range(0, len(prompt), 2) if prompt[i] == 4])


def all_but_the_one_at(place):
    """The last token says which."""

    def move(rng, task, prompt):
        told = place(task, prompt)
        return among(rng, prompt, [i for i in range(len(prompt) - 1) if i != told])

    return move


def the_last_k(rng, task, prompt):
    """Nobody is asked for them, so they may be anything."""
    return [*prompt[: -task.k], *rng.integers(task.symbols, size=task.k).tolist()]


def both_alike(rng, task, prompt):
    half = len(prompt) // 2
    order = rng.permutation(half).tolist()
    return [prompt[i] for i in order] + [prompt[half]] + [prompt[half + 1 + i] for i in order]


def one_filler_more(rng, task, prompt):
    return [task.alphabet - 1, *prompt]


MOVES = {
    "even_pairs": what_lies_between,
    "parity_check": all_of_it,
    "cycle_navigation": all_of_it,
    "missing_duplicate_string": other_symbols,
    "stack_manipulation": popped,
    "binary_addition": operands(2, slice(None)),
    "binary_multiplication": operands(2, slice(None)),
    "bucket_sort": all_of_it,
    "sort_single": all_of_it,
    "sort_multi": operands(10),
    "sum_mod": all_of_it,
    "parity_lm": all_of_it,
    "polynomial": terms,
    "lego": clauses,
    "mode": all_of_it,
    "addition_kazemnejad": operands(10),
    "addition": operands(10),
    "addition_multi": operands(10),
    "multiply_nxm": operands(10),
    "multiplication_abacus": operands(10),
    "sort_labels": entries,
    "bitwise_or": operands(2),
    "mqar": pairs_and_fillers,
    "associative_recall": pairs,
    "selective_copy": blanks,
    "induction": all_but_what_followed,
    "needle": haystack,
    "passkey": haystack,
    "flip_flop": ignored_bits,
    "counting_cope": statements,
    "token_at_index": all_but_the_one_at(lambda task, prompt: prompt[-1] - task.symbols),
    "index_of_token": noise,
    "token_k_back": the_last_k,
    "pointer_back": all_but_the_one_at(lambda task, prompt: len(prompt) - 2 - (prompt[-1] - task.symbols)),
    "distance": noise,
    "before": noise,
    "same_order": both_alike,
    "count_symbol": all_of_it,
    "shifted": one_filler_more,
}

FIXED = {
    "modular_arithmetic": "Every digit and every sign is part of the value.",
    "modular_arithmetic_brackets": "Every digit, sign and bracket is part of the value.",
    "solve_equation": "Every digit, sign and bracket is part of the equation.",
    "reverse_string": "Every symbol is asked for, at a place that its own place gives.",
    "duplicate_string": "Every symbol is asked for, at places that its own place gives.",
    "odds_first": "Every symbol is asked for, at a place that its own place gives.",
    "compute_sqrt": "Every bit has a weight of its own in one number.",
    "copy": "Every symbol is asked for, in the order of the prompt.",
    "reverse": "Every symbol is asked for, against the order of the prompt.",
    "count_up": "There are two numbers, the first and the last to be said.",
    "minesweeper": "Every cell is asked for, and counts in its neighbours.",
    "dyck": "Every bracket that opens is asked for where it closes.",
    "word_problem": "Every element is a factor of all products from its place on.",
    "hidden_markov": "Every symbol is asked for, at the place before its own.",
    "copies": "Every symbol is asked for, at the place before its own.",
    "fill_blank": "Every number follows from the two before it, so that no other order is a recurrence.",
    "s2s_copy": "Every symbol is asked for, in the order of the source.",
    "s2s_reverse": "Every symbol is asked for, against the order of the source.",
    "toy_translation": "Every word is translated, to a place that its own place gives.",
    "date_format": "Every character is part of the one date.",
    "text": "Every symbol is asked for, in the order of the text.",
}
