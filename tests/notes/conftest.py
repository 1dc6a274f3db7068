"""A directory of notes and an agent of its own for each test, before the one daemon of a module."""

from __future__ import annotations

import json
import os
from itertools import count
from pathlib import Path

import pytest

_numbers = count()


class Notes:
    """A directory and what the store has of it. ``bring`` runs the import and answers its JSON."""

    def __init__(self, root: Path, cli, connection, agent: str):
        self.root, self.cli, self.connection, self.agent = root, cli, connection, agent

    def write(self, path: str, text: str | bytes) -> None:
        whole = self.root / path
        whole.parent.mkdir(parents=True, exist_ok=True)
        whole.write_bytes(text.encode() if isinstance(text, str) else text)

    def remove(self, path: str) -> None:
        os.unlink(self.root / path)

    def run(self, *words: str, what: str | None = None, **more):
        return self.cli(["import", "--markdown", what or str(self.root), "--agent", self.agent, *words], **more)

    def bring(self, *words: str, status: int = 0, **more) -> dict:
        done = self.run(*words, "--json", **more)
        assert done.returncode == status, done
        return json.loads(done.stdout)

    def counts(self, *words: str, **more) -> tuple[int, int, int, int]:
        told = self.bring(*words, **more)
        return told["stored"], told["updated"], told["skipped"], told["deleted"]

    def rows(self) -> list[dict]:
        answer, code = self.connection.call("list_memories", {"agent_id": self.agent, "limit": 500})
        assert code is None
        return answer["memories"][::-1]

    def texts(self) -> dict[str, str]:
        """The notes that the store has: path and section -> text."""
        return {row["msg_id"].partition(":")[2].partition(":")[2]: row["content"] for row in self.rows()}

    def lock(self, path: str) -> str:
        (row,) = [row for row in self.rows() if row["msg_id"].endswith(f":{path}")]
        self.connection.call("lock_memory", {"memory_id": int(row["ref"][4:])})
        return row["ref"]


@pytest.fixture
def notes(tmp_path, shared_cli, shared_daemon) -> Notes:
    root = tmp_path / "docs"
    root.mkdir()
    return Notes(root, shared_cli, shared_daemon, f"agent{next(_numbers)}")
