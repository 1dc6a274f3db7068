"""One line of an export file: checked, cleaned and turned into what is stored. Pure functions.

Contract: import.lines, store.cleaned.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from ...memory.cleaning import fit, sanitise
from ...model.instants import normal_created
from ...model.kinds import parse_ref
from ...shared import fields
from ...shared.settings import Settings
from ...storage.damaged import nests_deeper
from ...storage.episodes import NewEpisode
from ...storage.memories import NewMemory, Prepared, Whole, read_mark

VERSION = "cpersona-export/1.1"
MAX_AXIS_LENGTH = 256
MAX_TIMESTAMP_LENGTH = 64
MAX_DIMENSIONS = 16_384
RECORD_KINDS = ("mem", "ep")
ENDPOINT_KINDS = ("entity", *RECORD_KINDS)
_UNIT = 1e-6  # a squared norm this near to one is one: a vector that went out and comes in again keeps its bytes
_LARGEST_COUNT = 2**53

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class BadLine(ValueError):
    """A line that cannot be stored; the message says why. ``skipped`` names the counter that it also moves."""

    def __init__(self, reason: str, skipped: str | None = None):
        super().__init__(reason)
        self.skipped = skipped


@dataclass(slots=True)
class Row:
    """A memory or episode of the file. ``remarks`` are faults that did not keep the row out; ``prepared`` is a memory ready to be written.

    ``cut`` is `{kept, of}` where its text is longer than what is kept.
    """

    kind: str
    old_id: Any
    new: NewMemory | NewEpisode
    vector: np.ndarray | None
    model: str
    remarks: list[str]
    cut: dict | None
    prepared: Prepared | None = None


@dataclass(slots=True)
class ProfileLine:
    agent_id: str
    content: str
    updated_at: str | None
    project_id: str
    remarks: list[str]
    cut: dict | None


@dataclass(slots=True)
class EntityLine:
    old_id: Any
    agent_id: str
    project_id: str
    channel: str
    name: str
    aliases: list[str]
    declared_by: str
    created_at: str | None


@dataclass(slots=True)
class MentionLine:
    entity: Any
    kind: str
    record: int
    declared_by: str
    created_at: str | None


@dataclass(slots=True)
class RelationLine:
    agent_id: str
    project_id: str
    channel: str
    subject: tuple[str, Any]
    predicate: str
    object: tuple[str, Any]
    anchor: tuple[str, int] | None
    declared_by: str
    declared_at: str | None


@dataclass(slots=True)
class HeaderLine:
    """The beginning of an export: ids that follow are its own, and rows that name no agent are this one's. Files may be joined, each with its header."""

    agent_id: str


def decode(raw: bytes) -> dict:
    """Return the object that a line holds. Raises BadLine."""
    try:
        value = _decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadLine(f"not valid JSON: {error}") from None
    except RecursionError:
        raise BadLine("nested too deeply") from None
    if type(value) is not dict:
        raise BadLine("not a JSON object")
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


def parse(raw: bytes, target: str, settings: Settings, default: str = "") -> Any:
    """Return the item that a line stands for, under agent ``target`` unless that is ''; ``default`` is whose it is when it names none. Raises BadLine."""
    if raw.startswith(b'{"_type":"memory"'):
        try:
            return _memory(_owned(msgspec.structs.asdict(_decode_memory(raw)), default), target, settings)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass  # the long way says what is wrong with it, or that only its vector is
    record = decode(raw)
    kind = record.get("_type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        raise BadLine(f"unknown _type {kind!r}" if kind is not None else "no _type")
    return reader(record if kind == "header" else _owned(record, default), target, settings)


def _owned(record: dict, default: str) -> dict:
    return record if record.get("agent_id") or not default else {**record, "agent_id": default}


def _memory(record: dict, target: str, settings: Settings) -> Row:
    remarks: list[str] = []
    agent = _agent(record, target)
    content, whole, cut = _content(record, "content", settings.max_content_length, "memories", remarks)
    timestamp = _text(record, "timestamp", MAX_TIMESTAMP_LENGTH)
    source = _source(record)
    metadata = _metadata(record)
    for name, text in (("source", source), ("metadata", metadata)):
        if len(text) > settings.max_metadata_length:
            raise BadLine(
                f"{name} has {len(text)} characters as JSON, at most {settings.max_metadata_length} are kept (CPERSONA_MAX_METADATA_LENGTH)"
            )
        if "\0" in text:
            raise BadLine(f"{name} holds a NUL character")
        if nests_deeper(text, fields.MAX_VALUE_NESTING):
            raise BadLine(
                f"{name} nests deeper than {fields.MAX_VALUE_NESTING} levels; nothing could give it out again"
            )
    recalled = record.get("last_recalled_at")
    new = NewMemory(
        agent,
        content,
        _text(record, "project_id"),
        _text(record, "channel"),
        _text(record, "msg_id"),
        source,
        timestamp,
        metadata,
        _stamp(record, "created_at", remarks) or "",
        _flag(record, "locked"),
        _count(record, remarks),
        None if recalled is None else _stamp(record, "last_recalled_at", remarks, "it counts as never recalled"),
        whole,
    )
    vector = _vector(record, remarks)
    return Row("mem", record.get("id"), new, vector, _text(record, "embedding_model"), remarks, cut)


def _episode(record: dict, target: str, settings: Settings) -> Row:
    remarks: list[str] = []
    agent = _agent(record, target)
    summary, whole, cut = _content(record, "summary", settings.max_content_length, "episodes", remarks)
    keywords = record.get("keywords")
    if isinstance(keywords, list) and all(isinstance(k, str) for k in keywords):
        record = {**record, "keywords": " ".join(keywords)}
    new = NewEpisode(
        agent,
        summary,
        _text(record, "keywords", settings.max_content_length),
        _text(record, "project_id"),
        _text(record, "channel"),
        _text(record, "start_time", MAX_TIMESTAMP_LENGTH) or None,
        _text(record, "end_time", MAX_TIMESTAMP_LENGTH) or None,
        _flag(record, "resolved"),
        _stamp(record, "created_at", remarks) or "",
        whole,
    )
    vector = _vector(record, remarks)
    return Row("ep", record.get("id"), new, vector, _text(record, "embedding_model"), remarks, cut)


def _profile(record: dict, target: str, settings: Settings) -> ProfileLine:
    remarks: list[str] = []
    agent = _agent(record, target)
    content, _, cut = _content(record, "content", settings.max_profile_length, None, remarks)
    return ProfileLine(
        agent,
        content,
        _stamp(record, "updated_at", remarks, "it replaces no profile"),
        _text(record, "project_id"),
        remarks,
        cut,
    )


def _entity(record: dict, target: str, settings: Settings) -> EntityLine:
    name = _text(record, "name").strip()
    if not name:
        raise BadLine("an entity without a name")
    aliases = record.get("aliases") or []
    if not isinstance(aliases, list) or not all(
        isinstance(a, str) and a.strip() and len(a) <= MAX_AXIS_LENGTH and "\0" not in a for a in aliases
    ):
        raise BadLine(f"aliases is a list of texts of 1 to {MAX_AXIS_LENGTH} characters")
    return EntityLine(
        record.get("id"),
        _agent(record, target),
        _text(record, "project_id"),
        _text(record, "channel"),
        name,
        aliases,
        _text(record, "declared_by"),
        normal_created(record.get("created_at")),
    )


def _mention(record: dict, target: str, settings: Settings) -> MentionLine:
    ref = parse_ref(record.get("ref"))
    if ref is None:
        raise BadLine(f"ref {record.get('ref')!r} names no record")
    return MentionLine(
        record.get("entity"), *ref, _text(record, "declared_by"), normal_created(record.get("created_at"))
    )


def _relation(record: dict, target: str, settings: Settings) -> RelationLine:
    ends = []
    for end in ("subject", "object"):
        kind = record.get(f"{end}_kind")
        if kind not in ENDPOINT_KINDS:
            raise BadLine(f"{end}_kind is one of {', '.join(ENDPOINT_KINDS)}, not {kind!r}")
        ends.append((kind, record.get(f"{end}_id")))
    predicate = _text(record, "predicate")
    if not predicate.strip():
        raise BadLine("a relation without a predicate")
    anchor = record.get("anchor_ref") or None
    return RelationLine(
        _agent(record, target),
        _text(record, "project_id"),
        _text(record, "channel"),
        ends[0],
        predicate,
        ends[1],
        None if anchor is None else parse_ref(anchor),
        _text(record, "declared_by"),
        normal_created(record.get("declared_at")),
    )


def _header(record: dict, target: str, settings: Settings) -> HeaderLine:
    return HeaderLine(_text(record, "agent_id"))


_READERS = {
    "header": _header,
    "memory": _memory,
    "episode": _episode,
    "profile": _profile,
    "entity": _entity,
    "mention": _mention,
    "relation": _relation,
}

# -- fields


def _text(record: dict, name: str, cap: int = MAX_AXIS_LENGTH) -> str:
    value = record.get(name)
    if value is None or value == "":
        return ""
    if type(value) is not str:
        raise BadLine(f"{name} is text, not {type(value).__name__}")
    if len(value) > cap:
        raise BadLine(f"{name} has {len(value)} characters, at most {cap} are kept")
    if "\0" in value:
        raise BadLine(f"{name} holds a NUL character")
    return value


def _agent(record: dict, target: str) -> str:
    agent = target or _text(record, "agent_id")
    if not agent:
        raise BadLine("no agent_id")
    return agent


def _content(
    record: dict, name: str, cap: int, counter: str | None, remarks: list[str]
) -> tuple[str, Whole | None, dict | None]:
    """Return what is kept of a line's text, what it was before it was cut (here, or where the line comes from), and what is cut here."""
    value = record.get(name)
    if value is not None and type(value) is not str:
        raise BadLine(f"{name} is text, not {type(value).__name__}")
    cleaned = sanitise(value or "")
    if not cleaned:
        raise BadLine(f"{name} is empty", counter)
    if "\0" in cleaned:
        raise BadLine(f"{name} holds a NUL character")
    text, cut = fit(cleaned, cap, name)
    if cut:
        remarks.append(f"{name} was cut: {cut['kept']:,} of {cut['of']:,} characters are kept")
    whole = Whole.of(cleaned, text)
    if record.get("cut") is not None:
        try:
            whole = read_mark(record["cut"], cleaned)
        except ValueError as error:
            remarks.append(f"{error}; the text counts as a whole one")
    return text, whole, cut


def _source(record: dict) -> str:
    """Return the source column: JSON text, or the very text of one that is no JSON object.

    Such a text stands in ``source`` itself or, beside an empty ``source``, in ``source_text``.
    """
    value = record.get("source")
    verbatim = record.get("source_text")
    if not value and type(verbatim) is str and verbatim:
        value = verbatim
    if value is None:
        return "{}"
    if type(value) is not str:
        return _encode(value).decode()
    if "\\u" in value:
        try:
            _encode(json.loads(value))
        except UnicodeEncodeError:
            raise BadLine("source holds half of a surrogate pair, which is no text") from None
        except (ValueError, RecursionError):
            pass  # no JSON: a text like any other
    return value


def _metadata(record: dict) -> str:
    value = record.get("metadata")
    return "{}" if value is None else _encode(value).decode()


def _stamp(
    record: dict, name: str, remarks: list[str], otherwise: str = "the time of the import stands in its place"
) -> str | None:
    value = record.get(name)
    stamp = normal_created(value)
    if stamp is None and value not in (None, ""):
        remarks.append(f"{name} {str(value)[:40]!r} names no time; {otherwise}")
    return stamp


def _flag(record: dict, name: str) -> bool:
    value = record.get(name)
    if value is None or value is False or value == 0:
        return False
    if value is True or value == 1:
        return True
    raise BadLine(f"{name} is true or false, not {value!r}")


def _count(record: dict, remarks: list[str]) -> int:
    value = record.get("recall_count")
    if value is None:
        return 0
    if type(value) is int and 0 <= value <= _LARGEST_COUNT:
        return value
    remarks.append(f"recall_count {str(value)[:40]!r} is no count; it starts at 0")
    return 0


def _vector(record: dict, remarks: list[str]) -> np.ndarray | None:
    """Return the unit vector of a line, or None and a remark when what stands there is none."""
    text = record.get("embedding_b64")
    if text is None or text == "":
        return None
    try:
        return unit_vector(
            text if type(text) is bytes else msgspec.convert(text, bytes)
        )  # base64, three times as fast as binascii
    except ValueError as error:  # msgspec's too
        remarks.append(f"embedding_b64: {error}; imported without its vector")
        return None


def unit_vector(data: bytes) -> np.ndarray:
    """Return little-endian float32 bytes as a vector of unit length. Raises ValueError for what has none."""
    if not data or len(data) % 4 or len(data) > 4 * MAX_DIMENSIONS:
        raise ValueError(f"{len(data)} bytes are not 1 to {MAX_DIMENSIONS} float32 numbers")
    vector = np.frombuffer(data, "<f4")
    square = float(np.dot(vector, vector))
    if abs(square - 1.0) <= _UNIT:
        return vector
    wide = vector.astype(np.float64)
    norm = float(np.sqrt(np.dot(wide, wide)))
    if not np.isfinite(norm):
        raise ValueError("a number in it is not finite")
    if norm == 0.0:
        raise ValueError("all its numbers are zero")
    return (wide / norm).astype("<f4")
