"""Deleting many rows at once, with everything that hangs on them: a statement for each table and not for each row."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

from ..model.kinds import EPISODE, MEMORY, Kind
from . import backlog, postings
from .associations import ENTITY
from .transaction import Transaction


def records(tx: Transaction, ids: list[int], kind: Kind) -> None:
    """Delete rows with their postings, vectors, passages, backlog entries, mentions and relations; their going is not
    noted.
    """
    named = json.dumps(ids)
    postings.drop_rows(tx.conn, kind, ids)
    backlog.detach(tx, kind, ids)
    tx.execute("DELETE FROM embedding_backlog WHERE kind = ? AND id IN (SELECT value FROM json_each(?))", (kind, named))
    tx.execute(
        "DELETE FROM entity_mentions WHERE kind = ? AND record_id IN (SELECT value FROM json_each(?))", (kind, named)
    )
    _relations_of(tx, kind, named)
    tx.execute(f"DELETE FROM {kind.table} WHERE id IN (SELECT value FROM json_each(?))", (named,))


def _relations_of(tx: Transaction, kind: str, named: str) -> None:
    for end in ("subject", "object"):
        tx.execute(
            f"DELETE FROM relations WHERE {end}_kind = ? AND {end}_id IN (SELECT value FROM json_each(?))",
            (kind, named),
        )


def entities(tx: Transaction, ids: list[int]) -> None:
    """Delete entities with their names, mentions and relations."""
    named = json.dumps(ids)
    _relations_of(tx, ENTITY, named)
    tx.execute("DELETE FROM entities WHERE id IN (SELECT value FROM json_each(?))", (named,))


def relations(tx: Transaction, ids: list[int]) -> None:
    tx.execute("DELETE FROM relations WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(ids),))


BY_TABLE: dict[str, Callable[[Transaction, list[int]], None]] = {
    "relations": relations,
    "entities": entities,
    **{kind.table: partial(records, kind=kind) for kind in (EPISODE, MEMORY)},
}
