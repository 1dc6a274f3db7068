"""Many processes at once: one daemon, an answer for each, and nothing lost, also while an export runs.

Contract: daemon.starts, writes.durable.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from stress_kit import FULL, Writers, contents

from cpersona_cli.wire import control
from cpersona_daemon.shared.paths import places
from cpersona_daemon.shared.settings import load

pytestmark = pytest.mark.stress

PROCESSES, WRITERS, NOTES = (120, 8, 1000) if FULL else (40, 8, 50)


def started(environ: dict[str, str], *args: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "cpersona_cli", *args],
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_fifty_first_calls_of_the_program_start_one_daemon_and_all_are_answered(home):
    asked = [
        started(home, "call", "store", json.dumps({"agent_id": "a", "content": f"first {number}"}))
        for number in range(50)
    ]
    said = [process.communicate(timeout=120) for process in asked]
    assert [process.returncode for process in asked] == [0] * 50, said
    assert sorted(json.loads(out)["id"] for out, _ in said) == list(range(1, 51))
    with open(places(load(home), home).log, encoding="utf-8") as log:
        assert len(re.findall("serving", log.read())) == 1


def test_a_command_substitution_that_starts_the_daemon_returns_with_the_ref(home):
    done = subprocess.run(
        ["/bin/sh", "-c", f'x=$("{sys.executable}" -m cpersona_cli store hi); echo "<$x>"'],
        env=home,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "<mem:1>\n"
    assert control.find_daemon(load(home), home)["pid"]


def test_parallel_processes_writers_and_an_export_lose_nothing(home, daemon, tmp_path):
    with Writers(home, WRITERS, NOTES, lambda number, turn: f"writer {number} note {turn}") as writers:
        writers.wait_for(WRITERS)
        asked = [started(home, "store", "--agent", "a", f"process {number}") for number in range(PROCESSES)]
        export = started(home, "export", "--agent", "a", str(tmp_path / "during.jsonl"))
        said = [process.communicate(timeout=300) for process in asked]
        _, complaint = export.communicate(timeout=300)
    assert [process.returncode for process in asked] == [0] * PROCESSES, said
    assert export.returncode == 0, complaint
    assert writers.refused == [] and len(writers.kept) == WRITERS * NOTES
    kept = writers.kept | {
        int(out.strip().removeprefix("mem:")): f"process {number}" for number, (out, _) in enumerate(said)
    }
    assert len(kept) == WRITERS * NOTES + PROCESSES
    # What was exported meanwhile is a state that the store was in: whole lines, each a row as it is.
    lines = [json.loads(line) for line in (tmp_path / "during.jsonl").read_text(encoding="utf-8").splitlines()]
    exported = [line["content"] for line in lines if "content" in line]
    assert exported and set(exported) <= set(kept.values()) and len(set(exported)) == len(exported)
    assert control.stop_daemon(load(home), 30, home)
    assert contents(home["CPERSONA_DB_PATH"]) == kept
