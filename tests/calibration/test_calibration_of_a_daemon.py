"""The calibration as a client sees it: over the wire, across a restart, at start.

Contract: calibration.file, calibration.rollback, forget.agent.
"""

from __future__ import annotations

import os
import stat
import time

import pytest

from cpersona_cli.wire import control
from cpersona_daemon.shared.settings import load


@pytest.fixture
def http(model_server) -> dict[str, str]:
    return {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": model_server.url}


def fill(connection, agent: str = "kit", count: int = 12) -> None:
    for n in range(count):
        answer, code = connection.call("store", {"agent_id": agent, "content": f"note number {n} about the harbour"})
        assert code is None and answer["embedded"]


def stop(home, more) -> None:
    environ = home | more
    assert control.stop_daemon(load(environ), 15, environ)


def test_a_precision_outlives_the_daemon_and_goes_with_the_agents_data(home, connect, http):
    daemon = connect(**http)
    fill(daemon)
    answer, code = daemon.call("set_recall_precision", {"agent_id": "kit", "precision": "strict"})
    assert (answer, code) == (
        {"ok": True, "agent_id": "kit", "precision": "strict", "beta": 2.0, "cleared": False},
        None,
    )
    stop(home, http)
    assert stat.S_IMODE(os.stat(home["CPERSONA_DB_PATH"] + ".calibration.json").st_mode) == 0o600
    daemon = connect(**http)
    assert daemon.call("get_recall_precision", {"agent_id": "kit"})[0]["precision"] == "strict"
    daemon.call("delete_agent_data", {"agent_id": "kit"})
    assert daemon.call("get_recall_precision", {"agent_id": "kit"})[0] == {
        "ok": True,
        "agent_id": "kit",
        "precision": "balanced",
        "beta": 1.0,
        "overridden": False,
    }


def test_a_refusal_says_what_is_missing(connect, http):
    daemon = connect(**http)
    fill(daemon, count=3)
    answer, code = daemon.call("calibrate_threshold", {"agent_id": "kit"})
    assert answer["ok"] is False and "3 embedded memories" in answer["error"] and code == "refused"
    answer, code = daemon.call("calibrate_threshold", {"agent_id": "kit", "sample_size": "many"})
    assert answer["ok"] is False and code == "invalid_params"


def test_a_daemon_measures_in_the_background_what_was_never_measured(home, connect, http):
    fill(connect(**http))
    stop(home, http)
    daemon = connect(**http, CPERSONA_CALIBRATE_ON_MODEL_CHANGE="true")
    deadline = time.monotonic() + 30
    while not (shown := daemon.call("daemon_status", {})[0]["calibration"])["measured"]:
        assert time.monotonic() < deadline
    assert shown["thresholds"] == 1 and shown["model"] == "m1"


def test_a_damaged_file_costs_the_measurement_and_not_the_daemon(home, connect, http):
    path = home["CPERSONA_DB_PATH"] + ".calibration.json"
    os.makedirs(os.path.dirname(path), mode=0o700)
    with open(path, "wb") as handle:
        handle.write(b'{"calibration": {"thres')
    daemon = connect(**http)
    status = daemon.call("daemon_status", {})[0]
    shown = status["calibration"]
    assert not shown["measured"] and "moved to" in shown["problem"] and os.path.exists(path + ".damaged")
    assert shown["problem"] in status["warnings"]
    fill(daemon)
    assert daemon.call("calibrate_threshold", {"agent_id": "kit"})[0]["ok"]
    assert "problem" not in daemon.call("daemon_status", {})[0]["calibration"]
