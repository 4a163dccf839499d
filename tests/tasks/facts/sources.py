"""Sources whose best loss is known: a hidden Markov chain, and a text that copies itself."""

from itertools import product

from posenc.lab.tasks.hidden_markov import emissions


def two_of_a_chain(states):
    """Two symbols of a chain that stays with .8, or moves on round the ring."""
    table, law = emissions(states), {}
    for first, then in product(range(16), repeat=2):
        law[first, then] = sum(
            (0.8 * table[s, then] + 0.2 * table[(s + 1) % states, then]) * table[s, first] / states
            for s in range(states)
        )
    return law


def two_of_copies(symbols):
    """Two symbols of Zipf's law, the second of which copies the first with .5."""
    weights = [1 / k for k in range(1, symbols + 1)]
    base = [weight / sum(weights) for weight in weights]
    return {
        (first, then): base[first] * (0.5 * base[then] + 0.5 * (first == then))
        for first, then in product(range(symbols), repeat=2)
    }


LAWS = {"hidden_markov(states=4)": (2, two_of_a_chain, 4), "copies(start=0.5, end=0.5)": (2, two_of_copies, 16)}

PLANTED = [
    ("hidden_markov(states=4)", "hidden_markov:HiddenMarkov.make", ">= self.stay", ">= 0.5", "law"),
    ("copies(start=0.5, end=0.5)", "copies:Copies.make", "begin < self.start", "begin < 0.4", "law"),
]  # fmt: skip
