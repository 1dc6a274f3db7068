"""What ranking needs to know of candidate rows beside their scores, without their text.

Contract: contracts.md §6 (confidence, prior, penalty), §3 (exclude_contents compares texts).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

import apsw

from ..instants import parse_instant
from ..vectors.changes import EPISODE, MEMORY, Rid


@dataclass(frozen=True, slots=True)
class Facts:
    """Times as epoch seconds, None where a row names none."""

    instant: float | None
    recall_count: int = 0
    last_recalled: float | None = None
    resolved: bool = False
    is_episode: bool = False


def _ids(rids: Iterable[Rid], kind: str) -> str:
    return json.dumps([i for k, i in rids if k == kind])


def facts(conn: apsw.Connection, rids: list[Rid]) -> dict[Rid, Facts]:
    """Return the facts of those rows that exist."""
    out: dict[Rid, Facts] = {}
    for row_id, instant, count, last in conn.execute(
        "SELECT id, instant, recall_count, last_recalled_at FROM memories WHERE id IN (SELECT value FROM json_each(?))", (_ids(rids, MEMORY),)
    ):
        out[MEMORY, row_id] = Facts(instant, count, parse_instant(last))
    for row_id, start, created, resolved in conn.execute(
        "SELECT id, start_time, created_at, resolved FROM episodes WHERE id IN (SELECT value FROM json_each(?))", (_ids(rids, EPISODE),)
    ):
        out[EPISODE, row_id] = Facts(parse_instant(start or created), resolved=bool(resolved), is_episode=True)
    return out


def texts(conn: apsw.Connection, rids: list[Rid]) -> dict[Rid, str]:
    """Return the displayed texts of those rows that exist."""
    out: dict[Rid, str] = {}
    for row_id, content in conn.execute("SELECT id, content FROM memories WHERE id IN (SELECT value FROM json_each(?))", (_ids(rids, MEMORY),)):
        out[MEMORY, row_id] = content
    for row_id, summary in conn.execute("SELECT id, summary FROM episodes WHERE id IN (SELECT value FROM json_each(?))", (_ids(rids, EPISODE),)):
        out[EPISODE, row_id] = f"[Episode] {summary}"
    return out
