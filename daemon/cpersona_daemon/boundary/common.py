"""What several handlers share: the axes, numbers with a default, and paused answers.

Contract: contracts.md §1 (axes), §2 (pause skeletons), §3 (limit).
"""

from __future__ import annotations

from typing import Any

from ..errors import InvalidParams
from ..instants import created_text, parse_instant
from ..storage.scope import Scope

NOT_PERSISTED = {"persisted": False, "dry_run": True, "reason": "persistence is paused"}


def paused(**skeleton: Any) -> dict:
    """Return a method's own success skeleton with the marks of a write that did not happen."""
    return {**skeleton, **NOT_PERSISTED}


def bounded(value: Any, default: int, low: int, high: int) -> int:
    """Return a whole number within bounds; a wrong type becomes the default."""
    if isinstance(value, bool) or not isinstance(value, int):
        value = default
    return min(max(value, low), high)


def scope_of(params: Any) -> Scope:
    """Return the scope that a read's params name."""
    as_of = stored_at(getattr(params, "as_of", None), "as_of")
    return Scope(params.agent_id, params.project_id, params.channel or "", getattr(params, "source_id", None) or "", as_of)


def stored_at(value: str | None, name: str) -> str:
    """Return an instant in the form that created_at has, '' for none. Raises InvalidParams for what names no instant."""
    if not value:
        return ""
    instant = parse_instant(value)
    try:
        if instant is not None:
            return created_text(instant)
    except (ValueError, OverflowError, OSError):
        pass
    raise InvalidParams(f"{name} names no instant; give one like 2026-03-01T09:30:00Z")
