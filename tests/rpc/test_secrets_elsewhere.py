"""Secrets where they are not looked for: a stranger's hello, a service that answers with what it was asked, a start
that fails, the spool.

Contract: secrets.checked.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon_helpers import Raw

from cpersona_cli.wire import client
from cpersona_daemon.shared import paths
from cpersona_daemon.shared.settings import load

SECRETS = ("us3rname", "pa55word", "qu3rykey", "t0ken-of-mine", "dXMzcm5hbWU6cGE1NXdvcmQ=")


@pytest.fixture(scope="module")
def echo() -> Iterator[int]:
    """The port of a service that answers a request with the request itself."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()

    def serve() -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            with peer:
                peer.sendall(peer.recv(65_536))

    thread = threading.Thread(target=serve)
    thread.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(20)


@pytest.fixture
def environ(home, echo, tmp_path) -> dict[str, str]:
    access = tmp_path / "access.json"
    access.write_text(
        json.dumps({"clients": [{"client_id": "own", "token": SECRETS[3], "grants": {"*": "read-write"}}]})
    )
    access.chmod(0o600)
    return home | {
        "CPERSONA_EMBEDDING_MODE": "http",
        "CPERSONA_EMBEDDING_URL": f"http://us3rname:pa55word@127.0.0.1:{echo}/embed?key=qu3rykey",
        "CPERSONA_TOKEN": SECRETS[3],
        "CPERSONA_ACL_FILE": str(access),
        "CPERSONA_LOG_LEVEL": "debug",
    }


def tells_none(*said: object) -> bool:
    return not any(secret in str(one) for one in said for secret in SECRETS)


def test_a_stranger_is_told_nothing_of_how_the_daemon_is_set_or_used(environ):
    with client.connect(load(environ), environ) as own:
        stranger = Raw(own.places.socket)
        stranger.send({"protocol": 1, "version": "test"})
        hello = stranger.read()
        assert (hello["settings"], hello["settings_digest"], hello["busy"]) == ({}, "", True) and tells_none(hello)
        assert own.hello["settings"]["embedding_url"].startswith("http://***@127.0.0.1:") and tells_none(own.hello)


def test_no_answer_log_or_sentence_of_a_daemon_holds_a_secret(environ, tmp_path):
    settings = load(environ)
    with client.connect(settings, environ) as own:
        own.call("store", {"agent_id": "a", "content": "walnut"})
        answers = [own.call("recall", {"agent_id": "a", "query": "walnut"}) for _ in range(3)]
        assert "advisory" in answers[-1][0]
        answers += [
            own.call(method, {})
            for method in ("daemon_status", "check_health", "reindex", "calibrate_threshold", "list_canaries")
        ]
        answers.append(own.call("set_recall_precision", {"agent_id": "a", "precision": "strict"}))
        answers.append(own.call("daemon_stop", {}))
    assert tells_none(*answers)
    assert tells_none(
        *(path.read_text(errors="replace") for path in Path(paths.places(settings, environ).log).parent.iterdir())
    )


@pytest.mark.parametrize(
    "address",
    [
        "us3rname:pa55word@host/embed?qu3rykey",
        "http://us3rname:pa55word/x@host/",
        "http://us3rname:pa55word@ho\u2100st/",
        "ftp://us3rname:pa55word@host/",
        "qu3rykey",
    ],
)
def test_a_daemon_that_does_not_start_says_why_without_the_secret(environ, run_cli, address):
    done = run_cli(["store", "x"], env=environ | {"CPERSONA_EMBEDDING_URL": address})
    assert done.returncode == 4 and "CPERSONA_EMBEDDING_URL" in done.stderr and tells_none(done.stdout, done.stderr)
    assert tells_none(Path(paths.places(load(environ), environ).log).read_text())
    assert tells_none(run_cli(["doctor"], env=environ | {"CPERSONA_EMBEDDING_URL": address}).stdout)
    assert tells_none(run_cli(["doctor"], env=environ | {"CPERSONA_RERANK_URL": address}).stdout)


def test_what_is_set_aside_from_the_spool_keeps_no_token(environ):
    settings = load(environ)
    where = Path(paths.places(settings, environ).spool)
    where.mkdir(parents=True, mode=0o700)
    (where / "1-1-1.json").write_text(json.dumps({"method": "delete_agent_data", "params": {}, "token": SECRETS[3]}))
    (where / "1-1-2.json").write_text(json.dumps([{"method": "store", "token": SECRETS[3]}]))
    (where / "1-1-3.json").write_text(json.dumps({"method": "store", "params": {}, "token": SECRETS[3]})[:-2])
    with client.connect(settings, environ) as own:
        own.call("list_memories", {"agent_id": "a"})
        assert own.call("daemon_status", {})[0]["spool"]["failed"] == 3
    assert tells_none(*(path.read_text() for path in (where / "failed").iterdir()))
