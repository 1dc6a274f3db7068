"""Asked to leave unless others are at work, a daemon names them; its own work and clients that are gone are none.

Contract: daemon.life.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from daemon_helpers import Raw
from embed_kit import EmbedServer

from cpersona_cli.wire import client, control
from cpersona_daemon.shared.settings import load

SPARE = {"unless_others": True}


class Slow(EmbedServer):
    """A service that answers only once it is let go."""

    def __init__(self) -> None:
        self.asked, self.go = threading.Event(), threading.Event()
        super().__init__()

    def reply(self, texts: list[str]) -> dict:
        self.asked.set()
        self.go.wait(30)
        return {"embeddings": [[1.0, 0.0]] * len(texts), "model": "slow"}

    def settled(self, daemon: client.Connection) -> None:
        """Wait until everything stored has its vector; from then on let questions wait."""
        while daemon.call("daemon_status", {})[0]["backlog"]["pending"]:
            time.sleep(0.01)
        self.asked.clear()
        self.go.clear()


@pytest.fixture
def slow(home):
    server = Slow()
    home |= {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": server.url}
    yield server
    server.go.set()
    server.stop()


def test_a_restore_right_after_a_call_finds_nobody_at_work(home, run_cli, slow):
    """The daemon still embeds what was just stored: its own work is no client."""
    slow.go.set()
    run_cli(["store", "one"])
    assert run_cli(["backup", "b.tar"]).returncode == 0
    slow.go.clear()
    slow.asked.clear()
    with subprocess.Popen([sys.executable, "-m", "cpersona_cli", "store", "two"], env=home) as storing:
        assert slow.asked.wait(20)
        storing.kill()  # it would wait for the vector a while
    threading.Timer(0.5, slow.go.set).start()
    done = run_cli(["restore", "b.tar"])
    assert done.returncode == 0, done.stderr
    assert [line.split("\t")[-1] for line in run_cli(["list"]).stdout.splitlines()] == ["one"]


def test_one_that_waits_is_named_with_its_method_and_since_when(home, daemon, connect, run_cli):
    run_cli(["backup", "b.tar"])
    other = connect()
    other.send("check_health", {"deep": True, "fix": False})
    script = (
        "import sys; from cpersona_cli.wire import client; c = client.connect(); print(flush=True); sys.stdin.read()"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", script], env=home, stdin=pipe, stdout=pipe) as idle:
        idle.stdout.readline()
        daemon.close()
        other.receive()
        done = run_cli(["restore", "b.tar"])
        assert done.returncode == 6 and done.stderr.count("\n") == 1
        assert f"process {idle.pid} (connected for" in done.stderr and f"process {os.getpid()} (" in done.stderr
        assert "--force" in done.stderr
        idle.stdin.close()
    other.close()
    assert run_cli(["restore", "b.tar"]).returncode == 0


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the end of a client is seen with the next bytes for it")
def test_a_request_under_way_is_named_with_its_age_and_one_whose_client_is_gone_is_not(home, run_cli, slow, tmp_path):
    """A recall waits for its question's vector; then its client is killed."""
    slow.go.set()
    run_cli(["store", "one"])
    run_cli(["backup", "b.tar"])
    slow.asked.clear()
    slow.go.clear()
    command, pipe = [sys.executable, "-m", "cpersona_cli", "recall", "one"], subprocess.PIPE
    asking = subprocess.Popen(command, env=home, stdout=pipe, stderr=pipe)
    assert slow.asked.wait(20)
    with client.connect(load(home), home, start=False) as one:
        clients = one.call("daemon_status", {})[0]["clients"]
        mine, theirs = sorted(clients, key=lambda entry: entry["pid"] == asking.pid)
        assert theirs["method"] == "recall" and 0 <= theirs["seconds"] < 20 and theirs["uid"] == os.getuid()
        assert (mine["pid"], mine["method"]) == (os.getpid(), "daemon_status")
        answer, code = one.call("daemon_stop", SPARE)
        assert code == "busy" and f"process {asking.pid} (recall for" in answer["error"]
        assert f"process {os.getpid()} " not in answer["error"]
        asking.send_signal(signal.SIGKILL)
        asking.communicate()
        answer, code = one.call("daemon_stop", SPARE)
        assert code is None and answer["stopping"] is True
    assert control.stop_daemon(load(home), 30, home) is True


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the end of a client is seen with the next bytes for it")
def test_what_a_client_that_is_gone_had_asked_for_is_given_up_at_once(home, slow, daemon):
    """It closed its connection without reading: nobody waits for the answer, whatever its deadline."""
    slow.go.set()
    daemon.call("store", {"agent_id": "a", "content": "x"})
    slow.settled(daemon)
    one = Raw(daemon.places.socket).greet()
    one.send({"id": 1, "method": "recall", "params": {"agent_id": "a", "query": "x"}})
    assert slow.asked.wait(20)
    assert daemon.call("daemon_status", {})[0]["in_flight"] == 2
    one.sock.close()
    assert daemon.call("daemon_status", {})[0]["in_flight"] == 1


def test_one_that_only_stopped_sending_is_still_answered(home, slow, daemon):
    import socket

    slow.go.set()
    daemon.call("store", {"agent_id": "a", "content": "x"})
    slow.settled(daemon)
    one = Raw(daemon.places.socket).greet()
    one.send({"id": 1, "method": "recall", "params": {"agent_id": "a", "query": "x"}})
    assert slow.asked.wait(20)
    one.sock.shutdown(socket.SHUT_WR)
    assert daemon.call("daemon_status", {})[0]["in_flight"] == 2
    slow.go.set()
    assert len(one.read()["response"]["messages"]) == 1
    assert json.dumps(daemon.call("daemon_status", {})[0]["clients"]).count("pid") == 1


def test_it_leaves_for_one_who_is_alone(home, daemon):
    began = time.monotonic()
    assert daemon.call("daemon_stop", SPARE)[1] is None
    assert control.stop_daemon(load(home), 30, home) is True and time.monotonic() - began < 20
