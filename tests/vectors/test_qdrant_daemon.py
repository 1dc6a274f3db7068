"""A daemon whose vectors Qdrant searches: what it says of that, and that nothing of it is lost when it cannot.

Contract: qdrant.extra, qdrant.faults, outbox.drained.
"""

import os
import shutil
from contextlib import closing
from pathlib import Path

import pytest
from embed_kit import EmbedServer

from cpersona_cli.wire import client, control
from cpersona_daemon.shared.settings import load

pytest.importorskip("qdrant_edge")


class Model(EmbedServer):
    def reply(self, texts):
        words = "harbour lantern violin granite orchard".split()
        return {"embeddings": [[0.1 + text.count(word) for word in words] for text in texts], "model": "kit"}


@pytest.fixture
def environ(home):
    model = Model()
    folder = Path(home["CPERSONA_DB_PATH"]).parent / "qdrant"
    home |= {
        "CPERSONA_EMBEDDING_MODE": "http",
        "CPERSONA_EMBEDDING_URL": model.url,
        "CPERSONA_VECTOR_SEARCH_MODE": "qdrant",
        "CPERSONA_QDRANT_URL": f"path:{folder}",
    }
    yield home
    model.stop()


def connected(environ):
    return closing(client.connect(load(environ), environ))


def recalled(connection, query="lantern"):
    answer, code = connection.call("recall", {"agent_id": "a", "query": query, "trace": True})
    assert code is None
    return answer


def level(connection):
    while True:
        told = connection.call("daemon_status", {})[0]["outbox"]
        if not told["pending"] and not told["filling"] and told["generation"] is not None:
            return told


def test_status_health_and_answers_say_who_searches_vectors_and_reindex_fills_anew(environ):
    folder = environ["CPERSONA_QDRANT_URL"].removeprefix("path:")
    with connected(environ) as connection:
        for text in ("a green lantern", "the violin is broken", "granite and orchard"):
            connection.call("store", {"agent_id": "a", "content": text})
        answer = recalled(connection)
        assert answer["messages"][-1]["content"] == "a green lantern" and "advisory" not in answer
        assert answer["trace"]["vectors"]["by"] == "service" and answer["trace"]["vectors"]["exact"]
        told = level(connection)
        assert told["problem"] is None and told["delivered"] >= 3 and told["generation"] >= 3
        status = connection.call("daemon_status", {})[0]
        assert {index["engine"] for index in status["vectors"].values()} == {"qdrant"}
        assert connection.call("check_health", {"checks": ["outbox", "vector_index"]})[0]["issues"] == []
        for shard in os.listdir(folder):  # as if somebody had cleared the folder
            shutil.rmtree(os.path.join(folder, shard))
        before = told["delivered"]
        done, code = connection.call("reindex", {"vectors": True})
        assert code is None and done["vectors"]["memories"] == 3 and "memories" not in done
        assert level(connection)["delivered"] >= before + 3
        assert recalled(connection)["trace"]["vectors"]["by"] == "service"


def test_a_store_written_without_qdrant_is_filled_anew_when_it_is_asked_again(environ):
    with connected(environ) as connection:
        connection.call("store", {"agent_id": "a", "content": "a green lantern"})
        level(connection)
    assert control.stop_daemon(load(environ), 30, environ)
    local = environ | {"CPERSONA_VECTOR_SEARCH_MODE": "local"}
    with connected(local) as connection:
        connection.call("store", {"agent_id": "a", "content": "a red lantern"})
        assert "outbox" not in connection.call("daemon_status", {})[0]
    assert control.stop_daemon(load(local), 30, local)
    with connected(environ) as connection:
        level(connection)
        answer = recalled(connection)
        assert {m["content"] for m in answer["messages"]} == {"a green lantern", "a red lantern"}
        assert answer["trace"]["vectors"]["by"] == "service"


def test_a_server_that_is_down_is_said_in_answers_status_and_health(environ):
    environ["CPERSONA_QDRANT_URL"] = "http://127.0.0.1:9"
    pytest.importorskip("qdrant_client")
    with connected(environ) as connection:
        stored, code = connection.call("store", {"agent_id": "a", "content": "a green lantern"})
        assert code is None and stored["result"] == "stored"
        while not connection.call("daemon_status", {})[0]["outbox"]["problem"]:
            pass
        answer = recalled(connection)
        assert answer["messages"][-1]["content"] == "a green lantern"
        assert "not by the vector service" in answer["advisory"]["reason"]
        assert answer["trace"]["vectors"]["by"] == "database"
        issues = connection.call("check_health", {"checks": ["outbox"]})[0]["issues"]
        assert "cannot be reached" in issues[0]["message"]


def test_a_start_in_this_mode_without_its_address_is_refused(run_cli):
    done = run_cli(["daemon", "start"], env={"CPERSONA_VECTOR_SEARCH_MODE": "qdrant"})
    assert done.returncode == 4 and "needs CPERSONA_QDRANT_URL" in done.stderr


def test_doctor_says_whether_qdrant_answers(run_cli, tmp_path):
    asked = {"CPERSONA_VECTOR_SEARCH_MODE": "qdrant", "CPERSONA_QDRANT_URL": f"path:{tmp_path / 'q'}"}
    assert "answers: 0 collections" in run_cli(["doctor"], env=asked).stdout
    pytest.importorskip("qdrant_client")
    told = run_cli(["doctor"], env=asked | {"CPERSONA_QDRANT_URL": "http://127.0.0.1:9"}).stdout
    assert "the Qdrant at 127.0.0.1:9 cannot be reached" in told
