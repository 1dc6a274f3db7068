"""A record as reconstruct works with it: a memory or an episode, reduced to what bundling, claims and quotes need.

Contract: associations.reconstruct, rows.text.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import apsw

from ..model.instants import parse_instant
from ..model.kinds import EPISODE, MEMORY, Rid, ref_of
from ..model.scope import Scope
from ..recall.display import episode_text, episode_timestamp, left_out
from ..storage import records as stored
from ..storage.damaged import Unreadable
from ..storage.episodes import Episode
from ..storage.memories import Memory


@dataclass(frozen=True, slots=True)
class Record:
    """``text`` is the displayed text, ``as_of`` the stamp a claim shows, ``order`` its instant in epoch seconds.

    ``instant`` is a memory's own timestamp, None where it names no instant; ``span`` an episode's, None without both
    ends; ``bucket`` its project and channel; ``message`` and ``source`` are '' where a memory has none.
    """

    rid: Rid
    text: str
    as_of: str
    order: float
    bucket: tuple[str, str]
    instant: float | None = None
    span: tuple[float, float] | None = None
    message: str = ""
    source: str = ""

    @property
    def ref(self) -> str:
        return ref_of(self.rid) or ""

    @property
    def newest_first(self) -> tuple[float, int, bool]:
        """Sort key: newest first, of the same instant the later row first."""
        return -self.order, -self.rid[1], self.rid[0] == EPISODE


def of_row(row: Memory | Episode) -> Record:
    """Return the record of a stored row."""
    if isinstance(row, Episode):
        as_of = episode_timestamp(row)
        start, end = parse_instant(row.start_time), parse_instant(row.end_time)
        span = (start, end) if start is not None and end is not None else None
        return Record(
            (EPISODE, row.id),
            episode_text(row),
            as_of,
            _order(as_of, row.created_at),
            (row.project_id, row.channel),
            span=span,
        )
    as_of = row.timestamp or row.created_at
    return Record(
        (MEMORY, row.id),
        row.content,
        as_of,
        _order(as_of, row.created_at),
        (row.project_id, row.channel),
        instant=row.instant,
        message=row.msg_id,
        source=_source_key(row.source),
    )


def _order(as_of: str, created_at: str) -> float:
    """Return the instant of a stamp; one that names none is placed when the row was written."""
    instant = parse_instant(as_of)
    return instant if instant is not None else (parse_instant(created_at) or 0.0)


def _source_key(source: str) -> str:
    """Return a source as comparable text, '' for one that says nothing."""
    try:
        value = json.loads(source)
    except (ValueError, RecursionError):
        return source.strip()
    return json.dumps(value, sort_keys=True, ensure_ascii=False) if value else ""


def read(conn: apsw.Connection, scope: Scope, rids: list[Rid]) -> tuple[dict[Rid, Record], list[dict]]:
    """Return those of the records that are visible in a scope, and name those of them that cannot be given out."""
    records: dict[Rid, Record] = {}
    without: list[dict] = []
    for rid, row in stored.by_rids(conn, rids, scope=scope).items():
        if isinstance(row, Unreadable):
            without.append(left_out(rid[0], row))
        else:
            records[rid] = of_row(row)
    return records, without
