"""A daemon killed at any moment, whose vectors Qdrant's engine searches in a folder: nothing acknowledged is lost, and
what stands there ends as what the database holds.

Contract: outbox.durable, outbox.now, qdrant.collections.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from stress_kit import FULL, WIDTH, Writers, contents, pending

from cpersona_cli.wire import client, control
from cpersona_daemon.shared.settings import load

edge = pytest.importorskip("qdrant_edge")
pytestmark = pytest.mark.stress

KILLS, CLIENTS = (100, 4) if FULL else (4, 2)
STORES = KILLS * 40


def held(folder: Path) -> dict[int, np.ndarray]:
    """Return the vectors of all memories that stand in a folder of a stopped daemon."""
    found: dict[int, np.ndarray] = {}
    for path in folder.glob("*-mem-*"):
        shard = edge.EdgeShard.load(str(path))
        offset = None
        while True:
            points, offset = shard.scroll(edge.ScrollRequest(offset=offset, limit=500, with_vector=True))
            found |= {point.id: np.array(point.vector, np.float32) for point in points}
            if offset is None:
                break
        shard.close()
    return found


def stored(database: str) -> dict[int, np.ndarray]:
    with closing(sqlite3.connect(database)) as conn:
        return {row: np.frombuffer(data, "<f4") for row, data in conn.execute("SELECT id, vector FROM memory_vectors")}


def killed(daemon: int, the_engine: bool) -> bool:
    """Kill a daemon, or the process that its engine runs in; tell whether that was there."""
    try:
        tasks = Path(f"/proc/{daemon}/task").glob("*/children") if the_engine else ()
        pids = [int(pid) for task in tasks for pid in task.read_text().split()] if the_engine else [daemon]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
    except OSError:  # it has just left
        return False
    return bool(pids)


def test_kill_9_during_stores_loses_nothing_and_ends_with_both_equal(with_model):
    environ = with_model
    folder = Path(environ["CPERSONA_DB_PATH"]).parent / "qdrant"
    environ |= {"CPERSONA_VECTOR_SEARCH_MODE": "qdrant", "CPERSONA_QDRANT_URL": f"path:{folder}"}
    moments, kills = random.Random(9), 0
    with Writers(environ, CLIENTS, STORES // CLIENTS, lambda number, turn: f"note {number} of turn {turn}.") as writers:
        while kills < KILLS and writers.wait_for(moments.randrange(1, 30)):
            note = control.find_daemon(load(environ), environ)
            if note is not None and note.get("pid"):
                kills += killed(note["pid"], the_engine=bool(kills % 2))
    assert kills == KILLS and writers.refused == []
    with client.connect(load(environ), environ) as connection:
        while pending(connection):
            pass
        for row in random.Random(1).sample(sorted(writers.kept), 10):
            connection.call("delete_memory", {"agent_id": "a", "memory_id": row})
        told = connection.call("daemon_status", {})[0]["outbox"]
        while told["pending"] or told["filling"]:
            told = connection.call("daemon_status", {})[0]["outbox"]
        answer, code = connection.call("recall", {"agent_id": "a", "query": "note 1 of turn 7.", "trace": True})
        assert code is None and answer["trace"]["vectors"]["by"] == "service"
        assert "advisory" not in answer and answer["messages"]
        assert control.stop_daemon(load(environ), 30, environ)
    database = environ["CPERSONA_DB_PATH"]
    kept, there, here = contents(database), held(folder), stored(database)
    assert {row: kept[row] for row in writers.kept if row in kept} == {
        row: text for row, text in writers.kept.items() if row in kept
    }
    assert len(kept) == STORES - 10
    assert sorted(there) == sorted(here) == sorted(kept)
    assert all(vector.size == WIDTH and np.array_equal(there[row], vector) for row, vector in here.items())
