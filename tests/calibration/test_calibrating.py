"""Measuring a real store through the live pipeline.

Contract: calibration.sample, calibration.gates, calibration.precision, gate.measured.
"""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from measured_store import START, WIDTH, bursts, insert

from cpersona_daemon.calibration.at_start import recalibrate_if_stale
from cpersona_daemon.calibration.gates import QUERY_CHARS, opening_words
from cpersona_daemon.calibration.plan import Plan
from cpersona_daemon.calibration.precision import get_precision, set_precision
from cpersona_daemon.calibration.run import calibrate
from cpersona_daemon.errors import Refused
from cpersona_daemon.rpc.handlers import calibration as handlers
from cpersona_daemon.rpc.registry import Call

UNREACHED = {
    "embedding_mode": "http",
    "embedding_url": "http://127.0.0.1:9/embed",
}  # stored vectors are the queries: nobody is asked


def reference_threshold(rows, method="separation", percentile=0.95, z=1.0, window=1800.0) -> float:
    """The contract's words, in loops, for a store that is sampled whole."""
    similarity = lambda a, b: float(a[2].astype(np.float64) @ b[2].astype(np.float64))  # noqa: E731
    ordered = sorted(rows, key=lambda r: r[1])
    null = [similarity(a, b) for i, a in enumerate(rows) for b in rows[:i]]
    if method == "percentile":
        return round(max(float(np.quantile(null, percentile)), 0.05), 4)
    if method == "zscore":
        return round(max(float(np.mean(null) + z * np.std(null)), 0.05), 4)
    positive = [similarity(a, b) for a, b in zip(ordered, ordered[1:], strict=False) if b[1] - a[1] <= window]
    if len(positive) < 10:
        positive = [max(similarity(a, b) for b in rows if b is not a) for a in rows]
    best = None
    for candidate in np.linspace(min(null + positive), max(null + positive), 256):
        value = sum(s >= candidate for s in positive) / len(positive) + sum(s < candidate for s in null) / len(null)
        if best is None or value > best[0] + 1e-12:
            best = value, float(candidate)
    return round(max(best[1], 0.05), 4)


@pytest.mark.parametrize("method", ["separation", "percentile", "zscore"])
def test_a_store_sampled_whole_gets_the_threshold_of_the_contracts_words(in_store, method):
    async def body(ctx):
        rows = bursts(6, 10)
        insert(ctx, "kit", rows)
        answer = await calibrate(ctx, ctx.settings, Plan("kit", method=method))
        assert answer["new_threshold"] == reference_threshold(rows, method)
        assert answer["old_threshold"] == 0.3 and answer["sampled_embeddings"] == 60 and answer["scope"] == "per_agent"
        assert answer.get("proxy_source") == ("temporal" if method == "separation" else None)
        assert ctx.calibration.threshold("kit") == answer["new_threshold"]

    in_store(body)


def test_memories_far_apart_in_time_are_measured_by_their_nearest_neighbours(in_store):
    async def body(ctx):
        rows = [(text, START + n * 86_400, vector) for n, (text, _, vector) in enumerate(bursts(4, 8))]
        insert(ctx, "kit", rows)
        answer = await calibrate(ctx, ctx.settings, Plan("kit"))
        assert answer["proxy_source"] == "nn_fallback" and answer["new_threshold"] == reference_threshold(rows)

    in_store(body)


def test_a_memory_asks_with_its_opening_words_and_never_with_half_a_word():
    assert opening_words("  a short note ") == "a short note"
    long = "the deployment of the canary failed because the certificate had expired on Friday"
    assert opening_words(long) == "the deployment of the canary failed because the"
    assert opening_words("監視" * 60) == ("監視" * 60)[:QUERY_CHARS]
    assert opening_words("x" * 48 + " y") == "x" * 48


@pytest.mark.parametrize(
    ("mode", "more", "signals"),
    [
        ("rrf", {}, {"cosine", "rrf"}),
        ("rsf", {}, {"rsf", "cosine"}),
        ("cascade", {}, {"cosine"}),
        ("rrf", {"confidence_enabled": True, "confidence_ordering": "legacy"}, {"confidence"}),
    ],
)
def test_every_signal_of_the_mode_gets_a_gate_on_its_own_scale(in_store, mode, more, signals):
    async def body(ctx):
        insert(ctx, "kit", bursts(20, 4))
        gates = (await calibrate(ctx, ctx.settings, Plan("kit")))["gates"]
        assert set(gates) == signals
        assert all(value <= 1 / 61 if signal == "rrf" else 0.05 <= value <= 1 for signal, value in gates.items())
        assert {
            s for s in ("confidence", "rsf", "cosine", "rrf") if ctx.calibration.gate("kit", mode, s, "m1") is not None
        } == signals

    in_store(body, recall_mode=mode, **UNREACHED, **more)


@pytest.mark.parametrize("mode", ["rrf", "rsf", "cascade"])
def test_from_strict_over_balanced_to_lenient_no_gate_rises(in_store, mode):
    async def body(ctx):
        insert(ctx, "kit", bursts(20, 4, noise=0.6))
        gates = {}
        for precision in ("strict", "balanced", "lenient"):
            answer = await set_precision(ctx, ctx.settings, "kit", precision)
            assert answer == {
                "ok": True,
                "agent_id": "kit",
                "precision": precision,
                "beta": ctx.calibration.beta("kit"),
                "cleared": False,
            }
            gates[precision] = {
                s: models["m1"] if "m1" in models else models[""]
                for s, models in ctx.calibration.current.gates["kit"][mode].items()
            }
        for signal in gates["strict"]:
            assert gates["strict"][signal] >= gates["balanced"][signal] >= gates["lenient"][signal]
        assert gates["strict"] != gates["lenient"]

    in_store(body, recall_mode=mode, **UNREACHED)


def test_the_same_store_gives_the_same_numbers_also_after_a_calibration_and_a_restart(in_store):
    plan = Plan("kit", sample_size=50)

    async def first(ctx):
        insert(ctx, "kit", bursts(30, 5))
        a = await calibrate(ctx, ctx.settings, plan)
        b = await calibrate(ctx, ctx.settings, plan)
        assert a["new_threshold"] == b["new_threshold"] == b["old_threshold"] and a["gates"] == b["gates"]
        return a

    async def second(ctx):
        return await calibrate(ctx, ctx.settings, plan)

    a, b = in_store(first, **UNREACHED), in_store(second, **UNREACHED)
    assert (a["new_threshold"], a["gates"], a["sampled_embeddings"]) == (b["new_threshold"], b["gates"], 50)


def test_a_dry_run_tells_the_same_numbers_and_keeps_nothing(in_store):
    async def body(ctx):
        insert(ctx, "kit", bursts(6, 10))
        tried = await calibrate(ctx, ctx.settings, Plan("kit"), dry_run=True)
        assert tried.pop("dry_run") is True
        assert not os.path.exists(ctx.places.calibration) and ctx.calibration.threshold("kit") is None
        assert await calibrate(ctx, ctx.settings, Plan("kit")) == tried

    in_store(body)


def test_all_agents_together_get_a_threshold_and_no_gates(in_store):
    async def body(ctx):
        insert(ctx, "kit", bursts(3, 10))
        insert(ctx, "ada", bursts(3, 10, seed=8))
        answer = await calibrate(ctx, ctx.settings, Plan())
        assert (
            answer["scope"] == "global"
            and answer["agent_id"] == ""
            and answer["sampled_embeddings"] == 60
            and answer["gates"] == {}
        )
        assert ctx.calibration.threshold("kit") == ctx.calibration.threshold("nobody yet") == answer["new_threshold"]

    in_store(body)


def test_a_calibration_bumps_no_recall_counter_and_writes_no_row(in_store):
    async def body(ctx):
        insert(ctx, "kit", bursts(6, 10))

        def rows(conn):
            return conn.execute("SELECT * FROM memories ORDER BY id").fetchall()

        before = ctx.db.read_now(rows)
        await calibrate(ctx, ctx.settings, Plan("kit"))
        assert ctx.db.read_now(rows) == before

    in_store(body, confidence_enabled=True, **UNREACHED)


def test_a_calibration_needs_no_writer_and_leaves_the_loop_free(in_store):
    async def body(ctx):
        insert(ctx, "kit", bursts(20, 5))
        held = threading.Event()
        blocked = asyncio.wrap_future(ctx.db.submit(lambda tx: held.wait(60)))
        answered = []

        async def others():
            while True:
                answered.append(
                    await ctx.db.read(lambda conn: conn.execute("SELECT count(*) FROM memories").fetchall())
                )

        reading = asyncio.create_task(others())
        try:
            await calibrate(ctx, ctx.settings, Plan("kit"))
            assert not blocked.done() and answered
        finally:
            held.set()
            reading.cancel()
        await blocked

    in_store(body, **UNREACHED)


@pytest.mark.parametrize(
    "wrong",
    [
        {"method": "magic"},
        {"sample_size": 0},
        {"sample_size": 5001},
        {"sample_size": 9},
        {"percentile": 1.01},
        {"percentile": float("nan")},
        {"z_factor": float("inf")},
        {"method": "zscore", "z_factor": 50.0},
    ],
)
def test_a_value_out_of_range_or_a_threshold_above_one_is_refused_and_keeps_nothing(in_store, wrong):
    async def body(ctx):
        insert(ctx, "kit", bursts(2, 10))
        with pytest.raises(Refused):
            await calibrate(ctx, ctx.settings, Plan("kit", **wrong))
        assert not os.path.exists(ctx.places.calibration)

    in_store(body)


def test_fewer_than_ten_embedded_memories_are_refused_and_a_precision_with_them(in_store):
    async def body(ctx):
        insert(ctx, "kit", bursts(1, 9))
        insert(ctx, "kit", [(f"bare {n}", START, None) for n in range(5)])
        with pytest.raises(Refused, match="9 embedded memories"):
            await calibrate(ctx, ctx.settings, Plan("kit"))
        with pytest.raises(Refused):
            await set_precision(ctx, ctx.settings, "kit", "strict")
        assert get_precision(ctx, "kit") == {
            "ok": True,
            "agent_id": "kit",
            "precision": "balanced",
            "beta": 1.0,
            "overridden": False,
        }

    in_store(body, recall_mode="rrf")


def test_a_precision_keeps_the_way_in_which_the_threshold_was_measured(in_store):
    async def body(ctx):
        insert(ctx, "kit", bursts(6, 10))
        chosen = await calibrate(ctx, ctx.settings, Plan("kit", method="percentile", percentile=0.8))
        await set_precision(ctx, ctx.settings, "kit", "strict")
        assert ctx.calibration.threshold("kit") == chosen["new_threshold"]

    in_store(body)


def test_clearing_a_precision_measures_again_and_works_when_too_little_is_left(in_store):
    async def body(ctx):
        ids = insert(ctx, "kit", bursts(20, 4))
        plain = (await calibrate(ctx, ctx.settings, Plan("kit")))["gates"]
        await set_precision(ctx, ctx.settings, "kit", "strict")
        assert await set_precision(ctx, ctx.settings, "kit", "") == {
            "ok": True,
            "agent_id": "kit",
            "precision": "default",
            "beta": 1.0,
            "cleared": True,
        }
        assert {s: ctx.calibration.gate("kit", "rrf", s, "") for s in plain} == plain
        await set_precision(ctx, ctx.settings, "kit", "strict")
        ctx.db.write_now(lambda tx: tx.execute("DELETE FROM memory_vectors WHERE id > ?", (ids[3],)) and None)
        assert (await set_precision(ctx, ctx.settings, "kit", ""))["cleared"]
        assert ctx.calibration.beta("kit") == 1.0 and "kit" not in ctx.calibration.current.gates

    in_store(body, recall_mode="rrf", **UNREACHED)


def test_an_unknown_precision_or_no_agent_is_refused(in_store):
    async def body(ctx):
        insert(ctx, "kit", bursts(6, 10))
        for agent, precision in (("kit", "sloppy"), ("", "strict"), ("", "")):
            with pytest.raises(Refused):
                await set_precision(ctx, ctx.settings, agent, precision)
        assert not os.path.exists(ctx.places.calibration)

    in_store(body)


def test_what_was_measured_while_the_agent_was_deleted_is_not_kept(in_store):
    async def body(ctx):
        insert(ctx, "kit", bursts(20, 4))
        running = asyncio.create_task(calibrate(ctx, ctx.settings, Plan("kit")))
        while not ctx.calibration.turn.locked():
            await asyncio.sleep(0)
        ctx.calibration.forget("kit")
        with pytest.raises(Refused, match="deleted meanwhile"):
            await running
        assert ctx.calibration.threshold("kit") is None

    in_store(body, **UNREACHED)


def test_the_handlers_take_null_for_absent_and_answer_the_contracts_keys(in_store):
    async def body(ctx):
        insert(ctx, "kit", bursts(6, 10))

        async def call(name, **params):
            handler = handlers.HANDLERS[name]
            return await handler.answer(Call(ctx, None, handler.params(**params), ctx.settings))

        assert (await call("calibrate_threshold", agent_id=None))["scope"] == "global"
        answer = await call("calibrate_threshold", agent_id="kit")
        assert set(answer) == {
            "ok",
            "scope",
            "agent_id",
            "method",
            "sampled_embeddings",
            "old_threshold",
            "new_threshold",
            "gates",
            "rows",
            "proxy_source",
            "old_gates",
            "canaries",
            "recent_recalls",
        }
        await call("set_recall_precision", agent_id="kit", precision="lenient")
        assert await call("get_recall_precision", agent_id="kit") == {
            "ok": True,
            "agent_id": "kit",
            "precision": "lenient",
            "beta": 0.5,
            "overridden": True,
        }
        assert (await call("set_recall_precision", agent_id="kit", precision=None))["cleared"]

    in_store(body)


# -- at start


def test_a_store_never_measured_is_measured_at_start_where_there_is_enough(in_store, model_server):
    async def body(ctx):
        insert(ctx, "kit", bursts(6, 10))
        insert(ctx, "few", bursts(1, 9, seed=8))
        await recalibrate_if_stale(ctx)
        assert ctx.calibration.current.model == "m1" and ctx.calibration.current.dimension == WIDTH
        assert set(ctx.calibration.current.thresholds) == {"kit"} and ctx.status.working == []

    in_store(body, embedding_mode="http", embedding_url=model_server.url)


def test_a_store_with_too_little_stays_without_a_file(in_store, model_server):
    async def body(ctx):
        insert(ctx, "few", bursts(1, 9))
        await recalibrate_if_stale(ctx)
        assert not os.path.exists(ctx.places.calibration)

    in_store(body, embedding_mode="http", embedding_url=model_server.url)


def test_another_model_at_start_keeps_the_precision_and_measures_the_rows_it_made(in_store, model_server):
    http = {"embedding_mode": "http", "embedding_url": model_server.url, "recall_mode": "rrf"}

    async def first(ctx):
        insert(ctx, "kit", bursts(20, 4), model="m1")
        await recalibrate_if_stale(ctx)
        await set_precision(ctx, ctx.settings, "kit", "strict")
        return Path(ctx.places.calibration).read_bytes()

    async def second(ctx):
        await recalibrate_if_stale(ctx)
        assert ctx.calibration.beta("kit") == 2.0 and ctx.calibration.threshold("kit") is None
        assert Path(ctx.calibration.backup_path).read_bytes() == old
        insert(ctx, "kit", [(text + " again", at, vector) for text, at, vector in bursts(20, 4, seed=9)], model="m2")
        await recalibrate_if_stale(ctx)
        assert ctx.calibration.current.model == "m2" and ctx.calibration.threshold("kit", "m2") is not None
        assert ctx.calibration.gate("kit", "rrf", "cosine", "m2") is not None and ctx.calibration.beta("kit") == 2.0

    old = in_store(first, **http)
    model_server.model = "m2"
    in_store(second, **http)


def test_a_file_that_still_fits_is_left_alone_at_start(in_store, model_server):
    async def body(ctx):
        insert(ctx, "kit", bursts(6, 10))
        await recalibrate_if_stale(ctx)
        before = os.stat(ctx.places.calibration)
        insert(ctx, "ada", bursts(6, 10, seed=8))
        await recalibrate_if_stale(ctx)
        after = os.stat(ctx.places.calibration)
        assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)

    in_store(body, embedding_mode="http", embedding_url=model_server.url)


def test_a_start_in_another_mode_measures_the_agents_with_a_precision_again(in_store, model_server):
    http = {"embedding_mode": "http", "embedding_url": model_server.url}

    async def first(ctx):
        insert(ctx, "kit", bursts(20, 4))
        insert(ctx, "ada", bursts(20, 4, seed=8))
        await recalibrate_if_stale(ctx)
        await set_precision(ctx, ctx.settings, "kit", "strict")

    async def second(ctx):
        await recalibrate_if_stale(ctx)
        assert set(ctx.calibration.current.gates["kit"]) == {"rrf", "rsf"} and set(
            ctx.calibration.current.gates["ada"]
        ) == {"rrf"}

    in_store(first, recall_mode="rrf", **http)
    in_store(second, recall_mode="rsf", **http)


def test_a_start_with_the_setting_off_or_without_an_embedder_measures_nothing(in_store, model_server):
    async def body(ctx):
        insert(ctx, "kit", [(f"{ctx.embedding.mode} {text}", at, vector) for text, at, vector in bursts(6, 10)])
        await recalibrate_if_stale(ctx)
        assert not os.path.exists(ctx.places.calibration)

    in_store(body, embedding_mode="http", embedding_url=model_server.url, calibrate_on_model_change=False)
    in_store(body)


def test_a_service_that_does_not_answer_at_start_is_told_in_the_status(in_store):
    async def body(ctx):
        insert(ctx, "kit", bursts(6, 10))
        await recalibrate_if_stale(ctx)
        assert not os.path.exists(ctx.places.calibration)
        assert any("calibration at start was left out" in text for text in ctx.status.snapshot()["warnings"])

    in_store(body, **UNREACHED)
