"""The headings of a Markdown text, and its pieces: each as much of the outline as an embedder takes in at once.

Pure functions. A text is in Unicode with `\\n` line ends.

Contract: import.markdown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_RULE = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|(?:-[ \t]*){3,})")
# What a line under it does not make a heading of: a list, a quotation, a table's row, markup, code.
_NO_PARAGRAPH = re.compile(r" {0,3}(?:[-*+](?:[ \t]|$)|\d{1,9}[.)](?:[ \t]|$)|>|\||<)")
_INDENTED = (" " * 4, "\t")
_HTML = {
    re.compile(r" {0,3}<!--"): re.compile("-->"),
    re.compile(r" {0,3}<(?:pre|script|style|textarea)(?:[\s>]|$)", re.IGNORECASE): re.compile(
        r"</(?:pre|script|style|textarea)>", re.IGNORECASE
    ),
}
_LINK = re.compile(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])")
_ANCHOR = re.compile(r"[ \t]*(?:\{[#.][^}]*\}|<a\b[^>]*>(?:</a>)?)[ \t]*")
_LONGEST_HEADING = 200  # characters; a paragraph with a rule under it that is longer was not meant as a heading
_NONE, _OTHER = -1, -2  # no paragraph; something that has its own lines until the next blank one


class Piece(NamedTuple):
    """A part of a text: the headings above it, outermost first, its own last, and what stands under them."""

    path: tuple[str, ...]
    text: str


class _Heading(NamedTuple):
    level: int
    title: str
    start: int  # lines: where it stands, and where what is under it begins
    body: int


class _Section(NamedTuple):
    level: int
    path: tuple[str, ...]
    lines: list[str]  # its own, without its heading and what is below it
    whole: list[str]  # all of it, without its own heading
    parts: list[_Section]


def headings(lines: list[str]) -> Iterator[_Heading]:
    """Yield the headings among lines, in order: `# so`, and lines over `===` or `---`; none inside code or comments."""
    at, paragraph = 0, _NONE  # paragraph: where the one begins that the line before belongs to
    while at < len(lines):
        line = lines[at]
        if (after := _past_block(lines, at)) is not None:
            at, paragraph = after, _NONE
            continue
        if found := _ATX.fullmatch(line):
            paragraph = _NONE
            if title := plain(found[2] or ""):
                yield _Heading(len(found[1]), title, at, at + 1)
        elif paragraph >= 0 and (under := _UNDERLINE.fullmatch(line)):
            title = plain(" ".join(part.strip() for part in lines[paragraph:at]))
            if title and len(title) <= _LONGEST_HEADING:
                yield _Heading(1 if under[1][0] == "=" else 2, title, paragraph, at + 1)
            paragraph = _NONE
        else:
            paragraph = _paragraph(line, at, paragraph)
        at += 1


def _paragraph(line: str, at: int, before: int) -> int:
    """Return where the paragraph begins that a line belongs to; ``before`` is that of the line before."""
    if not line.strip() or _RULE.fullmatch(line):
        return _NONE
    if _NO_PARAGRAPH.match(line) or (before == _NONE and line.startswith(_INDENTED)):
        return _OTHER
    return at if before == _NONE else before


def _past_block(lines: list[str], at: int) -> int | None:
    """Return the line behind the code or the comment that begins here, None where none does; one without an end goes
    to the end of the text.
    """
    if fence := _FENCE.match(lines[at]):
        close = re.compile(rf" {{0,3}}{re.escape(fence[1][0])}{{{len(fence[1])},}}[ \t]*")
        ends = (place for place in range(at + 1, len(lines)) if close.fullmatch(lines[place]))
        return next(ends, len(lines)) + 1
    for begin, end in _HTML.items():
        if begin.match(lines[at]):
            ends = (place for place in range(at, len(lines)) if end.search(lines[place]))
            return next(ends, len(lines)) + 1
    return None


def without_blocks(lines: list[str]) -> Iterator[str]:
    """Yield the lines that are no code and no comment."""
    at = 0
    while at < len(lines):
        after = _past_block(lines, at)
        if after is None:
            yield lines[at]
        at = at + 1 if after is None else after


def plain(title: str) -> str:
    """Return a heading as it reads: of a link its words, without anchors."""
    return " ".join(_ANCHOR.sub(" ", _LINK.sub(r"\1", title)).split())


def pieces(text: str, title: str, window: int, room: int) -> list[Piece]:
    """Return the pieces of a text in order, none of a blank one.

    A text of at most ``window`` bytes is one piece, its path ``title`` alone. Of a longer one each heading is a piece
    with all that is under it where that fits into the window, else with its own words, and the headings below it in the
    same way. Nothing is cut: what is longer has passages in the store. Only a piece of more than ``room`` characters is
    several, between paragraphs where that can be.
    """
    root = _tree(text.split("\n"), title)
    found = [
        Piece(path, part)
        for path, body in _fitting(root, window)
        for part in _parts(body, room - len(" > ".join(path)) - 2)
    ]
    return found or [Piece((title,), part) for part in _parts(text.strip(), room - len(title) - 2)]


def _tree(lines: list[str], title: str) -> _Section:
    """Return a text's outline. A heading that all of it stands under is its root; without one that is ``title``."""
    found = list(headings(lines))
    top = _Heading(0, title, 0, 0)
    if found and _begins(lines, found[0]) and all(other.level > found[0].level for other in found[1:]):
        top = found.pop(0)
    own = lines[top.body : found[0].start if found else None]
    root = _Section(top.level, (top.title,), own, lines[top.body :], [])
    above = [root]
    for place, heading in enumerate(found):
        while above[-1].level >= heading.level and len(above) > 1:
            above.pop()
        ends = (later.start for later in found[place + 1 :] if later.level <= heading.level)
        own_end = found[place + 1].start if place + 1 < len(found) else None
        section = _Section(
            heading.level,
            (*above[-1].path, heading.title),
            lines[heading.body : own_end],
            lines[heading.body : next(ends, None)],
            [],
        )
        above[-1].parts.append(section)
        above.append(section)
    return root


def _begins(lines: list[str], heading: _Heading) -> bool:
    return not any(line.strip() for line in lines[: heading.start])


def _fitting(section: _Section, window: int) -> Iterator[tuple[tuple[str, ...], str]]:
    whole = _stripped(section.whole)
    if len(f"{' > '.join(section.path)}\n\n{whole}".encode()) <= window:
        if _stripped(section.lines) or section.parts and whole:
            yield section.path, whole
        return
    if own := _stripped(section.lines):
        yield section.path, own
    for part in section.parts:
        yield from _fitting(part, window)


def _stripped(lines: list[str]) -> str:
    """Return lines as a text without blank lines around it; the first line keeps its indentation."""
    kept = [line.rstrip() for line in lines]
    while kept and not kept[-1]:
        kept.pop()
    first = next((place for place, line in enumerate(kept) if line), len(kept))
    return "\n".join(kept[first:])


def _parts(text: str, room: int) -> Iterator[str]:
    """Yield a text in parts of at most so many characters, cut between paragraphs, else lines, else words."""
    room = max(room, 1)
    while len(text) > room:
        cut = next((at for mark in ("\n\n", "\n", " ") if (at := text.rfind(mark, room // 2, room)) > 0), room)
        yield text[:cut].rstrip()
        text = text[cut:].strip("\n")
    if text.strip():
        yield text
