"""What the stress tests share: a model server, writers that remember what was acknowledged, and the proof that a store
is whole.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing

import apsw
import numpy as np
from embed_kit import EmbedServer

from cpersona_cli.wire import client
from cpersona_daemon.model.clock import SystemClock
from cpersona_daemon.model.kinds import MEMORY
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.shared.paths import Places
from cpersona_daemon.shared.settings import load
from cpersona_daemon.storage.database import Database
from cpersona_daemon.vectors import plain
from cpersona_daemon.vectors.backend import QueryVectors, Window
from cpersona_daemon.vectors.local.engine import LocalEngine

FULL = os.environ.get("CPERSONA_STRESS") == "full"
WIDTH = 64


def vector(text: str) -> list[float]:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).standard_normal(WIDTH).round(6).tolist()


class StressModel(EmbedServer):
    def reply(self, texts: list[str]) -> dict:
        return {"embeddings": [vector(text) for text in texts], "model": "stress"}


class Writers:
    """Threads that each store ``count`` notes through a connection of their own; ``kept`` holds what was acknowledged,
    by id.
    """

    def __init__(self, environ: dict[str, str], threads: int, count: int, text: Callable[[int, int], str]):
        self.kept: dict[int, str] = {}
        self.refused: list[str] = []
        self.unknown = 0
        self._connections: dict[int, client.Connection] = {}
        self._environ, self._count, self._text = environ, count, text
        self._news = threading.Condition()
        self._threads = [threading.Thread(target=self._work, args=(number,)) for number in range(threads)]

    def __enter__(self) -> Writers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error) -> None:
        for thread in self._threads:
            thread.join()

    @property
    def working(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def wait_for(self, more: int) -> bool:
        """Wait until so many more are acknowledged; false when the writers came to their end before."""
        with self._news:
            wanted = len(self.kept) + more
            while len(self.kept) < wanted and self.working:
                self._news.wait(1)
            return len(self.kept) >= wanted

    def _work(self, number: int) -> None:
        for turn in range(self._count):
            text = self._text(number, turn)
            while True:
                try:
                    answer, code = self._connection(number).call("store", {"agent_id": "a", "content": text})
                    break
                except client.CallFailed as error:
                    if "not known" not in error.message:
                        self.refused.append(f"{error.code}: {error.message}")
                        return
                    # It says so itself: several daemons died over this one note. Asking again as a new request is safe.
                    self.unknown += 1
            with self._news:
                if code is None and answer["result"] in ("stored", "skipped"):
                    self.kept[answer["id"]] = text
                else:
                    self.refused.append(f"{code}: {answer}")
                self._news.notify_all()
        self._connection(number).close()

    def _connection(self, number: int) -> client.Connection:
        if number not in self._connections:
            self._connections[number] = client.connect(load(self._environ), self._environ)
        return self._connections[number]


def contents(database: str) -> dict[int, str]:
    """Return every memory's text, from a database that SQLite finds sound, its full-text index included."""
    with closing(sqlite3.connect(database, isolation_level=None)) as conn:
        assert conn.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert conn.execute("PRAGMA foreign_key_check").fetchall() == []
        return dict(conn.execute("SELECT id, content FROM memories"))


def pending(connection: client.Connection) -> int:
    """Return how many rows still wait for a vector."""
    return connection.call("daemon_status", {})[0]["backlog"]["pending"]


def assert_index_equals_plain_scan(database: str, questions: int = 20) -> int:
    """Open the index of a stopped daemon and ask it and the plain scan the same; return how many rows it holds."""
    places = Places(database, "", "")
    store = LocalEngine(places, SystemClock())
    db = Database(database, SystemClock())
    db.open()
    try:
        store.open(db)
        held = store.status()["mem"]["rows"]
        ((stored,),) = db.read_now(lambda conn: conn.execute("SELECT count(*) FROM memory_vectors").fetchall())
        assert held == stored
        ((model,),) = db.read_now(lambda conn: conn.execute("SELECT DISTINCT model FROM memory_vectors").fetchall())
        for number in range(questions):
            query = np.array(vector(f"question {number}"), np.float32)
            query /= np.linalg.norm(query)
            asked = (QueryVectors.one(query, model), MEMORY, Scope("a"), Window(0, 1_000_000), -1.0, 25)
            (found,) = store.search(*asked)
            with closing(apsw.Connection(database)) as conn:
                (expected,) = plain.search(conn, *asked)
            assert found == expected and len(found) == min(25, held)
        return held
    finally:
        db.close()
        store.close()
