"""The daemon's own scan beside Qdrant, in one run: filling, recall over the socket, recall@10, memory.

    python tests/benchmarks/bench_engines.py                       100,000 and 1,000,000 rows of 384 dimensions
    python tests/benchmarks/bench_engines.py --rows 100000         one size
    python tests/benchmarks/bench_engines.py --url http://host     a server instead of the engine in a folder
    python tests/benchmarks/bench_engines.py --dir D               keep the databases in D for the next run

``plain`` is the local scan in the same run, and what is timed has a row of it besides, for its p95. Recall is rank
fusion over the whole store, the embedder excluded: each question is asked once before it counts. Filtered means the
newest 1 % or 10 % of the rows by their instant. ``vectors`` is what an engine takes for the same question by itself,
without words: for that it is opened in this process once the daemon has left it. recall@10 is the share of the exact
best ten rows of an agent among the ten that it returns. Memory is that of the daemon and of the engine's process
together.
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from common import Report, Timing, anonymous_mb, numbers, once, parser
from stores import ask, copied, embed_server, filled, pid_of, serving, workplace
from workload import Embedder, questions

from cpersona_daemon.model.clock import SystemClock
from cpersona_daemon.model.kinds import MEMORY
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.shared.paths import places
from cpersona_daemon.shared.settings import load
from cpersona_daemon.storage import vectors as stored
from cpersona_daemon.storage.database import Database
from cpersona_daemon.vectors import choice
from cpersona_daemon.vectors.backend import Ask, QueryVectors, Window

AGENT, DIM, EVERYTHING, K = "agent.alpha", 384, 10**9, 10
SHARES = {"1 %": 0.01, "10 %": 0.1}


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--rows", type=numbers, default=[100_000, 1_000_000])
    arguments.add_argument("--questions", type=int, default=40)
    arguments.add_argument("--url", help="address of a Qdrant server, whose memory is not seen from here")
    arguments.add_argument("--dir", help="where databases are kept; a temporary place otherwise")
    given = arguments.parse_args()
    report = Report("engines", given.json)
    with workplace(given.dir) as place, embed_server(DIM) as embedder:
        for rows in given.rows:
            source = filled(place, rows, DIM)
            whole = {"CPERSONA_RECALL_MODE": "rrf", "CPERSONA_MAX_MEMORIES": str(EVERYTHING), **embedder}
            here = measured(copied(source, place, "engines", **whole), rows, given.questions)
            url = given.url or f"path:{place / 'engines-qdrant'}"
            shutil.rmtree(place / "engines-qdrant", ignore_errors=True)
            elsewhere = {"CPERSONA_VECTOR_SEARCH_MODE": "qdrant", "CPERSONA_QDRANT_URL": url}
            there = measured(copied(source, place, "engines", **whole, **elsewhere), rows, given.questions)
            for what, value in there.items():
                unit = "ms" if isinstance(value, Timing) else UNITS[what]
                report.add(f"{rows:,} rows, {what}", value, unit, reference=here[what])
                if isinstance(value, Timing):
                    report.add(f"{rows:,} rows, {what}, own scan", here[what], unit)
    report.finish()


UNITS = {
    "filled": "rows a second",
    "anonymous memory": "MB",
    "memory with files": "MB",
    "recall@10": "",
    "recall@10, newest 1 %": "",
}


def measured(environ: dict[str, str], rows: int, count: int) -> dict[str, Any]:
    """Return everything that is measured of a database served in a mode, by what it is called."""
    out: dict[str, Any] = {}
    with serving(environ) as connection:
        begun = time.perf_counter()
        ask(connection, "daemon_status")
        while not level(status := ask(connection, "daemon_status")):
            time.sleep(0.2)
        if "outbox" not in status:  # the files of the index were there: build them anew, as an engine is filled
            begun = time.perf_counter()
            ask(connection, "reindex", vectors=True)
        out["filled"] = rows / (time.perf_counter() - begun)
        asked = [text for text, _ in questions(count)]
        for since, name in scopes(environ):
            narrowed = {"since": since} if since else {}
            for text in asked:
                ask(connection, "recall", agent_id=AGENT, query=text, limit=K, **narrowed)
            out[f"recall{name}"] = Timing(
                [
                    once(lambda: ask(connection, "recall", agent_id=AGENT, query=text, limit=K, **narrowed))[1]
                    for text in asked
                ]
            )
        out["store"] = Timing(
            [
                once(lambda: ask(connection, "store", agent_id="somebody.else", content=f"between questions {n}"))[1]
                for n in range(count)
            ]
        )
        while not level(ask(connection, "daemon_status")):
            time.sleep(0.2)
        pids = [pid_of(connection), *children(pid_of(connection))]
        out["anonymous memory"] = sum(anonymous_mb(pid) or 0.0 for pid in pids)
        out["memory with files"] = sum(resident_mb(pid) for pid in pids)
    return out | alone(environ, count)


def level(status: dict[str, Any]) -> bool:
    outbox = status.get("outbox") or {}
    ready = all(index["state"] == "ready" for index in status["vectors"].values())
    return ready and not outbox.get("pending") and not outbox.get("filling")


def scopes(environ: dict[str, str]) -> list[tuple[str, str]]:
    """Return the instant from which on a share of the agent's rows was stored, and the name of that; '' for all."""
    with stored.reader(environ["CPERSONA_DB_PATH"]) as conn:
        ((count,),) = conn.execute("SELECT count(*) FROM memories WHERE agent_id = ?", (AGENT,)).fetchall()
        found = [("", "")]
        for name, share in SHARES.items():
            place = stored.at_position(conn, MEMORY, Scope(AGENT), int(count * share))
            assert place is not None
            found.append((place[0], f", newest {name}"))
        return found


def alone(environ: dict[str, str], count: int) -> dict[str, Any]:
    """Return how long the engine takes by itself, and how many of the exact best rows it returns."""
    settings = load(environ)
    db = Database(settings.db_path, SystemClock())
    db.open()
    vectors = choice.backend(settings, places(settings, environ), SystemClock())
    vectors.open(db)
    out: dict[str, Any] = {}
    try:
        embedder = Embedder(DIM)
        asked = [embedder.embed([text])[0] for text, _ in questions(count)]
        for since, name in scopes(environ):
            scope, times, right = Scope(AGENT, since=since), [], 0
            exact = best(settings.db_path, scope, asked)
            for query, expected in zip(asked, exact, strict=True):
                one = Ask(QueryVectors.one(query, Embedder.MODEL), MEMORY, scope, Window(0, EVERYTHING), -1.0, K)
                found, took = once(lambda: searched(vectors.engine, one))
                times.append(took)
                right += len({hit.id for hit in found} & expected)
            out[f"vectors{name}"] = Timing(times)
            if f"recall@10{name}" in UNITS:
                out[f"recall@10{name}"] = right / (K * len(asked))
    finally:
        vectors.leave()
        db.close()
        vectors.close()
    return out


def searched(engine: Any, one: Ask) -> list[Any]:
    """Ask an engine, here or elsewhere."""
    if engine.capabilities.elsewhere:
        return engine.ask([one], "", time.monotonic() + 60)[0][0]
    return engine.search(*one)[0]


def best(path: str, scope: Scope, queries: list[np.ndarray]) -> list[set[int]]:
    """Return the ids of the exact best ten rows of a scope for each question, by float64 products of all of them."""
    kept: list[list[tuple[float, int]]] = [[] for _ in queries]
    with stored.reader(path) as conn:
        order = stored.scan_order(conn, MEMORY, scope)
        for at in range(0, len(order), 20_000):
            puts = stored.with_vectors(conn, MEMORY, order[at : at + 20_000])
            block = np.array([put.vector for put in puts], np.float64)
            for so_far, query in zip(kept, queries, strict=True):
                scores = block @ query.astype(np.float64)
                top = np.argsort(-scores, kind="stable")[:K]
                so_far += [(float(scores[i]), puts[i].id) for i in top.tolist()]
                so_far.sort(key=lambda pair: -pair[0])
                del so_far[K:]
    return [{row_id for _, row_id in so_far} for so_far in kept]


def children(pid: int) -> list[int]:
    """Return the processes that a daemon started: the engine's, where it has one."""
    return [int(child) for task in Path(f"/proc/{pid}/task").glob("*/children") for child in task.read_text().split()]


def resident_mb(pid: int) -> float:
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS"))


if __name__ == "__main__":
    main()
