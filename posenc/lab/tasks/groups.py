"""Products in a finite group: how hard a state is to track depends on the group alone (Merrill et al., 2024, §5).

Z60, A4xZ5 and A5 have 60 elements each. The first is commutative, the second solvable but not commutative, and the
third not solvable, which makes its word problem NC¹-complete. `word_problem(group='Z2')` is cumulative parity.

@inproceedings{merrill2024illusion, title={The Illusion of State in State-Space Models},
  author={Merrill, William and Petty, Jackson and Sabharwal, Ashish}, booktitle={ICML}, year={2024},
  eprint={2404.08819}}
"""

from __future__ import annotations

from typing import Literal

import jax.numpy as jnp
import numpy as np

from posenc.lab.tasks.draw import INT, integers
from posenc.lab.tasks.layout import tagged
from posenc.lab.tasks.task import CAUSAL, Layout, Sizes, Task

Permutation = tuple[int, ...]
GENERATORS: dict[str, tuple[Permutation, ...]] = {
    "Z2": ((1, 0),),
    "S3": ((1, 0, 2), (1, 2, 0)),
    "Z60": ((1, 2, 0, 4, 5, 6, 3, 8, 9, 10, 11, 7),),  # cycles of 3, 4 and 5 places
    "A4xZ5": ((1, 2, 0, 3, 4, 5, 6, 7, 8), (0, 2, 3, 1, 4, 5, 6, 7, 8), (0, 1, 2, 3, 5, 6, 7, 8, 4)),
    "A5": ((1, 2, 0, 3, 4), (1, 2, 3, 4, 0)),
    "S5": ((1, 0, 2, 3, 4), (1, 2, 3, 4, 0)),
}


class WordProblem(Task, name="word_problem"):
    """Name the product of all group elements so far (Merrill et al., 2024, §5).

    S3: 1 1 2  ->  1 0 2               at t the product g₁ · … · g_t; elements uniform

    A token is an element, numbered in the order of its permutation, 0 the identity. In a · b, b acts first: the product
    so far sends i to acc[g[i]]. The released data are finite sets that mix all shorter lengths with the requested one;
    here all examples are drawn, with exactly the requested size.
    """

    layout = Layout.TOKENS
    directions = CAUSAL
    ability = "state"
    suites = ("state",)
    sizes = Sizes(1, (2, 16), (17, 20, 24, 32, 48, 64))
    samples = ({"group": "Z2"}, {"group": "S3"}, {"group": "S5"}, {"group": "Z60"}, {"group": "A4xZ5"})

    group: Literal["Z2", "S3", "Z60", "A4xZ5", "A5", "S5"] = "A5"

    alphabet = classes = property(lambda task: len(elements(task.group)))

    def make(self, key, n, n_max):
        """Uniform elements have uniform products and vice versa: so products are drawn, and g_t connects them."""
        product = integers(key, n.shape[0], n_max, self.alphabet)
        before = jnp.pad(product[:, :-1], ((0, 0), (1, 0)))  # the identity precedes the first
        steps = jnp.asarray(_steps(self.group), INT).reshape(-1)
        return tagged(self, n, steps[before * self.alphabet + product], n, product, jnp.ones(product.shape, bool))

    def answer(self, prompt):
        named = elements(self.group)
        product, answer = tuple(range(len(named[0]))), []
        for g in prompt:
            product = tuple(product[i] for i in named[g])
            answer.append(named.index(product))
        return answer


def elements(group: str) -> list[Permutation]:
    """All elements, as the images of 0, 1, …, in lexical order: the identity is the first."""
    generators = GENERATORS[group]
    members = new = {tuple(range(len(generators[0])))}
    while new:
        new = {tuple(a[i] for i in b) for a in new for b in generators} - members
        members = members | new
    return sorted(members)


def _steps(group: str) -> np.ndarray:
    """[|G|, |G|]: the element that leads from a to b, which is a⁻¹ · b."""
    p = np.array(elements(group))
    number = {tuple(row): i for i, row in enumerate(p.tolist())}
    inverse = np.argsort(p, axis=1)
    leads = inverse[:, p]  # [a, b, place]: first b, then back along a
    return np.array([[number[tuple(row)] for row in rows] for rows in leads.tolist()])
