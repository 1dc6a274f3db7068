"""The pictures of ``pictures`` as SVG: pure functions from values to a document that stands for itself.

Contract: pictures.drawn.
"""

from __future__ import annotations

import re

from .pictures import Bins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .pictures import Scores

_WIDTH, _LEFT, _RIGHT, _TOP, _PLOT, _FOOT = 720, 56, 24, 56, 240, 48
_KNOWN, _UNRELATED, _GATE, _INK = "#2a7f62", "#b8860b", "#c0392b", "#333333"
_ROW, _NAME = 20, 180
_NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LABELS = 12  # below a histogram, at most


def histograms(scores: Scores) -> str:
    """Return two histograms over the same bins, a pair of columns for each, with the gate as a line."""
    bins = Bins(scores)
    low, high = bins.edges[0], bins.edges[-1]
    most = max(*bins.known, *bins.unrelated, 1)
    across = _WIDTH - _LEFT - _RIGHT

    def x(value: float) -> float:
        return _LEFT + (value - low) / (high - low) * across

    base, parts = _TOP + _PLOT, []
    known, unrelated = scores.counts
    parts += [
        _text(_LEFT, 24, f"{scores.signal}: what known and unrelated questions score", size=16),
        _rect(_LEFT, 34, 12, 12, _KNOWN),
        _text(_LEFT + 18, 44, f"known ({known}, {scores.missing[0]} without their row)"),
        _rect(_LEFT + 300, 34, 12, 12, _UNRELATED),
        _text(_LEFT + 318, 44, f"unrelated ({unrelated}, {scores.missing[1]} without a row)"),
    ]
    for at, pair in enumerate(zip(bins.known, bins.unrelated, strict=True)):
        left, right = x(bins.edges[at]), x(bins.edges[at + 1])
        half = (right - left) / 2
        for side, (count, colour) in enumerate(zip(pair, (_KNOWN, _UNRELATED), strict=True)):
            height = count / most * _PLOT
            if count:
                title = f"{bins.edges[at]:.4g} to {bins.edges[at + 1]:.4g}: {count}"
                parts.append(_rect(left + side * half + 0.5, base - height, half - 1, height, colour, title))
    parts.append(_line(_LEFT, base, _WIDTH - _RIGHT, base, _INK))
    every = -(-len(bins.edges) // _LABELS)
    parts += [_text(x(edge), base + 18, f"{edge:.3g}", "middle") for edge in bins.edges[::every]]
    parts += [_text(_LEFT - 6, base, "0", "end"), _text(_LEFT - 6, _TOP + 10, str(most), "end")]
    if scores.gate is not None:
        parts.append(_line(x(scores.gate), _TOP, x(scores.gate), base, _GATE, dashed=True))
        parts.append(_text(x(scores.gate), base + 36, f"gate {scores.gate:.4g}", "middle", _GATE))
    return _document(_TOP + _PLOT + _FOOT, parts)


def panels(title: str, found: Sequence[tuple[str, Sequence[tuple[str, int]]]]) -> str:
    """Return a panel of horizontal bars for each title and its names and counts, one below the other."""
    parts, at = [_text(_LEFT, 24, title, size=16)], 44
    width = _WIDTH - _LEFT - _NAME - _RIGHT - 70
    for name, rows in found:
        at += 16
        parts.append(_text(_LEFT, at, name, size=14))
        at += 8
        most = max((count for _, count in rows), default=0) or 1
        for label, count in rows:
            length = count / most * width
            parts.append(_text(_LEFT + _NAME - 8, at + 12, label[:26], "end"))
            parts.append(_rect(_LEFT + _NAME, at + 2, length, _ROW - 6, _KNOWN))
            parts.append(_text(_LEFT + _NAME + length + 6, at + 12, f"{count:,}"))
            at += _ROW
    return _document(at + 16, parts)


def _document(height: float, parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:g}" width="{_WIDTH}"'
        f' height="{height:g}" font-family="sans-serif">'
    )
    ground = _rect(0, 0, _WIDTH, height, "#ffffff")
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, ground, *parts, "</svg>"]) + "\n"


def _rect(x: float, y: float, width: float, height: float, colour: str, title: str = "") -> str:
    inside = f"><title>{_escaped(title)}</title></rect>" if title else "/>"
    return f'<rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" fill="{colour}"{inside}'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, dashed: bool = False) -> str:
    dashes = ' stroke-dasharray="6 4" stroke-width="2"' if dashed else ""
    return f'<line x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}" stroke="{colour}"{dashes}/>'


def _text(x: float, y: float, text: str, anchor: str = "start", colour: str = _INK, size: int = 12) -> str:
    place = f'x="{x:.2f}" y="{y:.2f}" font-size="{size}" text-anchor="{anchor}"'
    return f'<text {place} fill="{colour}">{_escaped(text)}</text>'


def _escaped(text: str) -> str:
    """Return text as XML has it; what XML cannot hold, such as control characters, is marked."""
    held = _NOT_XML.sub("\ufffd", text)
    return held.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
