"""Long texts, a model that knows words alone, and a store that asks it, for the tests of passages."""

from __future__ import annotations

import hashlib

import numpy as np
from embed_kit import EmbedServer
from store_kit import Store

from cpersona_daemon.model.kinds import MEMORY, PassageKind
from cpersona_daemon.storage import passages as stored

WIDTH = 256
FILLER = "The watch noted wind, cloud and the height of the tide before supper. "
ANSWER = "Marguerite hid the violin behind the boiler."


def vector(text: str) -> list[float]:
    """Return a bag of the text's words: texts are as near as they share them."""
    found = np.zeros(WIDTH)
    for word in text.lower().replace(".", " ").split():
        found[int(hashlib.md5(word.encode()).hexdigest(), 16) % WIDTH] += 1.0
    return (found / (np.linalg.norm(found) or 1.0)).tolist() if found.any() else [1.0] + [0.0] * (WIDTH - 1)


def long_text(name: str, answer: str = "", pages: int = 60) -> str:
    return (f"Log of {name}. " + FILLER * pages + answer + (" " + FILLER * 3 if answer else "")).strip()


class Bag(EmbedServer):
    model = "bag"

    def reply(self, texts: list[str]) -> dict:
        return {"embeddings": [vector(text) for text in texts], "model": self.model}


def put(store: Store, content: str, agent: str = "a") -> int:
    answer, _ = store.call("store", {"agent_id": agent, "content": content})
    assert answer["result"] == "stored", answer
    return answer["id"]


def settle(store: Store) -> None:
    assert store.run(store.ctx.backlog.wait_until_drained(1_000, 30.0))


def recall(store: Store, query: str, mode: str = "blend", **more) -> dict:
    answer, _ = store.call("recall", {"agent_id": "a", "query": query, **more}, {"recall_mode": mode})
    return answer


def held(store: Store, row_id: int) -> list[str]:
    """Return the passages of a memory as the database has them, in its text."""
    (text,) = store.ctx.db.read_now(
        lambda conn: conn.execute("SELECT content FROM memories WHERE id = ?", (row_id,)).fetchone() or ("",)
    )
    found = store.ctx.db.read_now(lambda conn: stored.of_rows(conn, [(MEMORY, row_id)]))
    return [text[start:end] for _, (start, end) in found.get((MEMORY, row_id), [])]


def indexed(store: Store) -> int:
    return store.ctx.vectors.status()[PassageKind.OF_MEMORY].get("rows", 0)
