"""Daemons killed while sixteen clients write in every way: what was acknowledged stands, once, and nothing else does.

The full form kills five hundred times, the short one a dozen.

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
from stress_kit import FULL

from cpersona_cli.wire import client, control
from cpersona_daemon.shared.settings import load

pytestmark = pytest.mark.stress

KILLS, CLIENTS = (500, 16) if FULL else (12, 16)
# The full form's yardstick: with fewer acknowledged writes the kills met an idle daemon.
LEAST_WRITES = 20 * KILLS


class Book:
    """What one client was told about its own agent's rows; ``open`` holds what may or may not have been done."""

    def __init__(self, number: int):
        self.agent = f"client {number}"
        self.memories: dict[int, tuple[str, int]] = {}
        self.episodes: dict[int, str] = {}
        self.entities: set[str] = set()
        self.profile = ""
        self.open: set[tuple] = set()
        self.done = 0


class Clients:
    """Threads that write through connections of their own until told to end."""

    def __init__(self, environ: dict[str, str]):
        self._environ, self._end = environ, threading.Event()
        self._news = threading.Condition()
        self.books = [Book(number) for number in range(CLIENTS)]
        self.problems: list[str] = []
        self._threads = [
            threading.Thread(target=self._work, args=(book, random.Random(at))) for at, book in enumerate(self.books)
        ]

    def __enter__(self) -> Clients:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()

    @property
    def done(self) -> int:
        return sum(book.done for book in self.books)

    def wait_for(self, more: int) -> None:
        with self._news:
            wanted = self.done + more
            while self.done < wanted and not self.problems and any(thread.is_alive() for thread in self._threads):
                self._news.wait(1)

    def _work(self, book: Book, chance: random.Random) -> None:
        connection = None
        turn = 0
        while not self._end.is_set() and not self.problems:
            turn += 1
            step = chance.choice(STEPS)
            try:
                if connection is None:
                    connection = client.connect(load(self._environ), self._environ)
                step(book, chance, turn, connection)
            except client.CallFailed as error:
                connection = None
                if error.code not in ("unreachable", "timed_out", "busy", "shutting_down"):
                    self.problems.append(f"{step.__name__}: {error.code}: {error.message}")
                continue
            except AssertionError as error:
                self.problems.append(f"{step.__name__}: {error}")
            with self._news:
                book.done += 1
                self._news.notify_all()
        if connection is not None:
            connection.close()


def asked(book: Book, connection: client.Connection, what: tuple, method: str, **params) -> dict:
    """Return a write's answer; while it is under way, and where it stays without one, ``what`` is open."""
    book.open.add(what)
    answer, code = connection.call(method, {"agent_id": book.agent, **params})
    assert code is None, (method, params, answer)
    book.open.discard(what)
    return answer


def store(book, chance, turn, connection):
    text = f"{book.agent} turn {turn} " + chance.choice(("short", "long " * 300, "日本語 " * 20))
    text = text.strip()
    answer = asked(
        book, connection, ("text", text), "store", content=text, id=f"key {turn}" if turn % 3 else "", lock=False
    )
    assert answer["result"] == "stored", answer
    book.memories[answer["id"]] = text, 0


def store_in_place(book, chance, turn, connection):
    text = f"{book.agent} in place {turn}"
    there = [number for number, (content, locked) in book.memories.items() if "in place" in content and not locked]
    what = ("memory", there[0]) if there else ("text", text)
    answer = asked(book, connection, what, "store", content=text, id="in place", on_conflict="update")
    assert answer["result"] in ("stored", "updated"), answer
    book.memories[answer["id"]] = text, 0


def some(book, chance, locked):
    rows = [number for number, row in book.memories.items() if row[1] == locked and ("memory", number) not in book.open]
    return chance.choice(rows) if rows else None


def update(book, chance, turn, connection):
    if (number := some(book, chance, 0)) is not None and "in place" not in book.memories[number][0]:
        text = f"{book.agent} updated at {turn}"
        asked(book, connection, ("memory", number), "update_memory", memory_id=number, content=text)
        book.memories[number] = text, 0


def delete(book, chance, turn, connection):
    if (number := some(book, chance, 0)) is not None:
        asked(book, connection, ("memory", number), "delete_memory", memory_id=number)
        del book.memories[number]


def lock(book, chance, turn, connection):
    if (number := some(book, chance, 0)) is not None and "in place" not in book.memories[number][0]:
        asked(book, connection, ("memory", number), "lock_memory", memory_id=number)
        book.memories[number] = book.memories[number][0], 1


def unlock(book, chance, turn, connection):
    if (number := some(book, chance, 1)) is not None:
        asked(book, connection, ("memory", number), "unlock_memory", memory_id=number)
        book.memories[number] = book.memories[number][0], 0


def archive(book, chance, turn, connection):
    text = f"{book.agent} episode {turn}"
    book.episodes[asked(book, connection, ("text", text), "archive_episode", summary=text)["episode_id"]] = text


def drop_episode(book, chance, turn, connection):
    rows = [number for number in book.episodes if ("episode", number) not in book.open]
    if rows:
        number = chance.choice(rows)
        asked(book, connection, ("episode", number), "delete_episode", episode_id=number)
        del book.episodes[number]


def profile(book, chance, turn, connection):
    text = f"{book.agent} likes {turn}"
    asked(book, connection, ("profile",), "update_profile", profile=text)
    book.profile = text


def declare(book, chance, turn, connection):
    name = f"{book.agent} thing {turn}"
    asked(book, connection, ("entity", name), "declare_associations", associations={"entities": [{"name": name}]})
    book.entities.add(name)


STEPS = (store, store, store, store_in_place, update, delete, lock, unlock, archive, drop_episode, profile, declare)


def test_what_sixteen_clients_were_told_stands_after_many_kills(home):
    moments, kills = random.Random(3), 0
    with Clients(home) as clients:
        while kills < KILLS and not clients.problems:
            clients.wait_for(moments.randrange(1, 120))
            note = control.find_daemon(load(home), home)
            if note is not None and note.get("pid"):
                os.kill(note["pid"], signal.SIGKILL)
                kills += 1
    assert clients.problems == [] and kills == KILLS and clients.done >= LEAST_WRITES
    with client.connect(load(home), home) as connection:
        assert connection.call("check_health", {"deep": True})[0]["severity_summary"]["critical"] == 0
    assert control.stop_daemon(load(home), 30, home)
    with closing(sqlite3.connect(home["CPERSONA_DB_PATH"])) as conn:
        assert conn.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        for book in clients.books:
            there = {
                number: (text, locked)
                for number, text, locked in conn.execute(
                    "SELECT id, content, locked FROM memories WHERE agent_id = ?", (book.agent,)
                )
            }
            doubtful = {what[1] for what in book.open if what[0] == "memory"}
            unsure = {what[1] for what in book.open if what[0] == "text"}
            assert {n: row for n, row in book.memories.items() if n not in doubtful} == {
                n: row for n, row in there.items() if n not in doubtful and row[0] not in unsure
            }
            assert len({text for text, _ in there.values()}) == len(there), "a row was written twice"
            episodes = dict(conn.execute("SELECT id, summary FROM episodes WHERE agent_id = ?", (book.agent,)))
            doubtful = {what[1] for what in book.open if what[0] == "episode"}
            assert {n: text for n, text in book.episodes.items() if n not in doubtful} == {
                n: text for n, text in episodes.items() if n not in doubtful and text not in unsure
            }
            names = {name for (name,) in conn.execute("SELECT name FROM entities WHERE agent_id = ?", (book.agent,))}
            assert book.entities <= names <= book.entities | {what[1] for what in book.open if what[0] == "entity"}
            if book.profile and ("profile",) not in book.open:
                assert conn.execute("SELECT content FROM profiles WHERE agent_id = ?", (book.agent,)).fetchone() == (
                    book.profile,
                )
    print(
        f"{kills} kills, {clients.done} acknowledged operations, {sum(len(book.open) for book in clients.books)} "
        f"left open"
    )
