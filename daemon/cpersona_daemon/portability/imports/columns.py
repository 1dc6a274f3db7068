"""The columns of a record that is imported: each taken from a map as its file had it, checked and cleaned.

Pure functions. A fault that does not keep the record out is added to its ``remarks``.

Contract: import.lines, store.cleaned.
"""

from __future__ import annotations

import json

import msgspec
import numpy as np

from ...memory.cleaning import MAX_AXIS_LENGTH, fit, sanitise
from ...model.cuts import Whole, read_mark
from ...model.instants import normal_created
from ...shared import fields
from ...storage.damaged import nests_deeper, oversized
from .records import BadRecord

MAX_DIMENSIONS = 16_384
_UNIT = 1e-6  # a squared norm this near to one is one: a vector that went out and comes in again keeps its bytes
_LARGEST_COUNT = 2**53

_encode = msgspec.json.Encoder().encode


def text(record: dict, name: str, cap: int = MAX_AXIS_LENGTH) -> str:
    """Return a column of plain text, '' where it is not there. Raises BadRecord."""
    value = record.get(name)
    if value is None or value == "":
        return ""
    if type(value) is not str:
        raise BadRecord(f"{name} is text, not {type(value).__name__}")
    if len(value) > cap:
        raise BadRecord(f"{name} has {len(value)} characters, at most {cap} are kept")
    if "\0" in value:
        raise BadRecord(f"{name} holds a NUL character")
    return value


def agent(record: dict, target: str) -> str:
    """Return whose the record is: ``target``'s, or its own where that is ''."""
    named = target or text(record, "agent_id")
    if not named:
        raise BadRecord("no agent_id")
    return named


def content(
    record: dict, name: str, cap: int, counter: str | None, remarks: list[str]
) -> tuple[str, Whole | None, dict | None]:
    """Return what is kept of a record's text, what it was before it was cut (here, or where the file comes from), and
    what is cut here. ``counter`` is what an empty one counts as, see BadRecord.
    """
    value = record.get(name)
    if value is not None and type(value) is not str:
        raise BadRecord(f"{name} is text, not {type(value).__name__}")
    cleaned = sanitise(value or "")
    if not cleaned:
        raise BadRecord(f"{name} is empty", counter)
    if "\0" in cleaned:
        raise BadRecord(f"{name} holds a NUL character")
    kept, cut = fit(cleaned, cap, name)
    if cut:
        remarks.append(f"{name} was cut: {cut['kept']:,} of {cut['of']:,} characters are kept")
    whole = Whole.of(cleaned, kept)
    if record.get("cut") is not None:
        try:
            whole = read_mark(record["cut"], cleaned)
        except ValueError as error:
            remarks.append(f"{error}; the text counts as a whole one")
    return kept, whole, cut


def fits(name: str, value: str) -> None:
    """Raise BadRecord for a source or metadata, as JSON text, that nothing could give out again.

    CPERSONA_MAX_METADATA_LENGTH is no matter: what another store held is kept.
    """
    if "\0" in value:
        raise BadRecord(f"{name} holds a NUL character")
    if nests_deeper(value, fields.MAX_VALUE_NESTING):
        raise BadRecord(f"{name} nests deeper than {fields.MAX_VALUE_NESTING} levels; nothing could give it out again")


def carried(*texts: str) -> None:
    """Raise BadRecord for the texts of one row that no answer would carry together."""
    if (reason := oversized(*texts)) is not None:
        raise BadRecord(reason)


def source(record: dict) -> str:
    """Return the source column: JSON text, or the very text of one that is no JSON object.

    Such a text stands in ``source`` itself or, beside an empty ``source``, in ``source_text``.
    """
    value = record.get("source")
    if type(value) is str and value:
        return _verbatim("source", value)
    return _json(record, "source")


def metadata(record: dict) -> str:
    """Return the metadata column: JSON text, or beside an empty ``metadata`` the very text of ``metadata_text``."""
    return _json(record, "metadata")


def _json(record: dict, name: str) -> str:
    """Return a column of JSON: of the value, or beside an empty one of the text that another program kept of it."""
    value, text = record.get(name), record.get(f"{name}_text")
    if not value and type(text) is str and text:
        return _verbatim(name, text)
    return "{}" if value is None else _encode(value).decode()


def _verbatim(name: str, text: str) -> str:
    """Return a text as it is. Raises BadRecord for JSON that no answer can carry."""
    if "\\u" in text:
        try:
            _encode(json.loads(text))
        except UnicodeEncodeError:
            raise BadRecord(f"{name} holds half of a surrogate pair, which is no text") from None
        except (ValueError, RecursionError):
            pass  # no JSON: a text like any other
    return text


def stamp(
    record: dict, name: str, remarks: list[str], otherwise: str = "the time of the import stands in its place"
) -> str | None:
    """Return a time as the database holds it, None for one that is not there or, with a remark, names none."""
    value = record.get(name)
    normal = normal_created(value)
    if normal is None and value not in (None, ""):
        remarks.append(f"{name} {str(value)[:40]!r} names no time; {otherwise}")
    return normal


def flag(record: dict, name: str) -> bool:
    """Return a column that is true or false, however it spells that. Raises BadRecord."""
    value = record.get(name)
    if value is None or value is False or value == 0:
        return False
    if value is True or value == 1:
        return True
    raise BadRecord(f"{name} is true or false, not {value!r}")


def recall_count(record: dict, remarks: list[str]) -> int:
    """Return how often a row was recalled, 0 and a remark for what is no count."""
    value = record.get("recall_count")
    if value is None:
        return 0
    if type(value) is int and 0 <= value <= _LARGEST_COUNT:
        return value
    remarks.append(f"recall_count {str(value)[:40]!r} is no count; it starts at 0")
    return 0


def vector(record: dict, remarks: list[str]) -> np.ndarray | None:
    """Return the unit vector of a record, or None and a remark when what stands there is none."""
    value = record.get("embedding_b64")
    if value is None or value == "":
        return None
    try:
        # base64, three times as fast as binascii
        return unit_vector(value if type(value) is bytes else msgspec.convert(value, bytes))
    except ValueError as error:  # msgspec's too
        remarks.append(f"embedding_b64: {error}; imported without its vector")
        return None


def unit_vector(data: bytes) -> np.ndarray:
    """Return little-endian float32 bytes as a vector of unit length. Raises ValueError for what has none."""
    if not data or len(data) % 4 or len(data) > 4 * MAX_DIMENSIONS:
        raise ValueError(f"{len(data)} bytes are not 1 to {MAX_DIMENSIONS} float32 numbers")
    found = np.frombuffer(data, "<f4")
    square = float(np.dot(found, found))
    if abs(square - 1.0) <= _UNIT:
        return found
    wide = found.astype(np.float64)
    norm = float(np.sqrt(np.dot(wide, wide)))
    if not np.isfinite(norm):
        raise ValueError("a number in it is not finite")
    if norm == 0.0:
        raise ValueError("all its numbers are zero")
    return (wide / norm).astype("<f4")
