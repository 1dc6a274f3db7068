"""A store to hold to its contracts: an embedding service with chosen vectors, and an agent of one's own in it.

Records enter through ``import_memories``, which keeps the created_at and the vector that a test gives them.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from embed_kit import MODEL, EmbedServer, with_vector

WIDTH = 8
QUESTION = [1.0] + [0.0] * (WIDTH - 1)
BASE = datetime(2026, 1, 5, tzinfo=UTC)
_numbers = itertools.count(1)


def at_cosine(cosine: float) -> list[float]:
    """Return a unit vector whose cosine with every question is this."""
    return [cosine, (1 - cosine * cosine) ** 0.5, *[0.0] * (WIDTH - 2)]


def hashed(text: str) -> list[float]:
    """Return a unit vector that depends on the text alone."""
    raw = [byte - 127.5 for byte in hashlib.sha256(text.encode()).digest()[:WIDTH]]
    length = sum(x * x for x in raw) ** 0.5
    return [x / length for x in raw]


def stamp(hours: float) -> str:
    """Return the timestamp of so many hours after the kit's beginning of time."""
    return (BASE + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")


def created(hours: float) -> str:
    """Return the created_at of so many hours after the kit's beginning of time."""
    return (BASE + timedelta(hours=hours)).strftime("%Y-%m-%d %H:%M:%S")


def memory(content: str, cosine: float | None = None, at: float | None = None, **fields: Any) -> dict:
    """A memory line: ``at`` hours set its timestamp and created_at, ``cosine`` its vector; without one it has none."""
    return _row("memory", cosine, at, {"content": content, **fields})


def episode(summary: str, cosine: float | None = None, at: float | None = None, **fields: Any) -> dict:
    """An episode line; ``at`` hours set its created_at."""
    return _row("episode", cosine, at, {"summary": summary, **fields})


def _row(kind: str, cosine: float | None, at: float | None, fields: dict) -> dict:
    row = {"_type": kind, **fields}
    if cosine is not None:
        row |= with_vector(at_cosine(cosine))
    if at is not None:
        row.setdefault("created_at", created(at))
        if kind == "memory":
            row.setdefault("timestamp", stamp(at))
    return row


class Embedder(EmbedServer):
    """Serves POST /embed: a question's vector for the texts in ``questions``, a hash of the text for any other.

    ``asked`` lists every text it was sent.
    """

    def __init__(self) -> None:
        super().__init__()
        self.questions: set[str] = set()
        self.asked: list[str] = []

    def reply(self, texts: list[str]) -> dict:
        self.asked += texts
        return {"embeddings": [self.vector(text) for text in texts], "dimensions": WIDTH, "model": MODEL}

    def vector(self, text: str) -> list[float]:
        return QUESTION if text in self.questions else hashed(text)

    @property
    def settings(self) -> dict[str, str]:
        return {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": self.url}


class Agent:
    """One agent of a store, that nobody else uses. ``code`` is the error code of the last answer.

    ``call(method, params, overrides=...)`` answers (response, code): a connection to a daemon, or a ``Store``.
    """

    def __init__(self, call: Callable[..., tuple[dict, str | None]], directory: Path, embedder: Embedder | None):
        self._call, self._directory, self._embedder = call, directory, embedder
        self.name = f"agent-{next(_numbers)}"
        self.code: str | None = None

    def ask(self, method: str, set: dict | None = None, **params: Any) -> dict:
        """Call a method as this agent, with retrieval settings for this request in ``set``."""
        response, self.code = self._call(method, params, overrides=set)
        return response

    def own(self, method: str, set: dict | None = None, **params: Any) -> dict:
        """The same with this agent's id among the params."""
        return self.ask(method, set, agent_id=self.name, **params)

    def load(self, *records: dict) -> list[str]:
        """Import records and return their refs in the same order; those without a time are a minute apart."""
        lines = []
        for place, record in enumerate(records):
            line = {"agent_id": self.name, **record}
            if line["_type"] == "memory":
                line.setdefault("timestamp", stamp(place / 60))
            line.setdefault("created_at", created(place / 60))
            lines.append(line)
        self.import_lines(lines)
        known = {_key("memory", row): row["ref"] for row in self.own("list_memories", limit=500)["memories"]}
        known |= {_key("episode", row): row["ref"] for row in self.own("list_episodes", limit=200)["episodes"]}
        return [known[_key(line["_type"], line)] for line in lines]

    def crowd(self, rows: int = 500) -> None:
        """Fill the pool with old undated memories that no test asks for; from 499 rows on the gate stands at its
        lowest.
        """
        self.import_lines(
            [
                {
                    "_type": "memory",
                    "agent_id": self.name,
                    "content": f"padding {n}",
                    "timestamp": "",
                    "created_at": created(n / 60 - 100_000),
                }
                for n in range(rows)
            ]
        )

    def import_lines(self, lines: list[dict]) -> None:
        if not lines:
            return  # a file without a line is no export
        path = self._directory / f"{self.name}-{next(_numbers)}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        answer = self.ask("import_memories", input_path=str(path))
        assert answer["ok"] and not answer.get("errors"), answer

    def recall(self, query: str, set: dict | None = None, **params: Any) -> dict:
        """Ask a question; every row's cosine with it is the one that the row was given."""
        if self._embedder is not None:
            self._embedder.questions.add(query)
        answer = self.own("recall", set, query=query, **params)
        assert self.code is None, answer
        return answer

    def reconstruct(self, query: str, set: dict | None = None, **params: Any) -> dict:
        if self._embedder is not None:
            self._embedder.questions.add(query)
        answer = self.own("reconstruct", set, query=query, **params)
        assert self.code is None, answer
        return answer

    def counted(self, ref: str) -> tuple[int, str | None]:
        """Return how often a memory was recalled and when last, from an export."""
        path = self._directory / f"{self.name}-{next(_numbers)}.jsonl"
        assert self.ask("export_memories", output_path=str(path), agent_id=self.name)["ok"]
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row["_type"] == "memory" and f"mem:{row['id']}" == ref:
                return row["recall_count"], row["last_recalled_at"]
        raise LookupError(ref)


def _key(kind: str, row: dict) -> tuple:
    return kind, row.get("project_id", ""), row.get("channel", ""), row["content" if kind == "memory" else "summary"]


def refs(answer: dict) -> list[str]:
    """Return the refs of an answer in its order: the last is the best. The profile row has none."""
    return [row.get("ref", "profile") for row in answer["messages"]]


def reasons(answer: dict) -> dict[str, dict]:
    """Return the match_reason of each row that has one, by ref."""
    return {row.get("ref", "profile"): row["match_reason"] for row in answer["messages"] if "match_reason" in row}
