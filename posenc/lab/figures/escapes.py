"""Texts as cells of LaTeX and of Markdown."""

from __future__ import annotations

_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--"}
_LATEX |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", **{c: f"\\{c}" for c in "&%$#_{}"}}
_MARKDOWN = {c: f"\\{c}" for c in "\\`*_<|~$&"}


def latex(text: str) -> str:
    """Escape a text for LaTeX. A bracket or star at its start would belong to the end of the row before it.

    >>> latex("[rope, nope]")
    '{[}rope, nope]'
    """
    escaped = "".join(_LATEX.get(c, c) for c in text)
    return f"{{{escaped[0]}}}{escaped[1:]}" if escaped[:1] in ("[", "*") else escaped


def markdown(text: str) -> str:
    """Escape a text for a cell of a Markdown table."""
    return "".join(_MARKDOWN.get(c, c) for c in text)
