"""The first pass over an export: read it whole, count it, compare it with its header, write nothing.

A line that cannot be read counts as a line all the same, so that one damaged line costs itself alone, while a file that
was cut is told by the lines that are not there.

Contract: import.lines.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import msgspec

from ...errors import Refused, ShuttingDown
from ...model.kinds import parse_ref
from ...storage.associations import ENTITY
from .format import Survey
from .lines import UNKEPT, VERSION, beyond_json

MAX_LINE_BYTES = 32 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"
_COUNTED = ("memory", "episode", "profile", "entity", "mention", "relation")
_CHECK_EVERY = 1024
_LOOKED_AHEAD = 1000  # lines for a record, where the first one is none
_NAMED = 5  # damaged lines that a refusal names


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

    def names(self) -> list[tuple[Any, Any]]:
        """Return (kind, id) of what an association names, as the file has them."""
        if self.kind == "mention":
            return [(ENTITY, self.entity), parse_ref(self.ref) or _NOTHING]
        ends = (self.subject_kind, self.subject_id), (self.object_kind, self.object_id)
        return [*ends, parse_ref(self.anchor_ref) or _NOTHING]


_UNREADABLE = _Head()
_NOTHING = (None, None)
_ASSOCIATIONS = ("mention", "relation")

_decode = msgspec.json.Decoder(_Head).decode


def survey(handle: BinaryIO, stop: threading.Event) -> Survey | None:
    """Read the whole file from its start; None where it begins as no export does. Raises Refused."""
    found = _Found()
    for raw in read_lines(handle):
        found.lines += 1
        if found.lines % _CHECK_EVERY == 0 and stop.is_set():
            raise ShuttingDown("the import was ended before it began")
        if raw != b"":
            found.look_at(_head(raw))
        if found.begins_otherwise and (found.first_known or found.lines == _LOOKED_AHEAD):
            _check_beginning(found.first_known)
            return None
    if found.last_is_damaged and not _ends_with_newline(handle):
        found.damaged -= 1  # not damaged but cut off, perhaps with more behind it
    if not found.is_export:
        return None
    found.check()
    return found


def _check_beginning(first_known: int) -> None:
    """Raise Refused for a file whose first line is of no export, and that has records behind it."""
    if first_known:
        before = "line 1 is" if first_known == 2 else f"lines 1 to {first_known - 1} are"
        raise Refused(
            f"{before} no record of an export, and the next one is; `tail -n +{first_known} FILE | cpersona import -`"
            " takes what stands from there on; nothing was imported"
        )


def _head(raw: bytes | None) -> _Head:
    try:
        return _UNREADABLE if raw is None else _decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        value = None if raw is None else beyond_json(raw)
        return _UNREADABLE if value is None else msgspec.convert(value, _Head)  # the second pass reports it


def _ends_with_newline(handle: BinaryIO) -> bool:
    handle.seek(-1, os.SEEK_END)
    return handle.read(1) == b"\n"


def read_lines(handle: BinaryIO) -> Iterator[bytes | None]:
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


@dataclass(slots=True)
class _Found(Survey):
    """What was found so far, line by line, and what the headers announced of it."""

    found: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTED, 0))
    announced: dict[str, int | None] = field(default_factory=dict)
    has_profile: bool = False
    parts: int = 0
    damaged: int = 0
    first_damaged: list[int] = field(default_factory=list)
    last_is_damaged: bool = False
    first_known: int = 0  # the first line that is a header or a record
    begins_otherwise: bool = False  # another line that is not blank stands before it
    ours: bool = True  # no header is of another version, which may have kinds of lines that are unknown here

    @property
    def is_export(self) -> bool:
        """Whether there is a header, or a record of a kind that is known."""
        return self.parts > 0 or any(self.found.values())

    def look_at(self, head: _Head) -> None:
        """Count a line. Raises Refused for a header that cannot be one."""
        kind = head.kind
        self.last_is_damaged = False
        if kind == "header":
            self._begin_part(head)
        elif isinstance(kind, str) and kind in self.found:
            self.found[kind] += 1
            if kind in _ASSOCIATIONS:
                self._want(head.names())
        elif isinstance(kind, str) and (kind in UNKEPT or not self.ours):
            return
        else:
            self._count_damaged()
            if not self.first_known:
                self.begins_otherwise = True
            return
        self.first_known = self.first_known or self.lines

    def _begin_part(self, head: _Head) -> None:
        if isinstance(head.version, str) and head.version.rpartition(".")[0] != VERSION.rpartition(".")[0]:
            raise Refused(f"the file is a {head.version}, this program reads {VERSION}; nothing was imported")
        self.ours = self.ours and head.version in (None, VERSION)
        self.parts += 1
        for kind in _COUNTED:
            value = getattr(head, f"{kind}_count")
            if value is not None and (type(value) is not int or value < 0):
                raise Refused(f"the header's {kind}_count is no count; nothing was imported")
            # Joined files: their counts add up, and one that announces none says nothing about the whole.
            before = self.announced.get(kind, 0)
            self.announced[kind] = None if value is None or before is None else before + value
        self.has_profile = self.has_profile or head.has_profile is True

    def _want(self, names: list[tuple[Any, Any]]) -> None:
        self.wanted.update(
            (self.parts, kind, row_id) for kind, row_id in names if isinstance(kind, str) and type(row_id) is int
        )

    def _count_damaged(self) -> None:
        self.last_is_damaged = True
        self.damaged += 1
        if len(self.first_damaged) < _NAMED:
            self.first_damaged.append(self.lines)

    def check(self) -> None:
        """Raise Refused when the headers announce other counts than the file has.

        Damaged lines count as what is missing.
        """
        announced = {kind: n for kind, n in self.announced.items() if n is not None and n != self.found[kind]}
        missing = sum(max(0, n - self.found[kind]) for kind, n in announced.items())
        if missing > self.damaged or any(self.found[kind] > n for kind, n in announced.items()):
            there = {kind: self.found[kind] for kind in announced}
            raise Refused(
                f"the header announces {_listed(announced)} lines, the file holds {_listed(there)}{self._beside()};"
                " it is not whole, and nothing was imported"
            )
        if self.has_profile and not self.found["profile"] and not self.damaged:
            raise Refused(
                "the header announces a profile, the file holds none; it is not whole, and nothing was imported"
            )

    def _beside(self) -> str:
        """Return what a refusal says of the damaged lines."""
        if not self.damaged:
            return ""
        named = ", ".join(map(str, self.first_damaged)) + (", …" if self.damaged > len(self.first_damaged) else "")
        lines = "line" if self.damaged == 1 else "lines"
        return f" and {self.damaged} that cannot be read ({lines} {named})"


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{n} {kind}" for kind, n in counts.items())
