"""A store to look into: what it holds by SQL, the files that it reads and writes, requests that are still under way."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from store_kit import Store

from cpersona_daemon.rpc.dispatch import dispatch
from cpersona_daemon.rpc.envelopes import Request


class House(Store):
    """``ask(method, **params)`` answers the response; its error code is then in ``code``."""

    def __init__(self, root: Path, **environ: str):
        super().__init__(root, **environ)
        self.root = root
        self.code, self.progress = None, []
        self.caller = self.ctx.access.identify("", os.getuid())

    def start(self, method: str, **params: Any):
        """Send a request and return its future, which holds (response, code)."""
        request = Request(1, method, params, progress=True)
        return asyncio.run_coroutine_threadsafe(
            dispatch(self.ctx, self.caller, request, self.progress.append), self._loop
        )

    def ask(self, method: str, **params: Any) -> dict:
        response, self.code = self.start(method, **params).result(60)
        return response

    def sql(self, statement: str, *params: Any) -> list[tuple]:
        return self.ctx.db.read_now(lambda conn: conn.execute(statement, params).fetchall())

    def change(self, statement: str, *params: Any) -> None:
        self.ctx.db.write_now(lambda tx: tx.execute(statement, params) and None)

    def write(self, name: str, *lines: Any) -> str:
        """Write a file of JSON lines (text goes in as it is) and return its path."""
        path = self.root / name
        path.write_bytes(
            b"".join(
                (
                    line
                    if isinstance(line, bytes)
                    else line.encode()
                    if isinstance(line, str)
                    else json.dumps(line).encode()
                )
                + b"\n"
                for line in lines
            )
        )
        return str(path)

    def read(self, name: str) -> list[dict]:
        return [json.loads(line) for line in (self.root / name).read_text(encoding="utf-8").splitlines()]

    def export(self, name: str, **params: Any) -> list[dict]:
        """Export to a file and return its lines."""
        answer = self.ask("export_memories", output_path=str(self.root / name), **params)
        assert answer["ok"], answer
        return self.read(name)


def memory(content: str, **more: Any) -> dict:
    return {"_type": "memory", "agent_id": "a", "content": content, **more}


@pytest.fixture
def make_house(tmp_path):
    """Open houses, each in a directory of its own, with environment variables."""
    opened = []

    def make(name="one", **environ):
        root = tmp_path / name
        root.mkdir()
        opened.append(House(root, **environ))
        return opened[-1]

    yield make
    for house in opened:
        house.close()


@pytest.fixture
def house(make_house):
    return make_house()
