"""Writing the records of a file into the database, or counting what that would do.

Contract: import.lines.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, cast

import apsw

from ...model.identity import VectorModel
from ...model.instants import created_text
from ...model.kinds import MEMORY, ref_of
from ...storage import backlog, batches, episodes, history, memories, transfer
from ...storage.associations import ENTITY
from ...storage.transaction import Transaction
from ...text.folding import as_name
from .format import Key
from .outcome import Outcome
from .records import BadRecord, Entity, EpisodeRow, MemoryRow, Mention, NewPart, Profile, Relation, Row, Unkept

Placed = tuple[int, bool]  # the row that stands where one of the file would, and whether it was written


class Ids:
    """Which row each id of the file became.

    Only ids that an association of the same part of the file names are kept.
    """

    def __init__(self, wanted: set[Key]) -> None:
        self._wanted, self._part = wanted, 0
        self._known: dict[tuple[str, int], tuple[int, str]] = {}

    def next_part(self) -> None:
        """Forget the ids of what came before: they mean nothing any more."""
        self._part += 1
        self._known.clear()

    def wanted(self, kind: str, old_id: Any) -> bool:
        return bool(self._wanted) and type(old_id) is int and (self._part, kind, old_id) in self._wanted

    def keep(self, kind: str, old_id: Any, new_id: int, agent_id: str) -> None:
        if self.wanted(kind, old_id):
            self._known[kind, old_id] = (new_id, agent_id)

    def resolve(self, kind: str, old_id: Any, agent_id: str | None = None) -> tuple[int, str]:
        """Return the row and its agent. Raises BadRecord for one that was not imported or belongs to another agent."""
        found = self._known.get((kind, old_id)) if type(old_id) is int else None
        if found is None:
            raise BadRecord(f"no {kind} with the id {old_id!r} stands before it in the file")
        if agent_id is not None and found[1] != agent_id:
            raise BadRecord(f"the {kind} with the id {old_id} belongs to another agent")
        return found


class Taker(ABC):
    """What writing and counting share: which record goes where, and what it counts as.

    ``model`` is the one at work and its width, None where vectors are never compared.
    """

    def __init__(self, ids: Ids, model: VectorModel | None) -> None:
        self._ids, self._model = ids, model
        self._takers: dict[type, Callable[[Any, Outcome], list[str]]] = {
            NewPart: self._new_part,
            Profile: self._profile,
            Entity: self._entity,
            Mention: self._mention,
            Relation: self._relation,
            Unkept: self._unkept,
        }

    @abstractmethod
    def put_rows(self, rows: list[Row]) -> list[Placed]:
        """Write those rows of one kind whose place is free."""

    @abstractmethod
    def put_profile(self, profile: Profile) -> bool:
        """Write a profile unless a newer one is there; tell whether it was written."""

    @abstractmethod
    def put_entity(
        self, entity: Entity, name: tuple[str, str], aliases: list[tuple[str, str]]
    ) -> tuple[int, list[str]]:
        """Return an entity's row and the aliases that name another one. Names are (normalised, written)."""

    @abstractmethod
    def put_mention(self, mention: Mention, entity: int, record: int) -> None: ...

    @abstractmethod
    def put_relation(self, relation: Relation, ends: list[tuple[str, int]], anchor: str | None) -> None: ...

    def take(self, record: Any, out: Outcome) -> list[str]:
        """Take in one record that is no row, count it in ``out`` and return the remarks on it. Raises BadRecord."""
        return self._takers[type(record)](record, out)

    def take_rows(self, rows: list[Row], out: Outcome) -> None:
        """Take in rows of one kind in their order and count them in ``out``."""
        count = 0
        for row, (new_id, written) in zip(rows, self.put_rows(rows), strict=True):
            self._ids.keep(row.kind, row.old_id, new_id, row.new.agent_id)
            if written:
                count += 1
                self._count_vector(row, out)
        out.count_rows(rows[0].kind, count, len(rows) - count)

    def _count_vector(self, row: Row, out: Outcome) -> None:
        if not self.comparable(row):
            out.uncompared += 1
            out.foreign += row.vector is not None
            out.listed += self.listed(row)
        elif row.vector is not None and self._model is not None and self._model.dimension is None:
            out.unproven += 1

    def listed(self, row: Row) -> bool:
        """Tell whether a row that is written is listed for embedding."""
        return False

    def comparable(self, row: Row) -> bool:
        """Tell whether a question's vector can be compared with the row's, where there is an embedder."""
        return self._model is None or (row.vector is not None and self._model.fits(row.model, len(row.vector)))

    def _new_part(self, part: NewPart, out: Outcome) -> list[str]:
        self._ids.next_part()
        return []

    def _profile(self, profile: Profile, out: Outcome) -> list[str]:
        written = self.put_profile(profile)
        if profile.user_id:
            out.other_profiles += 1
        else:
            out.profile_updated |= written
        out.cut += profile.cut is not None
        return profile.remarks

    def _unkept(self, record: Unkept, out: Outcome) -> list[str]:
        out.unkept[record.what] += record.count
        return []

    def _entity(self, entity: Entity, out: Outcome) -> list[str]:
        name = as_name(entity.name)
        if not name:
            raise BadRecord("an entity without a name")
        aliases = [(normal, alias.strip()) for alias in entity.aliases if (normal := as_name(alias)) and normal != name]
        new_id, taken = self.put_entity(entity, (name, entity.name), aliases)
        self._ids.keep(ENTITY, entity.old_id, new_id, entity.agent_id)
        out.entities += 1
        return [f"the alias {alias!r} names another entity and was left out" for alias in taken]

    def _mention(self, mention: Mention, out: Outcome) -> list[str]:
        entity, agent = self._ids.resolve(ENTITY, mention.entity)
        record, _ = self._ids.resolve(mention.kind, mention.record, agent)
        self.put_mention(mention, entity, record)
        out.mentions += 1
        return []

    def _relation(self, relation: Relation, out: Outcome) -> list[str]:
        ends = [
            (kind, self._ids.resolve(kind, old, relation.agent_id)[0])
            for kind, old in (relation.subject, relation.object)
        ]
        remarks, anchor = [], None
        if relation.anchor is not None:
            try:
                anchor = ref_of((relation.anchor[0], self._ids.resolve(*relation.anchor, relation.agent_id)[0]))
            except BadRecord as error:
                remarks.append(f"its anchor was left out: {error}")
        self.put_relation(relation, ends, anchor)
        out.relations += 1
        return remarks


class Writer(Taker):
    """Writes, inside one transaction. With ``embed`` rows whose vector cannot be compared are listed for embedding.

    With ``keep_vectors`` of them only those without any.
    """

    def __init__(
        self,
        tx: Transaction,
        ids: Ids,
        embed: bool,
        batch: str = "",
        model: VectorModel | None = None,
        keep_vectors: bool = False,
    ) -> None:
        super().__init__(ids, model)
        self._tx, self._embed, self._batch, self._keep_vectors = tx, embed, batch, keep_vectors
        self._width_known = False

    def listed(self, row: Row) -> bool:
        return self._embed and not self.comparable(row) and not (self._keep_vectors and row.vector is not None)

    def put_rows(self, rows: list[Row]) -> list[Placed]:
        kind = rows[0].kind
        placed, sources = (
            self._put_memories(cast(list[MemoryRow], rows))
            if kind is MEMORY
            else self._put_episodes(cast(list[EpisodeRow], rows))
        )
        vectors = []
        for row, source, (new_id, written) in zip(rows, sources, placed, strict=True):
            if not written:
                continue
            if self._batch:
                batches.label(self._tx, kind, new_id, self._batch)
            if row.vector is not None:
                self._note_model(row.model, len(row.vector))
                vectors.append((new_id, row.new, source, row.model, row.vector))
            if self.listed(row):
                backlog.enqueue(self._tx, kind, new_id)
        transfer.put_vectors(self._tx, kind, vectors)
        self._note_arrivals(rows, placed)
        return placed

    def _put_memories(self, rows: list[MemoryRow]) -> tuple[list[Placed], list[str | None]]:
        """Return where the rows stand, and the id of each one's source."""
        prepared = [row.prepared or memories.Prepared.of(row.new) for row in rows]
        ids = memories.insert_new(self._tx, prepared)
        placed = [
            (self._place_of(row) if new_id is None else new_id, new_id is not None)
            for row, new_id in zip(rows, ids, strict=True)
        ]
        return placed, [row.source_id for row in prepared]

    def _put_episodes(self, rows: list[EpisodeRow]) -> tuple[list[Placed], list[str | None]]:
        return [transfer.put_episode(self._tx, row.new) for row in rows], [None] * len(rows)

    def _place_of(self, row: MemoryRow) -> int:
        """Return the memory that stands where a row would; only an association of the file asks for it."""
        return transfer.find_memory(self._tx.conn, row.new) or 0 if self._ids.wanted(row.kind, row.old_id) else 0

    def _note_arrivals(self, rows: list[Row], placed: list[Placed]) -> None:
        """Note whose rows of an earlier time were written."""
        now = created_text(self._tx.now)
        for agent in {
            row.new.agent_id
            for row, (_, written) in zip(rows, placed, strict=True)
            if written and row.new.created_at and row.new.created_at < now
        }:
            history.note_arrival(self._tx, agent)

    def _note_model(self, model: str, width: int) -> None:
        """Note what the first vectors of a database are like.

        Later ones may be a stranger's, whose width the embedder must not be held to.
        """
        if not self._width_known:
            self._width_known = True
            if backlog.known_width(self._tx.conn) is None:
                backlog.remember_width(self._tx, model, width)

    def put_profile(self, profile: Profile) -> bool:
        return transfer.put_profile(
            self._tx, profile.agent_id, profile.content, profile.updated_at, profile.project_id, profile.user_id
        )

    def put_entity(
        self, entity: Entity, name: tuple[str, str], aliases: list[tuple[str, str]]
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

    def put_mention(self, mention: Mention, entity: int, record: int) -> None:
        transfer.put_mention(self._tx, entity, mention.kind, record, mention.declared_by, mention.created_at)

    def put_relation(self, relation: Relation, ends: list[tuple[str, int]], anchor: str | None) -> None:
        transfer.put_relation(
            self._tx,
            relation.agent_id,
            relation.project_id,
            relation.channel,
            ends[0],
            as_name(relation.predicate),
            ends[1],
            anchor,
            relation.declared_by,
            relation.declared_at,
        )


class DryRun(Taker):
    """Writes nothing: looks at the database, and in ``seen`` at what earlier lines would have written."""

    _WOULD_BE = 0  # the id of a row that is not there

    def __init__(self, conn: apsw.Connection, ids: Ids, seen: set[bytes], model: VectorModel | None) -> None:
        super().__init__(ids, model)
        self._conn, self._seen = conn, seen

    def put_rows(self, rows: list[Row]) -> list[Placed]:
        return [self._put_row(row) for row in rows]

    def _put_row(self, row: Row) -> Placed:
        new = row.new
        if isinstance(new, memories.NewMemory):
            found, keys = transfer.find_memory(self._conn, new), _memory_keys(new)
        else:
            found, keys = transfer.find_episode(self._conn, new), [_episode_key(new)]
        if found is not None:
            return found, False
        if not self._seen.isdisjoint(keys):
            return self._WOULD_BE, False
        self._seen.update(keys)
        return self._WOULD_BE, True

    def put_profile(self, profile: Profile) -> bool:
        stored = transfer.profile_age(self._conn, profile.agent_id, profile.user_id)
        return stored is None or (profile.updated_at is not None and profile.updated_at >= stored)

    def put_entity(
        self, entity: Entity, name: tuple[str, str], aliases: list[tuple[str, str]]
    ) -> tuple[int, list[str]]:
        return self._WOULD_BE, []

    def put_mention(self, mention: Mention, entity: int, record: int) -> None:
        pass

    def put_relation(self, relation: Relation, ends: list[tuple[str, int]], anchor: str | None) -> None:
        pass


def _memory_keys(new: memories.NewMemory) -> list[bytes]:
    """Return what a memory's place is known by: its content, and its message id where it has one."""
    keys = [_digest("content", new.agent_id, new.project_id, new.channel, new.key.hex())]
    if new.msg_id:
        keys.append(_digest("msg_id", new.agent_id, new.project_id, new.msg_id))
    return keys


def _episode_key(new: episodes.NewEpisode) -> bytes:
    whole = new.whole.key.hex() if new.whole else ""
    return _digest("episode", new.agent_id, new.project_id, new.channel, new.summary, whole)


def _digest(*parts: str) -> bytes:
    return hashlib.blake2b("\0".join(parts).encode("utf-8"), digest_size=16).digest()
