"""Writing rows of the source as rows of the target that nobody sees yet.

Contract: merge.copies.
"""

from __future__ import annotations

import hashlib
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import cast

import apsw
import numpy as np

from ...model.kinds import MEMORY, Kind
from ...storage import backlog, copying, episodes, hidden, memories, records, transfer
from ...storage.copying import Copyable
from ...storage.damaged import Unreadable
from ...storage.transaction import Transaction
from ..imports.columns import unit_vector
from .copies import Outcome
from .request import Request

Said = MutableMapping[
    bytes, int
]  # what episodes say -> the first that says it: of those that say the same one is copied


@dataclass(frozen=True, slots=True)
class Ready:
    """A row to copy with everything worked out that does not need the writer."""

    row: Copyable
    prepared: memories.Prepared | None
    vector: np.ndarray | None


def readied(conn: apsw.Connection, kind: Kind, ids: list[int], request: Request) -> tuple[list[Ready], dict[int, str]]:
    """Return those of the source's rows that are there, to be copied.

    Beside them stand those that no answer can carry, with the reason.
    """
    found = copying.read(conn, kind, ids, request.source, request.target)
    return [_ready(row) for row in found if isinstance(row, Copyable)], {
        row.id: row.reason for row in found if isinstance(row, Unreadable)
    }


def _ready(row: Copyable) -> Ready:
    try:
        vector = None if row.vector is None else unit_vector(row.vector)
    except ValueError:
        vector = None  # a stored vector that is none counts as no vector, here as in a recall
    return Ready(row, memories.Prepared.of(row.new) if isinstance(row.new, memories.NewMemory) else None, vector)


def write(tx: Transaction, kind: Kind, rows: list[Ready], said: Said) -> list[Outcome]:
    """Write hidden copies of those of the rows whose place is free at the target."""
    outcomes = _put_memories(tx, rows) if kind is MEMORY else [_put_episode(tx, ready, said) for ready in rows]
    hidden.hide(tx, kind.table, [new for _, new, written in outcomes if written])
    vectors = []
    for ready, (_, new, written) in zip(rows, outcomes, strict=True):
        if written and ready.vector is not None:
            source = ready.prepared.source_id if ready.prepared else None
            vectors.append((new, ready.row.new, source, ready.row.model, ready.vector))
        elif written and ready.row.waits:
            backlog.enqueue(tx, kind, new)
    transfer.put_vectors(tx, kind, vectors)
    return outcomes


def _put_memories(tx: Transaction, rows: list[Ready]) -> list[Outcome]:
    prepared = [cast(memories.Prepared, ready.prepared) for ready in rows]
    return [
        (ready.row.id, transfer.find_memory(tx.conn, one.new) or 0 if new is None else new, new is not None)
        for ready, one, new in zip(rows, prepared, memories.insert_new(tx, prepared), strict=True)
    ]


def _put_episode(tx: Transaction, ready: Ready, said: Said) -> Outcome:
    new = cast(episodes.NewEpisode, ready.row.new)
    whole = new.whole.key.hex() if new.whole else ""
    key = hashlib.blake2b(
        "\0".join((new.project_id, new.channel, new.summary, whole)).encode(), digest_size=16
    ).digest()
    if key in said:
        return ready.row.id, said[key], False
    said[key], written = transfer.put_episode(tx, new)
    return ready.row.id, said[key], written


def delete(tx: Transaction, kind: Kind, row_id: int) -> None:
    """Take a copy away again, for good."""
    records.delete(tx, kind, row_id, noted=False)
