"""After Ctrl-C a number that was printed is what was committed, or says that it is the least. Contract: exit.status."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest

CPERSONA = [sys.executable, "-m", "cpersona_cli"]
# The same, which gives the answers under way one second to come, and not five.
HURRIED = [
    sys.executable,
    "-c",
    (
        "import sys; from cpersona_cli.wire import interrupts; interrupts.GRACE_SECONDS = 1.0;"
        "from cpersona_cli.main import main; sys.exit(main())"
    ),
]


@pytest.fixture
def start(home):
    started = []

    def start(*arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, program=CPERSONA):
        started.append(
            subprocess.Popen(
                [*program, *arguments], env=home, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, text=True
            )
        )
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        for stream in filter(None, (process.stdout, process.stderr)):
            stream.close()
        process.wait()


def count(home) -> int:
    with closing(sqlite3.connect(home["CPERSONA_DB_PATH"])) as conn:
        return conn.execute("SELECT count(*) FROM memories").fetchone()[0]


def many(home, rows: int) -> str:
    path = os.path.join(home["HOME"], "many.jsonl")
    with open(path, "w", encoding="utf-8") as handle:
        handle.writelines(json.dumps(f"a memory of number {n}") + "\n" for n in range(rows))
    return path


def ended(process) -> tuple[str, str]:
    """Return what is left of the two streams; ``communicate`` would lose what a readline has read ahead."""
    out, complaint = process.stdout.read() if process.stdout else "", process.stderr.read()
    process.wait(60)
    return out, complaint


def said(text: str) -> tuple[bool, int]:
    """Return (whether the number is exact, the number of stored rows) of the line that an interrupted run ends with."""
    found = re.search(r"ended early: (at least )?([\d,]+) stored", text)
    assert found, text
    return found[1] is None, int(found[2].replace(",", ""))


@pytest.mark.parametrize("after", [1, 200, 700])
def test_an_interrupted_file_of_lines_says_what_was_committed(start, home, daemon, after):
    process = start("store", "--jsonl", many(home, 20_000))
    seen = [process.stdout.readline() for _ in range(after)]
    process.send_signal(signal.SIGINT)
    rest, complaint = ended(process)
    assert process.returncode == 130
    exact, stored = said(complaint)
    assert exact and stored == count(home) < 20_000
    outcomes = [json.loads(line) for line in [*seen, *rest.splitlines()]]
    assert len(outcomes) == stored and [o["line"] for o in outcomes] == list(range(1, stored + 1))


def test_an_interrupt_while_the_next_line_is_awaited_ends_at_once(start, home, daemon):
    process = start("store", "--jsonl", "-", stdin=subprocess.PIPE)
    process.stdin.write('"one"\n')
    process.stdin.flush()
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert said(process.stderr.read()) == (True, 1) and count(home) == 1


def test_answers_that_do_not_come_make_the_number_the_least_and_a_second_interrupt_leaves_at_once(start, home, daemon):
    # Into a file: a pipe that nobody empties would hold the program up before a store could be under way.
    with open(os.path.join(home["HOME"], "outcomes"), "w+", encoding="utf-8") as outcomes:
        process = start("store", "--jsonl", many(home, 20_000), stdout=outcomes)
        while count(home) < 100 and process.poll() is None:
            time.sleep(0.005)
    with closing(sqlite3.connect(home["CPERSONA_DB_PATH"], isolation_level=None, timeout=60)) as other:
        other.execute("BEGIN IMMEDIATE")  # so that no store ends any more
        before = count(home)
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)  # it asks for the answers that are under way
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        complaint = ended(process)[1]
        assert time.monotonic() - began < 2 and process.returncode == 130
        other.execute("ROLLBACK")
    exact, stored = said(complaint)
    assert not exact and stored <= before and "what became of the others is not known" in complaint


def test_the_wait_for_answers_is_bounded(start, home, daemon):
    with open(os.path.join(home["HOME"], "outcomes"), "w+", encoding="utf-8") as outcomes:
        process = start("store", "--jsonl", many(home, 20_000), stdout=outcomes, program=HURRIED)
        while count(home) < 100 and process.poll() is None:
            time.sleep(0.005)
    with closing(sqlite3.connect(home["CPERSONA_DB_PATH"], isolation_level=None, timeout=60)) as other:
        other.execute("BEGIN IMMEDIATE")
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        complaint = ended(process)[1]
        assert time.monotonic() - began < 4
        other.execute("ROLLBACK")
    assert process.returncode == 130 and not said(complaint)[0]


def test_rows_that_were_deleted_before_an_interrupt_are_said_to_be(start, home, daemon):
    for n in range(600):
        daemon.send("store", {"agent_id": "default", "content": f"row {n}"})
        if n % 60 == 59:
            for _ in range(60):
                daemon.receive()
    process = start("delete", *(f"mem:{n}" for n in range(1, 601)))
    seen = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    rest, complaint = ended(process)
    assert process.returncode == 130 and (seen + rest).count("deleted\n") == 600 - count(home) < 600
    assert re.search(r"ended early: [\d,]+ of 600 are done", complaint)


def test_an_interrupted_import_says_what_is_in(start, home, daemon):
    path = os.path.join(home["HOME"], "in.jsonl")
    with open(path, "w", encoding="utf-8") as handle:
        handle.writelines(
            json.dumps({"_type": "memory", "agent_id": "a", "content": f"an imported memory of number {n}"}) + "\n"
            for n in range(60_000)
        )
    process = start("import", path)
    with closing(sqlite3.connect(home["CPERSONA_DB_PATH"], timeout=60)) as conn:
        while process.poll() is None and conn.execute("SELECT count(*) FROM memories").fetchone()[0] < 2_000:
            time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    complaint = ended(process)[1]
    exact = re.search(r"ended early: lines 1 to ([\d,]+) of 60,000 are in, and stay: \1 imported memories", complaint)
    assert process.returncode == 130 and exact and 0 < int(exact[1].replace(",", "")) == count(home) < 60_000, complaint
