"""A daemon killed at any moment has lost nothing that it had acknowledged, and its vector index tells the truth
afterwards.

Contract: writes.durable, vectors.exact.
"""

from __future__ import annotations

import os
import random
import signal

import pytest
from stress_kit import FULL, Writers, assert_index_equals_plain_scan, contents, pending

from cpersona_cli.wire import client, control
from cpersona_daemon.shared.settings import load

pytestmark = pytest.mark.stress

STORES, CLIENTS = (2000, 8) if FULL else (200, 4)


def text(number: int, turn: int) -> str:
    """Texts of all lengths and scripts, none like another, that dedup and sanitising leave alone."""
    some = random.Random(number * 100_000 + turn)
    return (
        f"{number}/{turn} "
        + "".join(some.choice("abc déß 日本 🜚 \n\t'\"\\%_-") for _ in range(some.choice((3, 40, 400, 4000)))).strip()
        + "."
    )


def test_kill_9_during_stores_keeps_every_acknowledged_row_byte_for_byte(with_model):
    moments = random.Random(2)
    kills = 0
    with Writers(with_model, CLIENTS, STORES // CLIENTS, text) as writers:
        while writers.wait_for(moments.randrange(1, 60)):
            note = control.find_daemon(load(with_model), with_model)
            if note is not None and note.get("pid"):
                os.kill(note["pid"], signal.SIGKILL)
                kills += 1
    assert kills >= 3
    assert writers.refused == []
    database = with_model["CPERSONA_DB_PATH"]
    with client.connect(load(with_model), with_model) as connection:
        while pending(connection):
            pass
        assert control.stop_daemon(load(with_model), 30, with_model)
    kept = contents(database)
    assert {number: kept.get(number) for number in writers.kept} == writers.kept
    # A store whose answer was lost was asked again under its key: it is there, and there once.
    assert len(kept) == STORES == len(writers.kept)
    assert assert_index_equals_plain_scan(database) == STORES
    with client.connect(load(with_model), with_model) as connection:
        health, code = connection.call("check_health", {"deep": True})
    assert code is None and health["issues"] == [], health
