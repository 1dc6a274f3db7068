"""What a check looks at, and what it answers with.

An issue is `{check, severity, message, count?, …}`. Critical: data is damaged or cannot be trusted. Warn: something is
found less well than it should be, or others could see it. Info: worth knowing, nothing is wrong.

Contract: health.checks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import apsw

from ..context import Context
from ..model.kinds import Kind, PassageKind, VectorKind

CRITICAL, WARN, INFO = "critical", "warn", "info"
SEVERITIES = (CRITICAL, WARN, INFO)
# With the words that an issue names them by.
KINDS = tuple((kind, kind.table) for kind in Kind)
VECTOR_KINDS: tuple[tuple[VectorKind, str], ...] = (
    *KINDS,
    *((kind, f"passages of the {kind.rows.table}") for kind in PassageKind),
)
MOST_MESSAGES = 20

Issue = dict[str, Any]


@dataclass(frozen=True, slots=True)
class View:
    """What a check looks at: one read snapshot, the daemon's parts, the rows of one agent ('' = all)."""

    conn: apsw.Connection
    ctx: Context
    agent_id: str = ""
    deep: bool = False


def issue(severity: str, message: str, **more: Any) -> Issue:
    """Return an issue; ``more`` are its fields for programs."""
    return {"severity": severity, "message": message, **more}
