"""Small laws that many tasks share, exact and by hand."""

import itertools


def words(symbols, n):
    return list(itertools.product(range(symbols), repeat=n))


def even(prompts):
    prompts = list(prompts)
    return {tuple(p): 1 / len(prompts) for p in prompts}


def strings(symbols):
    return lambda n: even(words(symbols, n))
