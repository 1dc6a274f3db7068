"""Work that can be watched and waited for. Contract: wait.vectors, progress.measured, progress.committed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading

import pytest
from embed_kit import EmbedServer, with_vector

from cpersona_cli.terminal import panel, progress
from cpersona_cli.wire import client
from cpersona_daemon.shared.settings import load

CPERSONA = [sys.executable, "-m", "cpersona_cli"]


class Held(EmbedServer):
    """A service that answers once it may, or not at all; questions about its model are always answered."""

    def __init__(self) -> None:
        self.may, self.asked, self.fails = threading.Event(), threading.Event(), False
        super().__init__()

    def reply(self, texts):
        if any(text.startswith("row") for text in texts):
            self.asked.set()
            self.may.wait(30)
            if self.fails:
                return {}
        return {"embeddings": [[1.0, 0.0]] * len(texts)}


@pytest.fixture
def service(home):
    service = Held()
    home |= {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": service.url}
    yield service
    service.may.set()
    service.stop()


@pytest.fixture
def export(home):
    """A file of forty memories without vectors."""
    path = os.path.join(home["HOME"], "in.jsonl")
    with open(path, "w", encoding="utf-8") as handle:
        handle.writelines(
            json.dumps({"_type": "memory", "agent_id": "a", "content": f"row {n}"}) + "\n" for n in range(40)
        )
    return path


def begun(home, *words):
    return subprocess.Popen(
        [*CPERSONA, *words],
        env=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def backlog(home):
    with client.connect(load(home), home) as connection:
        return connection.call("backlog_status", {})[0]


def test_a_wait_ends_when_every_vector_is_there(home, service, export):
    process = begun(home, "import", export, "--wait", "--progress")
    assert service.asked.wait(30)
    while "imported_memories\t40" not in process.stdout.readline():
        pass
    assert process.poll() is None
    service.may.set()
    _, said = process.communicate(timeout=30)
    assert process.returncode == 0 and "every vector is there" in said and "embedding 40 of 40" in said
    assert backlog(home)["pending"] == 0


def test_ctrl_c_leaves_the_rest_to_the_background_and_says_how_much_it_is(home, service, export):
    process = begun(home, "import", export, "--wait")
    assert service.asked.wait(30)
    while "profile_updated" not in process.stdout.readline():
        pass
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130 and "everything is stored; 40 rows wait for a vector, made in the back" in said
    service.may.set()


def test_who_waits_learns_which_rows_keep_a_vector_that_cannot_be_compared(home, service):
    path = os.path.join(home["HOME"], "foreign.jsonl")
    foreign = with_vector([0.6, 0.8, 0.0], "another")
    begun(home, "store", "the model says what it is", "--wait").communicate(timeout=30)
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(json.dumps({"_type": "memory", "agent_id": "a", "content": "note", **foreign}) + "\n")
    for more in (["--to-agent", "b"], ["--wait"]):
        process = begun(home, "import", path, "--keep-vectors", *more)
        _, said = process.communicate(timeout=30)
        assert process.returncode == 0 and "1 of the rows keep a vector of another model" in said


def test_a_wait_without_an_embedder_ends_at_once_and_one_that_fails_for_long_is_given_up(home, service, export):
    service.fails = True
    service.may.set()
    hurried = "from cpersona_cli.commands import _waiting; _waiting.PATIENCE_SECONDS = 0.5"
    main = "from cpersona_cli.main import main; import sys; sys.exit(main())"
    failing = subprocess.run(
        [sys.executable, "-c", f"{hurried}; {main}", "import", export, "--wait"],
        env=home,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert failing.returncode == 6 and "the embedder fails" in failing.stderr, failing.stderr
    subprocess.run([*CPERSONA, "daemon", "stop"], env=home, check=True, capture_output=True, timeout=60)
    without = home | {"CPERSONA_EMBEDDING_MODE": "none"}
    for words, said in (
        (["store", "another", "--wait"], "40 rows wait for a vector and will not get one here"),
        (["store", "x", "--wait", "--queue"], "give one of them"),
    ):
        done = subprocess.run([*CPERSONA, *words], env=without, capture_output=True, text=True, timeout=60)
        assert said in done.stderr, done.stderr


def test_lines_of_a_file_say_on_stderr_how_far_they_are_where_that_is_asked_for(shared_cli):
    lines = "".join(f'"line {n}"\n' for n in range(20))
    done = shared_cli(["store", "--jsonl", "-", "--progress"], input=lines)
    assert done.stdout.count("\n") == 20 and "20 stored" in done.stderr
    quiet = shared_cli(["store", "--jsonl", "-"], input=lines)
    assert "storing" not in quiet.stderr and "0 stored, 20 skipped" in quiet.stderr


def test_what_is_watched_is_shown_again_until_it_is_interrupted(shared_daemon, module_home):
    process = begun(module_home, "status", "--watch", "--json")
    states = [json.loads(process.stdout.readline()) for _ in range(2)]
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130 and all(state["running"] for state in states)


@pytest.mark.parametrize(
    "rate, left, said",
    [
        (None, None, ""),
        (85.2, 14.4, "85/s, 14 s left"),
        (0.5, 7_300.0, "30.0/min, 2 h 2 min left"),
        (2.5, 0.4, "2.5/s, less than 1 s left"),
        (3.0, None, "3.0/s"),
        (1_234.0, 300.0, "1,234/s, 5 min left"),
    ],
)
def test_rate_and_time_left_in_words(rate, left, said):
    assert progress.words(rate, left) == said


@pytest.mark.parametrize(
    "backlog, said",
    [
        ({"pending": 0, "passages_pending": 0}, "0 rows"),
        ({"pending": 1, "rows_per_second": 2.0, "eta_seconds": 0.5}, "1 row (2.0/s, less than 1 s left)"),
        (
            {"pending": 9, "passages_pending": 3, "passages_per_second": 0.5, "problem": "no answer"},
            "9 rows, and the passages of 3 rows (30.0/min); no answer",
        ),
    ],
)
def test_what_waits_is_named_with_what_was_measured_of_it(backlog, said):
    assert panel._to_embed(backlog) == said


def test_a_log_gets_a_line_now_and_then_and_one_when_a_stage_is_done(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    lines = progress.Lines("import")
    for at, done in ((0.0, 0), (0.5, 10), (2.5, 50), (3.0, 60), (5.0, 100), (5.1, 100)):
        now[0] = at
        lines({"done": done, "total": 100, "stage": "storing"})
    lines({"stage": "waiting"})
    assert capsys.readouterr().err.splitlines() == [
        "cpersona import: storing 50 of 100, 20/s, 2 s left",
        "cpersona import: storing 100 of 100",
    ]


def test_a_run_that_its_caller_left_can_be_asked_for_what_it_committed(shared_daemon):
    """Contract: progress.committed."""
    unknown, code = shared_daemon.call("run_status", {"key": "never used"})
    assert code is None and unknown == {"known": False, "running": False, "reached": {}, "final": False}
    shared_daemon.call("reindex", {}, key="of a reindex")
    told, _ = shared_daemon.call("run_status", {"key": "of a reindex", "wait_seconds": 1.0})
    assert told["known"] and not told["running"] and re.fullmatch(r"\d+", str(told["reached"].get("done", 0)))
