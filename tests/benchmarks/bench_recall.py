"""Recall in the daemon, over the socket, in rank fusion and as a blend, without the embedder's time, beside SQLite and
numpy by themselves.

    python tests/benchmarks/bench_recall.py                            1,000 to 237,654 rows of 768 dimensions
    python tests/benchmarks/bench_recall.py --rows 1000000 --dim 384   a million
    python tests/benchmarks/bench_recall.py --dir D                    keep the databases in D for the next run

``cpu`` is the daemon's processor time for one recall and the store before it. The question's vector is cached by a
first call that does not count; a row is stored before each call that does, so that nothing known about words is left
over from the first. ``plain`` is the full-text query by SQLite (bm25, best ten in scope) and numpy's float32 product
over the window. The rows of growth are how the cost grows with the table.

At the end a backlog of 20,000 rows is embedded by the builtin model while questions come, twenty a second at most: each
is new, so that its own embedding counts, and is asked once more. ``plain`` there is the same without a backlog.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from common import Report, Timing, measure, numbers, once, parser
from stores import (
    DIM,
    ask,
    copied,
    embed_server,
    filled,
    of_the_builtin_model,
    pid_of,
    processor_seconds,
    serving,
    workplace,
)
from workload import questions

from cpersona_cli.wire import client
from cpersona_daemon.embedding.builtin.embedder import BuiltinEmbedder
from cpersona_daemon.text.terms import parse_query

AGENT, WINDOW, REACH = "agent.alpha", 10_000, 200_000
TARGETS = {10_000: 8, 100_000: 15, 237_654: 45}
REACH_TARGET = 65
BACKLOG_ROWS, BACKLOG_TIMES, READING_SECONDS = 30_000, 1.5, 0.05


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--rows", type=numbers, default=[1_000, 10_000, 100_000, 237_654])
    arguments.add_argument("--dim", type=int, default=DIM)
    arguments.add_argument("--questions", type=int, default=60)
    arguments.add_argument(
        "--backlog", type=int, default=20_000, help="rows that wait for the builtin model; 0 leaves this part out"
    )
    arguments.add_argument("--dir", help="where databases are kept; a temporary place otherwise")
    given = arguments.parse_args()
    report, medians = Report("recall", given.json), {}
    with workplace(given.dir) as place, embed_server(given.dim) as embedder:
        for rows in given.rows:
            environ = copied(filled(place, rows, given.dim), place, "recalled", CPERSONA_RECALL_MODE="rrf", **embedder)
            plain = by_itself(environ["CPERSONA_DB_PATH"], rows, given.dim, given.questions)
            timing = recalls(environ, given.questions)
            medians[rows] = timing.median
            report.add(f"recall, {rows:,} rows", timing, reference=plain, target=TARGETS.get(rows))
            report.add(
                f"recall, {rows:,} rows, blend",
                recalls(environ | {"CPERSONA_RECALL_MODE": "blend"}, given.questions),
                reference=plain,
            )
            if rows > WINDOW:
                far = recalls(environ | {"CPERSONA_VECTOR_REACH": str(REACH)}, given.questions)
                report.add(
                    f"recall, {rows:,} rows, reach {REACH:,}",
                    far,
                    reference=plain,
                    target=REACH_TARGET if rows > REACH else None,
                )
        growth(report, medians)
        if given.backlog:
            beside_a_backlog(report, place, given.backlog, given.questions)
    report.finish()


def recalls(environ: dict[str, str], count: int) -> Timing:
    with serving(environ) as connection:
        asked = [text for text, _ in questions(count)]
        for text in asked:
            ask(connection, "recall", agent_id=AGENT, query=text, limit=10)
        times, used = [], processor_seconds(pid_of(connection))
        for number, text in enumerate(asked):
            ask(connection, "store", agent_id="somebody.else", content=f"between the questions {number}")
            times.append(once(lambda: ask(connection, "recall", agent_id=AGENT, query=text, limit=10))[1])
        used = processor_seconds(pid_of(connection)) - used
    return Timing(times, [used / count * 1e3])


def by_itself(path: str, rows: int, dim: int, count: int) -> Timing:
    """The plain way: one full-text query as FTS5 ranks it, and one product over the window."""
    conn = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    conn.execute("PRAGMA cache_size = -16000; PRAGMA mmap_size = 268435456")
    matrix = np.random.default_rng(1).standard_normal((min(rows, WINDOW), dim), dtype=np.float32)
    query, times = matrix[0].copy(), []
    product = measure(lambda: np.argpartition(matrix @ query, -10 if len(matrix) > 10 else 0), 9).median
    for text, _ in questions(count):
        words = " OR ".join(term.token for term in parse_query(text).terms)
        times.append(
            product
            + once(
                lambda: conn.execute(
                    "SELECT f.rowid, bm25(memory_fts) AS score FROM memory_fts f CROSS JOIN memories m ON m.id = "
                    "f.rowid"
                    " WHERE memory_fts MATCH ? AND m.agent_id = ? ORDER BY score, f.rowid LIMIT 10",
                    (words, AGENT),
                ).fetchall()
            )[1]
        )
    conn.close()
    return Timing(times)


def beside_a_backlog(report: Report, place: Path, waiting: int, count: int) -> None:
    """Ask and store while a backlog is embedded, beside the same in quiet, and how fast the backlog goes with and
    without questions.
    """
    source, measured = filled(place, BACKLOG_ROWS, BuiltinEmbedder.dimension), []
    for listed in (0, waiting):
        with serving(of_the_builtin_model(copied(source, place, "recalled"), listed)) as connection:
            ask(connection, "recall", agent_id=AGENT, query="whoever asks first waits for the model", limit=10)
            while ask(connection, "daemon_status")["vectors"]["mem"]["state"] != "ready":
                time.sleep(0.1)
            paces = [
                pace(connection, lambda: measured.append(now_and_then(connection, count))),
                pace(connection, lambda: time.sleep(10)),
            ]
    quiet, busy = measured
    for name, timing in busy.items():
        report.add(
            f"{name}, {waiting:,} rows to embed",
            timing,
            reference=quiet[name],
            target=round(quiet[name].median * BACKLOG_TIMES, 1),
        )
    report.add("rows embedded meanwhile", paces[0], "a second", alone=f"{paces[1]:.1f}")


def now_and_then(connection: client.Connection, count: int) -> dict[str, Timing]:
    """Ask so many questions, each of them twice, and store a row after each, with a pause as of somebody who reads the
    answer.
    """
    taken: dict[str, Timing] = {"a new question": Timing([]), "asked again": Timing([]), "a store": Timing([])}
    for number, (text, _) in enumerate(questions(count)):
        for name in ("a new question", "asked again"):
            taken[name].times.append(once(lambda: ask(connection, "recall", agent_id=AGENT, query=text, limit=10))[1])
            time.sleep(READING_SECONDS)
        taken["a store"].times.append(
            once(lambda: ask(connection, "store", agent_id="somebody.else", content=f"between the questions {number}"))[
                1
            ]
        )
    return taken


def pace(connection: client.Connection, meanwhile: Callable[[], None]) -> float:
    """Return how many rows of the backlog are embedded a second while something is done."""
    started, before = time.perf_counter(), ask(connection, "daemon_status")["backlog"]["done"]
    meanwhile()
    return (ask(connection, "daemon_status")["backlog"]["done"] - before) / (time.perf_counter() - started)


def growth(report: Report, medians: dict[int, float]) -> None:
    """How many times the cost grows when the table grows tenfold, between neighbours and over the whole."""
    sizes = sorted(medians)
    for small, large in dict.fromkeys([*zip(sizes, sizes[1:]), (sizes[0], sizes[-1])] if len(sizes) > 1 else []):
        factor = medians[large] / medians[small]
        slope = math.log(factor) / math.log(large / small)
        report.add(
            f"growth, {small:,} to {large:,} rows",
            factor,
            "times",
            target=4.0 if (small, large) == (10_000, 1_000_000) else None,
            slope=round(slope, 2),
        )


if __name__ == "__main__":
    main()
