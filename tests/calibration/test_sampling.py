"""What a calibration reads of the store.

Contract: calibration.sample.
"""

from __future__ import annotations

import numpy as np
from measured_store import WIDTH, bursts, insert

from cpersona_daemon.model.identity import VectorModel
from cpersona_daemon.storage import calibration as rows

ANY = VectorModel("", None)


def drawn(ctx, agent: str, size: int, fit: VectorModel = ANY, *seed: object) -> list[int]:
    return [
        r.id for r in ctx.db.read_now(lambda conn: rows.sample(conn, rows.memory_ids(conn, agent), size, fit, *seed))
    ]


def test_a_sample_follows_from_its_seed_alone(in_store):
    async def body(ctx):
        insert(ctx, "kit", bursts(10, 10))
        first = drawn(ctx, "kit", 20, ANY, "kit", 100)
        assert first == drawn(ctx, "kit", 20, ANY, "kit", 100) and len(set(first)) == 20
        assert first != drawn(ctx, "kit", 20, ANY, "kit", 101) and first != sorted(first)

    in_store(body)


def test_a_sample_holds_embedded_rows_of_one_agent_and_one_width(in_store):
    async def body(ctx):
        ours = insert(ctx, "kit", bursts(3, 10))
        insert(ctx, "kit", [(f"bare {n}", 0.0, None) for n in range(20)])
        insert(ctx, "kit", [(f"narrow {n}", 0.0, np.ones(4, np.float32) / 2) for n in range(5)])
        broken = np.full(WIDTH, np.nan, np.float32)
        insert(ctx, "kit", [("broken", 0.0, broken)])
        insert(ctx, "other", bursts(2, 10, seed=8))
        assert sorted(drawn(ctx, "kit", 500)) == ours
        assert len(drawn(ctx, "", 500)) == 50

    in_store(body)


def test_rows_of_another_model_are_left_out_and_an_unknown_model_fits_any(in_store):
    async def body(ctx):
        first = insert(ctx, "kit", bursts(2, 10), model="m1")
        insert(ctx, "kit", [(t + " again", i, v) for t, i, v in bursts(2, 10, seed=9)], model="m2")
        unknown = insert(ctx, "kit", [(t + " once more", i, v) for t, i, v in bursts(1, 10, seed=10)], model="")
        assert sorted(drawn(ctx, "kit", 500, VectorModel("m1", WIDTH))) == first + unknown
        assert len(drawn(ctx, "kit", 500, VectorModel("", WIDTH))) == 50
        assert drawn(ctx, "kit", 500, VectorModel("m1", WIDTH + 1)) == []

    in_store(body)


def test_the_neighbour_in_time_is_the_next_embedded_row_of_the_agent_within_the_window(in_store):
    async def body(ctx):
        vector = np.eye(WIDTH, dtype=np.float32)
        a, b, c, d, e = insert(
            ctx,
            "kit",
            [
                ("a", 1000.0, vector[0]),
                ("b", 1000.0, vector[1]),
                ("c", 1600.0, None),
                ("d", 2800.0, vector[2]),
                ("e", 4601.0, vector[3]),
            ],
        )
        insert(ctx, "other", [("x", 1001.0, vector[4])])
        insert(ctx, "kit", [("undated", 0.0, vector[5])])
        ctx.db.write_now(lambda tx: tx.execute("UPDATE memories SET instant = NULL WHERE content = 'undated'") and None)

        def pairs(conn):
            sampled = rows.sample(conn, rows.memory_ids(conn, "kit"), 100, ANY)
            return {(x.id, y.id) for x, y in rows.next_in_time(conn, sampled, 1800)}

        assert ctx.db.read_now(pairs) == {(a, b), (b, d)}

    in_store(body)


def test_agents_are_listed_without_reading_every_row(in_store):
    async def body(ctx):
        for agent in ("kit", "ada", "zoe"):
            insert(ctx, agent, bursts(1, 5))
        assert ctx.db.read_now(rows.agents) == ["ada", "kit", "zoe"]

    in_store(body)


def test_ids_come_from_an_index_and_not_from_the_rows(in_store):
    async def body(ctx):
        def plan(conn, sql, *params):
            return " ".join(row[3] for row in conn.execute("EXPLAIN QUERY PLAN " + sql, params))

        assert "COVERING INDEX" in ctx.db.read_now(plan, "SELECT id FROM memories WHERE agent_id = ?", "kit")
        assert "COVERING INDEX" in ctx.db.read_now(plan, "SELECT id FROM memories")

    in_store(body)
