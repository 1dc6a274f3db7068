"""An acknowledged write stays, whatever happens to the daemon; a lost answer can be asked for again.

Contract: writes.durable, wire.keys.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import threading
from contextlib import closing

import pytest

from cpersona_cli.wire import client, control
from cpersona_daemon.shared.settings import load

FULL = os.environ.get("CPERSONA_STRESS") == "full"


def rows(database: str) -> dict[int, str]:
    with closing(sqlite3.connect(database)) as conn:
        assert conn.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return dict(conn.execute("SELECT id, content FROM memories"))


class Writers:
    """Threads that store through connections of their own until told to stop, and remember what was acknowledged."""

    def __init__(self, environ: dict[str, str], threads: int, turn: int = 0):
        self.acknowledged: dict[int, str] = {}
        self.asked = 0
        self.failed: list[str] = []
        self._enough, self._some, self._guard = threading.Event(), threading.Event(), threading.Lock()
        self._environ, self._turn = environ, turn
        self._threads = [threading.Thread(target=self._work, args=(number,)) for number in range(threads)]

    def __enter__(self) -> Writers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error) -> None:
        self._enough.set()
        for thread in self._threads:
            thread.join(120)

    def wait_for(self, count: int) -> None:
        """Wait until so many writes more are acknowledged."""
        target = len(self.acknowledged) + count
        while len(self.acknowledged) < target and any(t.is_alive() for t in self._threads):
            self._some.wait(5)
            self._some.clear()

    def _work(self, number: int) -> None:
        try:
            with client.connect(load(self._environ), self._environ) as connection:
                turn = 0
                while not self._enough.is_set():
                    content = f"{self._turn}-{number}-{turn}"
                    turn += 1
                    with self._guard:
                        self.asked += 1
                    answer, code = connection.call("store", {"agent_id": "a", "content": content})
                    if code is not None or answer["result"] != "stored":
                        self.failed.append(f"{content}: {code} {answer}")
                        continue
                    self.acknowledged[answer["id"]] = content
                    self._some.set()
        except client.CallFailed as error:
            self.failed.append(f"{error.code}: {error.message}")


def test_sigterm_under_load_loses_no_acknowledged_write(home, daemon):
    with Writers(home, 6) as writers:
        for _ in range(4):
            writers.wait_for(60)
            note = control.find_daemon(load(home), home)
            if note is not None and note.get("pid"):
                os.kill(note["pid"], signal.SIGTERM)
    assert writers.failed == []
    assert control.stop_daemon(load(home), 30, home)
    kept = rows(daemon.places.db)
    assert {id: kept.get(id) for id in writers.acknowledged} == writers.acknowledged
    # Every store was asked once more where its answer was lost, and still is there once.
    assert len(kept) == writers.asked


@pytest.mark.stress
def test_kill_9_at_random_moments_loses_no_acknowledged_write(home, daemon):
    moments = random.Random(9)
    with Writers(home, 4) as writers:
        for _ in range(25 if FULL else 5):
            writers.wait_for(moments.randrange(20, 160))
            note = control.find_daemon(load(home), home)
            if note is not None and note.get("pid"):
                os.kill(note["pid"], signal.SIGKILL)
        writers.wait_for(50)
    assert writers.failed == []
    assert control.stop_daemon(load(home), 30, home)
    kept = rows(daemon.places.db)
    assert {id: kept.get(id) for id in writers.acknowledged} == writers.acknowledged
    assert len(kept) == writers.asked


def test_a_key_is_remembered_across_a_restart(home, daemon):
    def ask(key: str) -> dict:
        daemon.send("store", {"agent_id": "a", "content": "once"}, key=key)
        return daemon.receive()[1]

    first = ask("k1")
    os.kill(daemon.hello["pid"], signal.SIGKILL)
    assert ask("k1") == first and first["result"] == "stored"
    assert ask("k2")["result"] == "skipped"


def test_a_stop_answers_what_was_under_way(home, daemon, connect):
    """A request that has arrived is finished and answered before the daemon leaves."""
    with closing(sqlite3.connect(daemon.places.db, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        daemon.send("store", {"agent_id": "a", "content": "under way"})
        second = connect()
        while second.call("daemon_status", {})[0]["writes_in_flight"] == 0:
            pass
        assert second.call("daemon_stop", {})[0]["stopping"] is True
        other.execute("ROLLBACK")
    pid = daemon.hello["pid"]
    assert daemon.receive()[1]["result"] == "stored"
    assert daemon.hello["pid"] == pid  # the same daemon's answer, not a successor's


def test_a_request_that_may_not_be_repeated_is_not_asked_again(home, daemon):
    daemon.call("store", {"agent_id": "a", "content": "x"})
    with closing(sqlite3.connect(daemon.places.db, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        daemon.send("delete_agent_data", {"agent_id": "a"})
        os.kill(daemon.hello["pid"], signal.SIGKILL)
        with pytest.raises(client.CallFailed) as failure:
            daemon.receive()
        other.execute("ROLLBACK")
    assert failure.value.exit_status == 4 and "not known" in failure.value.message
