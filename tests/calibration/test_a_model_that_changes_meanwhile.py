"""A service that changes its model while a store is measured or asked: each vector keeps the name of the model that
made it.

Contract: embedding.identity, calibration.file.
"""

from __future__ import annotations

import asyncio

from measured_store import bursts, insert

from cpersona_daemon.calibration import measure
from cpersona_daemon.calibration.measured import Measured
from cpersona_daemon.calibration.plan import Plan
from cpersona_daemon.calibration.run import calibrate
from cpersona_daemon.memory.draft import prepare
from cpersona_daemon.memory.store import store
from cpersona_daemon.model.kinds import MEMORY
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.recall import pipeline
from cpersona_daemon.recall.types import Query


def then_another_model(ctx, model_server, monkeypatch, name):
    """Let the service be m2, and be asked by somebody else, right after each answer that ``name`` of the embedding
    gives.
    """
    embed, documents = getattr(ctx.embedding, name), ctx.embedding.embed_documents

    async def embed_and_change(*given, **options):
        made = await embed(*given, **options)
        model_server.model = "m2"
        await documents(["stored meanwhile"])
        return made

    monkeypatch.setattr(ctx.embedding, name, embed_and_change)


def test_what_is_measured_is_filed_under_the_model_that_made_the_vectors(in_store, model_server, monkeypatch):
    async def body(ctx):
        insert(ctx, "kit", bursts(6, 10), model="m1")
        await ctx.embedding.learn(10)
        similarities, loop = measure.pair_similarities, asyncio.get_running_loop()

        def changed_meanwhile(vectors):
            model_server.model = "m2"
            asyncio.run_coroutine_threadsafe(ctx.embedding.embed_documents(["stored meanwhile"]), loop).result(10)
            return similarities(vectors)

        monkeypatch.setattr(measure, "pair_similarities", changed_meanwhile)
        answer = await calibrate(ctx, ctx.settings, Plan("kit"))
        assert ctx.calibration.threshold("kit", "m1") == answer["new_threshold"]
        assert ctx.calibration.threshold("kit", "m2") is None
        assert ctx.calibration.gate("kit", "rrf", "cosine", "m2") is None

    in_store(body, embedding_mode="http", embedding_url=model_server.url, recall_mode="rrf")


def test_openings_are_compared_with_the_rows_of_the_model_that_embedded_them(in_store, model_server, monkeypatch):
    async def body(ctx):
        insert(ctx, "kit", bursts(20, 4), model="m1")
        await ctx.embedding.learn(10)
        undisturbed = (await calibrate(ctx, ctx.settings, Plan("kit"), dry_run=True))["gates"]
        then_another_model(ctx, model_server, monkeypatch, "embed_documents")
        assert (await calibrate(ctx, ctx.settings, Plan("kit"), dry_run=True))["gates"] == undisturbed

    in_store(body, embedding_mode="http", embedding_url=model_server.url, recall_mode="blend")


def test_a_question_is_judged_by_the_gate_of_the_model_that_embedded_it(in_store, model_server, monkeypatch):
    async def body(ctx):
        insert(ctx, "kit", bursts(6, 10), model="m1")
        gates = {"kit": {"rsf": {"rsf": {"m1": 0.0, "m2": 9.0}}}}
        ctx.calibration.update(lambda held: Measured(model="m1", gates=gates))
        question = Query("the harbour number 3", Scope("kit"), 10)
        before = await pipeline.recall(ctx, ctx.settings, question)
        then_another_model(ctx, model_server, monkeypatch, "embed_query")
        after = await pipeline.recall(ctx, ctx.settings, question)
        assert [row.ref for row in after.rows] == [row.ref for row in before.rows] != []

    in_store(body, embedding_mode="http", embedding_url=model_server.url, recall_mode="rsf")


def test_a_row_stored_meanwhile_has_the_name_of_the_model_that_made_its_vector(in_store, model_server, monkeypatch):
    async def body(ctx):
        draft = prepare(
            agent_id="kit",
            content="the kettle stands by the window",
            msg_id="",
            source=None,
            timestamp="",
            metadata=None,
            channel="",
            project_id="",
            locked=False,
            now=ctx.clock.now(),
            settings=ctx.settings,
        )
        then_another_model(ctx, model_server, monkeypatch, "embed_documents")
        answer = await store(ctx, draft)
        assert answer["embedded"] and ctx.embedding.model.identity == "m2"
        found = ctx.db.read_now(
            lambda conn: conn.execute(f"SELECT model FROM {MEMORY.vectors} WHERE id = ?", (answer["id"],)).fetchone()
        )
        assert found == ("m1",)

    in_store(body, embedding_mode="http", embedding_url=model_server.url)
