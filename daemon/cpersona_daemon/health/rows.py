"""Checks of what was stored: that it is still what it was, stands once, and names what is there.

Contract: health.checks.
"""

from __future__ import annotations

import apsw

from ..memory.cleaning import sanitise
from ..memory.draft import CLOCK_ALLOWANCE_SECONDS
from ..model.instants import parse_instant
from ..model.kinds import EPISODE, MEMORY
from ..storage import health
from .view import CRITICAL, INFO, KINDS, MOST_MESSAGES, WARN, Issue, View, issue

_CONTENTS = (
    (CRITICAL, "hold bytes that are no text (not valid UTF-8), so lists and recall leave them out"),
    (CRITICAL, "hold another text than was stored: a disk or another program changed it"),
    (WARN, "are too large or nest too deeply for any answer, so lists and recall leave them out"),
)


def contents(view: View) -> list[Issue]:
    """With deep: every text is what was stored, can be read, and can be given out."""
    out = []
    for kind, name in KINDS if view.deep else ():
        unreadable, changed, uncarried = health.not_what_was_stored(view.conn, kind, view.agent_id)
        unread = set(unreadable)
        found = (
            unreadable,
            [row_id for row_id in changed if row_id not in unread],
            [row_id for row_id, _ in uncarried],
        )
        for (severity, what), ids in zip(_CONTENTS, found, strict=True):
            if ids:
                named = ", ".join(kind.ref(row_id) for row_id in ids[:MOST_MESSAGES])
                named += ", …" if len(ids) > MOST_MESSAGES else ""
                message = f"{len(ids)} {name} {what} ({named}); restore a backup, or delete them and store them anew"
                out.append(issue(severity, message, count=len(ids), kind=kind))
    return out


def duplicates(view: View) -> list[Issue]:
    """How much is stored twice although one recall sees both."""
    out = []
    count = health.duplicate_memories(view.conn, view.agent_id)
    if count:
        out.append(
            issue(INFO, f"{count} memories repeat the content of a wider project or channel", count=count, kind=MEMORY)
        )
    count = health.duplicate_episodes(view.conn, view.agent_id)
    if count:
        out.append(issue(INFO, f"{count} episodes repeat the summary of another one", count=count, kind=EPISODE))
    return out


def contamination(view: View) -> list[Issue]:
    """No memory holds what a recall once printed: stored again, it would be recalled as if it were new."""
    found = echoed(view.conn, view.agent_id)
    if not found:
        return []
    locked = sum(locked for _, locked, _ in found)
    more = f"; {locked} of them are locked and stay as they are" if locked else ""
    return [
        issue(
            WARN, f"{len(found)} memories hold the mark of a recalled memory ([Memory from …]){more}", count=len(found)
        )
    ]


def echoed(conn: apsw.Connection, agent_id: str = "") -> list[tuple[int, bool, str]]:
    """Return (id, locked, cleaned text) of memories that a store would have cleaned."""
    cleaned = ((row_id, locked, text, sanitise(text)) for row_id, locked, text in health.echoes(conn, agent_id))
    return [(row_id, locked, clean) for row_id, locked, text, clean in cleaned if clean and clean != text]


def timestamps(view: View) -> list[Issue]:
    """Stamps name instants that the clock has reached; with deep, what was read from them is read again."""
    out, allowed = [], view.ctx.clock.now() + CLOCK_ALLOWANCE_SECONDS
    unread, ahead = health.stamps(view.conn, view.agent_id, allowed)
    if unread:
        out.append(
            issue(
                INFO,
                f"{unread} memories have a timestamp that names no instant; their age counts as unknown",
                count=unread,
            )
        )
    if ahead:
        out.append(
            issue(
                INFO,
                f"{ahead} memories have a timestamp ahead of the clock; the prior takes the newest of them for now",
                count=ahead,
            )
        )
    if odd := health.odd_created(view.conn, view.agent_id):
        out.append(
            issue(
                WARN,
                f"{odd} rows have a created_at of another form, which puts them in a wrong place of the window",
                count=odd,
            )
        )
    if view.deep and (wrong := len(misread(view.conn, view.agent_id))):
        out.append(
            issue(WARN, f"{wrong} memories are filed under another instant than their timestamp names", count=wrong)
        )
    return out


def misread(conn: apsw.Connection, agent_id: str = "") -> list[tuple[int, float | None]]:
    """Return (id, instant) of memories whose timestamp names another instant than the one recorded."""
    return [
        (row_id, named)
        for row_id, text, recorded in health.timestamps(conn, agent_id)
        if (named := parse_instant(text)) != recorded
    ]


def associations(view: View) -> list[Issue]:
    """No mention or relation names something that is gone."""
    mentions, relations = health.dangling_associations(view.conn, view.agent_id)
    if not mentions and not relations:
        return []
    return [
        issue(
            WARN,
            f"{mentions} mentions and {relations} relations name something that is gone",
            count=mentions + relations,
        )
    ]
