"""Calibrating an agent of a large store, and how long other requests wait meanwhile.

    python tests/benchmarks/bench_calibrate.py                 100,000 rows of 768 dimensions
    python tests/benchmarks/bench_calibrate.py --rows 10000

``plain`` is the same other request while nothing else is going on.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from common import Report, Timing, measure, once, parser
from stores import DIM, ask, copied, embed_server, filled, pid_of, processor_seconds, serving, workplace

from cpersona_cli.wire import client
from cpersona_daemon.shared.settings import load

TARGET_MS = 3_000


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--rows", type=int, default=100_000)
    arguments.add_argument("--turns", type=int, default=5)
    arguments.add_argument("--dir", help="where databases are kept; a temporary place otherwise")
    given = arguments.parse_args()
    report = Report("calibrate", given.json)
    with workplace(given.dir) as place, embed_server(DIM) as embedder:
        environ = copied(filled(place, given.rows), place, "calibrated", **embedder)
        with serving(environ) as connection, client.connect(load(environ), environ) as other:
            look = lambda: ask(other, "list_memories", agent_id="agent.beta", limit=10)  # noqa: E731
            ask(connection, "recall", agent_id="agent.alpha", query="a first question tells the model", limit=1)
            quiet, waits, ended = measure(look, 50), [], threading.Event()

            def watch() -> None:
                while not ended.wait(0.02):
                    waits.append(once(look)[1])

            used, times = processor_seconds(pid_of(connection)), []
            watcher = threading.Thread(target=watch)
            watcher.start()
            for _ in range(given.turns):
                times.append(once(lambda: ask(connection, "calibrate_threshold", agent_id="agent.alpha"))[1])
            ended.set()
            watcher.join()
            used = (processor_seconds(pid_of(connection)) - used) / given.turns
        report.add(f"calibrate, {given.rows:,} rows", Timing(times), target=TARGET_MS, cpu_seconds=round(used, 2))
        report.add("another client's listing meanwhile", Timing(waits), reference=quiet)
    report.finish()


if __name__ == "__main__":
    main()
