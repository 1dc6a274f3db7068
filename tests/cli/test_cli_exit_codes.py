"""What an answer means for the exit status. Contract: exit.status, answer.shape."""

import pytest

from cpersona_cli import exits
from cpersona_cli.terminal.failure import failure_line
from cpersona_daemon.shared import fields


@pytest.mark.parametrize(
    "response, code, method, status",
    [
        ({"ok": True, "result": "stored", "id": 1}, None, "store", 0),
        ({"ok": True, "result": "skipped", "id": 1}, None, "store", 0),
        ({"messages": []}, None, "recall", 0),
        ({"ok": False, "result": "rejected", "reason": "content is empty"}, None, "store", 1),
        ({"ok": False, "error": "no"}, None, "recall", 1),
        ({"error": "no such method"}, None, "bogus", 1),
        ({"ok": False, "error": "permission_denied", "tool": "store", "client_id": "x"}, None, "store", 5),
        ({"status": "unhealthy"}, None, "check_health", 7),
        ({"status": "degraded"}, None, "check_health", 0),
    ],
)
def test_the_body_alone_decides_where_no_code_came_with_it(response, code, method, status):
    assert exits.status_of(response, code, method) == status


@pytest.mark.parametrize("code", fields.ERRORS)
def test_the_code_beside_an_answer_decides_first(code):
    assert exits.status_of({"ok": False, "error": "x"}, code) == fields.ERRORS[code][0] != 0


def test_a_failure_is_one_line_with_what_why_and_what_next():
    line = failure_line("store", {"ok": False, "result": "rejected", "reason": "content\nis empty"})
    assert line == "store: content is empty; see `cpersona store --help` for what it takes"


def test_a_daemon_that_does_not_know_what_a_command_asks_is_older_and_is_told_to_restart():
    answer = {"error": "there is no method 'row_history'; `cpersona call --help` lists them"}
    line = failure_line("history", answer, "unknown_method")
    assert line.startswith("history: the running daemon is older than this command") and "daemon restart`" in line
    assert "call --help" not in line


def test_a_reason_that_names_a_command_gets_no_second_hint():
    line = failure_line(
        "call x", {"error": "there is no method 'x'; `cpersona call --help` lists them"}, "unknown_method"
    )
    assert line.count("`cpersona") == 1
