"""Merging what was recalled with the conversation the caller sent: a chronology, not a ranking.

Pure functions.

Contract: context.merge.
"""

from __future__ import annotations

from typing import Any

from ..model.instants import parse_instant

_SOURCES = {"user": ("User", ""), "assistant": ("Agent", "self")}


def echo(entry: dict) -> dict | None:
    """Return a conversation entry as a row, or None for a role that only filters or an entry without text."""
    content, role = entry.get("content"), entry.get("role")
    if not isinstance(content, str) or not content.strip() or role not in _SOURCES:
        return None
    kind, default_id = _SOURCES[role]
    stamp, name, user_id = entry.get("timestamp"), entry.get("name"), entry.get("user_id")
    source = {
        "type": kind,
        "id": user_id if isinstance(user_id, str) and user_id else default_id,
        "name": name if isinstance(name, str) else "",
    }
    return {
        "content": content.strip(),
        "source": source,
        "timestamp": stamp if isinstance(stamp, str) else "",
        "context_type": "conversation",
    }


def merge(recalled: list[dict], entries: list[dict]) -> tuple[list[dict], int]:
    """Return both sides by the instant each stamp names, and how many non-empty entries only filtered.

    Rows that name no instant come first, in the order they were merged in; the sort is stable.
    """
    echoes = [echo(e) for e in entries]
    said = sum(isinstance(e.get("content"), str) and bool(e["content"].strip()) for e in entries)
    merged: list[dict[str, Any]] = recalled + [row for row in echoes if row is not None]
    keyed = [(parse_instant(row.get("timestamp")), row) for row in merged]
    keyed.sort(key=lambda pair: (pair[0] is not None, pair[0] or 0.0))
    return [row for _, row in keyed], said - sum(row is not None for row in echoes)
