"""Queued writes reach the database in order and exactly once. Contract: spool.queue."""

from __future__ import annotations

import json
import os
import signal
import stat
from pathlib import Path

import pytest

from cpersona_cli.wire import spool as spooling
from cpersona_daemon.shared.paths import places
from cpersona_daemon.shared.settings import load


@pytest.fixture
def spool(home) -> Path:
    return Path(places(load(home), home).spool)


def queue(spool: Path, method: str, key: str | None = None, **params) -> str:
    return spooling.put(str(spool), method, {"agent_id": "default", **params}, key)


def episodes(connection) -> list[str]:
    return [
        row["summary"] for row in connection.call("list_episodes", {"agent_id": "default", "limit": 200})[0]["episodes"]
    ][::-1]


def waiting(connection) -> dict:
    return connection.call("daemon_status", {})[0]["spool"]


def test_a_queued_write_is_a_private_file_from_its_first_byte(spool):
    mask = os.umask(0)
    try:
        name = queue(spool, "store", content="x")
    finally:
        os.umask(mask)
    time_ns, pid, number = name.removesuffix(".json").split("-")
    assert time_ns.isdigit() and int(pid) == os.getpid() and number.isdigit()
    assert stat.S_IMODE((spool / name).stat().st_mode) == 0o600 and stat.S_IMODE(spool.stat().st_mode) == 0o700
    assert set(json.loads((spool / name).read_text())) == {"method", "params", "idempotency_key"}
    assert os.listdir(spool) == [name]


def test_names_sort_in_the_order_of_writing_even_when_the_clock_is_set_back(spool, monkeypatch):
    clock = iter([5_000, 4_000, 4_000, 6_000])
    monkeypatch.setattr(spooling.time, "time_ns", lambda: next(clock))
    monkeypatch.setattr(spooling, "_last", [0, 0])
    names = [queue(spool, "store", content=str(n)) for n in range(4)]
    assert [tuple(map(int, name.removesuffix(".json").split("-")))[::2] for name in names] == [
        (5_000, 0),
        (5_000, 1),
        (5_000, 2),
        (6_000, 0),
    ]


def test_a_starting_daemon_drains_in_the_order_of_the_names_before_it_answers_a_read(spool, connect):
    for n in range(12):
        queue(spool, "archive_episode", summary=f"number {n}")
    assert episodes(connect()) == [f"number {n}" for n in range(12)]
    assert [p.name for p in spool.iterdir()] == []


def test_what_a_killed_writer_left_goes_once_it_is_old_and_what_a_person_keeps_there_stays(spool, connect):
    queue(spool, "archive_episode", summary="whole")
    for name in (".cpersona-old.tmp", ".cpersona-new.tmp", ".a-persons"):
        (spool / name).write_bytes(b"half")
    for name in (".cpersona-old.tmp", ".a-persons"):
        os.utime(spool / name, (1, 1))
    connection = connect()
    assert episodes(connection) == ["whole"]
    assert waiting(connection)["waiting"] == 0
    assert sorted(p.name for p in spool.iterdir()) == [".a-persons", ".cpersona-new.tmp"]


def test_a_running_daemon_drains_what_appears_without_being_told(spool, daemon):
    assert episodes(daemon) == []
    queue(spool, "archive_episode", summary="first")
    assert episodes(daemon) == ["first"]
    queue(spool, "archive_episode", summary="second")
    assert episodes(daemon) == ["first", "second"]
    assert waiting(daemon) == {"waiting": 0, "failed": 0, "drained": 2}


def test_a_kill_between_commit_and_removal_makes_no_second_row(spool, home, connect):
    """An episode has no dedup of its own, so only the idempotency key keeps it single."""
    first = connect()
    name = queue(spool, "archive_episode", key="the key", summary="once")
    kept = (spool / name).read_bytes()
    assert episodes(first) == ["once"]
    os.kill(first.hello["pid"], signal.SIGKILL)
    (spool / name).write_bytes(kept)
    assert episodes(connect()) == ["once"]
    assert not (spool / name).exists()


@pytest.mark.stress
def test_kills_at_any_moment_lose_and_double_nothing(spool, home, connect):
    for n in range(150):
        queue(spool, "archive_episode", summary=f"number {n}")
    rounds = 0
    while any(spool.glob("*.json")) and rounds < 4:
        connection = connect()
        connection.call("daemon_status", {})
        os.kill(connection.hello["pid"], signal.SIGKILL)
        rounds += 1
    last = connect()
    while waiting(last)["waiting"]:
        last.call("list_episodes", {"agent_id": "default"})
    assert episodes(last) == [f"number {n}" for n in range(150)]


def test_what_the_daemon_refuses_moves_aside_with_its_reason_and_the_rest_goes_on(spool, home, connect):
    spooling.put(str(spool), "store", {"agent_id": "default", "content": ""}, token="secret token")
    queue(spool, "delete_agent_data")
    queue(spool, "store", content="x", colour=1)
    (spool / "1-1-1.json").write_text("nonsense")
    (spool / "2-1-1.json").symlink_to("/etc/hostname")
    queue(spool, "archive_episode", summary="good")
    daemon = connect()
    assert episodes(daemon) == ["good"]
    failed = {path.name: path.read_text() for path in (spool / "failed").iterdir() if not path.is_symlink()}
    reasons = sorted(json.loads(text)["reason"] for text in failed.values())
    assert reasons == sorted(
        [
            "content is empty",
            "'delete_agent_data' is not a method that can be queued",
            "unknown parameter 'colour'",
            "it is not valid JSON",
            "it cannot be read: a symbolic link stands there, where a file belongs; move it away",
        ]
    )
    assert "secret token" not in "".join(failed.values())
    assert waiting(daemon)["failed"] == 5
    (issue,) = daemon.call("check_health", {"checks": ["spool"]})[0]["issues"]
    assert issue["count"] == 5 and issue["severity"] == "warn"


def test_a_refused_write_is_tried_again_when_it_is_moved_back(spool, connect):
    daemon = connect()
    memory = daemon.call("store", {"agent_id": "default", "content": "kept"})[0]["id"]
    daemon.call("lock_memory", {"memory_id": memory})
    name = queue(spool, "delete_memory", memory_id=memory)
    assert episodes(daemon) == [] and json.loads((spool / "failed" / name).read_text())["code"] == "refused"
    daemon.call("unlock_memory", {"memory_id": memory})
    os.rename(spool / "failed" / name, spool / name)
    assert daemon.call("list_memories", {"agent_id": "default"})[0]["memories"] == []


def test_queued_writes_wait_while_persistence_is_paused_and_the_daemon_counts_as_busy(spool, connect):
    daemon = connect()
    daemon.call("pause_persistence", {"ttl_seconds": 600})
    queue(spool, "archive_episode", summary="later")
    assert episodes(daemon) == []
    daemon.call("list_episodes", {})
    assert waiting(daemon) == {"waiting": 1, "failed": 0, "drained": 0, "problem": "persistence is paused"}
    assert connect().hello["busy"] is True


def test_a_spool_that_others_can_write_to_is_left_alone_and_said(spool, connect):
    queue(spool, "archive_episode", summary="x")
    spool.chmod(0o777)
    daemon = connect()
    assert episodes(daemon) == []
    assert "others can write" in waiting(daemon)["problem"]
    with pytest.raises(PermissionError):
        queue(spool, "store", content="x")


def test_a_queued_write_is_judged_by_the_access_file_like_its_client(spool, home, connect):
    access = os.path.join(home["HOME"], "acl.json")
    grants = {
        "clients": [
            {"client_id": "me", "token": "t1", "grants": {"*": "read-write"}},
            {"client_id": "anyone", "grants": {"*": "read"}},
        ]
    }
    with open(os.open(access, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as handle:
        json.dump(grants, handle)
    spooling.put(str(spool), "store", {"agent_id": "default", "content": "with token"}, token="t1")
    spooling.put(str(spool), "store", {"agent_id": "default", "content": "without"})
    daemon = connect(CPERSONA_ACL_FILE=access)
    rows = daemon.call("list_memories", {"agent_id": "default"})[0]["memories"]
    assert [row["content"] for row in rows] == ["with token"]
    (refused,) = (spool / "failed").glob("*.json")
    assert json.loads(refused.read_text())["reason"] == "permission denied for client anyone"
