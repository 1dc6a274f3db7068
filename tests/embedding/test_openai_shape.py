"""The http embedder against a server that speaks as OpenAI's does, well and badly.

Contract: embedding.openai, embedding.prefixes, services.keys.
"""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest
from models_kit import KEY, MODEL, ModelServer, vector_of

from cpersona_daemon.embedding import shapes
from cpersona_daemon.embedding.http import embedder_of
from cpersona_daemon.embedding.service import EmbeddingService
from cpersona_daemon.errors import EmbeddingFailure, SettingsConflict
from cpersona_daemon.model.identity import bare, may_change_width, same_model, with_prefix
from cpersona_daemon.services.key import Key, KeyFailure
from cpersona_daemon.shared.settings import load


@pytest.fixture
def server():
    made = ModelServer()
    yield made
    made.stop()


def embedder_at(server, timeout=20.0, **options):
    return embedder_of(settings_for(server, **options), timeout)


def settings_for(server, **options):
    asked = {"embedding_mode": "http", "embedding_url": server.embeddings, "embedding_model": "m", **options}
    return load({"HOME": "/nowhere"}, asked)


def unit(text, width=8):
    row = np.array(vector_of(text, width))
    return row / np.linalg.norm(row)


@pytest.mark.parametrize(
    ("api", "url", "openai"),
    [
        ("auto", "http://h:1/v1/embeddings", True),
        ("auto", "http://h:1/v1/embeddings/", True),
        ("auto", "http://h/openai/v1/embeddings?api-version=2", True),
        ("auto", "http://h/api/v4/embeddings#x", True),
        ("auto", "http://h:1/embed", False),
        ("auto", "http://h:1/embeddings", False),
        ("auto", "http://h:1/vectors/embeddings", False),
        ("auto", "http://h:1/?next=/v1/embeddings", False),
        ("openai", "http://h:1/embeddings", True),
        ("native", "http://h:1/v1/embeddings", False),
    ],
)
def test_the_address_or_the_setting_says_which_shape_is_spoken(api, url, openai):
    asked = shapes.shape_of(api, url).body(["a"], "m")
    assert asked == (b'{"model": "m", "input": ["a"]}' if openai else b'{"texts": ["a"]}')


def test_each_text_gets_its_own_vector_in_whatever_order_they_are_answered(server):
    texts = [f"text {n} of many" for n in range(70)]
    made = embedder_at(server).embed(texts)
    assert np.allclose(made.vectors, [unit(text) for text in texts], atol=1e-6)
    assert [len(body["input"]) for _, body in server.asked] == [32, 32, 6]
    assert {body["model"] for _, body in server.asked} == {"m"}


def test_the_identity_is_the_model_that_is_answered_or_else_the_one_asked_for(server):
    embedder = embedder_at(server)
    assert embedder.embed(["a"]).model == MODEL
    server.names_model = False
    assert embedder.embed(["a"]).model == "m" == embedder.model.identity


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("key", "HTTP 401: it does not take the key"),
        ("width", "16 numbers, the database's have 8"),
        ("slow", "did not answer in time"),
        ("dead", "failed|no answer in HTTP"),
        ("fewer", "has 2 vectors for 3 texts"),
        ("nan", "is not what was asked for"),
        ("twice", "one is there twice"),
        ("beyond", "belongs to none"),
        ("nonsense", "is not what was asked for"),
    ],
)
def test_a_server_that_goes_wrong_is_a_failure_that_says_how(server, fault, said):
    embedder = embedder_at(server, timeout=0.2 if fault == "slow" else 20.0)
    embedder.expect("", 8)
    server.fault = fault
    with pytest.raises(EmbeddingFailure, match=said) as failure:
        embedder.embed(["a", "b", "c"])
    assert "k3y" not in str(failure.value)
    server.gate.set()
    server.fault = None
    assert np.allclose(embedder.embed(["a"]).vectors, [unit("a")], atol=1e-6)
    embedder.unload()


def test_nobody_listening_is_said(server):
    embedder = embedder_at(server)
    server.stop()
    with pytest.raises(EmbeddingFailure, match="refuses connections"):
        embedder.embed(["a"])


def test_a_service_without_the_path_or_the_model_is_told_from_others(server):
    with pytest.raises(EmbeddingFailure, match="HTTP 404: it has nothing at this path, or not the model"):
        embedder_at(server, embedding_url=server.at + "/v2/embeddings").embed(["a"])


def test_the_shape_of_openai_needs_a_model(server):
    assert settings_for(server).conflicts() == []
    assert "CPERSONA_EMBEDDING_MODEL" in settings_for(server, embedding_model="").conflicts()[0]


# -- keys


def test_a_key_is_sent_as_a_bearer_from_the_environment_or_a_file(server, tmp_path):
    server.key = KEY
    embedder_at(server, embedding_api_key=KEY).embed(["a"])
    (tmp_path / "key").write_text(KEY + "\n")
    embedder_at(server, embedding_api_key_file=str(tmp_path / "key")).embed(["a"])
    assert server.headers["Authorization"] == f"Bearer {KEY}"


def test_a_key_that_was_renewed_in_its_file_is_taken_after_the_old_one_was_refused(server, tmp_path):
    (tmp_path / "key").write_text("old")
    server.key = KEY
    embedder = embedder_at(server, embedding_api_key_file=str(tmp_path / "key"))
    with pytest.raises(EmbeddingFailure, match="CPERSONA_EMBEDDING_API_KEY_FILE") as failure:
        embedder.embed(["a"])
    assert "old" not in str(failure.value)
    (tmp_path / "key").write_text(KEY)
    assert len(embedder.embed(["a"]).vectors) == 1


@pytest.mark.parametrize(
    "held", [b"", b"  \n", b"two words", b"a\r\nHost: other", "schl\u00fcssel".encode(), b"\xff\xfe"]
)
def test_a_file_that_holds_no_key_is_named_and_not_quoted(tmp_path, held):
    (tmp_path / "key").write_bytes(held)
    with pytest.raises(KeyFailure, match="CPERSONA_X_API_KEY_FILE=.*key (is empty|holds)") as failure:
        Key("CPERSONA_X_API_KEY", path=str(tmp_path / "key")).bearer()
    assert held.decode("latin-1").strip() in ("", "key") or held.decode("latin-1").strip() not in str(failure.value)


def test_a_missing_file_is_a_failure_of_each_request_until_it_is_there(server, tmp_path):
    embedder = embedder_at(server, embedding_api_key_file=str(tmp_path / "key"))
    with pytest.raises(EmbeddingFailure, match="cannot be read: No such file"):
        embedder.embed(["a"])
    assert server.asked == []
    (tmp_path / "key").write_text(KEY)
    embedder.embed(["a"])


def test_a_key_file_that_others_can_read_is_noticed(tmp_path):
    (tmp_path / "key").write_text(KEY)
    for mode, seen in ((0o600, False), (0o640, True), (0o604, True)):
        os.chmod(tmp_path / "key", mode)
        said = Key("CPERSONA_X_API_KEY", path=str(tmp_path / "key")).exposed()
        assert (said is not None) == seen and KEY not in (said or "")


def test_two_ways_of_saying_who_asks_are_a_conflict(server, tmp_path):
    both = settings_for(server, embedding_api_key=KEY, embedding_api_key_file="/f")
    assert "both set" in both.conflicts()[0] and KEY not in both.conflicts()[0]
    with pytest.raises(SettingsConflict, match="a request carries one of them") as failure:
        embedder_at(server, embedding_url=server.embeddings.replace("://", "://me:s3cret@"), embedding_api_key=KEY)
    assert "s3cret" not in str(failure.value) and KEY not in str(failure.value)


# -- prefixes


def test_questions_and_documents_get_their_prefixes_blanks_and_all(server, held_clock):
    import asyncio

    settings = settings_for(server, embedding_query_prefix="query: ", embedding_document_prefix="passage:\n ")

    async def run():
        service = EmbeddingService(settings, held_clock)
        service.start()
        asked = await service.embed_query("a", 1.0)
        assert (await service.embed_query("a", 1.0)) is asked
        (stored,) = (await service.embed_documents(["a"])).each()
        assert asked.model == stored.model == with_prefix(MODEL, "passage:\n ")
        await service.close()

    asyncio.run(run())
    assert [body["input"] for _, body in server.asked] == [["query: a"], ["passage:\n a"]]


def test_vectors_of_another_document_prefix_are_another_models(server):
    plain, one, other = (
        embedder_at(server, embedding_document_prefix=prefix).embed(["a"]).model for prefix in ("", "one: ", "other: ")
    )
    assert plain == MODEL and len({plain, one, other}) == 3 and not same_model(one, other)
    assert {bare(one), bare(other)} == {MODEL}
    assert embedder_at(server, embedding_query_prefix="q: ").embed(["a"]).model == MODEL


def test_a_prefix_changes_no_width(server):
    assert not may_change_width(MODEL, with_prefix(MODEL, "a"))
    embedder = embedder_at(server, embedding_document_prefix="a")
    embedder.expect(MODEL, 384)
    with pytest.raises(EmbeddingFailure, match="the database's have 384"):
        embedder.embed(["a"])


def test_closing_ends_a_call_that_waits(server):
    embedder, failed = embedder_at(server), []
    server.fault = "slow"

    def call():
        try:
            embedder.embed(["a"])
        except EmbeddingFailure as error:
            failed.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    assert server.entered.wait(20)
    embedder.unload()
    thread.join(20)
    assert failed
