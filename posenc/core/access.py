"""Parts of a scheme from which a model builds its layers: the scheme of each layer, and what acts on the input
before."""

from __future__ import annotations

from typing import Any

from posenc.core.compose import Composed, Pattern
from posenc.core.masks import as_integer
from posenc.core.scheme import Scheme


def layer(scheme: Any, n: int) -> Any:
    """The scheme of layer n of a model, counted from 0; a pattern comes again after its last layer.

    >>> import posenc
    >>> pattern = posenc.parse("learned + [rope, rope, nope]")
    >>> [posenc.spec(posenc.layer(pattern, n)) for n in range(5)]
    ['rope', 'rope', 'nope', 'rope', 'rope']

    What stands before a list acts on the input and is not part of a layer: `posenc.input_scheme` gives it. A scheme
    that is not a pattern is that of every layer, as it is. Raises `TypeError` for anything but a scheme and
    `ValueError` for anything but a whole number of at least 0.
    """
    _check(scheme)
    if (number := as_integer(n)) is None or number < 0:
        raise ValueError(f"n is {n!r}; layers are counted from 0, so it is a whole number of at least 0.")
    return scheme.layers[number % len(scheme.layers)] if isinstance(scheme, Pattern) else scheme


def input_scheme(scheme: Any) -> Any:
    """The scheme whose `posenc.embed` acts on the input of the first layer, or None where there is none.

    >>> import posenc
    >>> posenc.spec(posenc.input_scheme(posenc.parse("sinusoidal + [rope, nope]")))
    'sinusoidal'
    >>> posenc.input_scheme(posenc.parse("[rope, nope]"))

    Of a pattern it is what stands before the list. A scheme that is not a pattern is given as a whole where any part of
    it acts on the input: its layers then run the other parts, `Attention(..., embedded=True)`. Raises `TypeError` for
    anything but a scheme.
    """
    _check(scheme)
    candidate = scheme.input if isinstance(scheme, Pattern) else scheme
    return candidate if candidate is not None and candidate.overrides("embed") else None


def acts_on_input(scheme: Any) -> bool:
    """Tell whether a model must pass its input through `posenc.embed`, once, before the first layer.

    >>> import posenc
    >>> [posenc.acts_on_input(posenc.parse(text)) for text in ("learned", "learned + rope", "rope")]
    [True, True, False]

    Raises `TypeError` for anything but a scheme.
    """
    return input_scheme(scheme) is not None


def _check(scheme: Any) -> None:
    if not isinstance(scheme, Scheme | Composed | Pattern):
        raise TypeError(f"A scheme was expected, such as posenc.parse('rope'), not {scheme!r}.")
