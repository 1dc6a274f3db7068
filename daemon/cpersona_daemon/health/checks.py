"""Every check of the store's health: a row of one table. A check reads and reports; what it finds a repair may mend.

A new check is a function in the file of what it looks at, and a row here; its repair, where there is one, is a function
in ``repairs``.

Contract: health.checks, health.repairs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from . import files, indexes, parts, repairs, rows
from .repairs import Repair
from .view import Issue, View


class Check(NamedTuple):
    """A check by its name. ``of_agent``: it looks at the rows of one agent and may be asked for that agent alone.

    The others tell of the store as a whole: how much of it there is, where it lies, and who uses it.
    """

    name: str
    look: Callable[[View], list[Issue]]
    of_agent: bool = False
    repair: Repair | None = None


_ROWS = (
    Check("sqlite_integrity", files.sqlite_integrity),
    Check("schema", files.schema, repair=repairs.schema),
    Check("wal", files.wal),
    Check("disk", files.disk),
    Check("lexical_index", indexes.lexical_index, repair=repairs.lexical_index),
    Check("vector_index", indexes.vector_index, repair=repairs.vector_index),
    Check("missing_vectors", indexes.missing_vectors, of_agent=True, repair=repairs.missing_vectors),
    Check("foreign_vectors", indexes.foreign_vectors, of_agent=True, repair=repairs.foreign_vectors),
    Check("damaged_vectors", indexes.damaged_vectors, of_agent=True, repair=repairs.damaged_vectors),
    Check("contents", rows.contents, of_agent=True),
    Check("permissions", files.permissions, repair=repairs.permissions),
    Check("duplicates", rows.duplicates, of_agent=True),
    Check("contamination", rows.contamination, of_agent=True, repair=repairs.contamination),
    Check("timestamps", rows.timestamps, of_agent=True, repair=repairs.timestamps),
    Check("associations", rows.associations, of_agent=True, repair=repairs.associations),
    Check("embedder", parts.embedder),
    Check("calibration", parts.calibration, repair=repairs.calibration),
    Check("canaries", parts.canaries, of_agent=True),
    Check("spool", files.spool),
    Check("outbox", parts.outbox),
)
CHECKS = {check.name: check for check in _ROWS}
