"""An idempotency key belongs to one request: that one may be asked again, and no other is ever answered in its place.

Contract: wire.keys.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from daemon_helpers import Raw

from cpersona_cli.wire import spool as spooling
from cpersona_daemon.shared import fields
from cpersona_daemon.shared.paths import places
from cpersona_daemon.shared.settings import load

SAID = {"agent_id": "a", "content": "the harbour closes at nine", "timestamp": "2026-01-05T00:00:00+00:00"}
EPISODE = {"agent_id": "a", "summary": "a day at the harbour"}


def ask(connection, key, method="store", params=SAID):
    connection.send(method, params, key=key)
    _, response, code = connection.receive()
    return response, code


def summaries(connection):
    return [row["summary"] for row in connection.call("list_episodes", {"agent_id": "a"})[0]["episodes"]]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("store", SAID | {"content": "another text"}),
        ("store", SAID | {"agent_id": "b"}),
        ("store", SAID | {"lock": True}),
        ("archive_episode", EPISODE),
        ("delete_agent_data", {"agent_id": "a"}),
        ("update_memory", {"memory_id": 1, "content": "changed"}),
    ],
)
def test_another_request_under_a_used_key_is_refused_and_does_nothing(daemon, method, params):
    first = ask(daemon, "k")
    assert first[0]["result"] == "stored"
    response, code = ask(daemon, "k", method, params)
    assert (response["ok"], code) == (False, "key_used") and "key" in str(response)
    assert [row["content"] for row in daemon.call("list_memories", {})[0]["memories"]] == [
        SAID["content"]
    ] and summaries(daemon) == []
    assert ask(daemon, "k") == first
    assert ask(daemon, "k", params=dict(reversed(SAID.items()))) == first


def test_a_key_of_one_client_is_not_answered_to_another(home, connect, tmp_path):
    path = tmp_path / "access.json"
    path.write_text(
        json.dumps(
            {
                "clients": [
                    {"client_id": name, "token": name, "grants": {"a": "read-write"}} for name in ("one", "two")
                ]
                + [{"client_id": "own", "grants": {"*": "read-write"}}]
            }
        )
    )
    path.chmod(0o600)
    one, two = (connect(CPERSONA_ACL_FILE=str(path), CPERSONA_TOKEN=name) for name in ("one", "two"))
    assert ask(one, "k", "archive_episode", EPISODE)[1] is None
    assert ask(two, "k", "archive_episode", EPISODE)[1] == "key_used"
    assert ask(two, "k2", "archive_episode", EPISODE)[1] is None and len(summaries(one)) == 2


def test_a_key_stays_bound_across_a_restart(daemon):
    first = ask(daemon, "k", "archive_episode", EPISODE)
    os.kill(daemon.hello["pid"], signal.SIGKILL)
    assert ask(daemon, "k", "archive_episode", EPISODE) == first
    assert ask(daemon, "k", "archive_episode", EPISODE | {"summary": "another day"})[1] == "key_used"
    assert summaries(daemon) == [EPISODE["summary"]]


def test_what_was_sent_and_is_then_queued_is_done_once(home, connect, run_cli):
    """The answer got lost after the write was done; the client leaves the same request in the spool."""
    connection = connect()
    spool = places(load(home), home).spool
    for method, params in (
        ("archive_episode", EPISODE),
        (
            "store",
            spooling.stamped(
                "store", {"agent_id": "a", "content": "rain", "metadata": {"mm": 1.5, "n": [2**63 - 1, None]}}
            ),
        ),
    ):
        assert ask(connection, "lost " + method, method, params)[1] is None
        spooling.put(spool, method, params, "lost " + method)
    assert summaries(connection) == [EPISODE["summary"]]
    status = connection.call("daemon_status", {})[0]
    assert status["spool"] == {"waiting": 0, "failed": 0, "drained": 2} and status["rows"]["memories"] == 1


def test_another_request_queued_under_a_used_key_is_set_aside_with_its_reason(home, connect):
    connection = connect()
    spool = places(load(home), home).spool
    ask(connection, "k", "archive_episode", EPISODE)
    name = spooling.put(spool, "archive_episode", EPISODE | {"summary": "another day"}, "k")
    assert summaries(connection) == [EPISODE["summary"]]
    assert json.loads((Path(spool) / "failed" / name).read_text())["code"] == "key_used"


def test_a_queued_store_says_when_it_was_said_before_it_is_first_sent():
    assert spooling.stamped("store", SAID) is SAID and "timestamp" in spooling.stamped("store", {"content": "x"})
    assert spooling.stamped("archive_episode", EPISODE) is EPISODE


@pytest.mark.parametrize("key", ["", "k" * (fields.MAX_KEY_LENGTH + 1)])
def test_a_key_that_is_none_is_refused(daemon, key):
    raw = Raw(daemon.places.socket).greet()
    raw.send({"id": 1, "method": "store", "params": SAID, "idempotency_key": key})
    answer = raw.read()
    assert answer["code"] == "invalid_params" and "idempotency_key" in answer["response"]["reason"]
    assert daemon.call("list_memories", {})[0]["count"] == 0
