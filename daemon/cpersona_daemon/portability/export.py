"""Exporting: one read snapshot, streamed into a private file that takes its name only when it is whole and on disk.

Contract: export.file.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import apsw
import msgspec

from ..errors import Refused, of_file
from ..model.cuts import Whole
from ..model.instants import iso_now
from ..model.kinds import EPISODE, MEMORY, parse_ref, ref_of
from ..recall.display import left_out
from ..shared import fields, files
from ..storage import transfer
from ..storage.damaged import NOT_UTF8, Unreadable, nests_deeper, readable
from ..storage.json_columns import loads_finite
from . import reference
from .counted import associations
from .imports.lines import VERSION
from .progress import Progress

PROGRESS_EVERY = 1000
_encode = msgspec.json.Encoder().encode
_TEXT = object()  # stands for a text that is kept as it is


def export(
    conn: apsw.Connection,
    agent_id: str,
    target: str,
    now: float,
    include_embeddings: bool = False,
    progress: Progress | None = None,
    for_reference: bool = False,
) -> dict:
    """Write an agent's data ('' = everybody's) to ``target`` and return export_memories' answer.

    Runs inside the read snapshot of ``conn``. With ``for_reference`` the lines are those that the reference
    implementation takes. Whatever ends it early leaves the file of that name as it was.
    Raises Refused where the directory cannot be written to, StorageFailure where the disk is full.
    """
    counts, written = transfer.counts(conn, agent_id), _Written()

    def records(noting: _Written) -> Iterator[dict]:
        found = _records(conn, agent_id, counts, now, include_embeddings, noting)
        return map(reference.fit, found) if for_reference else found

    directory = os.path.dirname(target)
    if not os.access(directory, os.W_OK | os.X_OK):
        raise Refused(f"output_path: nothing can be written in {directory}")
    with contextlib.suppress(OSError):  # nothing depends on it
        files.tidy(directory)
    try:
        with files.Replacing(target) as handle:
            _write(handle, records(written), 1 + sum(counts.values()), progress)
            if written.left_out:
                # The first line has promised them, so it is written again by what is there.
                counts = {kind: written.counts[kind] for kind in counts}
                handle.seek(0)
                handle.truncate()
                _write(handle, records(_Written()), 1 + sum(counts.values()), progress)
    except OSError as error:
        raise of_file(error, f"the export could not be written, and {target} is as it was") from error
    answer: dict[str, Any] = {
        "ok": True,
        "path": target,
        "memories": counts["memory"],
        "episodes": counts["episode"],
        "profiles": counts["profile"],
    }
    if declared := associations(counts):
        answer["associations"] = declared
    if written.left_out:
        answer["left_out"] = written.left_out
    return answer


class _Written:
    """What went into a file: lines of each kind, and what was left out.

    Left out is what cannot be read, or be imported again.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.left_out: list[dict] = []
        self._without: set[tuple[str, int]] = set()

    def lines(self, kind: str, found: Iterable[tuple | Unreadable]) -> Iterator[tuple]:
        """Yield the memories or episodes that can be written and name the others."""
        for row in found:
            if (
                not isinstance(row, Unreadable)
                and kind == MEMORY
                and (reason := _unfit(row[4]) or _unfit(row[6])) is not None
            ):
                row = Unreadable(row[0], reason)
            if isinstance(row, Unreadable):
                self.left_out.append(left_out(kind, row))
                self._without.add((kind, row.id))
            else:
                yield row

    def others(self, what: str, cursor: Iterator[tuple]) -> Iterator[tuple]:
        """Yield the rows of another kind that can be read and say of the others that they are missing."""
        for row in readable(cursor):
            if row is None:
                self.left_out.append({"ref": what, "reason": NOT_UTF8})
            else:
                yield row

    def has(self, *ends: tuple[str, int] | None) -> bool:
        """Tell whether none of these records was left out: what names one that was cannot be imported again."""
        return self._without.isdisjoint(ends)


def _write(handle: BinaryIO, records: Iterator[dict], total: int, progress: Progress | None) -> None:
    done = 0
    for done, record in enumerate(records, 1):
        handle.write(_encode(record))
        handle.write(b"\n")
        if progress is not None and done % PROGRESS_EVERY == 0:
            progress({"done": done, "total": total})
    if progress is not None:
        progress({"done": done, "total": total})


def _records(
    conn: apsw.Connection, agent_id: str, counts: dict[str, int], now: float, vectors: bool, written: _Written
) -> Iterator[dict]:
    for record in _lines(conn, agent_id, counts, now, vectors, written):
        written.counts[record["_type"]] += 1
        yield record


def _lines(
    conn: apsw.Connection, agent_id: str, counts: dict[str, int], now: float, vectors: bool, written: _Written
) -> Iterator[dict]:
    yield {
        "_type": "header",
        "version": VERSION,
        "agent_id": agent_id,
        "exported_at": iso_now(now),
        "memory_count": counts["memory"],
        "episode_count": counts["episode"],
        "has_profile": counts["profile"] > 0,
        "profile_count": counts["profile"],
        "entity_count": counts["entity"],
        "mention_count": counts["mention"],
        "relation_count": counts["relation"],
    }
    yield from _memories(conn, agent_id, vectors, written)
    yield from _episodes(conn, agent_id, vectors, written)
    yield from _profiles(conn, agent_id, written)
    yield from _associations(conn, agent_id, written)


def _memories(conn: apsw.Connection, agent_id: str, vectors: bool, written: _Written) -> Iterator[dict]:
    for row in written.lines(MEMORY, transfer.memory_rows(conn, agent_id, vectors)):
        source, metadata = _strict(row[4]), _strict(row[6])
        record = {
            "_type": "memory",
            "id": row[0],
            "agent_id": row[1],
            "msg_id": row[2],
            "content": row[3],
            "source": source if isinstance(source, dict) else {},
            "timestamp": row[5],
            "metadata": {} if metadata is _TEXT else metadata,
            "created_at": row[7],
            "project_id": row[8],
            "channel": row[9],
            "locked": row[10],
            "recall_count": row[11],
            "last_recalled_at": row[12],
        }
        if not isinstance(source, dict):
            record["source_text"] = row[4]  # what an import brought that is no JSON object, so that nothing is lost
        if metadata is _TEXT:
            record["metadata_text"] = row[6]
        yield _with_vector(_with_mark(record, row[3], *row[13:15]), *row[15:])


def _episodes(conn: apsw.Connection, agent_id: str, vectors: bool, written: _Written) -> Iterator[dict]:
    for row in written.lines(EPISODE, transfer.episode_rows(conn, agent_id, vectors)):
        yield _with_vector(
            _with_mark(
                {
                    "_type": "episode",
                    "id": row[0],
                    "agent_id": row[1],
                    "summary": row[2],
                    "keywords": row[3],
                    "start_time": row[4],
                    "end_time": row[5],
                    "created_at": row[6],
                    "resolved": bool(row[7]),
                    "project_id": row[8],
                    "channel": row[9],
                },
                row[2],
                *row[10:12],
            ),
            *row[12:],
        )


def _profiles(conn: apsw.Connection, agent_id: str, written: _Written) -> Iterator[dict]:
    for agent, user, content, updated_at, project in written.others("a profile", transfer.profile_rows(conn, agent_id)):
        yield {
            "_type": "profile",
            "agent_id": agent,
            "user_id": user,
            "content": content,
            "updated_at": updated_at,
            "project_id": project,
        }


def _associations(conn: apsw.Connection, agent_id: str, written: _Written) -> Iterator[dict]:
    for entity, agent, project, channel, name, declared_by, created_at, aliases in written.others(
        "an entity", transfer.entity_rows(conn, agent_id)
    ):
        yield {
            "_type": "entity",
            "id": entity,
            "agent_id": agent,
            "project_id": project,
            "channel": channel,
            "name": name,
            "declared_by": declared_by,
            "created_at": created_at,
            "aliases": json.loads(aliases),
        }
    for entity, kind, record_id, declared_by, created_at in written.others(
        "a mention", transfer.mention_rows(conn, agent_id)
    ):
        if not written.has((kind, record_id)):
            continue
        yield {
            "_type": "mention",
            "entity": entity,
            "ref": ref_of((kind, record_id)),
            "declared_by": declared_by,
            "created_at": created_at,
        }
    for row in written.others("a relation", transfer.relation_rows(conn, agent_id)):
        if not written.has((row[4], row[5]), (row[7], row[8])):
            continue
        yield {
            "_type": "relation",
            "id": row[0],
            "agent_id": row[1],
            "project_id": row[2],
            "channel": row[3],
            "subject_kind": row[4],
            "subject_id": row[5],
            "predicate": row[6],
            "object_kind": row[7],
            "object_id": row[8],
            "anchor_ref": row[9] if row[9] and written.has(parse_ref(row[9])) else "",
            "declared_by": row[10],
            "declared_at": row[11],
        }


def _unfit(text: str) -> str | None:
    """Return why a file cannot hold a source or metadata so that it can be imported again, None where it can."""
    if nests_deeper(text, fields.MAX_NESTING):
        return f"its source or metadata nests deeper than {fields.MAX_NESTING} levels"
    if "\\u" in text:
        try:
            _encode(_loaded(text))
        except UnicodeEncodeError:
            return "its source or metadata holds half of a surrogate pair, which is no text"
    return None


def _loaded(text: str) -> Any:
    """Return what a JSON column holds, or the text itself where it is malformed."""
    if text == "{}":
        return {}
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _strict(text: str) -> Any:
    """Return what a JSON column holds, _TEXT where that is none, or has numbers that no file can hold."""
    try:
        return {} if text == "{}" else loads_finite(text)
    except (ValueError, RecursionError):
        return _TEXT


def _with_mark(record: dict, kept: str, length: int | None, key: bytes | None) -> dict:
    """Add what a cut text was: where the file is imported it is known by that too."""
    if length is not None and key is not None:
        record["cut"] = Whole(length, key).told(kept)
    return record


def _with_vector(record: dict, vector: bytes | None, model: str | None) -> dict:
    if vector:
        record["embedding_b64"] = base64.b64encode(vector).decode()
        record["embedding_model"] = model or ""
    return record
