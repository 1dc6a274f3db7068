"""The first pass over an import file: read it whole, count it, compare it with its header, write nothing.

A line that cannot be read counts as a line all the same, so that one damaged line costs itself alone, while a file that
was cut is told by the lines that are not there.

Contract: import.lines.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import msgspec

from ...errors import Refused, ShuttingDown
from ...model.kinds import parse_ref
from .lines import RECORD_KINDS, VERSION

MAX_LINE_BYTES = 32 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"
_COUNTED = ("memory", "episode", "profile", "entity", "mention", "relation")
_CHECK_EVERY = 1024
_NAMED = 5  # damaged lines that a refusal names

Key = tuple[int, str, int]


class _Head(msgspec.Struct):
    """What the first pass looks at; everything else of a line is skipped undecoded."""

    kind: Any = msgspec.field(name="_type", default=None)
    version: Any = None
    memory_count: Any = None
    episode_count: Any = None
    profile_count: Any = None
    entity_count: Any = None
    mention_count: Any = None
    relation_count: Any = None
    has_profile: Any = None
    ref: Any = None
    entity: Any = None
    subject_kind: Any = None
    subject_id: Any = None
    object_kind: Any = None
    object_id: Any = None
    anchor_ref: Any = None


_NONE = _Head()


@dataclass(slots=True)
class Survey:
    """What a file holds. ``wanted`` are the rows that associations name, by (part of the file, kind, id in the file):
    only for these must the second pass remember which id they got.
    """

    lines: int = 0
    found: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTED, 0))
    announced: dict[str, int | None] = field(default_factory=dict)
    has_profile: bool | None = None
    wanted: set[Key] = field(default_factory=set)
    parts: int = 0
    damaged: int = 0
    first_damaged: list[int] = field(default_factory=list)

    @property
    def is_export(self) -> bool:
        """Whether there is a header, or a record of a kind that is known."""
        return self.parts > 0 or any(self.found.values())

    def check(self) -> None:
        """Raise Refused when the header announces other counts than the file has, damaged lines counted as what is missing."""
        announced = {kind: n for kind, n in self.announced.items() if n is not None}
        missing = sum(max(0, n - self.found[kind]) for kind, n in announced.items())
        if missing > self.damaged or any(self.found[kind] > n for kind, n in announced.items()):
            differ = [kind for kind, n in announced.items() if n != self.found[kind]]
            told, there = (", ".join(f"{counts[kind]} {kind}" for kind in differ) for counts in (announced, self.found))
            raise Refused(
                f"the header announces {told} lines, the file holds {there}{self._beside()}; it is not whole, and nothing was imported"
            )
        if self.has_profile is True and not self.found["profile"] and not self.damaged:
            raise Refused(
                "the header announces a profile, the file holds none; it is not whole, and nothing was imported"
            )

    def _beside(self) -> str:
        """Return what a refusal says of the damaged lines."""
        if not self.damaged:
            return ""
        named = ", ".join(map(str, self.first_damaged)) + (", …" if self.damaged > len(self.first_damaged) else "")
        return (
            f" and {self.damaged} that cannot be read (line {named})"
            if self.damaged == 1
            else f" and {self.damaged} that cannot be read (lines {named})"
        )

    def damage(self, line: int) -> None:
        """Count a line that cannot be read."""
        self.damaged += 1
        if len(self.first_damaged) < _NAMED:
            self.first_damaged.append(line)


def survey(handle: BinaryIO, stop: threading.Event) -> Survey:
    """Read the whole file from its start. Raises Refused for a version that this program does not know."""
    out, decode = Survey(), msgspec.json.Decoder(_Head).decode
    ours, last_is_damaged = True, False
    for raw in read_lines(handle):
        out.lines += 1
        if out.lines % _CHECK_EVERY == 0 and stop.is_set():
            raise ShuttingDown("the import was ended before it began")
        if raw == b"":
            continue
        last_is_damaged = False
        try:
            head = _NONE if raw is None else decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            head = _NONE  # the second pass reports it
        if head.kind == "header":
            _header(out, head)
            ours = ours and head.version in (None, VERSION)
        elif isinstance(head.kind, str) and head.kind in out.found:
            out.found[head.kind] += 1
            if head.kind == "mention":
                _want(out, "entity", head.entity)
                _want_ref(out, head.ref)
            elif head.kind == "relation":
                _want(out, head.subject_kind, head.subject_id)
                _want(out, head.object_kind, head.object_id)
                _want_ref(out, head.anchor_ref)
        elif ours or not isinstance(head.kind, str):
            out.damage(out.lines)
            last_is_damaged = True
    if last_is_damaged and not _ends_with_newline(handle):
        out.damaged -= 1  # not damaged but cut off, perhaps with more behind it
    return out


def _ends_with_newline(handle: BinaryIO) -> bool:
    handle.seek(-1, os.SEEK_END)
    return handle.read(1) == b"\n"


def read_lines(handle: BinaryIO) -> Any:
    """Yield the lines of a file from its start without their end; None for one that is too long to be a line."""
    handle.seek(0)
    first = True
    while line := handle.readline(MAX_LINE_BYTES):
        if first and line.startswith(_BOM):
            line = line[len(_BOM) :]
        first = False
        if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
            while line and not line.endswith(b"\n"):
                line = handle.readline(MAX_LINE_BYTES)
            yield None
            continue
        yield line.strip()


def _header(out: Survey, head: _Head) -> None:
    if isinstance(head.version, str) and head.version.rpartition(".")[0] != VERSION.rpartition(".")[0]:
        raise Refused(f"the file is a {head.version}, this program reads {VERSION}; nothing was imported")
    out.parts += 1
    for kind, name in zip(
        _COUNTED,
        ("memory_count", "episode_count", "profile_count", "entity_count", "mention_count", "relation_count"),
        strict=True,
    ):
        value = getattr(head, name)
        if value is not None and (type(value) is not int or value < 0):
            raise Refused(f"the header's {name} is no count; nothing was imported")
        # Joined files: their counts add up, and one that announces none says nothing about the whole.
        before = out.announced.get(kind, 0)
        out.announced[kind] = None if value is None or before is None else before + value
    out.has_profile = (
        head.has_profile is True if out.has_profile is None else out.has_profile or head.has_profile is True
    )


def _want(out: Survey, kind: Any, row_id: Any) -> None:
    if isinstance(kind, str) and type(row_id) is int:
        out.wanted.add((out.parts, kind, row_id))


def _want_ref(out: Survey, ref: Any) -> None:
    rid = parse_ref(ref)
    if rid is not None and rid[0] in RECORD_KINDS:
        out.wanted.add((out.parts, *rid))
