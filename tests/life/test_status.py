"""What the daemon tells about itself. Contract: daemon.tells."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from daemon_helpers import Raw

from cpersona_daemon.life.status import LAST_ERRORS, LAST_WARNINGS, Status
from cpersona_daemon.model.clock import SystemClock


@pytest.fixture
def status() -> Status:
    return Status(SystemClock())


def test_latencies_and_failures_are_counted_by_method(status):
    for milliseconds in range(1, 101):
        status.record("store", milliseconds / 1000)
    status.record("store", 0.001, "refused")
    status.record("recall", 0.002, "timed_out")
    told = status.snapshot()
    assert told["methods"]["store"] == {"count": 101, "failed": 1, "p50_ms": 50.0, "p99_ms": 99.0}
    assert [(e["method"], e["code"]) for e in told["last_errors"]] == [("recall", "timed_out")]


def test_everything_kept_is_bounded_and_a_warning_counts_once(status):
    for number in range(10_000):
        status.record("store", 0.001, "internal")
        status.warn(f"warning {number}")
        status.warn("again")
    told = status.snapshot()
    assert len(told["last_errors"]) == LAST_ERRORS
    assert len(told["warnings"]) == LAST_WARNINGS and told["warnings"].count("again") == 1


def test_work_in_the_background_is_named_while_it_lasts(status):
    with status.at_work("calibration"), status.at_work("calibration"):
        assert status.working == ["calibration"]
    assert status.working == []
    with pytest.raises(RuntimeError), status.at_work("import"):
        raise RuntimeError
    assert status.working == []


def test_a_running_daemon_tells_versions_rows_and_load(daemon):
    daemon.call("store", {"agent_id": "a", "content": "secret content"})
    told, code = daemon.call("daemon_status", {})
    assert code is None
    assert (told["pid"], told["db"], told["socket"]) == (daemon.hello["pid"], daemon.places.db, daemon.places.socket)
    assert told["rows"]["memories"] == 1 and told["connections"] == 1 and told["in_flight"] == 1
    assert told["methods"]["store"]["count"] == 1
    assert told["embedding"]["mode"] == "none" and told["settings"]["embedding_mode"] == "environment"
    assert "secret content" not in repr(told)
    with open(told["log"], encoding="utf-8") as handle:
        assert "secret content" not in handle.read()


def test_a_malformed_setting_is_told_as_a_warning(connect):
    told, _ = connect(CPERSONA_MAX_MEMORIES="many").call("daemon_status", {})
    assert any("CPERSONA_MAX_MEMORIES" in warning for warning in told["warnings"])


def test_a_request_without_a_deadline_tells_that_the_daemon_lives(connect):
    connection = connect(CPERSONA_IDLE_TIMEOUT="0.4")  # the daemon looks around four times as often
    one = Raw(connection.places.socket).greet()
    with closing(sqlite3.connect(connection.places.db, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        one.send({"id": 1, "method": "delete_agent_data", "params": {"agent_id": "a"}, "progress": True})
        assert one.read() == {"id": 1, "progress": {}}
        other.execute("ROLLBACK")
    answer = one.read()
    while "progress" in answer:
        answer = one.read()
    assert answer["response"]["ok"] is True
    one.sock.close()
