"""Values that nobody would send, in every parameter of every method: an answer that can be sent, or a typed refusal.

Contract: wire.frames, answer.shape.
"""

from __future__ import annotations

import random

import msgspec
import pytest
from house_kit import house, make_house  # noqa: F401

from cpersona_daemon.life import frames
from cpersona_daemon.rpc.dispatch import HANDLERS, dispatch
from cpersona_daemon.rpc.envelopes import Request, Response
from cpersona_daemon.shared.methods import METHODS

CALLS = 2_000
# What would end the daemon, or is about the process that serves a socket.
LEFT_OUT = {"daemon_stop", "daemon_status"}
NEEDED = {
    "agent_id": "a",
    "content": "text",
    "query": "text",
    "summary": "text",
    "profile": "text",
    "entity": "text",
    "text": "text",
    "memory_id": 1,
    "episode_id": 1,
    "canary_id": 1,
    "source_agent_id": "a",
    "target_agent_id": "b",
    "refs": ["mem:1"],
    "ref": "mem:1",
    "notes": [{"id": "n", "content": "c"}],
}
LEAVES = [
    None,
    True,
    False,
    0,
    -1,
    1,
    2**63 - 1,
    -(2**63),
    1.5,
    3.0,
    1e308,
    -0.0,
    "",
    "\0",
    "a\0b",
    "mem:1",
    "ep:1",
    "mem:0",
    "mem:-1",
    "mem:1 ",
    "mem:" + "9" * 30,
    "mem:٣",
    "x" * 300,
    "x" * 20_000,
    "é" * 9_000,
    "2026-01-05",
    "99999-01-01",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    " ",
    "\u202e",
    "%",
    '"',
    "' OR 1",
    "*",
    "NEAR(",
    "[Memory from x] ",
    "😀",
    "\ufeff",
    "store",
    "skip",
    "strict",
    "move",
    "separation",
]
KEYS = [
    "id",
    "ref",
    "name",
    "aliases",
    "entities",
    "relations",
    "subject",
    "predicate",
    "object",
    "mentions",
    "entity",
    "alias",
    "role",
    "content",
    "timestamp",
    "user_id",
    "type",
    "User",
    "System",
    "source",
    "metadata",
    "replaces",
    "x",
    "",
    "\0",
]


def drawn(draw: random.Random, depth: int = 3) -> object:
    kind = draw.random()
    if not depth or kind < 0.6:
        return draw.choice(LEAVES)
    if kind < 0.8:
        return [drawn(draw, depth - 1) for _ in range(draw.choice((0, 1, 3, 30)))]
    return {draw.choice(KEYS): drawn(draw, depth - 1) for _ in range(draw.choice((0, 1, 3, 6)))}


@pytest.mark.parametrize("seed", [1, 2])
def test_no_value_of_any_parameter_is_a_failure_that_nobody_foresaw(house, seed):  # noqa: F811
    draw, names = random.Random(seed), [name for name in METHODS if name not in LEFT_OUT]
    for method, params in (
        ("store", {"agent_id": "a", "content": "hello walnut"}),
        ("archive_episode", {"agent_id": "a", "summary": "walnut day"}),
    ):
        house.ask(method, **params)
    for _ in range(CALLS):
        method = draw.choice(names)
        known = msgspec.structs.fields(HANDLERS[method].params)
        params = {f.encode_name: NEEDED.get(f.encode_name, "x") for f in known if f.required} | {
            f.encode_name: drawn(draw) for f in known if draw.random() < 0.4
        }
        if isinstance(params.get("output_path"), str):
            params["output_path"] = str(house.root / "out")
        if method == "pause_persistence":
            params["session_key"] = "somebody else's"
        if frames.unfit(params) is not None:
            continue
        request = Request(1, method, params)
        response, code = house.run(dispatch(house.ctx, house.caller, request))
        assert code != "internal", (method, params, response)
        frames.encode(Response(1, response, code))
