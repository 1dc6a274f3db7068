"""`store --queue`. Contract: spool.queue, exit.status."""

import json
import os
import socket
from pathlib import Path


def spooled(home):
    return sorted(Path(home["CPERSONA_DB_PATH"] + ".spool").glob("*.json"))


def test_without_a_daemon_a_store_is_queued_and_none_is_started(run_cli, home):
    done = run_cli(["store", "hello", "--queue"])
    assert (done.returncode, done.stdout) == (0, "") and "queued as" in done.stderr
    assert len(spooled(home)) == 1 and not os.path.exists(home["CPERSONA_DB_PATH"])
    status = run_cli(["daemon", "status", "--json"])
    assert status.returncode == 4 and json.loads(status.stdout)["spool"] == {"waiting": 1, "failed": 0}
    assert "1 waiting, 0 refused" in run_cli(["daemon", "status"]).stdout
    assert run_cli(["list"]).stdout.split("\t")[-1] == "hello\n" and spooled(home) == []


def test_a_queued_memory_has_the_time_when_it_was_said(run_cli, home, connect):
    assert run_cli(["store", "then", "--queue"]).returncode == 0
    assert run_cli(["store", "dated", "--queue", "--at", "2020-01-01T00:00Z"]).returncode == 0
    then, dated = [json.loads(path.read_text())["params"]["timestamp"] for path in spooled(home)]
    assert then.endswith("+00:00") and dated.startswith("2020-01-01T00:00")


def test_json_says_where_it_was_queued(run_cli, home):
    answer = json.loads(run_cli(["store", "x", "--queue", "--json"]).stdout)
    assert answer == {"ok": True, "result": "queued", "queued": spooled(home)[0].name}


def test_with_a_daemon_it_is_stored_at_once_and_a_refusal_is_a_refusal(run_cli, home, daemon):
    assert run_cli(["store", "x", "--queue"]).stdout == "mem:1\n"
    assert run_cli(["store", "", "--queue"]).returncode == 1 and spooled(home) == []


def test_a_socket_that_nobody_serves_is_no_daemon(run_cli, home):
    os.makedirs(os.path.dirname(home["CPERSONA_DB_PATH"]), mode=0o700)
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(home["CPERSONA_DB_PATH"] + ".sock")
    assert run_cli(["store", "x", "--queue"]).returncode == 0 and len(spooled(home)) == 1


def test_where_nothing_can_be_written_it_fails_in_one_line(run_cli, home):
    Path(home["HOME"], "file").write_text("")
    done = run_cli(["store", "x", "--queue", "--db", os.path.join(home["HOME"], "file", "t.db")])
    assert done.returncode == 1 and done.stderr.count("\n") == 1


def test_lines_are_queued_each_with_its_outcome_and_totals(run_cli, home):
    done = run_cli(["store", "--jsonl", "-", "--queue", "--json"], input='"a"\nnope\n{"content": "b", "id": "k"}\n')
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line["line"], line["result"]) for line in said[:-1]] == [
        (1, "queued"),
        (2, "rejected"),
        (3, "queued"),
    ] and done.returncode == 1
    assert said[-1] == {"totals": {"lines": 3, "stored": 0, "skipped": 0, "updated": 0, "queued": 2, "rejected": 1}}
    assert {row.split("\t")[-1] for row in run_cli(["list"]).stdout.splitlines()} == {"a", "b"}


def test_an_interrupted_file_says_so_and_goes_on_when_it_is_given_again(home, run_cli, daemon):
    import signal
    import subprocess
    import sys

    process = subprocess.Popen(
        [sys.executable, "-m", "cpersona_cli", "store", "--jsonl", "-"],
        env=home,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdin.write('"one"\n')
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["result"] == "stored"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130 and "ended early: 1 stored" in said
    again = run_cli(["store", "--jsonl", "-"], input='"one"\n"two"\n')
    assert again.returncode == 0 and again.stderr == "1 stored, 1 skipped, 0 rejected of 2 lines\n"
