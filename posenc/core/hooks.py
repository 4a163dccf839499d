"""Checks of what hooks return: shapes and kinds, which are known while a program is traced and so cost nothing in it.

An array of the wrong shape would broadcast, and one of integers would round, without a word.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from posenc.numerics.sizes import are_numbers

UNCHANGED = ("embed", "value", "output", "score", "normalize")
"""Hooks that return an array of the shape of the one that they are given."""
CHECKED = (*UNCHANGED, "locate", "neighbours", "query", "key", "pair", "value_bias", "init", "init_head", "scale")


def checked(hook: str, run: Callable[..., Any]) -> Callable[..., Any]:
    """The hook of this name, with what it returns compared with what it must return."""

    @functools.wraps(run)
    def run_checked(scheme: Any, *args: Any) -> Any:
        made = run(scheme, *args)
        if (wrong := _wrong(hook, args, made)) is not None:
            code = getattr(run, "__code__", None)
            where = f" ({os.path.basename(code.co_filename)}, line {code.co_firstlineno})" if code else ""
            name = getattr(scheme, "name", type(scheme).__name__)
            raise ValueError(f"The hook {hook!r} of {name!r}{where} returns {wrong}.")
        return made

    return run_checked


def _wrong(hook: str, args: tuple[Any, ...], made: Any) -> str | None:
    """Return the fault of what a hook returned, and what it must be; None if there is none."""
    if hook in ("init", "init_head"):
        return _parameters(made)
    if hook == "scale":
        real = isinstance(made, int | float | np.floating | np.integer) and not isinstance(made, bool)
        return None if real and made > 0 else f"{made!r}; it must return a number above 0"
    if hook in UNCHANGED:
        return _array(made, np.shape(args[1]))
    if hook == "neighbours":
        return _mixed(args, made)
    length = np.shape(args[2].index)[0] if hook == "locate" else np.shape(args[1])[0]
    if hook == "value_bias":
        return _array(made, (length, None))
    count = 3 if hook == "pair" else 2
    if type(made) is not tuple or len(made) != count:
        return f"{_shown(made)}; it must return a tuple of {count}"
    if hook == "locate":
        carried = jax.tree.structure(made[1]) == jax.tree.structure(args[3])
        return _info(made[0], length) if carried else "another carry than it was given; it must return one of its form"
    values = _array(made[2], np.shape(args[2])) if hook == "pair" else None
    return _array(made[0], (length, None)) or _info(made[1], length) or values


def _mixed(args: tuple[Any, ...], made: Any) -> str | None:
    """Return the fault of mixed tokens and of what is carried of them."""
    if type(made) is not tuple or len(made) != 2:
        return f"{_shown(made)}; it must return a tuple of 2"
    shapes = [[np.shape(a) for a in jax.tree.leaves(past)] for past in (made[1], args[4])]
    if jax.tree.structure(made[1]) != jax.tree.structure(args[4]) or shapes[0] != shapes[1]:
        return "another past than it was given; it must return one of its form"
    return _array(made[0], np.shape(args[2]))


def _parameters(made: Any) -> str | None:
    """Return the fault of the parameters that `init` or `init_head` makes."""
    if not isinstance(made, dict):
        return f"{_shown(made)}; it must return a dict of arrays, empty where nothing is learned"
    odd = [name for name, leaf in made.items() if not all(hasattr(a, "dtype") for a in jax.tree.leaves(leaf))]
    return f"{odd[0]!r} as {_shown(made[odd[0]])}; it must return arrays" if odd else None


def _array(a: Any, shape: tuple[Any, ...]) -> str | None:
    """Return the fault of an array of floating numbers; `None` in its shape stands for any size."""
    fits = np.ndim(a) == len(shape) and all(m is None or n == m for n, m in zip(np.shape(a), shape, strict=True))
    sizes = [n for n in (*np.shape(a), *shape) if n is not None]
    if (fits or not are_numbers(*sizes)) and _floating(a):
        return None
    wanted = ", ".join("any" if n is None else str(n) for n in shape)
    return f"{_shown(a)}; it must return floating numbers of the shape ({wanted})"


def _floating(a: Any) -> bool:
    return jnp.issubdtype(getattr(a, "dtype", type(a)), jnp.floating)


def _info(info: Any, length: Any) -> str | None:
    """Return the fault of the info of tokens."""
    odd = [a for a in jax.tree.leaves(info) if are_numbers(*np.shape(a), length) and np.shape(a)[:1] != (length,)]
    return f"info with {_shown(odd[0])}; all its arrays have {length} entries, one for each token" if odd else None


def _shown(a: Any) -> str:
    if hasattr(a, "dtype") and hasattr(a, "shape"):
        return f"{a.dtype} of the shape {tuple(a.shape)}"
    return f"a {type(a).__name__}"
