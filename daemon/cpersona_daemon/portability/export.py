"""Exporting: one read snapshot, streamed into a private file that takes its name only when it is whole and on disk.

Contract: contracts.md §10, §13 (export).
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import apsw
import msgspec

from .. import files
from ..errors import Refused, of_file
from ..instants import iso_now
from ..storage import transfer
from ..storage.memories import Whole
from .lines import VERSION

PROGRESS_EVERY = 1000

Progress = Callable[[dict], None]


def export(conn: apsw.Connection, agent_id: str, target: str, now: float, include_embeddings: bool = False, progress: Progress | None = None) -> dict:
    """Write an agent's data ('' = everybody's) to ``target`` and return export_memories' answer.

    Runs inside the read snapshot of ``conn``. Whatever ends it early leaves the file of that name as it was.
    Raises Refused where the directory cannot be written to, StorageFailure where the disk is full.
    """
    counts = transfer.counts(conn, agent_id)
    directory = os.path.dirname(target)
    if not os.access(directory, os.W_OK | os.X_OK):
        raise Refused(f"output_path: nothing can be written in {directory}")
    try:
        with files.Replacing(target) as handle:
            _write(handle, _records(conn, agent_id, counts, now, include_embeddings), 1 + sum(counts.values()), progress)
    except OSError as error:
        raise of_file(error, f"the export could not be written, and {target} is as it was") from error
    answer: dict[str, Any] = {"ok": True, "path": target, "memories": counts["memory"], "episodes": counts["episode"], "profiles": counts["profile"]}
    if counts["entity"] or counts["mention"] or counts["relation"]:
        answer["associations"] = {"entities": counts["entity"], "mentions": counts["mention"], "relations": counts["relation"]}
    return answer


def _write(handle: BinaryIO, records: Iterator[dict], total: int, progress: Progress | None) -> None:
    encode = msgspec.json.Encoder().encode
    done = 0
    for done, record in enumerate(records, 1):
        handle.write(encode(record))
        handle.write(b"\n")
        if progress is not None and done % PROGRESS_EVERY == 0:
            progress({"done": done, "total": total})
    if progress is not None:
        progress({"done": done, "total": total})


def _records(conn: apsw.Connection, agent_id: str, counts: dict[str, int], now: float, vectors: bool) -> Iterator[dict]:
    yield {
        "_type": "header", "version": VERSION, "agent_id": agent_id, "exported_at": iso_now(now), "memory_count": counts["memory"],
        "episode_count": counts["episode"], "has_profile": counts["profile"] > 0, "profile_count": counts["profile"],
        "entity_count": counts["entity"], "mention_count": counts["mention"], "relation_count": counts["relation"],
    }
    for row in transfer.memory_rows(conn, agent_id, vectors):
        source = _loaded(row[4])
        record = {
            "_type": "memory", "id": row[0], "agent_id": row[1], "msg_id": row[2], "content": row[3], "source": source if isinstance(source, dict) else {},
            "timestamp": row[5], "metadata": _loaded(row[6]), "created_at": row[7], "project_id": row[8], "channel": row[9], "locked": row[10],
            "recall_count": row[11], "last_recalled_at": row[12],
        }
        if not isinstance(source, dict):
            record["source_text"] = row[4]  # what an import brought that is no JSON object, so that nothing is lost
        yield _with_vector(_with_mark(record, row[3], *row[13:15]), *row[15:])
    for row in transfer.episode_rows(conn, agent_id, vectors):
        yield _with_vector(_with_mark({
            "_type": "episode", "id": row[0], "agent_id": row[1], "summary": row[2], "keywords": row[3], "start_time": row[4], "end_time": row[5],
            "created_at": row[6], "resolved": bool(row[7]), "project_id": row[8], "channel": row[9],
        }, row[2], *row[10:12]), *row[12:])
    for agent, user, content, updated_at, project in transfer.profile_rows(conn, agent_id):
        yield {"_type": "profile", "agent_id": agent, "user_id": user, "content": content, "updated_at": updated_at, "project_id": project}
    for entity, agent, project, channel, name, declared_by, created_at, aliases in transfer.entity_rows(conn, agent_id):
        yield {
            "_type": "entity", "id": entity, "agent_id": agent, "project_id": project, "channel": channel, "name": name, "declared_by": declared_by,
            "created_at": created_at, "aliases": json.loads(aliases),
        }
    for entity, kind, record_id, declared_by, created_at in transfer.mention_rows(conn, agent_id):
        yield {"_type": "mention", "entity": entity, "ref": f"{kind}:{record_id}", "declared_by": declared_by, "created_at": created_at}
    for row in transfer.relation_rows(conn, agent_id):
        yield {
            "_type": "relation", "id": row[0], "agent_id": row[1], "project_id": row[2], "channel": row[3], "subject_kind": row[4], "subject_id": row[5],
            "predicate": row[6], "object_kind": row[7], "object_id": row[8], "anchor_ref": row[9] or "", "declared_by": row[10], "declared_at": row[11],
        }


def _loaded(text: str) -> Any:
    """Return what a JSON column holds, or the text itself where it is malformed."""
    if text == "{}":
        return {}
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


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
