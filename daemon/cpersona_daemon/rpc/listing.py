"""The answer of a list of stored rows: those that can be given out, and the names of the others.

Contract: lists.newest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ..recall.display import left_out
from ..storage.damaged import Unreadable
from .common import Whole


class ListParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str = ""
    limit: Whole = None
    project_id: str | None = None
    channel: str | None = None


def listed(name: str, kind: str, found: list, shown: Callable[[Any], dict]) -> dict:
    """Return the answer of a list; rows that cannot be given out are named beside it."""
    rows = [shown(row) for row in found if not isinstance(row, Unreadable)]
    without = [left_out(kind, row) for row in found if isinstance(row, Unreadable)]
    return {name: rows, "count": len(rows), **({"left_out": without} if without else {})}
