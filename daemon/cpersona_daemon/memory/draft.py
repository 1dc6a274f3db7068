"""A memory that passed every check on its way into the store.

Contract: store.checks, store.cleaned.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from ..errors import Refused
from ..model.cuts import Whole, read_mark
from ..model.instants import iso_now, parse_instant
from ..shared import fields
from ..shared.settings import Settings
from ..storage import memories
from ..storage.damaged import nests_deeper
from .cleaning import MAX_TIMESTAMP_LENGTH, check_short, check_text, fit, remarks, sanitise
from .source import normalise_source

CLOCK_ALLOWANCE_SECONDS = 300
_as_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory that passed every check, and what the answer must say about it."""

    memory: memories.NewMemory
    cut: dict | None
    ahead: dict | None

    @property
    def key(self) -> bytes:
        return self.memory.key

    def remarks(self) -> dict:
        out: dict[str, Any] = remarks(self.cut)
        if self.ahead:
            out["timestamp_ahead_of_clock"] = self.ahead
        return out


def prepare(
    *,
    agent_id: str,
    content: Any,
    msg_id: Any,
    source: Any,
    timestamp: Any,
    metadata: Any,
    channel: str,
    project_id: str,
    locked: bool,
    now: float,
    settings: Settings,
    cut: Any = None,
    fail_if_cut: bool = False,
) -> Draft:
    """Check and clean what a caller wants stored. Raises Refused, in the contract's order of checks.

    ``cut`` is the mark of a text that was cut before, as rows carry it; what it was then is what it is known by.
    """
    if not isinstance(content, str) or not content.strip():
        raise Refused(
            "content is empty"
            if isinstance(content, str) or content is None
            else f"content is text, not {type(content).__name__}"
        )
    for name, value in (("id", msg_id), ("channel", channel), ("project_id", project_id), ("agent_id", agent_id)):
        if not isinstance(value, str):
            raise Refused(f"{name} is text, not {type(value).__name__}")
        check_short(value, name)
    if not isinstance(timestamp, str):
        raise Refused(f"timestamp is text, not {type(timestamp).__name__}")
    check_short(timestamp, "timestamp", MAX_TIMESTAMP_LENGTH)
    source_text = _serialised(normalise_source(source), "source", settings)
    metadata_text = _serialised({} if metadata is None else metadata, "metadata", settings)
    check_text(content, "content")
    cleaned = sanitise(content)
    if not cleaned:
        raise Refused("content is empty once its memory annotations are removed")
    text, lost = fit(cleaned, settings.max_content_length, "the text", fail_if_cut)
    whole = Whole.of(cleaned, text)
    if cut is not None:
        whole = _whole_before(cut, cleaned)
        lost = {"kept": len(text), "of": whole.length}
    ahead = _ahead_of_clock(timestamp, now, settings.future_timestamp_mode)
    memory = memories.NewMemory(
        agent_id=agent_id,
        content=text,
        project_id=project_id,
        channel=channel,
        msg_id=msg_id,
        source=source_text,
        timestamp=timestamp or iso_now(now),
        metadata=metadata_text,
        locked=locked,
        whole=whole,
    )
    return Draft(memory, lost, ahead)


def _whole_before(mark: Any, text: str) -> Whole:
    try:
        return read_mark(mark, text)
    except ValueError as error:
        raise Refused(str(error)) from None


def _serialised(value: Any, what: str, settings: Settings) -> str:
    try:
        text = _as_json(value)
    except ValueError as error:
        raise Refused(f"{what} cannot be written as JSON: {error}") from None
    except RecursionError:
        text = None
    if text is None or nests_deeper(text, fields.MAX_VALUE_NESTING):
        raise Refused(f"{what} nests deeper than {fields.MAX_VALUE_NESTING} levels; nothing could give it out again")
    if len(text) > settings.max_metadata_length:
        raise Refused(
            f"{what} has {len(text)} characters as JSON,"
            f" at most {settings.max_metadata_length} are kept (CPERSONA_MAX_METADATA_LENGTH)"
        )
    return check_text(text, what)


def _ahead_of_clock(timestamp: str, now: float, mode: str) -> dict | None:
    instant = parse_instant(timestamp)
    if mode == "off" or instant is None or instant - now <= CLOCK_ALLOWANCE_SECONDS:
        return None
    ahead = {
        "timestamp": timestamp,
        "ahead_by_seconds": round(instant - now),
        "allowance_seconds": CLOCK_ALLOWANCE_SECONDS,
    }
    if mode == "reject":
        raise Refused(
            f"timestamp {timestamp} is {ahead['ahead_by_seconds']} s ahead of the clock,"
            f" {CLOCK_ALLOWANCE_SECONDS} s are allowed"
        )
    return ahead
