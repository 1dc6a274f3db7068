"""What the client makes of daemons that are older, silent, foreign, or differently set.

Contract: daemon.starts, wire.hello.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time

import msgpack
import pytest

from cpersona_cli.wire import client, control
from cpersona_daemon.errors import Busy
from cpersona_daemon.life import ownership
from cpersona_daemon.shared import fields
from cpersona_daemon.shared.settings import load


def test_retrieval_settings_of_a_client_travel_with_its_requests(connect, capsys):
    connect()
    second = connect(CPERSONA_RRF_K="7", CPERSONA_RECALL_MODE="rsf")
    assert second._overrides == {"rrf_k": 7, "recall_mode": "rsf"}
    assert second.call("recall", {"agent_id": "a", "query": "x"})[1] is None
    # The daemon has its own default of this by the mode of the request.
    assert connect(CPERSONA_VERSION_ORDER="false")._overrides == {"version_order": False}
    assert capsys.readouterr().err == ""


def test_other_settings_that_differ_are_named_once_with_the_command_that_applies_them(connect, capsys):
    connect()
    second = connect(CPERSONA_MAX_CONTENT_LENGTH="5")
    second.call("store", {"agent_id": "a", "content": "more than five"})
    os.kill(second.hello["pid"], signal.SIGKILL)
    second.call("store", {"agent_id": "a", "content": "more than five again"})
    said = capsys.readouterr().err
    assert said.count("CPERSONA_MAX_CONTENT_LENGTH=5") == 1 and "cpersona daemon restart" in said


def test_settings_that_agree_say_nothing(connect, capsys):
    connect(CPERSONA_RRF_K="7")
    assert connect(CPERSONA_RRF_K="7")._overrides == {}
    assert connect()._overrides == {}
    assert capsys.readouterr().err == ""


def test_an_option_for_the_daemon_reaches_the_daemon_that_it_starts(home):
    settings = load(home, {"max_content_length": "5"})
    with client.connect(settings, home) as connection:
        assert connection.call("store", {"agent_id": "a", "content": "more than five"})[0]["truncated"] is True


def test_the_daemons_hello_tells_no_secret(connect):
    connection = connect(CPERSONA_TOKEN="s3cret")
    assert "s3cret" not in repr(connection.hello)
    if os.path.exists("/proc"):
        with open(f"/proc/{connection.hello['pid']}/environ", "rb") as handle:
            assert b"s3cret" not in handle.read()


def test_an_idle_daemon_of_another_version_is_replaced(home, monkeypatch):
    with client.connect(load(home), home) as old:
        first = old.hello["pid"]
    monkeypatch.setattr(client, "__version__", "99.0")
    with client.connect(load(home), home) as new:
        assert new.hello["pid"] != first


def test_a_daemon_of_another_version_that_is_at_work_is_kept_and_named(home, daemon, monkeypatch, capsys):
    monkeypatch.setattr(client, "__version__", "99.0")
    with client.connect(load(home), home) as new:
        assert new.hello["pid"] == daemon.hello["pid"]
        assert new.call("persistence_status", {})[1] is None
    assert "99.0" in capsys.readouterr().err


def test_a_daemon_of_another_protocol_that_is_at_work_is_a_typed_failure(home, daemon, monkeypatch):
    monkeypatch.setattr(fields, "PROTOCOL", fields.PROTOCOL + 1)
    with pytest.raises(client.CallFailed) as failure:
        client.connect(load(home), home)
    assert (failure.value.code, failure.value.exit_status) == ("protocol", 4)


def test_a_daemon_of_another_protocol_answers_nothing_but_status_and_stop(daemon):
    from daemon_helpers import HELLO, Raw

    one = Raw(daemon.places.socket)
    one.send(HELLO | {"protocol": fields.PROTOCOL + 1})
    assert one.read()["protocol"] == fields.PROTOCOL
    one.send({"id": 1, "method": "store", "params": {"agent_id": "a", "content": "x"}})
    assert one.read()["code"] == "protocol"
    one.send({"id": 2, "method": "daemon_status"})
    assert "code" not in one.read()
    one.sock.close()


def test_a_daemon_that_is_alive_but_silent_is_timed_out_and_can_be_stopped(home, daemon, monkeypatch):
    daemon.close()
    pid = daemon.hello["pid"]
    monkeypatch.setattr(fields, "HELLO_SECONDS", 0.3)
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(client.CallFailed) as failure:
            client.connect(load(home), home)
        assert (failure.value.code, failure.value.exit_status) == ("timed_out", 6)
        assert str(pid) in failure.value.message
        found = control.find_daemon(load(home), home)
        assert found["answers"] is False and found["pid"] == pid
        assert control.stop_daemon(load(home), 0.5, home) is False  # it has got its SIGTERM, and cannot act on it yet
    finally:
        os.kill(pid, signal.SIGCONT)
    assert control.stop_daemon(load(home), 30, home) is True


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="only /proc tells who has a file open")
def test_a_silent_daemon_is_named_and_can_be_stopped_without_its_note(home, daemon, monkeypatch):
    """As where a full disk kept the note from being written: the lock that it has open proves the process."""
    daemon.close()
    pid = daemon.hello["pid"]
    os.unlink(daemon.places.daemon_json)
    monkeypatch.setattr(fields, "HELLO_SECONDS", 0.3)
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(Busy, match=rf"a daemon \(pid {pid}\) serves"):
            ownership.take_lock(daemon.places, 0)
        assert control.stop_daemon(load(home), 0.5, home) is False
        os.unlink(daemon.places.socket)
        with pytest.raises(Busy, match=rf"process {pid} holds .* and does not answer"):
            ownership.take_lock(daemon.places, 0)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert control.stop_daemon(load(home), 30, home) is True


def test_a_daemon_at_whose_place_something_else_stands_is_said_to_be_unreachable_at_once(home, daemon):
    os.unlink(daemon.places.socket)
    with open(daemon.places.socket, "w"):
        pass
    began = time.monotonic()
    found = control.find_daemon(load(home), home)
    assert found["answers"] is False and time.monotonic() - began < 4
    assert found["problem"] == f"it cannot be reached: what stands at {daemon.places.socket} is not its socket"
    os.kill(daemon.hello["pid"], signal.SIGTERM)  # nobody else can ask it to leave


def test_a_connection_whose_answer_came_too_late_is_not_used_again(daemon, connect, monkeypatch):
    monkeypatch.setattr(client, "ANSWER_SLACK_SECONDS", 0.2)
    os.kill(daemon.hello["pid"], signal.SIGSTOP)
    try:
        with pytest.raises(client.CallFailed) as failure:
            daemon.call("store", {"agent_id": "a", "content": "late"}, deadline_ms=100)
    finally:
        os.kill(daemon.hello["pid"], signal.SIGCONT)
    assert failure.value.code == "timed_out" and daemon.waiting == 0
    for use in (lambda: daemon.call("persistence_status", {}), daemon.receive):
        with pytest.raises(client.CallFailed) as again:
            use()
        assert again.value is failure.value
    assert connect().call("persistence_status", {})[1] is None


class Impostor:
    """A listener that answers every frame with the same one."""

    def __init__(self, path: str, reply: bytes):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen()
        self._reply = reply
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                one, _ = self._listener.accept()
            except OSError:
                return
            one.recv(65_536)
            one.sendall(self._reply)
            one.close()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (b"\xff\xff\xff\xff", "protocol"),
        (b"\x00\x00\x00\x01\xc1", "protocol"),
        (b"\x00\x00\x00\x02\x92\x01", "protocol"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "protocol"),
        (b"\x00\x00\x00\x01\x80", "protocol"),
    ],
)
def test_a_listener_that_is_no_daemon_is_a_typed_failure(home, reply, code):
    impostor = Impostor(home["CPERSONA_DB_PATH"] + ".sock", reply)
    try:
        with pytest.raises(client.CallFailed) as failure:
            client.connect(load(home), home)
        assert failure.value.code == code
    finally:
        impostor.close()


def test_a_daemon_of_another_database_at_a_named_socket_is_a_typed_failure(home, connect):
    shared = home["HOME"] + "/one.sock"
    connect(CPERSONA_SOCKET=shared)
    with pytest.raises(client.CallFailed) as failure:
        connect(CPERSONA_SOCKET=shared, CPERSONA_DB_PATH=home["HOME"] + "/db/other.db")
    assert failure.value.code == "settings" and "serves" in failure.value.message


def test_a_frame_above_the_limit_is_refused_before_it_is_sent(daemon):
    with pytest.raises(client.CallFailed) as failure:
        daemon.call("store", {"agent_id": "a", "content": "x" * (fields.MAX_FRAME_BYTES + 1)})
    assert failure.value.code == "invalid_params"
    assert daemon.call("persistence_status", {})[1] is None


@pytest.mark.parametrize("value", [object(), {1, 2}, 2**70, b"x" * 3])
def test_a_value_that_cannot_be_sent_is_a_typed_failure(daemon, value):
    try:
        code = daemon.call("store", {"agent_id": "a", "content": "x", "metadata": {"k": value}})[1]
    except client.CallFailed as error:
        code = error.code
    assert code == "invalid_params"
    assert daemon.call("persistence_status", {})[1] is None


def test_progress_frames_are_skipped_by_who_did_not_ask(home):
    """A daemon tells those who wait without a deadline that it lives; the answer comes after."""
    hello = {
        "protocol": fields.PROTOCOL,
        "version": client.__version__,
        "capabilities": [],
        "db": os.path.realpath(home["CPERSONA_DB_PATH"]),
        "settings_digest": load(home).digest(),
        "pid": 1,
        "settings": {},
        "busy": False,
    }
    frames = [
        hello,
        {"id": 1, "progress": {}},
        {"id": 1, "progress": {"lines": 5}},
        {"id": 1, "response": {"ok": True}},
    ]
    impostor = Impostor(
        home["CPERSONA_DB_PATH"] + ".sock", b"".join(len(b).to_bytes(4, "big") + b for b in map(msgpack.packb, frames))
    )
    told = []
    try:
        with client.connect(load(home), home) as connection:
            assert connection.call("export_memories", {}, progress=told.append) == ({"ok": True}, None)
    finally:
        impostor.close()
    assert told == [{"lines": 5}]


def test_the_way_to_a_running_daemon_imports_nothing_heavy(home, daemon):
    script = (
        "import sys; before = set(sys.modules); from cpersona_cli.wire import client; c = client.connect(); "
        "c.call('persistence_status', {}); "
        "print(*sorted(set(sys.modules) - before))"
    )
    out = subprocess.run(
        [sys.executable, "-c", script], env=home, capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()
    heavy = {
        "asyncio",
        "apsw",
        "msgspec",
        "numpy",
        "json",
        "logging",
        "subprocess",
        "typing",
        "dataclasses",
        "socket",
        "select",
        "hashlib",
        "re",
        "enum",
        "typer",
        "rich",
    }
    assert not heavy & set(out)
    inside = {name for name in out if name.startswith("cpersona_daemon.")}
    assert inside == {
        "cpersona_daemon.shared.paths",
        "cpersona_daemon.shared.settings",
        "cpersona_daemon.shared.settings_table",
        "cpersona_daemon.shared.methods",
        "cpersona_daemon.shared",
        "cpersona_daemon.shared.fields",
        "cpersona_daemon.shared.peer",
    }


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_of_the_daemon_opens_nothing(home, option):
    outcome = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "cpersona_daemon.main", option],
        env=home,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert outcome.returncode == 0 and "cpersonad" in outcome.stdout
    assert not [name for name in ("apsw", "numpy", "asyncio", "msgspec") if f" {name}\n" in outcome.stderr]
    assert not os.path.exists(os.path.dirname(home["CPERSONA_DB_PATH"]))


def test_an_unknown_option_of_the_daemon_is_a_usage_error(home):
    outcome = subprocess.run(
        [sys.executable, "-m", "cpersona_daemon.main", "--colour"], env=home, capture_output=True, text=True, timeout=60
    )
    assert outcome.returncode == 2 and "--colour" in outcome.stderr


def test_a_daemon_at_a_named_socket_is_found_and_stopped_without_the_name(home, connect):
    pid = connect(CPERSONA_SOCKET=home["HOME"] + "/one.sock").hello["pid"]
    assert control.find_daemon(load(home), home)["pid"] == pid
    with pytest.raises(client.CallFailed) as failure:
        connect()
    assert failure.value.exit_status == 4 and "/one.sock" in failure.value.message
    assert control.stop_daemon(load(home), 30, home) is True
    assert control.find_daemon(load(home), home) is None


def test_a_daemon_of_another_protocol_can_be_stopped(home, daemon, monkeypatch):
    monkeypatch.setattr(fields, "PROTOCOL", fields.PROTOCOL + 1)
    assert control.stop_daemon(load(home), 30, home) is True


def test_a_daemon_that_goes_away_does_not_end_a_client_that_lets_sigpipe_act(home, daemon):
    script = (
        "import os, signal, sys; from cpersona_cli.wire import client; signal.signal(signal.SIGPIPE, "
        "signal.SIG_DFL); c = client.connect(); "
        "os.kill(c.hello['pid'], signal.SIGKILL); print([c.call('store', {'agent_id': 'a', 'content': "
        "str(n)})[0]['result'] for n in range(3)])"
    )
    out = subprocess.run([sys.executable, "-c", script], env=home, capture_output=True, text=True, timeout=60)
    assert (out.returncode, out.stdout) == (0, "['stored', 'stored', 'stored']\n"), out.stderr
