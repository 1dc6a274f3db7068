"""Which memories have the keys that their writer gave them.

Contract: rows.keyed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import apsw

from ..model.scope import Scope
from .hidden import seen
from .scope import axes_sql


def holders(conn: apsw.Connection, scope: Scope, keys: Sequence[str]) -> list[tuple[str, int, str]]:
    """Return (key, id, project) of every memory in the axes of a scope that has one of these keys, in their order."""
    axes, params = axes_sql(scope, "m.")
    rows: Any = conn.execute(
        "SELECT j.value, m.id, m.project_id FROM json_each(?) j CROSS JOIN memories m ON m.msg_id = j.value"
        f" AND m.msg_id <> '' AND {axes} AND {seen('memories', 'm.id')} ORDER BY j.id, m.id",
        (json.dumps(list(keys)), *params),
    ).fetchall()
    return rows
