"""Putting the lines of a file back into the database, or counting what that would do.

Contract: import.lines.
"""

from __future__ import annotations

import hashlib
from typing import Any

import apsw

from ...model.identity import VectorModel
from ...model.instants import created_text
from ...model.kinds import MEMORY
from ...storage import backlog, batches, episodes, history, memories, transfer
from ...storage.transaction import Transaction
from ...text.names import normalise
from .lines import BadLine, EntityLine, MentionLine, ProfileLine, RelationLine, Row

ENTITY = "entity"


class Ids:
    """Which row each id of the file became. Only ids that an association of the same part of the file names are kept."""

    def __init__(self, wanted: set[tuple[int, str, int]]):
        self._wanted, self._part = wanted, 0
        self._known: dict[tuple[str, int], tuple[int, str]] = {}

    def next_part(self) -> None:
        """A header: the ids of what came before it mean nothing any more."""
        self._part += 1
        self._known.clear()

    def wanted(self, kind: str, old_id: Any) -> bool:
        return bool(self._wanted) and type(old_id) is int and (self._part, kind, old_id) in self._wanted

    def keep(self, kind: str, old_id: Any, new_id: int, agent_id: str) -> None:
        if self.wanted(kind, old_id):
            self._known[kind, old_id] = (new_id, agent_id)

    def resolve(self, kind: str, old_id: Any, agent_id: str | None = None) -> tuple[int, str]:
        """Return the row and its agent. Raises BadLine for one that was not imported or belongs to another agent."""
        found = self._known.get((kind, old_id)) if type(old_id) is int else None
        if found is None:
            raise BadLine(f"no {kind} with the id {old_id!r} stands before it in the file")
        if agent_id is not None and found[1] != agent_id:
            raise BadLine(f"the {kind} with the id {old_id} belongs to another agent")
        return found


class _Taker:
    """What both share: which line goes where, and what it counts as.

    ``fit`` is what vectors of the model at work are like, None where nothing is ever compared.
    """

    def __init__(self, ids: Ids, fit: VectorModel | None):
        self.ids, self._fit = ids, fit
        self._takers = {
            ProfileLine: self._profile,
            EntityLine: self._entity,
            MentionLine: self._mention,
            RelationLine: self._relation,
        }

    def take(self, item: Any, out: Any) -> list[str]:
        """Restore one item that is no row, count it in ``out`` and return what is to be remarked about it. Raises BadLine."""
        return self._takers[type(item)](item, out)

    def take_rows(self, rows: list[Row], out: Any) -> None:
        """Restore rows of one kind in their order and count them in ``out``."""
        for row, (new_id, written) in zip(rows, self.put_rows(rows), strict=True):
            self.ids.keep(row.kind, row.old_id, new_id, row.new.agent_id)
            if row.kind == MEMORY:
                out.imported_memories += written
                out.skipped_memories += not written
            else:
                out.imported_episodes += written
                out.skipped_episodes += not written
            out.uncompared += written and not self.comparable(row)

    def comparable(self, row: Row) -> bool:
        """Tell whether a question's vector can be compared with the row's, where there is an embedder."""
        return self._fit is None or (row.vector is not None and self._fit.fits(row.model, len(row.vector)))

    def _profile(self, profile: ProfileLine, out: Any) -> list[str]:
        out.profile_updated |= self.put_profile(profile)
        out.cut += profile.cut is not None
        return profile.remarks

    def _entity(self, entity: EntityLine, out: Any) -> list[str]:
        name = normalise(entity.name)
        if not name:
            raise BadLine("an entity without a name")
        aliases = [
            (normal, alias.strip()) for alias in entity.aliases if (normal := normalise(alias)) and normal != name
        ]
        new_id, taken = self.put_entity(entity, (name, entity.name), aliases)
        self.ids.keep(ENTITY, entity.old_id, new_id, entity.agent_id)
        out.entities += 1
        return [f"the alias {alias!r} names another entity and was left out" for alias in taken]

    def _mention(self, mention: MentionLine, out: Any) -> list[str]:
        entity, agent = self.ids.resolve(ENTITY, mention.entity)
        record, _ = self.ids.resolve(mention.kind, mention.record, agent)
        self.put_mention(mention, entity, record)
        out.mentions += 1
        return []

    def _relation(self, relation: RelationLine, out: Any) -> list[str]:
        ends = [
            (kind, self.ids.resolve(kind, old, relation.agent_id)[0])
            for kind, old in (relation.subject, relation.object)
        ]
        remarks, anchor = [], None
        if relation.anchor is not None:
            try:
                anchor = f"{relation.anchor[0]}:{self.ids.resolve(*relation.anchor, relation.agent_id)[0]}"
            except BadLine as error:
                remarks.append(f"its anchor was left out: {error}")
        self.put_relation(relation, ends, anchor)
        out.relations += 1
        return remarks


class Restore(_Taker):
    """Writes, inside one transaction. With ``embed`` rows whose vector cannot be compared are listed for embedding."""

    def __init__(self, tx: Transaction, ids: Ids, embed: bool, batch: str = "", fit: VectorModel | None = None):
        super().__init__(ids, fit)
        self._tx, self._embed, self._batch = tx, embed, batch
        self._width_known = False

    def put_rows(self, rows: list[Row]) -> list[tuple[int, bool]]:
        if rows[0].kind == MEMORY:
            prepared = [row.prepared or memories.Prepared.of(row.new) for row in rows]
            ids = memories.insert_new(self._tx, prepared)
            sources = [row.source_id for row in prepared]
            placed = [
                (self._place_of(row) if new_id is None else new_id, new_id is not None)
                for row, new_id in zip(rows, ids, strict=True)
            ]
        else:
            placed, sources = [transfer.put_episode(self._tx, row.new) for row in rows], [None] * len(rows)
        vectors = []
        for row, source, (new_id, written) in zip(rows, sources, placed, strict=True):
            if written and self._batch:
                batches.label(self._tx, row.kind, new_id, self._batch)
            if written and row.vector is not None:
                self._note_model(row.model, len(row.vector))
                vectors.append((new_id, row.new, source, row.model, row.vector))
            if written and self._embed and not self.comparable(row):
                backlog.enqueue(self._tx, row.kind, new_id)
        transfer.put_vectors(self._tx, rows[0].kind, vectors)
        now = created_text(self._tx.now)
        for agent in {
            row.new.agent_id
            for row, (_, written) in zip(rows, placed, strict=True)
            if written and row.new.created_at and row.new.created_at < now
        }:
            history.note_arrival(self._tx, agent)
        return placed

    def _place_of(self, row: Row) -> int:
        """Return the memory that stands where a row would; only an association of the file asks for it."""
        return transfer.find_memory(self._tx.conn, row.new) or 0 if self.ids.wanted(row.kind, row.old_id) else 0

    def _note_model(self, model: str, width: int) -> None:
        """Note what the first vectors of a database are like. Later ones may be a stranger's, whose width the embedder must not be held to."""
        if not self._width_known:
            self._width_known = True
            if backlog.known_width(self._tx.conn) is None:
                backlog.remember_width(self._tx, model, width)

    def put_profile(self, profile: ProfileLine) -> bool:
        return transfer.put_profile(self._tx, profile.agent_id, profile.content, profile.updated_at, profile.project_id)

    def put_entity(
        self, entity: EntityLine, name: tuple[str, str], aliases: list[tuple[str, str]]
    ) -> tuple[int, list[str]]:
        return transfer.put_entity(
            self._tx,
            entity.agent_id,
            entity.project_id,
            entity.channel,
            name,
            aliases,
            entity.declared_by,
            entity.created_at,
        )

    def put_mention(self, mention: MentionLine, entity: int, record: int) -> None:
        transfer.put_mention(self._tx, entity, mention.kind, record, mention.declared_by, mention.created_at)

    def put_relation(self, relation: RelationLine, ends: list[tuple[str, int]], anchor: str | None) -> None:
        transfer.put_relation(
            self._tx,
            relation.agent_id,
            relation.project_id,
            relation.channel,
            ends[0],
            normalise(relation.predicate),
            ends[1],
            anchor,
            relation.declared_by,
            relation.declared_at,
        )


class DryRun(_Taker):
    """Writes nothing: looks at the database, and in ``seen`` at what earlier lines would have written."""

    _WOULD_BE = 0  # the id of a row that is not there

    def __init__(self, conn: apsw.Connection, ids: Ids, seen: set[bytes], fit: VectorModel | None):
        super().__init__(ids, fit)
        self._conn, self._seen = conn, seen

    def put_rows(self, rows: list[Row]) -> list[tuple[int, bool]]:
        return [self._put_row(row) for row in rows]

    def _put_row(self, row: Row) -> tuple[int, bool]:
        new = row.new
        if isinstance(new, memories.NewMemory):
            keys = [_digest("content", new.agent_id, new.project_id, new.channel, new.key.hex())]
            if new.msg_id:
                keys.append(_digest("msg_id", new.agent_id, new.project_id, new.msg_id))
            found = transfer.find_memory(self._conn, new)
        else:
            assert isinstance(new, episodes.NewEpisode)
            keys = [
                _digest(
                    "episode",
                    new.agent_id,
                    new.project_id,
                    new.channel,
                    new.summary,
                    new.whole.key.hex() if new.whole else "",
                )
            ]
            found = transfer.find_episode(self._conn, new)
        if found is not None:
            return found, False
        if not self._seen.isdisjoint(keys):
            return self._WOULD_BE, False
        self._seen.update(keys)
        return self._WOULD_BE, True

    def put_profile(self, profile: ProfileLine) -> bool:
        stored = transfer.profile_age(self._conn, profile.agent_id)
        return stored is None or (profile.updated_at is not None and profile.updated_at >= stored)

    def put_entity(
        self, entity: EntityLine, name: tuple[str, str], aliases: list[tuple[str, str]]
    ) -> tuple[int, list[str]]:
        return self._WOULD_BE, []

    def put_mention(self, mention: MentionLine, entity: int, record: int) -> None:
        pass

    def put_relation(self, relation: RelationLine, ends: list[tuple[str, int]], anchor: str | None) -> None:
        pass


def _digest(*parts: str) -> bytes:
    return hashlib.blake2b("\0".join(parts).encode("utf-8"), digest_size=16).digest()
