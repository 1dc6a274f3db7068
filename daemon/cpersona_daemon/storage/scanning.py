"""Every text in a scope, a page at a time and the newest first, for who looks for something as it is written.

Contract: grep.written, speed.plans.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import apsw

from ..model.kinds import MEMORY, Kind
from ..model.scope import Scope
from . import damaged
from .damaged import Unreadable
from .scope import kind_sql

LOOKED_AT = 5_000  # rows of one page, whether they hold what is looked for or not
PAGE_CHARACTERS = 1_000_000

_TEXT = {Kind.MEMORY: "m.content", Kind.EPISODE: "m.summary || iif(m.keywords = '', '', char(10) || m.keywords)"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page ended: behind the row of this id that was stored at this time."""

    created_at: str
    id: int


@dataclass(frozen=True, slots=True)
class Text:
    """What one row says. ``key`` is its writer's, '' for none."""

    id: int
    created_at: str
    project_id: str
    channel: str
    key: str
    text: str


@dataclass(slots=True)
class Page:
    """Rows in their order, those that cannot be read, and where the next page begins; None behind the last one."""

    rows: list[Text] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    next: Place | None = None


def page(conn: apsw.Connection, kind: Kind, scope: Scope, holds: str, after: Place | None) -> Page:
    """Return the texts of a kind behind a place, of those LOOKED_AT rows that hold ``holds`` ('' is in each)."""
    condition, values = kind_sql(scope, kind, "m.")
    if after is not None:
        condition += " AND m.created_at <= ? AND (m.created_at < ? OR m.id < ?)"
        values = [*values, after.created_at, after.created_at, after.id]
    rows = f"FROM {kind.table} m WHERE {condition} ORDER BY m.created_at DESC, m.id DESC LIMIT"
    key = "m.msg_id" if kind == MEMORY else "''"
    found, room = Page(), PAGE_CHARACTERS
    for row in damaged.rows(
        conn,
        f"SELECT id, created_at, project_id, channel, key, text FROM (SELECT m.id AS id, m.created_at AS created_at,"
        f" m.project_id AS project_id, m.channel AS channel, {key} AS key, {_TEXT[kind]} AS text {rows} ?)"
        " WHERE instr(text, ?)",
        (*values, LOOKED_AT, holds),
    ):
        if isinstance(row, Unreadable):
            found.unreadable.append(row)
            continue
        text = Text(*row)
        found.rows.append(text)
        room -= len(text.text)
        if room <= 0:
            found.next = Place(text.created_at, text.id)
            return found
    last = conn.execute(f"SELECT m.created_at, m.id {rows} 1 OFFSET ?", (*values, LOOKED_AT - 1)).fetchone()
    found.next = None if last is None else Place(*last)
    return found
