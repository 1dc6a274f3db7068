"""What a list of memories may be narrowed to besides its axes and times, as SQL conditions.

Contract: lists.narrowed, scope.source.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from ..model.kinds import MEMORY

Condition = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Narrowing:
    """Which memories are meant: of a source, locked ones, those that a batch wrote, those whose key begins so.

    '' and False narrow nothing.
    """

    source_id: str = ""
    locked: bool = False
    batch: str = ""
    id_prefix: str = ""


def conditions(narrowing: Narrowing, agent_id: str) -> list[Condition]:
    """Return the conditions on memories of an agent ('' is all), each with its parameters."""
    found: list[Condition] = []
    if narrowing.source_id and not narrowing.source_id[-1].isalnum():
        found.append(("substr(source_id, 1, ?) = ?", (len(narrowing.source_id), narrowing.source_id)))
    elif narrowing.source_id:
        found.append(("source_id = ?", (narrowing.source_id,)))
    if narrowing.locked:
        found.append(("locked", ()))
    # Their ids come from an index of their own; with a + the rows are still walked newest first, most of them unread.
    if narrowing.batch:
        found.append(("+id IN (SELECT id FROM batches WHERE batch = ? AND kind = ?)", (narrowing.batch, MEMORY)))
    if narrowing.id_prefix:
        found.append(_keyed(narrowing.id_prefix, agent_id))
    return found


def _keyed(prefix: str, agent_id: str) -> Condition:
    """Return the condition that a key begins with these characters, none of which is a sign of its own."""
    whose = ("agent_id = ? AND ", (agent_id,)) if agent_id else ("", ())
    after = _next(prefix)
    end = (" AND msg_id < ?", (after,)) if after else ("", ())
    sql = f"+id IN (SELECT id FROM memories WHERE {whose[0]}msg_id <> '' AND msg_id >= ?{end[0]})"
    return sql, (*whose[1], prefix, *end[1])


def _next(prefix: str) -> str:
    """Return the first text behind all that begin with a prefix, in the order of code points; '' where there is none.

    UTF-8 has the same order, in which SQLite compares.
    """
    kept = prefix.rstrip(chr(sys.maxunicode))
    if not kept:
        return ""
    last = ord(kept[-1]) + 1
    return kept[:-1] + chr(0xE000 if 0xD800 <= last < 0xE000 else last)
