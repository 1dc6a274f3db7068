"""An agent is measured again when its store has doubled, without being asked. Contract: calibration.growth."""

from __future__ import annotations

import asyncio

import pytest
from measured_store import bursts, insert

from cpersona_daemon.calibration import growth
from cpersona_daemon.calibration.in_force import gate_of_store
from cpersona_daemon.recall.scoring import blend

BLEND = {"recall_mode": "blend", "embedding_mode": "http", "embedding_url": "http://127.0.0.1:9/embed"}


def more(topics, after):
    """Return further memories in bursts, with texts of their own."""
    return [(f"{text} and {after}", at, vector) for text, at, vector in bursts(topics, 4, seed=after)]


async def noticed(ctx, rows, agent="kit"):
    """Let a recall have seen so many rows, and return the agent's measurement once what that began has ended."""
    growth.noticed(ctx, agent, rows)
    await asyncio.gather(*ctx.tasks)
    return ctx.calibration.rows(agent)


def test_it_is_measured_at_a_hundred_rows_and_at_each_doubling_and_not_between(in_store):
    async def body(ctx):
        insert(ctx, "kit", bursts(25, 4))
        assert await noticed(ctx, 99) == 0
        assert await noticed(ctx, 100) == 100
        insert(ctx, "kit", more(24, 100))
        assert await noticed(ctx, 196) == 100
        before = gate_of_store(ctx, ctx.settings, "kit", 196)
        assert before["measured_rows"] == 100 and before["gate"] == pytest.approx(
            ctx.calibration.gate("kit", "blend", "blend", "m1") + blend.growth(100, 196), abs=1e-4
        )
        insert(ctx, "kit", more(2, 200))
        assert await noticed(ctx, 204) == 204

    in_store(body, **BLEND)


def test_an_agent_that_cannot_be_measured_is_tried_once_a_doubling(in_store):
    async def body(ctx):
        insert(ctx, "kit", bursts(1, 3))
        for rows, tried in ((150, 150), (299, 150), (300, 300)):
            assert await noticed(ctx, rows) == 0 and ctx.calibration.tried["kit"] == tried
        assert gate_of_store(ctx, ctx.settings, "kit", 300) == {
            "agent_id": "kit",
            "rows": 300,
            "gate": round(blend.size_gate(300), 4),
            "from": "store size",
        }

    in_store(body, **BLEND)


@pytest.mark.parametrize("setting", [{"calibrate_on_model_change": False}, {"recall_mode": "rrf"}])
def test_nothing_is_measured_unasked_where_that_is_off_or_the_gate_is_another(in_store, setting):
    async def body(ctx):
        insert(ctx, "kit", bursts(25, 4))
        assert await noticed(ctx, 100) == 0 and not ctx.calibration.tried

    in_store(body, **BLEND | setting)
