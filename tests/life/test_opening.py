"""What a daemon opens before its first answer, and what after. Contract: daemon.opens."""

import asyncio
import importlib
import os
import subprocess
import sys

import pytest

from cpersona_daemon.errors import SettingsConflict
from cpersona_daemon.life import opening
from cpersona_daemon.model.clock import SystemClock
from cpersona_daemon.rpc.dispatch import HANDLERS, dispatch
from cpersona_daemon.rpc.envelopes import Request
from cpersona_daemon.shared import paths
from cpersona_daemon.shared.methods import METHODS
from cpersona_daemon.shared.settings import load


@pytest.fixture
def house(tmp_path):
    environ = {
        "HOME": str(tmp_path),
        "CPERSONA_DB_PATH": str(tmp_path / "db" / "t.db"),
        "CPERSONA_EMBEDDING_MODE": "none",
        "CPERSONA_CALIBRATE_ON_MODEL_CHANGE": "false",
    }
    settings = load(environ)
    places = paths.places(settings, environ)
    paths.make_private_directory(os.path.dirname(places.db))
    return settings, places


async def ask(ctx, method, **params):
    response, code = await dispatch(ctx, ctx.access.identify("", os.getuid()), Request(1, method, params))
    assert code is None, (response, code)
    return response


def living(house, life):
    """Run ``life(ctx)`` over a context that was opened early, and close it."""

    async def whole():
        ctx = await opening.open_early(*house, SystemClock())
        try:
            return await life(ctx)
        finally:
            await opening.close(ctx)

    return asyncio.run(whole())


def test_the_table_of_families_is_what_their_files_hold():
    for family in {row.family for row in METHODS.values()}:
        held = set(importlib.import_module(f"cpersona_daemon.rpc.handlers.{family}").HANDLERS)
        assert held == {row.name for row in METHODS.values() if row.family == family}
    assert set(HANDLERS) == set(METHODS) and len(HANDLERS) == len(METHODS)


def test_no_method_that_writes_rows_is_an_early_one():
    early = {name for name, row in METHODS.items() if row.early}
    writing = {name for name, row in METHODS.items() if not row.reads}
    assert early & writing == {"pause_persistence", "resume_persistence", "daemon_stop"}
    assert {"list_memories", "get_contents"} <= early and not early & {"recall", "store", "daemon_status"}


def test_what_a_first_answer_needs_imports_neither_numpy_nor_the_rooms_that_few_enter():
    code = (
        "import sys, cpersona_daemon.life.lifecycle; from cpersona_daemon.rpc.dispatch import HANDLERS; "
        "HANDLERS['list_memories']; HANDLERS['get_contents'];"
        "print([m for m in ('numpy', 'onnxruntime', 'cpersona_daemon.recall.pipeline', "
        "'cpersona_daemon.portability.imports.run', 'cpersona_daemon.calibration.run',"
        " 'cpersona_daemon.associations.reconstruct', 'cpersona_daemon.health.checks') if m in sys.modules])"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def test_a_listing_is_answered_before_the_vectors_are_open_and_a_recall_waits_for_them(house, monkeypatch):
    monkeypatch.setattr(opening, "GRACE_SECONDS", 3600)

    async def life(ctx):
        seen = []
        original = ctx.opening.begin
        ctx.opening.begin = lambda: seen.append(ctx.vectors)  # the first answer is what begins the rest
        assert (await ask(ctx, "list_memories", agent_id="a"))["count"] == 0
        assert seen == [None] and not ctx.opening.whole
        ctx.opening.begin = original
        assert (await ask(ctx, "store", agent_id="a", content="kettle"))["result"] == "stored"
        assert ctx.opening.whole
        assert [m["content"] for m in (await ask(ctx, "recall", agent_id="a", query="kettle"))["messages"]] == [
            "kettle"
        ]

    living(house, life)


def test_stores_that_wait_for_the_opening_are_written_in_the_order_in_which_they_came(house):
    async def life(ctx):
        first = [asyncio.create_task(ask(ctx, "store", agent_id="a", content=f"early {n}")) for n in range(50)]
        while not ctx.opening.whole:
            await asyncio.sleep(0)
        more = [asyncio.create_task(ask(ctx, "store", agent_id="a", content=f"late {n}")) for n in range(50)]
        assert [(await task)["id"] for task in first + more] == list(range(1, 101))

    living(house, life)


def test_without_a_question_everything_is_open_after_a_short_grace(house, monkeypatch):
    monkeypatch.setattr(opening, "GRACE_SECONDS", 0.01)

    async def life(ctx):
        through = asyncio.Event()
        ctx.opening._through = lambda error: through.set()
        await asyncio.wait_for(through.wait(), 30)
        assert ctx.opening.whole and all(HANDLERS.is_loaded(name) for name in HANDLERS)

    living(house, life)


def test_a_daemon_that_leaves_at_once_opens_nothing_more(house, monkeypatch):
    monkeypatch.setattr(opening, "GRACE_SECONDS", 3600)

    async def life(ctx):
        assert not ctx.opening.whole
        return ctx

    assert living(house, life).vectors is None


def test_a_part_that_cannot_be_opened_is_said_to_whoever_waits_and_to_the_daemon(house, monkeypatch):
    from cpersona_daemon.calibration import file

    def fails(path):
        raise OSError("no such device")

    monkeypatch.setattr(file, "CalibrationFile", fails)

    async def whole():
        told = []
        ctx = await opening.open_early(*house, SystemClock(), told.append)
        try:
            response, code = await dispatch(
                ctx, ctx.access.identify("", os.getuid()), Request(1, "recall", {"agent_id": "a", "query": "x"})
            )
            assert code is not None and response
            assert [str(error) for error in told] == ["no such device"]
            assert (await ask(ctx, "list_memories", agent_id="a"))["count"] == 0
        finally:
            await opening.close(ctx)

    asyncio.run(whole())


def test_an_address_that_is_none_keeps_a_daemon_from_starting(house, tmp_path):
    settings = load(
        {
            "HOME": str(tmp_path),
            "CPERSONA_DB_PATH": house[1].db,
            "CPERSONA_EMBEDDING_MODE": "http",
            "CPERSONA_EMBEDDING_URL": "nonsense",
        }
    )
    with pytest.raises(SettingsConflict):
        asyncio.run(opening.open_early(settings, house[1], SystemClock()))


def test_a_damaged_index_found_after_the_first_answer_is_built_anew(house):
    async def fill(ctx):
        await ask(ctx, "store", agent_id="a", content="kettle")
        row = "INSERT INTO memory_vectors VALUES (1, 'm', ?)"
        await ctx.db.write(lambda tx: tx.execute(row, (bytes(4) * 7 + b"\0\0\x80\x3f",)))
        await asyncio.to_thread(ctx.vectors.rebuild)

    living(house, fill)
    with open(house[1].memory_vectors, "r+b") as file:
        file.truncate(10)

    async def later(ctx):
        assert (await ask(ctx, "list_memories", agent_id="a"))["count"] == 1
        await ctx.opening.wanted()
        await asyncio.to_thread(ctx.vectors.wait)
        status = ctx.vectors.status()["mem"]
        assert status["origin"] == "rebuilt" and ctx.vectors.status()["mem"]["rows"] == 1

    living(house, later)
