"""One form for who said something, whatever form the caller used.

Contract: store.source.
"""

from __future__ import annotations

from typing import Any

from ..errors import Refused

_CANONICAL = {
    "user": "User",
    "agent": "Agent",
    "system": "System",
    "assistant": "Agent",
    "ai": "Agent",
    "session": "System",
}


def canonical_type(name: str) -> str:
    """Return User, Agent or System for their known spellings, any other type as written."""
    return _CANONICAL.get(name.strip().lower(), name)


def normalise_source(value: Any) -> dict:
    """Return the source as a map: `{}` for none, `{type, id, name}` for the short forms, other maps as written.

    Raises Refused for a value that is neither a map, a string nor null.
    """
    if value is None:
        return {}
    if isinstance(value, str):
        return {"type": canonical_type(value), "id": "", "name": ""} if value.strip() else {}
    if not isinstance(value, dict):
        raise Refused(f"source is a map, a string or null, not {type(value).__name__}")
    if "type" in value:
        kind = value["type"]
        return {**value, "type": canonical_type(kind)} if isinstance(kind, str) else value
    return _spelled_out(value) if len(value) == 1 else value


def _spelled_out(value: dict) -> dict:
    """Return a map of one type and who it is as `{type, id, name}`, any other map as written."""
    ((key, inner),) = value.items()
    kind = _CANONICAL.get(str(key).lower())
    if kind and isinstance(inner, str):
        return {"type": kind, "id": inner, "name": inner if kind == "User" else ""}
    if kind and isinstance(inner, dict):
        return {"type": kind, **inner, **({} if "name" in inner else {"name": ""})}
    return value
