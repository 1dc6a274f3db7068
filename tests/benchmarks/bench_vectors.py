"""The vector scan: search, open, rebuild, append and memory, beside the plain numpy scan of the same rows.

    python tests/benchmarks/bench_vectors.py                          10,000, 100,000 and 237,654 rows of 768 dimensions
    python tests/benchmarks/bench_vectors.py --rows 1000000 --dim 384 a million rows, window = all
    python tests/benchmarks/bench_vectors.py --json out.json

``plain`` is numpy's float32 product over the same window and the choice of the best ten: approximate, without a
scope. Equality is checked against float64 scores of every row of the window, ties by scan position.
The rows imitate shared/bench/corpus.py's embedder: a topic, a text of its own, a direction that all share, noise.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import apsw
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from common import Report, anonymous_mb, measure, numbers, once, parser

from cpersona_daemon.model.changes import VectorPut
from cpersona_daemon.model.clock import SystemClock
from cpersona_daemon.model.kinds import MEMORY
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.shared.paths import Places
from cpersona_daemon.storage.database import Database
from cpersona_daemon.storage.generations import Generation
from cpersona_daemon.vectors.backend import QueryVectors, Window
from cpersona_daemon.vectors.fallback import WithFallback
from cpersona_daemon.vectors.local.engine import LocalEngine

AGENT, FLOOR, K, WINDOW, REACH = "a", 0.15, 10, 10_000, 200_000
PROJECTS = ("", "", "web", "infra", "home", "research")
EVERYTHING = 10**9


class Embeddings:
    """Unit vectors like those of the common workload, the same for the same seed."""

    def __init__(self, dim: int):
        self.rng, self.dim = np.random.default_rng(99), dim
        self.topics, self.shared = self._directions(20), self._directions(1)[0]

    def _directions(self, count: int) -> np.ndarray:
        found = self.rng.standard_normal((count, self.dim), dtype=np.float32)
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    def some(self, count: int, near: np.ndarray | None = None) -> np.ndarray:
        """Return ``count`` vectors; queries lie ``near`` a text."""
        text = (
            0.55 * self.topics[self.rng.integers(20, size=count)] + 0.8 * self._directions(count)
            if near is None
            else near
        )
        rows = text + 0.55 * self.shared + 0.35 * self._directions(count)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def stamp(row: int) -> str:
    """Two years at two minutes a row, some rows sharing a second with their neighbour."""
    return str(np.datetime64("2024-11-01T00:00:00") + np.timedelta64(row // 3 * 120, "s")).replace("T", " ")


def fill(path: str, vectors: np.ndarray) -> None:
    """Write the rows as one import would leave them, without an index."""
    conn = apsw.Connection(path)
    conn.execute("PRAGMA synchronous = OFF; PRAGMA cache_size = -65536")
    for at in range(0, len(vectors), 20_000):
        ids = range(at + 1, min(at + 20_000, len(vectors)) + 1)
        with conn:
            conn.executemany(
                (
                    "INSERT INTO memories (id, agent_id, project_id, channel, source_id, created_at, content_key, "
                    "content) VALUES (?,?,?,'',?,?,?,?)"
                ),
                (
                    (i, AGENT, PROJECTS[i % 6], "user:mina", stamp(i), hashlib.md5(b"%d" % i).digest(), f"memory {i}")
                    for i in ids
                ),
            )
            conn.executemany(
                "INSERT INTO memory_vectors VALUES (?, 'bench', ?)", ((i, vectors[i - 1].tobytes()) for i in ids)
            )
    conn.close()


def opened(path: str) -> tuple[Database, WithFallback]:
    db, store = (Database(path, SystemClock()), WithFallback(LocalEngine(Places(path, "", ""))))
    db.open()
    store.open(db)
    db.on_commit = store.apply
    return db, store


def plain_best(
    vectors: np.ndarray, queries: np.ndarray, start: int, stop: int, rows: np.ndarray
) -> list[list[tuple[int, float]]]:
    """Return (id, float64 score) of the best rows at scan positions [start, stop) of ``rows``, for each query."""
    taken = rows[start:stop]
    rough = np.empty((len(queries), len(taken)))
    for at in range(0, len(taken), 8192):
        rough[:, at : at + 8192] = queries.astype(np.float64) @ vectors[taken[at : at + 8192]].T.astype(np.float64)
    answers = []
    for query, scores in zip(queries.astype(np.float64), rough, strict=True):
        edge = np.partition(scores, -K)[-K] if len(scores) > K else -2.0
        near = np.flatnonzero(scores >= max(edge, FLOOR) - 1e-9)  # two ways of adding the same products differ by less
        sure = [(float((vectors[taken[place]].astype(np.float64) * query).sum()), place) for place in near.tolist()]
        best = sorted((-score, place) for score, place in sure if score >= FLOOR)[:K]
        answers.append([(int(taken[place]) + 1, -score) for score, place in best])
    return answers


def in_scan_order(count: int, project: str | None = None) -> np.ndarray:
    """Return row numbers (id - 1) newest first, ids ascending within a second."""
    ids = np.arange(1, count + 1)
    if project is not None:
        ids = ids[[PROJECTS[i % 6] in (project, "") for i in ids.tolist()]]
    return ids[np.lexsort((ids, -(ids // 3)))] - 1


def run(report: Report, count: int, dim: int, checks: int, directory: Path) -> None:
    made = Embeddings(dim)
    vectors = np.concatenate([made.some(min(20_000, count - at)) for at in range(0, count, 20_000)])
    queries = made.some(max(checks, 40), near=vectors[made.rng.integers(count, size=max(checks, 40))])
    path = str(directory / f"{count}.db")
    db = Database(path, SystemClock())
    db.open()
    db.close()
    fill(path, vectors)
    label = f"{count:,} x {dim}"

    (db, store), first = once(lambda: opened(path))
    report.add(f"{label}: rebuild from the database", first)
    db.close()
    _, closing = once(store.close)
    report.add(f"{label}: close", closing)
    (db, store), again = once(lambda: opened(path))
    origin = store.status()[MEMORY]["origin"]
    if origin != "file":
        raise SystemExit(f"the index was {origin}, not used again")
    report.add(f"{label}: open", again, target=100 if count <= 100_000 else None)

    scan = iter(range(10**9))

    def search(start: int, stop: int, scope: Scope | None = None):
        asked = QueryVectors.one(queries[next(scan) % len(queries)], "bench")
        return store.search(asked, MEMORY, scope or Scope(AGENT), Window(start, stop), FLOOR, K)[0]

    def recall(stop: int):
        return search(0, WINDOW), search(WINDOW, stop)

    def plain(size: int):
        scores = vectors[max(0, count - size) :] @ queries[next(scan) % len(queries)]
        return np.argpartition(scores, len(scores) - K)[len(scores) - K :]

    alone = subprocess.run([sys.executable, __file__, "--only-open", path], check=True, capture_output=True, text=True)
    bare, full = json.loads(alone.stdout)
    if full is not None:
        report.add(
            f"{label}: anonymous memory, open and searched",
            full,
            "MB",
            reference=bare,
            target=250 if count <= 100_000 else None,
        )

    _, cold = once(lambda: search(0, WINDOW))
    report.add(f"{label}: first search, window 10,000", cold)
    for what, work, size, target in (
        ("window 10,000", lambda: search(0, WINDOW), WINDOW, 1.5),
        ("window 10,000, one project", lambda: search(0, WINDOW, Scope(AGENT, "web")), WINDOW, None),
        ("reach 200,000 (near and far)", lambda: recall(REACH), REACH, 20),
        ("window = all", lambda: search(0, EVERYTHING), count, 100 if count == 1_000_000 else None),
        ("window = all, one project", lambda: search(0, EVERYTHING, Scope(AGENT, "web")), count, None),
    ):
        if size <= count or what.startswith("reach"):
            report.add(
                f"{label}: {what}", measure(work), reference=measure(lambda size=size: plain(size)), target=target
            )
    wrong = 0
    for project, start, stop in ((None, 0, WINDOW), (None, WINDOW, REACH), (None, 0, EVERYTHING), ("web", 0, WINDOW)):
        expected = plain_best(vectors, queries[:checks], start, stop, in_scan_order(count, project))
        for query, answer in zip(queries[:checks], expected, strict=True):
            found = store.search(
                QueryVectors.one(query, "bench"), MEMORY, Scope(AGENT, project), Window(start, stop), FLOOR, K
            )[0]
            wrong += [hit.id for hit in found] != [row for row, _ in answer] or not np.allclose(
                [hit.score for hit in found], [s for _, s in answer], rtol=0, atol=1e-12
            )
    report.add(f"{label}: answers unlike plain, of {4 * checks}", float(wrong), "answers", target=0)

    fresh = made.some(300)
    reached = store.engine._parts["mem"].index.generation
    step = iter(range(300))

    def append() -> None:
        nonlocal reached
        n = next(step)
        reached = Generation(reached.number + 1, n.to_bytes(8), reached.stamp)
        store.apply(
            [VectorPut(MEMORY, count + 1 + n, stamp(count + n), AGENT, "", "", None, "bench", fresh[n])], reached
        )

    report.add(f"{label}: one row into the index", measure(append, 250, 20))
    db.close()
    store.close()


def only_open(path: str) -> None:
    """Print, as JSON, the anonymous memory of a process before it opens an index and after it has searched all of
    it.
    """
    before = anonymous_mb()
    db, store = opened(path)
    query = store.engine._parts["mem"].index.view.rows(np.array([0]))[0]
    for stop in (WINDOW, EVERYTHING):
        store.search(QueryVectors.one(query, "bench"), MEMORY, Scope(AGENT), Window(0, stop), FLOOR, K)[0]
    print(json.dumps([before, anonymous_mb()]))
    db.close()
    store.close()


def main() -> None:
    if sys.argv[1:2] == ["--only-open"]:
        only_open(sys.argv[2])
        return
    arguments = parser(__doc__)
    arguments.add_argument("--rows", type=numbers, default=[10_000, 100_000, 237_654])
    arguments.add_argument("--dim", type=int, default=768)
    arguments.add_argument(
        "--checks", type=int, default=200, help="random queries whose answers must equal the plain scan's (default 200)"
    )
    arguments.add_argument(
        "--directory",
        help="where the databases are made (a temporary directory by default; 1.5 times the vectors' bytes, twice)",
    )
    given = arguments.parse_args()
    report = Report("vectors", given.json)
    for count in given.rows:
        directory = Path(tempfile.mkdtemp(prefix="bench-vectors-", dir=given.directory))
        try:
            run(report, count, given.dim, given.checks, directory)
        finally:
            shutil.rmtree(directory)
    report.finish()
    if any(row["unit"] == "answers" and row["median"] for row in report.rows):
        raise SystemExit("some answers differ from the plain scan's")


if __name__ == "__main__":
    main()
