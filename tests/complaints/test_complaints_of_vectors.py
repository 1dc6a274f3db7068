"""What users of neighbouring tools complain of must not happen here: the model, its vectors and their index.

See test_complaints.py. A small http server stands in for the model; a text's vector follows from its first word.

Contract: embedding.identity, embedding.builtin.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from embed_kit import EmbedServer

from cpersona_cli.wire import client
from cpersona_daemon.shared.settings import load

WIDTH = 8
HEADER = '{"_type": "header", "version": "cpersona-export/1.1"}\n'


def vector(word: str) -> list[float]:
    raw = [byte - 127.5 for byte in hashlib.sha256(word.encode()).digest()[:WIDTH]]
    length = sum(x * x for x in raw) ** 0.5
    return [x / length for x in raw]


class Model(EmbedServer):
    """``name`` is what it calls itself, ``asked`` every text it was sent; while ``free`` is clear it answers nothing
    that begins with ``holds``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.name, self.asked, self.free, self.holds = "one", [], threading.Event(), ""
        self.free.set()

    def reply(self, texts: list[str]) -> dict:
        self.asked += texts
        if any(text.startswith(self.holds) for text in texts):
            self.free.wait(30)
        return {"embeddings": [vector(text.split()[0]) for text in texts], "model": self.name}

    def environ(self, home: dict[str, str], name: str, **more: str) -> dict[str, str]:
        """The environment of a database of its own that this model serves."""
        return (
            home
            | {
                "CPERSONA_DB_PATH": f"{home['HOME']}/{name}/t.db",
                "CPERSONA_EMBEDDING_MODE": "http",
                "CPERSONA_EMBEDDING_URL": self.url,
            }
            | more
        )

    def stop(self) -> None:
        self.free.set()
        super().stop()


@pytest.fixture
def model() -> Iterator[Model]:
    served = Model()
    yield served
    served.stop()


def cpersona(environ: dict[str, str], *words: str, input: str = "") -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "cpersona_cli", *words],
        env=environ,
        cwd=environ["HOME"],
        input=input,
        capture_output=True,
        text=True,
        timeout=60,
    )


def row(content: str, word: str, model: str, agent: str = "default") -> str:
    """An export's line with the vector that this word has under any model."""
    packed = base64.b64encode(struct.pack(f"<{WIDTH}f", *vector(word))).decode()
    return (
        json.dumps(
            {
                "_type": "memory",
                "agent_id": agent,
                "content": content,
                "embedding_b64": packed,
                "embedding_model": model,
            }
        )
        + "\n"
    )


def found(environ: dict[str, str], query: str) -> list[str]:
    return [line.split("\t")[-1] for line in cpersona(environ, "recall", query, "--deep").stdout.splitlines()]


def until(condition, seconds: float = 30.0) -> None:
    """Look every few milliseconds until something is so; for what no event announces."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


# a slow embedder turns search into something weaker without a word


def test_a_slow_embedder_is_said_where_it_makes_search_weaker(home, model):
    """And a store does not wait for it. The contract calls it a fault from the second question in a row on."""
    environ = model.environ(home, "slow", CPERSONA_EMBEDDING_TIMEOUT_SECS="0.2")
    model.free.clear()
    stored = cpersona(environ, "store", "apple pie", "--json")
    assert stored.returncode == 0 and json.loads(stored.stdout)["embedded"] is False
    cpersona(environ, "recall", "apple")
    done = cpersona(environ, "recall", "apple")
    assert done.returncode == 0 and "lexical only" in done.stderr
    assert json.loads(cpersona(environ, "recall", "apple", "--json").stdout)["advisory"]["severity"] == "fault"


def test_rows_that_wait_for_their_vectors_are_said_to_be_found_by_words_alone(home, model):
    """As after a backfill of a thousand commits: an answer is weaker than it will be, and says by how many rows."""
    environ = model.environ(home, "behind")
    model.holds = "heavy"
    model.free.clear()
    assert cpersona(environ, "store", "--jsonl", "-", input='"heavy one"\n"heavy two"\n').returncode == 0
    # Which of them is asked about first hangs on how much else there is to do.
    until(lambda: any(text.startswith("heavy") for text in model.asked))
    for words in (["recall", "light"], ["context", "light"], ["reconstruct", "light"]):
        assert (
            "2 rows still wait for their vectors and are found by words alone"
            in cpersona(environ, *words, "--no-wait").stderr
        )
    assert "advisory" not in json.loads(
        cpersona(environ, "recall", "light", "--no-wait", "--json", "--set", "degraded_advisory=false").stdout
    )
    model.free.set()
    until(lambda: json.loads(cpersona(environ, "daemon", "status", "--json").stdout)["backlog"]["pending"] == 0)
    assert cpersona(environ, "recall", "light").stderr.startswith("nothing found")


# model changed, vectors of the old one still ranked; same dimension, other model


def test_vectors_of_another_model_are_not_ranked_though_they_have_the_same_dimension(home, model):
    environ = model.environ(home, "other")
    with client.connect(load(environ), environ) as connection:
        path = Path(home["HOME"], "rows.jsonl")
        path.write_text(
            HEADER + row("written by the same model", "pear", "one") + row("written by a stranger", "pear", "two")
        )
        connection.call("recall", {"agent_id": "default", "query": "hello"})  # the model has said its name
        ours = connection.call("daemon_status", {})[0]["embedding"]["identity"]
        path.write_text(path.read_text().replace('"one"', json.dumps(ours)))
        assert connection.call("import_memories", {"input_path": str(path)})[0]["imported_memories"] == 2
    assert found(environ, "pear") == ["written by the same model"]


def test_an_import_of_vectors_of_another_model_says_so_and_has_the_rows_embedded(home, model):
    """And is not answered with `no row came into question` until somebody asks for the health of the store."""
    environ = model.environ(home, "moved")
    model.holds = "written"
    model.free.clear()
    path = Path(home["HOME"], "moved.jsonl")
    path.write_text(HEADER + row("written by a stranger", "pear", "two") + row("written by nobody", "pear", "two"))
    done = cpersona(environ, "import", str(path))
    assert (
        done.returncode == 0
        and "2 of the rows came without a vector that this store's embedder can compare" in done.stderr
    )
    assert (
        json.loads(cpersona(environ, "import", str(path), "--json", "--to-agent", "b").stdout)["listed_for_embedding"]
        == 2
    )
    kept = cpersona(environ, "import", str(path), "--keep-vectors", "--to-agent", "c")
    assert kept.returncode == 0 and "2 of the rows keep a vector of another model" in kept.stderr
    assert (
        "2 rows still wait for their vectors and are found by words alone"
        in cpersona(environ, "recall", "pear", "--no-wait").stderr
    )
    model.free.set()
    until(lambda: cpersona(environ, "recall", "written").stderr == "")
    assert sorted(found(environ, "written")) == ["written by a stranger", "written by nobody"]


def test_vectors_of_the_old_model_are_not_ranked_once_the_model_has_changed(home, model):
    environ = model.environ(home, "changed")
    cpersona(environ, "store", "pear tart")
    assert found(environ, "pear") == ["pear tart"] and found(environ, "zebra") == []
    stopped = cpersona(environ, "daemon", "stop")
    assert stopped.returncode == 0
    model.name = "two"
    asked = len(model.asked)
    with client.connect(load(environ), environ) as connection:
        answer = connection.call("recall", {"agent_id": "default", "query": "pear", "deep": True})[0]["messages"]
        ranked = [message for message in answer if "cosine" in message["match_reason"]]
        # Whatever is ranked by a cosine was embedded anew.
        assert not ranked or "pear tart" in model.asked[asked:]
    listed = cpersona(environ, "health", "--fix", "--json")
    assert listed.returncode in (0, 7), listed.stderr
    until(lambda: "pear tart" in model.asked[asked:])
    until(lambda: found(environ, "pear") == ["pear tart"])


# index larger than the database after deletes


def test_an_index_shrinks_after_deletes(home, model):
    environ = model.environ(home, "shrink")
    lines = "".join(
        row(f"w{number} row", f"w{number}", "one", "gone" if number % 8 else "kept") for number in range(1600)
    )
    path = Path(home["HOME"], "rows.jsonl")

    def size() -> int:
        return sum(file.stat().st_size for file in Path(environ["CPERSONA_DB_PATH"]).parent.glob("t.db.*.vec*"))

    with client.connect(load(environ), environ) as connection:
        connection.call("recall", {"agent_id": "kept", "query": "hello"})
        path.write_text(
            HEADER
            + lines.replace('"one"', json.dumps(connection.call("daemon_status", {})[0]["embedding"]["identity"]))
        )
        assert connection.call("import_memories", {"input_path": str(path)})[0]["imported_memories"] == 1600
        full = size()
        assert connection.call("delete_agent_data", {"agent_id": "gone"})[1] is None
        until(lambda: size() < full / 2)
        state = connection.call("daemon_status", {})[0]["vectors"]["mem"]
        assert (state["rows"], state["dead"]) == (200, 0)
    assert cpersona(environ, "daemon", "stop").returncode == 0  # folds the log into the database
    assert size() < os.path.getsize(environ["CPERSONA_DB_PATH"])


# long text silently cut for the embedding (the built-in model's windows: tests/embedding/test_builtin.py)


def test_a_long_text_is_not_silently_cut_for_the_embedding(home, model):
    environ = model.environ(home, "long")
    text = "plum " + "word " * 3000 + "the-end"
    assert cpersona(environ, "store", text).stderr == ""
    until(lambda: text in model.asked)
    # Beyond what a memory keeps it is cut, and that is said.
    done = cpersona(environ, "store", "plum " + "word " * 5000)
    assert done.returncode == 0 and "cut" in done.stderr and "max_content_length" in done.stderr
