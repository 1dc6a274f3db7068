"""Storing one memory, acknowledged durable: one client at a time, then 64 at once, beside SQLite by itself.

    python tests/benchmarks/bench_store.py                        1,000 to 237,654 rows
    python tests/benchmarks/bench_store.py --rows 100000 --dir D  keep the databases in D for the next run

``plain`` is the commit of the same kind of row with its indexes and postings by one thread on a copy of the same
database, synchronous=FULL, taking turns with the daemon. With 64 connections it is what that thread inserts when
64 rows share a commit; the thread has the machine to itself then, while the daemon shares it with its 64 clients.
"""

from __future__ import annotations

import asyncio
import struct
import sys
import time
from pathlib import Path

import apsw

sys.path.insert(0, str(Path(__file__).parent))
import msgspec
from common import Report, Timing, numbers, once, parser
from stores import ask, copied, filled, pid_of, processor_seconds, serving, workplace
from workload import records

from cpersona_daemon.shared import fields
from cpersona_daemon.shared.paths import places
from cpersona_daemon.shared.settings import load
from cpersona_daemon.storage import memories
from cpersona_daemon.storage.transaction import Transaction

CONNECTIONS = 64
_pack, _unpack = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder().decode


class Plain:
    """One thread with a connection of its own: a row, its indexes and its postings, then a commit."""

    def __init__(self, path: str):
        self.conn = apsw.Connection(path)
        self.conn.execute(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA cache_size = -16000"
        )

    def commit(self, *rows: memories.NewMemory) -> None:
        self.conn.execute("BEGIN IMMEDIATE")
        tx = Transaction(self.conn, time.time())
        for row in rows:
            memories.insert(tx, row)
        self.conn.execute("COMMIT")


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--rows", type=numbers, default=[1_000, 10_000, 100_000, 237_654])
    arguments.add_argument("--stores", type=int, default=200)
    arguments.add_argument("--together", type=int, default=6_000, help="stores of the run with 64 connections")
    arguments.add_argument("--dir", help="where databases are kept; a temporary place otherwise")
    given = arguments.parse_args()
    report = Report("store", given.json)
    with workplace(given.dir) as place:
        for rows in given.rows:
            environ = filled(place, rows)
            plain = Plain(copied(environ, place, "plain")["CPERSONA_DB_PATH"])
            served = copied(environ, place, "served")
            fresh = records(10**9, seed=rows)
            with serving(served) as connection:
                alone(report, connection, plain, fresh, rows, given.stores)
                many(report, connection, served, plain, fresh, rows, given.together)
            plain.conn.close()
    report.finish()


def alone(report: Report, connection, plain: Plain, fresh, rows: int, stores: int) -> None:
    times: dict[str, list[float]] = {"with an id": [], "without": [], "plain": []}
    for turn in range(-5, stores):
        for kind in times:
            record = next(fresh)
            params = {
                name: record[name] for name in ("agent_id", "project_id", "channel", "content", "source", "timestamp")
            }
            if kind == "plain":
                row = memories.NewMemory(
                    record["agent_id"],
                    record["content"],
                    record["project_id"],
                    record["channel"],
                    record["msg_id"],
                    timestamp=record["timestamp"],
                )
                spent = once(lambda: plain.commit(row))[1]
            else:
                spent = once(
                    lambda: ask(connection, "store", **params, id=record["msg_id"] if kind == "with an id" else "")
                )[1]
            if turn >= 0:
                times[kind].append(spent)
    reference = Timing(times.pop("plain"))
    for kind, spent in times.items():
        report.add(
            f"store {kind}, {rows:,} rows", Timing(spent), reference=reference, target=round(reference.median + 0.5, 2)
        )


def many(report: Report, connection, environ: dict[str, str], plain: Plain, fresh, rows: int, together: int) -> None:
    some = [next(fresh) for _ in range(together)]
    others = [next(fresh) for _ in range(together)]
    news = [
        memories.NewMemory(
            r["agent_id"], r["content"], r["project_id"], r["channel"], r["msg_id"], timestamp=r["timestamp"]
        )
        for r in others
    ]
    used = processor_seconds(pid_of(connection))
    _, daemon = once(lambda: asyncio.run(storm(str(places(load(environ)).socket), some)))
    used = processor_seconds(pid_of(connection)) - used
    _, by_itself = once(lambda: [plain.commit(*news[at : at + CONNECTIONS]) for at in range(0, len(news), CONNECTIONS)])
    singles = [
        memories.NewMemory(r["agent_id"], r["content"], r["project_id"], r["channel"], r["msg_id"])
        for r in (next(fresh) for _ in range(300))
    ]
    _, one_by_one = once(lambda: [plain.commit(row) for row in singles])
    # Rates, so that more is better: the least it may be stands in the note.
    report.add(
        f"{CONNECTIONS} connections, {rows:,} rows",
        together / daemon * 1e3,
        "rows/s",
        together / by_itself * 1e3,
        None,
        ratio_at_least=0.5,
        one_thread_a_commit_each=round(len(singles) / one_by_one * 1e3),
        daemon_cpu_us=round(used / together * 1e6),
    )


async def storm(path: str, some: list[dict]) -> None:
    """Store all of the records over 64 connections, each asking for the next one when it has its answer."""
    waiting = iter(enumerate(some))

    async def client() -> None:
        reader, writer = await asyncio.open_unix_connection(path)

        async def receive() -> dict:
            (size,) = struct.unpack(">I", await reader.readexactly(4))
            return _unpack(await reader.readexactly(size))

        def send(body: dict) -> None:
            raw = _pack(body)
            writer.write(struct.pack(">I", len(raw)) + raw)

        send({"protocol": fields.PROTOCOL, "version": "bench"})
        await receive()
        for number, record in waiting:
            params = {
                name: record[name] for name in ("agent_id", "project_id", "channel", "content", "source", "timestamp")
            } | {"id": record["msg_id"]}
            send({"id": number, "method": "store", "params": params, "idempotency_key": f"{time.time_ns()}-{number}"})
            answer = await receive()
            if answer["response"].get("result") != "stored":
                raise SystemExit(answer)
        writer.close()

    await asyncio.gather(*(client() for _ in range(CONNECTIONS)))


if __name__ == "__main__":
    main()
