"""The client: whole processes beside `python -c pass` of the same interpreter, taking turns, output not a terminal.

    python tests/benchmarks/bench_client.py                          60 turns, the `cpersona` beside this interpreter
    python tests/benchmarks/bench_client.py --turns 200 --json out.json
    python tests/benchmarks/bench_client.py --cpersona DIR/bin/cpersona

`wall` is the time of the whole process without the daemon's own (its median for the method, from `daemon_status`);
`cpu` is the processor time of the client's process, which a busy machine blurs less. ``plain`` is `python -c pass`.
The last rows are the same recall parsed by Typer, and what help and completion cost.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from common import Report, Timing, parser

from cpersona_cli.wire import client, control
from cpersona_daemon.shared.settings import load

ROWS = 100
AIM, MUST, HELP = 2.0, 2.5, 8.0


def turn(command: list[str], environ: dict[str, str]) -> tuple[float, float]:
    """Run one process to its end with its output in a pipe; return its wall and processor time in milliseconds."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    wall = (time.perf_counter() - started) * 1e3
    process.stdout.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} left with {process.returncode}")
    return wall, (used.ru_utime + used.ru_stime) * 1e3


def less(times: list[float], by: float) -> Timing:
    return Timing([one - by for one in times])


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--turns", type=int, default=60)
    arguments.add_argument("--cpersona", metavar="FILE", default=str(Path(sys.executable).parent / "cpersona"))
    given = arguments.parse_args()
    home = tempfile.mkdtemp(prefix="cp-bench-", dir="/tmp")
    environ = {
        name: os.environ[name]
        for name in ("PATH", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH")
        if name in os.environ
    }
    environ |= {
        "HOME": home,
        "LANG": "C.UTF-8",
        "CPERSONA_DB_PATH": f"{home}/db/bench.db",
        "CPERSONA_EMBEDDING_MODE": "none",
    }
    try:
        compare(given.cpersona, given.turns, environ, Report("client", given.json))
    finally:
        control.stop_daemon(load(environ), environ=environ)
        shutil.rmtree(home, ignore_errors=True)


def compare(cpersona: str, turns: int, environ: dict[str, str], report: Report) -> None:
    with client.connect(load(environ), environ) as connection:
        for number in range(ROWS):
            connection.call(
                "store",
                {
                    "agent_id": "default",
                    "content": f"Note {number}: deploys of service {number % 7} run from the release branch, "
                    f"and its configuration lives beside the manifest of cluster {number % 11}.",
                },
            )
    recall = ["recall", "release branch of service 3", "--deep"]
    # name -> (arguments, the method whose time is the daemon's, the most that its ratio may be)
    kinds = {
        "recall, 10 rows": (recall, "recall", MUST),
        "recall, 10 rows, --json": ([*recall, "--json"], "recall", MUST),
        "store": (["store", "{turn}"], "store", MUST),
        "get": (["get", "mem:1"], "get_contents", MUST),
        "call": (["call", "daemon_status"], "daemon_status", MUST),
        "recall, parsed by Typer": ([*recall, "-qn10"], "recall", None),
        "--help": (["--help"], None, HELP),
        "recall --help": (["recall", "--help"], None, HELP),
        "completion of a command": ([], None, HELP),
    }
    completing = environ | {"_CPERSONA_COMPLETE": "complete_bash", "COMP_WORDS": "cpersona re", "COMP_CWORD": "1"}
    plain, times = [], {name: [] for name in kinds}
    for number in range(-2, turns):
        taken = turn([sys.executable, "-c", "pass"], environ)
        if number >= 0:
            plain.append(taken)
        for name, (words, _, _) in kinds.items():
            taken = turn(
                [
                    cpersona,
                    *(word.replace("{turn}", f"A note of turn {number}, stored once and kept.") for word in words),
                ],
                environ if words else completing,
            )
            if number >= 0:
                times[name].append(taken)
    with client.connect(load(environ), environ) as connection:
        methods = connection.call("daemon_status", {})[0]["methods"]
    for at, unit in ((0, "wall"), (1, "cpu")):
        start = less([one[at] for one in plain], 0)
        report.add(f"python -c pass, {unit}", start)
        for name, (_, method, most) in kinds.items():
            own = methods[method]["p50_ms"] if method and at == 0 else 0
            report.add(
                f"{name}, {unit}",
                less([one[at] for one in times[name]], own),
                reference=start,
                target=most and most * start.median,
                **({"daemon": own} if own else {}),
            )
    print(f"\nA target is {MUST} x `python -c pass` (aim {AIM} x); help and completion {HELP} x.")
    report.finish()


if __name__ == "__main__":
    main()
