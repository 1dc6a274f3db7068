"""Declaring at the target what is declared at the source, re-anchored to the target's rows.

Contract: merge.copies.
"""

from __future__ import annotations

from ...model.kinds import Kind, parse_ref, ref_of
from ...storage import associations, records, transfer
from ...storage.associations import ENTITY
from ...storage.transaction import Transaction
from .copies import Copies
from .request import Request


class _Ends:
    """What each end of an association became at the target."""

    def __init__(self, tx: Transaction, target: str, copies: dict[Kind, Copies]) -> None:
        self._tx, self._target = tx, target
        self._copies: dict[str, Copies] = {str(kind): these for kind, these in copies.items()}
        self._known: dict[tuple[str, int], int] = {}

    def became(self, kind: str, old: int) -> int | None:
        """Return the row or entity of the target, None where it is not there."""
        if (kind, old) not in self._known and kind in self._copies:
            new = self._copies[kind].get(old)
            if new and records.owns(self._tx.conn, self._target, (kind, new)):
                self._known[kind, old] = new
        return self._known.get((kind, old))

    def keep(self, entity: int, new: int) -> None:
        self._known[ENTITY, entity] = new

    def anchor(self, ref: str | None) -> str | None:
        """Return the ref of what a relation was declared beside."""
        rid = parse_ref(ref)
        new = None if rid is None else self.became(*rid)
        return None if rid is None or new is None else ref_of((rid[0], new))


def copy_associations(tx: Transaction, request: Request, copies: dict[Kind, Copies]) -> None:
    """Copy entities with their names, then mentions and relations of which both ends are at the target."""
    ends = _Ends(tx, request.target, copies)
    _copy_entities(tx, request, ends)
    for entity, kind, record, declared_by, created_at in list(transfer.mention_rows(tx.conn, request.source)):
        if (at := ends.became(ENTITY, entity)) and (became := ends.became(kind, record)):
            transfer.put_mention(tx, at, kind, became, declared_by, created_at)
    _copy_relations(tx, request, ends)


def _copy_entities(tx: Transaction, request: Request, ends: _Ends) -> None:
    for row in list(transfer.entity_rows(tx.conn, request.source)):
        entity, _, project, channel, name, declared_by, created_at, _ = row
        names = associations.names_of(tx.conn, [entity]).get(entity, [])
        own = next(((n.normalized, name) for n in names if n.is_name), None)
        if own is None:
            continue
        aliases = [(n.normalized, n.written) for n in names if not n.is_name]
        new, _ = transfer.put_entity(tx, request.target, project, channel, own, aliases, declared_by, created_at)
        ends.keep(entity, new)


def _copy_relations(tx: Transaction, request: Request, ends: _Ends) -> None:
    for row in list(transfer.relation_rows(tx.conn, request.source)):
        _, _, project, channel, s_kind, s_id, predicate, o_kind, o_id, anchor, declared_by, declared_at = row
        if (subject := ends.became(s_kind, s_id)) and (obj := ends.became(o_kind, o_id)):
            transfer.put_relation(
                tx,
                request.target,
                project,
                channel,
                (s_kind, subject),
                predicate,
                (o_kind, obj),
                ends.anchor(anchor),
                declared_by,
                declared_at,
            )
