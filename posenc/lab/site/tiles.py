"""The picture of each scheme's scores: the panels of the committed gallery, cut apart."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_NS = {"s": SVG}
NOTHING = (
    f'<svg xmlns="{SVG}" viewBox="0 0 80 80"><rect width="80" height="80" fill="#fff"/>'
    '<text x="40" y="38" text-anchor="middle" font-family="sans-serif" font-size="7" fill="#555">nothing in</text>'
    '<text x="40" y="48" text-anchor="middle" font-family="sans-serif" font-size="7" fill="#555">the scores</text>'
    "</svg>"
)
"""The picture of a scheme that changes no score."""
MARGIN = 2.0
BESIDE, BELOW = 16.0, 10.0
"""What labels take at the left of a curve and below a panel."""


def cut(gallery: str) -> dict[str, tuple[str, bool]]:
    """Scheme to its panel as a picture of its own, and whether its parameters were moved at random to show anything.

    `gallery` is the text of `experiments/figures/gallery.svg`, which `posenc explain all` draws.
    """
    ET.register_namespace("", SVG)
    ET.register_namespace("xlink", XLINK)
    return dict(_panels(ET.fromstring(gallery)))


def _panels(root: ET.Element) -> Iterator[tuple[str, tuple[str, bool]]]:
    clips = {clip.get("id"): clip for clip in root.iterfind(".//s:clipPath", _NS)}
    for axes in root.iterfind(".//s:g", _NS):
        if not (axes.get("id") or "").startswith("axes_"):
            continue
        title = _title(axes)
        if title is None:
            continue
        group, name = title
        words = "".join(group.itertext()).strip()
        axes.remove(group)
        shown = _alone(axes, clips)
        yield name, (shown, words.endswith("*"))


def _title(axes: ET.Element) -> tuple[ET.Element, str] | None:
    """The group that holds the name of a panel, which is bold, and the scheme that it names."""
    for group in axes.iterfind("s:g", _NS):
        text = group.find("s:text", _NS)
        if text is not None and "font-weight: 700" in (text.get("style") or ""):
            return group, "".join(text.itertext()).strip().rstrip("*")
    return None


def _alone(axes: ET.Element, clips: dict[str | None, ET.Element]) -> str:
    """A panel in an image of its own, with what it refers to."""
    frame = axes.find("s:g/s:path", _NS)
    numbers = [float(n) for n in re.findall(r"-?\d+\.?\d*", "" if frame is None else frame.get("d") or "")]
    if frame is None or len(numbers) < 6:
        return NOTHING
    left, right, top, bottom = min(numbers[::2]), max(numbers[::2]), min(numbers[1::2]), max(numbers[1::2])
    texts = list(axes.iterfind(".//s:text", _NS))
    before = BESIDE if len(texts) > 1 else MARGIN
    below = BELOW if texts else MARGIN
    wide, high = right - left + before + MARGIN, bottom - top + MARGIN + below
    side = max(wide, high)  # all pictures are squares, so that a grid of them is even
    x, y = left - before - (side - wide) / 2, top - MARGIN - (side - high) / 2
    box = f"{x:.2f} {y:.2f} {side:.2f} {side:.2f}"
    made = ET.Element(f"{{{SVG}}}svg", {"viewBox": box})
    sides = dict(zip(("x", "y", "width", "height"), box.split(), strict=True))
    ET.SubElement(made, f"{{{SVG}}}rect", sides | {"fill": "#fff"})
    written = ET.tostring(axes, encoding="unicode")
    used = [clips[name] for name in dict.fromkeys(re.findall(r"url\(#(\w+)\)", written)) if name in clips]
    if used:
        ET.SubElement(made, f"{{{SVG}}}defs").extend(used)
    made.append(axes)
    return ET.tostring(made, encoding="unicode")
