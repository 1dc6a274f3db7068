"""Declaring entities, aliases, mentions and relations, and taking them back. A bad item is dropped and reported.

Contract: associations.declare, associations.names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..model.kinds import parse_ref
from ..storage import associations as table
from ..storage import records
from ..storage.associations import ENTITY, Node
from ..storage.transaction import Transaction
from ..text.folding import as_name
from ..text.names import MAX_NAME_LENGTH

MAX_ENTITIES = 64
MAX_RELATIONS = 64
MAX_ALIASES = 32
MAX_RETRACTIONS = 1000
MAX_REPORTED_EXCESS = 256


class _Bad(Exception):
    """An item cannot be taken; the message says why."""


def declare(
    tx: Transaction,
    agent_id: str,
    project_id: str,
    channel: str,
    spec: Any,
    anchor_ref: Any = None,
    declared_by: str = "",
    retract: Any = None,
) -> dict:
    """Take back what ``retract`` names, then register what ``spec`` names, and return declare_associations' answer.

    ``spec`` is `{entities: [{name, aliases}], relations: [{subject, predicate, object}]}`, ``retract``
    `{relations: [id], mentions: [{entity, ref}], entities: [id or name], aliases: [{entity, alias}]}`. With an
    ``anchor_ref`` that record mentions every entity that the call names, relation endpoints included. Never raises for
    a bad item: it stands in `dropped` as `{item: its place in the call, reason}`.
    """
    work = _Declaration(tx, agent_id, project_id, channel, declared_by)
    retracted = None if retract is None else work.retract(retract)
    work.set_anchor(anchor_ref)
    work.declare(spec)
    mentions = 0
    if work.anchor is not None and work.named:
        for entity_id in work.named:
            table.insert_mention(tx, entity_id, work.anchor, declared_by)
        mentions = table.count_mentions(tx.conn, work.named, work.anchor)
    answer = {
        "ok": True,
        "result": "declared",
        "entities": work.entities,
        "mentions": mentions,
        "relations": list(work.relations),
        "dropped": work.dropped,
    }
    if retracted is not None:
        answer["retracted"] = retracted
    return answer


@dataclass(frozen=True, slots=True)
class _End:
    """An end of a relation as the call names it: a record, or an entity's name as written."""

    record: Node | None
    written: str = ""

    @property
    def comparable(self) -> Node | str:
        return self.record or as_name(self.written)


class _Declaration:
    """One call at work: where it declares, what it has named so far, and what it had to drop."""

    def __init__(self, tx: Transaction, agent_id: str, project_id: str, channel: str, declared_by: str) -> None:
        self.tx, self.declared_by = tx, declared_by
        self.agent_id, self.project_id, self.channel = agent_id, project_id, channel
        self.anchor: Node | None = None
        self.anchor_ref: str | None = None
        self.entities: list[dict] = []
        self.named: dict[int, None] = {}
        self.relations: dict[int, None] = {}
        self.dropped: list[dict] = []

    def drop(self, item: str, reason: str) -> None:
        self.dropped.append({"item": item, "reason": reason})

    def set_anchor(self, ref: Any) -> None:
        if ref is None or ref == "":
            return
        try:
            self.anchor, self.anchor_ref = self._record(ref), ref
        except _Bad as error:
            self.drop("anchor_ref", str(error))

    def declare(self, spec: Any) -> None:
        parts = self._parts(spec, "associations", ("entities", "relations"))
        for place, item in self._items(parts.get("entities"), "entities", MAX_ENTITIES):
            try:
                self._declare_entity(place, item)
            except _Bad as error:
                self.drop(place, str(error))
        for place, item in self._items(parts.get("relations"), "relations", MAX_RELATIONS):
            try:
                self._declare_relation(item)
            except _Bad as error:
                self.drop(place, str(error))

    def _parts(self, value: Any, what: str, keys: tuple[str, ...]) -> dict:
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.drop(what, f"this is a map with {' and '.join(keys)}, not {type(value).__name__}")
            return {}
        for key in value:
            if key not in keys:
                self.drop(shortened(str(key)), f"{what} has no such key; it takes {', '.join(keys)}")
        return value

    def _items(self, value: Any, what: str, limit: int) -> list[tuple[str, Any]]:
        if value is None:
            return []
        if not isinstance(value, list):
            self.drop(what, f"this is a list, not {type(value).__name__}")
            return []
        for i in range(limit, min(len(value), limit + MAX_REPORTED_EXCESS)):
            self.drop(f"{what}[{i}]", f"one call takes at most {limit} of these")
        if len(value) > limit + MAX_REPORTED_EXCESS:
            self.drop(
                f"{what}[{limit + MAX_REPORTED_EXCESS}:]",
                f"one call takes at most {limit} of these; {len(value)} were sent",
            )
        return [(f"{what}[{i}]", item) for i, item in enumerate(value[:limit])]

    def _declare_entity(self, place: str, item: Any) -> None:
        if not isinstance(item, dict):
            raise _Bad(f"an entity is a map with a name, not {type(item).__name__}")
        written, normalized = _name(item.get("name"), "the name")
        if parse_ref(written) is not None:
            raise _Bad(f"{written} is the ref of a record, not a name")
        entity_id, created = self._entity(written, normalized)
        self._list(entity_id, written, created)
        for key in item:
            if key not in ("name", "aliases"):
                self.drop(f"{place}.{shortened(str(key))}", "an entity has no such key; it takes name, aliases")
        for at, alias in self._items(item.get("aliases"), f"{place}.aliases", MAX_ALIASES):
            try:
                self._declare_alias(entity_id, alias)
            except _Bad as error:
                self.drop(at, str(error))

    def _declare_alias(self, entity_id: int, alias: Any) -> None:
        written, normalized = _name(alias, "the alias")
        if parse_ref(written) is not None:
            raise _Bad(f"{written} is the ref of a record, not a name")
        # The alias will live in the entity's bucket, so nobody may bear it there, nor where this call looks names up.
        bearers = (
            table.resolve(self.tx.conn, self.agent_id, self.project_id, self.channel, normalized),
            table.bearer_in_bucket(self.tx.conn, entity_id, normalized),
        )
        for bearer in bearers:
            if bearer is not None and bearer != entity_id:
                raise _Bad(f"{shortened(written)!r} names entity {bearer} already")
        table.insert_name(self.tx, entity_id, normalized, written)

    def _declare_relation(self, item: Any) -> None:
        if not isinstance(item, dict):
            raise _Bad(f"a relation is a map with subject, predicate and object, not {type(item).__name__}")
        for key in item:
            if key not in ("subject", "predicate", "object"):
                raise _Bad(f"a relation has no key {shortened(str(key))!r}; it takes subject, predicate, object")
        _, predicate = _name(item.get("predicate"), "the predicate")
        # Both ends are checked before either is registered: a dropped relation leaves nothing behind.
        ends = [self._end(item.get(side), side) for side in ("subject", "object")]
        if ends[0].comparable == ends[1].comparable:
            raise _Bad("subject and object are the same")
        (subject, subject_is_new), (object_, object_is_new) = (self._registered(end) for end in ends)
        if subject == object_:
            raise _Bad("subject and object are names of the same entity")
        self._list_end(ends[0], subject, subject_is_new)
        self._list_end(ends[1], object_, object_is_new)
        relation_id = table.put_relation(
            self.tx,
            self.agent_id,
            self.project_id,
            self.channel,
            subject,
            predicate,
            object_,
            self.anchor_ref,
            self.declared_by,
        )
        self.relations[relation_id] = None

    def _end(self, value: Any, side: str) -> _End:
        if isinstance(value, str) and parse_ref(value.strip()) is not None:
            return _End(self._record(value.strip()))
        return _End(None, _name(value, f"the {side}")[0])

    def _registered(self, end: _End) -> tuple[Node, bool]:
        """Return what an end is, and whether it is an entity that is there only from now on."""
        if end.record is not None:
            return end.record, False
        entity_id, created = self._entity(end.written, as_name(end.written))
        return (ENTITY, entity_id), created

    def _list_end(self, end: _End, node: Node, created: bool) -> None:
        if end.record is None and node[1] not in self.named:
            self._list(node[1], end.written, created)

    def _entity(self, written: str, normalized: str) -> tuple[int, bool]:
        known = table.resolve(self.tx.conn, self.agent_id, self.project_id, self.channel, normalized)
        if known is not None:
            return known, False
        return table.insert_entity(
            self.tx, self.agent_id, self.project_id, self.channel, written, normalized, self.declared_by
        ), True

    def _list(self, entity_id: int, written: str, created: bool) -> None:
        self.entities.append({"id": entity_id, "name": written, "created": created})
        self.named[entity_id] = None

    def _record(self, ref: Any) -> Node:
        rid = parse_ref(ref)
        if rid is None:
            raise _Bad(f"{shortened(str(ref))!r} is not a ref like mem:12 or ep:3")
        if not records.owns(self.tx.conn, self.agent_id, rid):
            raise _Bad(f"there is no {ref} of this agent")
        return rid

    # -- taking back

    def retract(self, given: Any) -> dict:
        keys = ("relations", "mentions", "entities", "aliases")
        parts = self._parts(given, "retract", keys)
        actions = {
            "relations": self._retract_relation,
            "mentions": self._retract_mention,
            "entities": self._retract_entity,
            "aliases": self._retract_alias,
        }
        counts = {"relations": 0, "mentions": 0}
        for key in keys:
            for place, item in self._items(parts.get(key), f"retract.{key}", MAX_RETRACTIONS):
                try:
                    actions[key](item)
                    counts[key] = counts.get(key, 0) + 1
                except _Bad as error:
                    self.drop(place, str(error))
        return counts

    def _retract_relation(self, item: Any) -> None:
        if not _is_id(item) or not table.delete_relation(self.tx, self.agent_id, item):
            raise _Bad(f"there is no relation {shortened(str(item))} of this agent")

    def _retract_mention(self, item: Any) -> None:
        entity_id = self._known_entity(item.get("entity") if isinstance(item, dict) else None)
        ref = item.get("ref")
        rid = parse_ref(ref)
        if rid is None or not table.delete_mention(self.tx, entity_id, rid):
            raise _Bad(f"{shortened(str(ref))} mentions no entity {entity_id}")

    def _retract_entity(self, item: Any) -> None:
        table.delete_entity(self.tx, self._known_entity(item))

    def _retract_alias(self, item: Any) -> None:
        entity_id = self._known_entity(item.get("entity") if isinstance(item, dict) else None)
        _, normalized = _name(item.get("alias"), "the alias")
        if not table.delete_alias(self.tx, entity_id, normalized):
            raise _Bad(f"entity {entity_id} has no such alias")

    def _known_entity(self, value: Any) -> int:
        """Return the entity that an id or a name means to this call."""
        if _is_id(value) and table.owns_entity(self.tx.conn, self.agent_id, value):
            return value
        if isinstance(value, str):
            found = table.resolve(self.tx.conn, self.agent_id, self.project_id, self.channel, as_name(value))
            if found is not None:
                return found
        raise _Bad(f"there is no entity {shortened(str(value))} of this agent")


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**63


def _name(value: Any, what: str) -> tuple[str, str]:
    """Return a name as written and normalised. Raises _Bad for what cannot be one."""
    if not isinstance(value, str):
        raise _Bad(f"{what} is text, not {type(value).__name__}")
    written = value.strip()
    if len(written) > MAX_NAME_LENGTH:
        raise _Bad(f"{what} has {len(written)} characters, at most {MAX_NAME_LENGTH} are taken")
    normalized = as_name(written)
    if not normalized:
        raise _Bad(f"{what} is empty")
    if "\0" in written:
        raise _Bad(f"{what} holds a NUL character")
    return written, normalized


def shortened(text: str) -> str:
    """Return a text short enough to be quoted in a reason."""
    return text if len(text) <= 60 else text[:59] + "…"
