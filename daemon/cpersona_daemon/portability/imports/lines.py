"""One line of an export file as a record. Pure functions.

Contract: import.lines, store.cleaned.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

from ...memory.cleaning import MAX_AXIS_LENGTH, MAX_TIMESTAMP_LENGTH
from ...model.instants import parse_instant
from ...model.kinds import parse_ref
from ...shared.settings import Settings
from ...storage.episodes import NewEpisode
from ...storage.memories import NewMemory
from . import columns
from .records import (
    ENDPOINT_KINDS,
    BadRecord,
    Entity,
    EpisodeRow,
    MemoryRow,
    Mention,
    NewPart,
    Profile,
    Record,
    Relation,
    Unkept,
)

VERSION = "cpersona-export/1.1"
DECLARED_AS = "declared_as"
UNKEPT = {"folder": "folders", "folder_member": "folder_members"}  # of the reference's 1.2, as its tables are called

_decode = msgspec.json.Decoder().decode


def decode(raw: bytes) -> dict:
    """Return the object that a line holds. Raises BadRecord."""
    try:
        value = _decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        value = beyond_json(raw)
        if value is None:
            raise BadRecord(f"not valid JSON: {error}") from None
    except RecursionError:
        raise BadRecord("nested too deeply") from None
    if type(value) is not dict:
        raise BadRecord("not a JSON object")
    return value


def beyond_json(raw: bytes) -> dict | None:
    """Return the object of a line that Python alone reads: other programs write NaN and Infinity as it does.

    A source or metadata with such a number stays the text that it was. None for any other line.
    """
    if b"NaN" not in raw and b"Infinity" not in raw:
        return None
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    for name in ("source", "metadata"):
        if isinstance(value.get(name), (dict, list)):
            value[f"{name}_text"], value[name] = json.dumps(value[name], ensure_ascii=False), None
    return value


class _Memory(msgspec.Struct):
    """A memory line as our own export writes it: its vector is decoded on the way, which is most of the line."""

    _type: str
    id: Any = None
    agent_id: Any = None
    msg_id: Any = None
    content: Any = None
    source: Any = None
    source_text: Any = None
    timestamp: Any = None
    metadata: Any = None
    metadata_text: Any = None
    created_at: Any = None
    project_id: Any = None
    channel: Any = None
    locked: Any = None
    recall_count: Any = None
    last_recalled_at: Any = None
    embedding_b64: bytes | None = None
    embedding_model: Any = None
    cut: Any = None


_decode_memory = msgspec.json.Decoder(_Memory).decode


def parse(raw: bytes, target: str, settings: Settings, default: str = "") -> Record:
    """Return the record that a line stands for, under agent ``target`` unless that is ''. Raises BadRecord.

    ``default`` is whose the record is when it names nobody.
    """
    if raw.startswith(b'{"_type":"memory"'):
        try:
            return _memory(_owned(msgspec.structs.asdict(_decode_memory(raw)), default), target, settings)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass  # the long way says what is wrong with it, or that only its vector is
    return read(decode(raw), target, settings, default)


def read(record: dict, target: str, settings: Settings, default: str = "") -> Record:
    """Return what an object of an export stands for, ``embedding_b64`` being text or the bytes themselves.

    Raises BadRecord.
    """
    kind = record.get("_type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if kind in UNKEPT:
        return Unkept(UNKEPT[kind])
    if reader is None:
        raise BadRecord(f"unknown _type {kind!r}" if kind is not None else "no _type")
    return reader(record if kind == "header" else _owned(record, default), target, settings)


def _owned(record: dict, default: str) -> dict:
    return record if record.get("agent_id") or not default else {**record, "agent_id": default}


def _memory(record: dict, target: str, settings: Settings) -> MemoryRow:
    remarks: list[str] = []
    agent = columns.agent(record, target)
    content, whole, cut = columns.content(record, "content", settings.max_content_length, "memories", remarks)
    timestamp = columns.text(record, "timestamp", MAX_TIMESTAMP_LENGTH)
    source = columns.source(record)
    metadata = columns.metadata(record)
    columns.fits("source", source)
    columns.fits("metadata", metadata)
    columns.carried(content, source, metadata)
    recalled = record.get("last_recalled_at")
    new = NewMemory(
        agent,
        content,
        columns.text(record, "project_id"),
        columns.text(record, "channel"),
        columns.text(record, "msg_id"),
        source,
        timestamp,
        metadata,
        columns.stamp(record, "created_at", remarks) or "",
        columns.flag(record, "locked"),
        columns.recall_count(record, remarks),
        None if recalled is None else columns.stamp(record, "last_recalled_at", remarks, "it counts as never recalled"),
        whole,
    )
    vector = columns.vector(record, remarks)
    return MemoryRow(record.get("id"), new, vector, columns.text(record, "embedding_model"), remarks, cut)


def _episode(record: dict, target: str, settings: Settings) -> EpisodeRow:
    remarks: list[str] = []
    agent = columns.agent(record, target)
    summary, whole, cut = columns.content(record, "summary", settings.max_content_length, "episodes", remarks)
    keywords = record.get("keywords")
    if isinstance(keywords, list) and all(isinstance(k, str) for k in keywords):
        record = {**record, "keywords": " ".join(keywords)}
    new = NewEpisode(
        agent,
        summary,
        columns.text(record, "keywords", settings.max_content_length),
        columns.text(record, "project_id"),
        columns.text(record, "channel"),
        columns.text(record, "start_time", MAX_TIMESTAMP_LENGTH) or None,
        columns.text(record, "end_time", MAX_TIMESTAMP_LENGTH) or None,
        columns.flag(record, "resolved"),
        columns.stamp(record, "created_at", remarks) or "",
        whole,
    )
    vector = columns.vector(record, remarks)
    return EpisodeRow(record.get("id"), new, vector, columns.text(record, "embedding_model"), remarks, cut)


def _profile(record: dict, target: str, settings: Settings) -> Profile:
    remarks: list[str] = []
    agent = columns.agent(record, target)
    content, _, cut = columns.content(record, "content", settings.max_profile_length, None, remarks)
    return Profile(
        agent,
        content,
        columns.stamp(record, "updated_at", remarks, "it replaces no profile"),
        columns.text(record, "project_id"),
        remarks,
        cut,
        columns.text(record, "user_id"),
    )


def _entity(record: dict, target: str, settings: Settings) -> Entity:
    name = columns.text(record, "name").strip()
    if not name:
        raise BadRecord("an entity without a name")
    aliases = record.get("aliases") or []
    if not isinstance(aliases, list) or not all(
        isinstance(a, str) and a.strip() and len(a) <= MAX_AXIS_LENGTH and "\0" not in a for a in aliases
    ):
        raise BadRecord(f"aliases is a list of texts of 1 to {MAX_AXIS_LENGTH} characters")
    return Entity(
        record.get("id"),
        columns.agent(record, target),
        columns.text(record, "project_id"),
        columns.text(record, "channel"),
        name,
        aliases,
        _declared_by(record),
        _instant(record, "created_at"),
    )


def _mention(record: dict, target: str, settings: Settings) -> Mention:
    ref = parse_ref(record.get("ref"))
    if ref is None:
        raise BadRecord(f"ref {record.get('ref')!r} names no record")
    return Mention(record.get("entity"), *ref, _declared_by(record), _instant(record, "created_at"))


def _relation(record: dict, target: str, settings: Settings) -> Relation:
    ends = []
    for end in ("subject", "object"):
        kind = record.get(f"{end}_kind")
        if kind not in ENDPOINT_KINDS:
            raise BadRecord(f"{end}_kind is one of {', '.join(ENDPOINT_KINDS)}, not {kind!r}")
        ends.append((kind, record.get(f"{end}_id")))
    predicate = columns.text(record, "predicate")
    if not predicate.strip():
        raise BadRecord("a relation without a predicate")
    anchor = record.get("anchor_ref") or None
    return Relation(
        columns.agent(record, target),
        columns.text(record, "project_id"),
        columns.text(record, "channel"),
        ends[0],
        predicate,
        ends[1],
        None if anchor is None else parse_ref(anchor),
        _declared_by(record),
        _instant(record, "declared_at"),
    )


def _declared_by(record: dict) -> str:
    """Return who declared an association; DECLARED_AS stands in the files for programs that know few such names."""
    return columns.text(record, DECLARED_AS) or columns.text(record, "declared_by")


def _instant(record: dict, name: str) -> str | None:
    """Return a stamp as it is written, None for one that names no instant."""
    value = record.get(name)
    sound = isinstance(value, str) and len(value) <= MAX_TIMESTAMP_LENGTH and parse_instant(value) is not None
    return value if sound else None


def _header(record: dict, target: str, settings: Settings) -> NewPart:
    return NewPart(columns.text(record, "agent_id"))


_READERS: dict[str, Callable[[dict, str, Settings], Record]] = {
    "header": _header,
    "memory": _memory,
    "episode": _episode,
    "profile": _profile,
    "entity": _entity,
    "mention": _mention,
    "relation": _relation,
}
