"""Importing JSONL with vectors into an empty database, beside one thread that inserts the same rows by itself.

    python tests/benchmarks/bench_import.py                  100,000 rows of 768 dimensions, a file of 500 MB
    python tests/benchmarks/bench_import.py --rows 20000

``plain`` is memories, postings and vectors written row by row, a thousand a commit, nothing parsed and no index kept.
Another client stores a row every 20 ms meanwhile; how long it waits is a row of its own.
"""

from __future__ import annotations

import base64
import sys
import threading
import time
from pathlib import Path

import apsw
import msgspec

sys.path.insert(0, str(Path(__file__).parent))
from common import Report, Timing, anonymous_mb, once, parser
from stores import DIM, ask, created, environment, pid_of, processor_seconds, row_of, serving, workplace
from workload import Embedder, records

from cpersona_cli.wire import client
from cpersona_daemon.shared.settings import load
from cpersona_daemon.storage import memories, schema
from cpersona_daemon.storage.transaction import Transaction

LEAST, GROWTH_MB = 6_000, 300


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--rows", type=int, default=100_000)
    arguments.add_argument("--dim", type=int, default=DIM)
    arguments.add_argument("--dir", help="where the file is kept; a temporary place otherwise")
    given = arguments.parse_args()
    report = Report("import", given.json)
    with workplace(given.dir) as place:
        file = written(place, given.rows, given.dim)
        directory = place / "imported"
        directory.mkdir(exist_ok=True)
        for old in directory.glob("t.db*"):
            old.unlink()
        with serving(environment(directory)) as connection:
            pid = pid_of(connection)
            used, before = processor_seconds(pid), anonymous_mb(pid)
            with watching(environment(directory), pid) as (waits, peak):
                answer, spent = once(lambda: ask(connection, "import_memories", input_path=str(file)))
            used = processor_seconds(pid) - used
        if answer["imported_memories"] != given.rows:
            raise SystemExit(answer)
        report.add(
            f"import, {given.rows:,} rows, {file.stat().st_size / 1e6:,.0f} MB",
            given.rows / spent * 1e3,
            "rows/s",
            by_itself(place, min(given.rows, 10_000), given.dim),
            at_least=LEAST,
            rows_per_cpu_second=round(given.rows / used),
        )
        report.add("growth of anonymous memory", max(peak) - before, "MB", target=GROWTH_MB)
        if waits:
            report.add("another client's store meanwhile", Timing(waits), target=500)
    report.finish()


def written(place: Path, rows: int, dim: int) -> Path:
    """Return an export of the workload; it is written when it is not there."""
    file = place / f"{rows}x{dim}.jsonl"
    if file.exists():
        return file
    embedder, encode = Embedder(dim), msgspec.json.Encoder().encode
    with open(file.with_suffix(".new"), "wb") as out:
        out.write(
            encode(
                {
                    "_type": "header",
                    "version": "cpersona-export/1.1",
                    "agent_id": "",
                    "exported_at": created(next(records(1))),
                    "memory_count": rows,
                }
            )
            + b"\n"
        )
        for number, record in enumerate(records(rows), 1):
            vector = base64.b64encode(embedder.one(record["content"]).tobytes()).decode()
            out.write(
                encode(
                    {
                        "_type": "memory",
                        "id": number,
                        "agent_id": record["agent_id"],
                        "msg_id": record["msg_id"],
                        "content": record["content"],
                        "source": record["source"],
                        "timestamp": record["timestamp"],
                        "metadata": {},
                        "created_at": created(record),
                        "project_id": record["project_id"],
                        "channel": record["channel"],
                        "locked": 0,
                        "recall_count": 0,
                        "last_recalled_at": None,
                        "embedding_b64": vector,
                        "embedding_model": Embedder.MODEL,
                    }
                )
                + b"\n"
            )
    file.with_suffix(".new").rename(file)
    return file


class watching:
    """While inside, another client stores now and then and the daemon's memory is looked at: ([ms], [MB])."""

    def __init__(self, environ: dict[str, str], pid: int):
        self._environ, self._pid, self._end = environ, pid, threading.Event()
        self._waits, self._peak = [], [anonymous_mb(pid)]
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self._waits, self._peak

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        with client.connect(load(self._environ), self._environ) as connection:
            while not self._end.wait(0.02):
                self._waits.append(
                    once(lambda: ask(connection, "store", agent_id="another", content=f"meanwhile {len(self._waits)}"))[
                        1
                    ]
                )
                self._peak.append(anonymous_mb(self._pid))


def by_itself(place: Path, rows: int, dim: int) -> float:
    """Return the rows a second that one thread writes row by row."""
    path = place / "by-itself.db"
    for old in place.glob("by-itself.db*"):
        old.unlink()
    conn = apsw.Connection(str(path))
    conn.execute(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA cache_size = -16000"
    )
    schema.migrate(conn, time.time())
    embedder = Embedder(dim)
    ready = [row_of(record, embedder) for record in records(rows, seed=2)]

    def write() -> None:
        for at in range(0, rows, 1000):
            conn.execute("BEGIN IMMEDIATE")
            tx = Transaction(conn, time.time())
            for row in ready[at : at + 1000]:
                conn.execute(
                    "INSERT INTO memory_vectors VALUES (?, ?, ?)", (memories.insert(tx, row.new), row.model, row.vector)
                )
            conn.execute("COMMIT")

    spent = once(write)[1]
    conn.close()
    return rows / spent * 1e3


if __name__ == "__main__":
    main()
