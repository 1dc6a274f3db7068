"""A pause of one session holds for the commands that name it, and for no others. Contract: pause.answers."""

from __future__ import annotations

import json

import pytest

from cpersona_cli.declare import catalogue
from cpersona_daemon.rpc.dispatch import HANDLERS
from cpersona_daemon.shared import methods


@pytest.fixture
def paused(shared_cli):
    ref = shared_cli(["store", "a row that stays"]).stdout.strip()
    assert shared_cli(["pause", "--for", "1m", "--session", "s"]).returncode == 0
    yield ref
    shared_cli(["resume", "--session", "s"])


WRITES = (
    ["store", "x"],
    ["store", "x", "--queue"],
    ["update", "REF", "x"],
    ["delete", "REF"],
    ["lock", "REF"],
    ["episode", "archive", "x"],
    ["profile", "set", "x"],
)


@pytest.mark.parametrize("words", WRITES, ids=" ".join)
def test_what_the_session_writes_is_not_kept(shared_cli, shared_daemon, paused, words):
    before = shared_daemon.call("list_memories", {"agent_id": "default"})[0]
    done = shared_cli([*(paused if word == "REF" else word for word in words), "--session", "s"])
    assert done.returncode == 0 and "`cpersona resume` keeps again" in done.stderr
    assert shared_daemon.call("list_memories", {"agent_id": "default"})[0] == before


def test_lines_of_the_session_are_not_kept_and_those_of_others_are(shared_cli, paused):
    done = shared_cli(
        ["store", "--jsonl", "-", "--session", "s"],
        input='"kept nowhere"\n{"content": "of another session", "session": "t"}\n',
    )
    assert [json.loads(line)["result"] for line in done.stdout.splitlines()] == ["skipped", "stored"]
    assert "1 of the skipped are kept nowhere, persistence is paused" in done.stderr


def test_others_write_on_while_a_session_is_paused(shared_cli, paused):
    assert shared_cli(["store", "of nobody's session"]).stdout.startswith("mem:")
    assert shared_cli(["store", "of another session too", "--session", "t"]).stdout.startswith("mem:")
    assert shared_cli(["pause", "--status"]).stdout == "keeping\n" and shared_cli(
        ["pause", "--status", "--session", "s"]
    ).stdout.startswith("paused")


def test_every_command_that_may_name_a_session_asks_methods_that_know_one():
    takes = {name for name, method in HANDLERS.items() if "session_key" in method.params.__struct_fields__}
    signed = {name for name, row in methods.METHODS.items() if row.own_session}
    # What these do is no write into the store, and no command that asks them takes --session.
    assert signed - takes == {"export_memories", "backup_database", "daemon_stop"}
    named = {
        " ".join(command.path)
        for name in catalogue.ENTRIES
        for command in catalogue.declared(name)
        if "session" in command.common
    }
    assert (
        not named & {"export", "backup", "daemon stop", "daemon restart", "recall", "list", "get"}
        and {"store", "pause", "resume", "import", "git note"} <= named
    )
