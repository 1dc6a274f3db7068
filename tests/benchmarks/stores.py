"""Databases of any size made of the common workload, and daemons that serve them.

with workplace(given.dir) as place:
    environ = filled(place, 100_000)
    with serving(environ) as connection: connection.call(...)
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import apsw
import msgspec
from workload import Embedder, records

from cpersona_cli.wire import client, control
from cpersona_daemon.embedding.builtin.embedder import BuiltinEmbedder
from cpersona_daemon.life import lifecycle
from cpersona_daemon.model.clock import SystemClock
from cpersona_daemon.portability.imports.outcome import Outcome
from cpersona_daemon.portability.imports.records import MemoryRow, Row
from cpersona_daemon.portability.imports.writing import Ids, Writer
from cpersona_daemon.shared.paths import places
from cpersona_daemon.shared.settings import load
from cpersona_daemon.storage import schema
from cpersona_daemon.storage.memories import NewMemory

DIM = 768
TOGETHER = 64
_PASSED_ON = ("PATH", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH")


@contextmanager
def workplace(kept: str | None) -> Iterator[Path]:
    """A directory for databases: ``kept`` stays, so that the next run need not fill them again; None is removed at the
    end.
    """
    place = Path(kept or tempfile.mkdtemp(prefix="cp-bench-", dir="/tmp")).resolve()
    place.mkdir(parents=True, exist_ok=True)
    try:
        yield place
    finally:
        if kept is None:
            shutil.rmtree(place, ignore_errors=True)


def environment(directory: Path, **more: str) -> dict[str, str]:
    """Return a clean environment whose database lies in a directory."""
    environ = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return environ | {
        "HOME": str(directory),
        "TZ": "UTC",
        "LANG": "C.UTF-8",
        "CPERSONA_DB_PATH": str(directory / "t.db"),
        "CPERSONA_EMBEDDING_MODE": "none",
        "CPERSONA_CALIBRATE_ON_MODEL_CHANGE": "false",
        **more,
    }


def row_of(record: dict[str, Any], embedder: Embedder | None) -> Row:
    """Return a record of the workload as a row to be written."""
    new = NewMemory(
        record["agent_id"],
        record["content"],
        record["project_id"],
        record["channel"],
        record["msg_id"],
        msgspec.json.encode(record["source"]).decode(),
        record["timestamp"],
        created_at=created(record),
    )
    return MemoryRow(None, new, None if embedder is None else embedder.one(record["content"]), Embedder.MODEL, [], None)


def created(record: dict[str, Any]) -> str:
    return datetime.fromisoformat(record["timestamp"]).strftime("%Y-%m-%d %H:%M:%S")


def filled(place: Path, rows: int, dim: int = DIM) -> dict[str, str]:
    """Return the environment of a database with so many memories and their vectors (none with ``dim`` 0); it is made
    when it is not there.
    """
    directory = place / f"{rows}x{dim}"
    environ = environment(directory)
    if not (directory / "whole").exists():
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        print(f"filling a database with {rows:,} rows ...", file=sys.stderr, flush=True)
        asyncio.run(_fill(environ, rows, Embedder(dim) if dim else None))
        (directory / "whole").touch()
    return environ


async def _fill(environ: dict[str, str], count: int, embedder: Embedder | None) -> None:
    settings = load(environ)
    ctx = await lifecycle.open_context(settings, places(settings), SystemClock())
    try:
        ids, waiting = Ids(set()), []
        for record in records(count):
            waiting.append(row_of(record, embedder))
            if len(waiting) == 16 * TOGETHER:
                await ctx.db.write(_writing(waiting, ids))
                waiting = []
        if waiting:
            await ctx.db.write(_writing(waiting, ids))
        ctx.vectors.wait()
    finally:
        await lifecycle.close_context(ctx)


def _writing(rows: list[Row], ids: Ids):
    def job(tx) -> None:
        writer = Writer(tx, ids, embed=False)
        for at in range(0, len(rows), TOGETHER):
            writer.take_rows(rows[at : at + TOGETHER], Outcome())

    return job


def copied(environ: dict[str, str], place: Path, name: str, **more: str) -> dict[str, str]:
    """Return the environment of a copy of a database, for what writes into it."""
    source, target = Path(environ["CPERSONA_DB_PATH"]).parent, place / name
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    for file in source.glob("t.db*"):
        if not file.is_socket() and file.suffix not in (".lock", ".sock"):
            shutil.copy(file, target / file.name)
    return environ | {"HOME": str(target), "CPERSONA_DB_PATH": str(target / "t.db"), **more}


def of_the_builtin_model(environ: dict[str, str], waiting: int = 0) -> dict[str, str]:
    """Say that a database's vectors (of 896 numbers) are the builtin model's, list its newest rows for embedding anew,
    and return how to serve it.
    """
    path = Path(environ["CPERSONA_DB_PATH"])
    for file in path.parent.glob("t.db.*.vec*"):
        file.unlink()
    conn = apsw.Connection(str(path))
    schema.migrate(conn, SystemClock().now())
    conn.execute("UPDATE memory_vectors SET model = ?", (BuiltinEmbedder.identity,))
    conn.execute(
        "INSERT OR IGNORE INTO embedding_backlog SELECT 'mem', id FROM memories ORDER BY id DESC LIMIT ?", (waiting,)
    )
    conn.close()
    return environ | {"CPERSONA_EMBEDDING_MODE": "builtin"}


@contextmanager
def serving(environ: dict[str, str]) -> Iterator[client.Connection]:
    """A daemon of a database, as a connection to it; it ends with the block."""
    try:
        with client.connect(load(environ), environ) as connection:
            yield connection
    finally:
        control.stop_daemon(load(environ), environ=environ)


@contextmanager
def embed_server(dim: int = DIM) -> Iterator[dict[str, str]]:
    """The workload's embedder behind HTTP; yields the settings that name it."""
    embedder = Embedder(dim)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            texts = msgspec.json.decode(self.rfile.read(int(self.headers["Content-Length"])))["texts"]
            body = msgspec.json.encode(
                {"embeddings": embedder.embed(texts).tolist(), "dimensions": dim, "model": Embedder.MODEL}
            )
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield {
            "CPERSONA_EMBEDDING_MODE": "http",
            "CPERSONA_EMBEDDING_URL": f"http://127.0.0.1:{server.server_port}/embed",
        }
    finally:
        server.shutdown()


def pid_of(connection: client.Connection) -> int:
    return connection.hello["pid"]


def ask(connection: client.Connection, method: str, **params: Any) -> dict[str, Any]:
    """Return the answer of a call that must succeed."""
    response, code = connection.call(method, params)
    if code is not None:
        raise SystemExit(f"{method}: {code}: {response}")
    return response


def processor_seconds(pid: int) -> float:
    """Return the processor time that a process has used."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
