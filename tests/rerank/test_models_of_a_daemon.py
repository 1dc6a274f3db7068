"""A daemon with an OpenAI-shaped embedder and a reranker that go wrong in every way while it runs.

Contract: embedding.openai, embedding.prefixes, rerank.asks, rerank.blend, services.keys, advisory.says, health.doctor.
"""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from cli_kit import runner
from models_kit import KEY, MODEL, ModelServer, vector_of

from cpersona_cli.wire import client
from cpersona_daemon.model.identity import with_prefix
from cpersona_daemon.shared.settings import load

RERANK_KEY = "rk-s3cret-of-the-tests"
DOCUMENTS = "passage: "
TEXTS = {
    1: "the red kite flies over the hill",
    2: "the red lamp stands on the table",
    3: "the green boat lies in the harbour",
}


@pytest.fixture(scope="module")
def embeds():
    server = ModelServer()
    server.key = KEY
    yield server
    server.stop()


@pytest.fixture(scope="module")
def ranks():
    server = ModelServer()
    server.key = RERANK_KEY
    yield server
    server.stop()


@pytest.fixture(scope="module")
def environ(module_home, embeds, ranks):
    key = Path(module_home["HOME"]) / "key"
    key.write_text(KEY + "\n")
    key.chmod(0o600)
    return module_home | {
        "CPERSONA_EMBEDDING_MODE": "http",
        "CPERSONA_EMBEDDING_URL": embeds.embeddings,
        "CPERSONA_EMBEDDING_MODEL": MODEL,
        "CPERSONA_EMBEDDING_API_KEY_FILE": str(key),
        "CPERSONA_EMBEDDING_QUERY_PREFIX": "query: ",
        "CPERSONA_EMBEDDING_DOCUMENT_PREFIX": DOCUMENTS,
        "CPERSONA_EMBEDDING_TIMEOUT_SECS": "0.5",
        "CPERSONA_RERANK_URL": ranks.rerank,
        "CPERSONA_RERANK_API_KEY": RERANK_KEY,
        "CPERSONA_RERANK_TIMEOUT_SECS": "0.5",
        "CPERSONA_LOG_LEVEL": "debug",
    }


@pytest.fixture(scope="module")
def asked(environ):
    with client.connect(load(environ), environ) as connection:
        for row_id, text in TEXTS.items():
            answer, _ = connection.call("store", {"agent_id": "a", "content": text})
            assert (answer["id"], answer["embedded"]) == (row_id, True)
        yield connection


@pytest.fixture(autouse=True)
def honest(embeds, ranks):
    """Both go well at the beginning and the end of a test."""
    yield
    for server in (embeds, ranks):
        server.gate.set()
        server.gate = type(server.gate)()
        server.fault, server.score = None, lambda query, text: 0.5


def recall(asked, query="what is red?", **more):
    answer, _ = asked.call("recall", {"agent_id": "a", "query": query, **more})
    return answer


def refs(answer):
    return [row["ref"] for row in reversed(answer["messages"])]


def vectors(environ):
    with sqlite3.connect(f"file:{environ['CPERSONA_DB_PATH']}?mode=ro", uri=True) as conn:
        return {
            text: (model, np.frombuffer(raw, "<f4"))
            for text, model, raw in conn.execute(
                "SELECT m.content, v.model, v.vector FROM memories m JOIN memory_vectors v ON v.id = m.id"
            )
        }


def assert_none_is_mislabelled(environ):
    for text, (model, vector) in vectors(environ).items():
        made = np.array(vector_of(DOCUMENTS + text))
        assert model == with_prefix(MODEL, DOCUMENTS)
        assert np.allclose(vector, made / np.linalg.norm(made), atol=1e-6), text


def test_the_reranker_decides_the_order_with_the_blend(asked, ranks):
    first, second = refs(recall(asked))[:2]
    texts = {row["ref"]: row["content"] for row in recall(asked)["messages"]}
    ranks.score = lambda query, text: 0.99 if text == texts[second] else 0.02
    ranks.asked.clear()
    answer = recall(asked, trace=True)
    assert refs(answer)[0] == second and "advisory" not in answer
    assert ranks.asked[0][1]["query"] == "what is red?" and set(ranks.asked[0][1]["documents"]) <= set(TEXTS.values())
    best = answer["messages"][-1]["match_reason"]
    assert best["rerank"] == 0.99 and best["signal"] == "blend"
    (told,) = (row for row in answer["trace"]["rows"] if row["ref"] == second)
    parts = sum(told[name] for name in ("similarity", "words", "neighbours", "reranked"))
    assert told["score"] == best["score"] == pytest.approx(parts) and told["rerank"] == 0.99
    assert answer["trace"]["reranked"] >= 2


def test_the_reranker_decides_the_gate_with_the_blend(asked, ranks):
    question = "where do boats go on sundays when nobody sails?"  # one word of many
    ranks.score = lambda query, text: -9.0
    gone = recall(asked, question)
    ranks.score = lambda query, text: 9.0 if "boat" in text else -9.0
    answer = recall(asked, question)
    assert refs(gone) == [] and gone["best_missed"]["signal"] == "blend"
    assert refs(answer) == ["mem:3"]


def test_it_is_asked_under_blend_alone(asked, ranks):
    recall(asked)
    ranks.asked.clear()
    for mode in ("rrf", "rsf", "cascade"):
        asked.call("recall", {"agent_id": "a", "query": "red kite"}, overrides={"recall_mode": mode})
    recall(asked, "")
    recall(asked, "?!")
    assert ranks.asked == []


@pytest.mark.parametrize("fault", ["key", "slow", "dead", "fewer", "nan", "twice", "beyond", "nonsense"])
def test_a_reranker_that_goes_wrong_leaves_the_answer_as_without_it_and_is_told(asked, ranks, fault):
    plain = recall(asked)
    ranks.fault = fault
    answer = recall(asked)
    assert [(row["ref"], row["match_reason"]["score"]) for row in answer["messages"]] == [
        (row["ref"], row["match_reason"]["score"]) for row in plain["messages"]
    ]
    assert "rerank" not in answer["messages"][-1]["match_reason"]
    said = answer["advisory"]
    assert said["severity"] == "hint" and "reranker did not answer" in said["reason"]
    assert "127.0.0.1" in said["evidence"] and "cpersona doctor" in said["runbook"]
    ranks.gate.set()
    ranks.fault = None
    assert "advisory" not in recall(asked)


def test_a_row_that_changed_while_the_reranker_thought_is_not_given_the_score_of_its_old_text(asked, environ, ranks):
    with client.connect(load(environ), environ) as other:
        asked_for = other.call("store", {"agent_id": "b", "content": "the red kite is old"})[0]["id"]
        other.call("store", {"agent_id": "b", "content": "the red kite of the neighbours"})

        def change(query, text):
            if "is old" in text:
                other.call("update_memory", {"agent_id": "b", "memory_id": asked_for, "content": "the red kite is new"})
            return 0.9

        ranks.score = change
        answer, _ = asked.call("recall", {"agent_id": "b", "query": "red kite"})
    said = {row["content"]: row["match_reason"] for row in answer["messages"]}
    assert "rerank" not in said["the red kite is new"]
    assert said["the red kite of the neighbours"]["rerank"] == 0.9


@pytest.mark.parametrize("fault", ["key", "width", "slow", "dead", "fewer", "nan", "twice", "beyond", "nonsense"])
def test_an_embedder_that_goes_wrong_is_told_and_gives_no_row_a_vector_of_another(asked, environ, embeds, fault):
    embeds.fault = fault
    text = f"stored while the embedder was wrong by {fault}"
    answer, _ = asked.call("store", {"agent_id": "c", "content": text})
    assert answer["result"] == "stored" and not answer["embedded"]
    said = recall(asked, f"red kite while {fault}")["advisory"]
    assert said["severity"] in ("hint", "fault") and said["degraded"]
    everything = json.dumps(said)
    assert "by words alone" in everything or "lexical only" in everything
    assert "embedding" in said["evidence"] or "127.0.0.1" in said["evidence"]
    embeds.gate.set()
    embeds.fault = None
    assert_none_is_mislabelled(environ)
    assert text not in vectors(environ)


def test_doctor_tells_model_and_width_and_what_is_wrong_with_each(asked, environ, embeds, ranks):
    run = runner(environ)
    ranks.score = lambda query, text: 0.9 if "dog" in text else 0.1
    told = found(run)
    assert (told["model"][0]["level"], told["reranker"][0]["level"]) == ("ok", "ok")
    assert MODEL in told["model"][0]["message"] and "8 numbers" in told["model"][0]["message"]
    ranks.score = lambda query, text: 0.5
    assert "no higher than a text about something else" in found(run)["reranker"][1]["message"]
    os.chmod(environ["CPERSONA_EMBEDDING_API_KEY_FILE"], 0o644)
    embeds.fault = "width"
    ranks.fault = "key"
    told = found(run)
    assert "others can use" in told["model"][0]["message"] and "chmod" in told["model"][0]["do"]
    assert "401" in told["reranker"][0]["message"] and "help models" in told["reranker"][0]["do"]
    os.chmod(environ["CPERSONA_EMBEDDING_API_KEY_FILE"], 0o600)


def test_doctor_sees_a_key_in_a_config_file_that_others_can_read(home, ranks, run_cli):
    config = Path(home["XDG_CONFIG_HOME"]) / "cpersona" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'rerank_url = "{ranks.rerank}"\nrerank_api_key = "{RERANK_KEY}"\n')
    config.chmod(0o644)
    said = found(run_cli)["reranker"]
    assert "others can use" in said[0]["message"] and str(config) in said[0]["do"] and "answers" in said[1]["message"]
    assert RERANK_KEY not in json.dumps(said)


def found(run):
    checks = {}
    for finding in json.loads(run(["doctor", "--json"]).stdout)["checks"]:
        checks.setdefault(finding["check"], []).append(finding)
    return checks


def test_no_key_stands_in_anything_that_is_kept_or_shown(asked, environ, embeds, ranks, tmp_path):
    embeds.fault = ranks.fault = "key"
    shown = json.dumps([asked.hello, recall(asked, "another question"), asked.call("daemon_status", {})[0]])
    shown += json.dumps(asked.call("check_health", {})[0])
    run = runner(environ)
    for words in (
        ["config", "show"],
        ["config", "show", "--json"],
        ["doctor"],
        ["daemon", "status"],
        ["daemon", "logs"],
    ):
        done = run(words)
        shown += done.stdout + done.stderr
    assert run(["backup", str(tmp_path / "b.tar")]).returncode == 0
    assert "(set)" in run(["config", "show", "rerank_api_key"]).stdout
    kept = [path.read_bytes() for path in tmp_path.iterdir()]
    root = Path(environ["HOME"])
    kept += [path.read_bytes() for path in root.rglob("*") if path.is_file() and path.name != "key"]
    assert len(kept) > 3
    for secret in (KEY, RERANK_KEY):
        assert secret not in shown
        assert not [data for data in kept if secret.encode() in data]


def test_the_daemons_status_tells_of_the_reranker(asked, environ):
    recall(asked)
    told = asked.call("daemon_status", {})[0]["rerank"]
    assert told["place"].startswith("127.0.0.1") and told["problem"] is None and told["queries"] > 3
    assert "reranker" in runner(environ)(["daemon", "status"]).stdout


def test_another_document_prefix_is_another_model_whose_rows_are_embedded_anew(home, embeds):
    key = Path(home["HOME"]) / "key"
    key.write_text(KEY)
    key.chmod(0o644)
    one = home | {
        "CPERSONA_EMBEDDING_MODE": "http",
        "CPERSONA_EMBEDDING_URL": embeds.embeddings,
        "CPERSONA_EMBEDDING_MODEL": MODEL,
        "CPERSONA_EMBEDDING_API_KEY_FILE": str(key),
        "CPERSONA_EMBEDDING_QUERY_PREFIX": "ask: ",
    }
    with client.connect(load(one), one) as daemon:
        for n in range(12):
            text = f"a note about {n} red kites over the hill number {n * n}"
            assert daemon.call("store", {"agent_id": "a", "content": text})[0]["embedded"]
        assert [said for said in daemon.call("daemon_status", {})[0]["warnings"] if "others can use" in str(said)]
        embeds.asked.clear()
        assert daemon.call("calibrate_threshold", {"agent_id": "a"})[0]["ok"]
        assert {text[:5] for _, body in embeds.asked for text in body["input"]} == {"ask: "}
    runner(one)(["daemon", "stop"])
    two = one | {"CPERSONA_EMBEDDING_DOCUMENT_PREFIX": DOCUMENTS}
    with client.connect(load(two), two) as daemon:
        before = daemon.call("recall", {"agent_id": "a", "query": "red kites"})[0]
        assert "cosine" not in json.dumps(before["messages"])
        assert "12 rows have no vector that this question can be compared with" in before["advisory"]["reason"]
        assert daemon.call("reindex", {})[0]["listed_for_embedding"] == 12
        after = daemon.call("recall", {"agent_id": "a", "query": "red kites"})[0]
        assert "cosine" in json.dumps(after["messages"]) and "advisory" not in after
    assert_none_is_mislabelled(two)
