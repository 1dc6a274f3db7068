"""From starting a daemon of an existing database to its first answer, the embedder loading in the background.

    python tests/benchmarks/bench_start.py                100,000 rows of 768 dimensions
    python tests/benchmarks/bench_start.py --rows 10000 --mode none

The first answer is a listing, which needs no vector. ``plain`` is `python -c pass` of the same interpreter, taking
turns.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from common import Report, Timing, anonymous_mb, parser
from stores import ask, filled, pid_of, processor_seconds, serving, workplace
from workload import questions

from cpersona_cli.wire import client
from cpersona_daemon.shared.settings import load

TARGET_MS, MEMORY_MB = 400, 250


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--rows", type=int, default=100_000)
    arguments.add_argument("--turns", type=int, default=15)
    arguments.add_argument("--mode", choices=("builtin", "none"), default="builtin")
    arguments.add_argument("--dir", help="where databases are kept; a temporary place otherwise")
    given = arguments.parse_args()
    report = Report("start", given.json)
    with workplace(given.dir) as place:
        environ = filled(place, given.rows) | {"CPERSONA_EMBEDDING_MODE": given.mode}
        plain, first, used, next_ones = [], [], [], []
        for turn in range(-1, given.turns):
            started = time.perf_counter()
            subprocess.run([sys.executable, "-c", "pass"], check=True)
            spent = (time.perf_counter() - started) * 1e3
            answer, cpu, following = start(environ)
            if turn >= 0:
                plain.append(spent)
                first.append(answer)
                used.append(cpu * 1e3)
                next_ones += following
        report.add(
            f"start to first answer, {given.rows:,} rows, {given.mode}",
            Timing(first),
            reference=Timing(plain),
            target=TARGET_MS,
        )
        report.add("processor time until then", Timing(used))
        report.add("the 20 answers after it", Timing(next_ones))
        memory(report, filled(place, given.rows), given.rows)
    report.finish()


def start(environ: dict[str, str]) -> tuple[float, float, list[float]]:
    """Start a daemon, ask it, end it: ms to the first answer, its processor seconds by then, ms of 20 more answers."""
    reading, writing = os.pipe()
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "cpersona_daemon.main", "--foreground", "--ready-fd", str(writing)],
        env=environ,
        pass_fds=[writing],
        stderr=subprocess.DEVNULL,
    )
    os.close(writing)
    try:
        if b'"ready"' not in os.read(reading, 4096):
            raise SystemExit("the daemon did not start")
        with client.connect(load(environ), environ, start=False) as connection:
            ask(connection, "list_memories", agent_id="agent.alpha", limit=10)
            first, used, following = (time.perf_counter() - started) * 1e3, processor_seconds(process.pid), []
            for _ in range(20):
                asked = time.perf_counter()
                ask(connection, "list_memories", agent_id="agent.alpha", limit=10)
                following.append((time.perf_counter() - asked) * 1e3)
    finally:
        os.close(reading)
        process.send_signal(signal.SIGTERM)
        process.wait()
    return first, used, following


def memory(report: Report, environ: dict[str, str], rows: int) -> None:
    """Anonymous memory without an embedder, after some use."""
    with serving(environ) as connection:
        for text, _ in questions(50):
            ask(connection, "recall", agent_id="agent.alpha", query=text, limit=10)
        report.add(
            f"anonymous memory, {rows:,} rows, no embedder", anonymous_mb(pid_of(connection)), "MB", target=MEMORY_MB
        )


if __name__ == "__main__":
    main()
