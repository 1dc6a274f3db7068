"""Answers that nobody reads are bounded over all connections: the one that has most of them is given up.

Contract: wire.bounds.
"""

from __future__ import annotations

import socket

import pytest
from daemon_helpers import Raw
from house_kit import house, make_house  # noqa: F401

from cpersona_daemon.life import connection, server


@pytest.fixture
def served(house, monkeypatch):  # noqa: F811
    """The path of a socket at which a server in this process answers; its bound over all connections is 12 MiB."""
    monkeypatch.setattr(connection, "MAX_ALL_UNREAD_BYTES", 12 << 20)
    for number in range(120):
        house.ask("store", agent_id="a", content=f"{number} " + "x" * 15_000)
    path = str(house.root / "s.sock")

    async def listen():
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        serving = server.Server(house.ctx)
        await serving.listen(listener)
        return serving

    serving = house.run(listen())
    yield path
    house.run(serving.drain())


def test_the_connection_with_most_unread_answers_is_given_up_and_the_others_are_served(served):
    ask = {"id": 1, "method": "list_memories", "params": {"agent_id": "a", "limit": 500}}
    waiting = [Raw(served).greet() for _ in range(8)]
    for one in waiting:
        for _ in range(2):
            one.send(ask)
    reader = Raw(served).greet()
    for _ in range(5):
        reader.send(ask)
        assert len(reader.read()["response"]["memories"]) == 120
    whole = 0
    for one in waiting:
        try:
            whole += one.read() is not None
        except TypeError:  # cut in the middle of a frame
            pass
    assert 2 <= whole < 8
