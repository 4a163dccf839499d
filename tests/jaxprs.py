"""The programs that jax traces, as tests look into them."""

import jax


def equations(jaxpr):
    """The steps of a program and of those within it."""
    for equation in jaxpr.eqns:
        yield equation
        for value in jax.tree.leaves(list(equation.params.values()), is_leaf=lambda a: hasattr(a, "eqns")):
            if hasattr(inner := getattr(value, "jaxpr", value), "eqns"):
                yield from equations(inner)


def largest(name, jaxpr):
    """The most numbers that one step of this name gives."""
    return max(e.outvars[0].aval.size for e in equations(jaxpr) if str(e.primitive) == name)
