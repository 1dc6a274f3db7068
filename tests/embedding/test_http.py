"""The http embedder against a real server that answers well and badly. Contract: embedding.http."""

from __future__ import annotations

import json
import socket
import threading

import numpy as np
import pytest

from cpersona_daemon.embedding.http import embedder_of
from cpersona_daemon.errors import EmbeddingFailure, SettingsConflict
from cpersona_daemon.model.identity import may_change_width
from cpersona_daemon.shared.settings import load


def embedder_at(url, timeout, **options):
    return embedder_of(load({"HOME": "/nowhere"}, {"embedding_mode": "http", "embedding_url": url, **options}), timeout)


@pytest.fixture
def embedder(embed_service):
    made = embedder_at(embed_service.url, 20.0)
    yield made
    made.unload()


def test_vectors_arrive_as_float32_rows_of_unit_length(embedder, embed_service):
    embed_service.say({"embeddings": [[3, 4], [0.0, -2.5]]})
    batch = embedder.embed(["a", "b"])
    assert batch.vectors.dtype == np.float32
    assert np.allclose(batch.vectors, [[0.6, 0.8], [0, -1]])
    assert embedder.model.dimension == 2


def test_at_most_32_texts_travel_in_one_request(embedder, embed_service):
    texts = [f"text {n}" for n in range(70)]
    assert embedder.embed(texts).vectors.shape == (70, 8)
    assert [len(asked) for asked in embed_service.asked] == [32, 32, 6]
    assert [text for asked in embed_service.asked for text in asked] == texts


def test_no_texts_ask_nothing(embedder, embed_service):
    assert embedder.embed([]).vectors.shape == (0, 0)
    assert embed_service.asked == []


def test_one_connection_serves_request_after_request(embedder, embed_service):
    for n in range(5):
        embedder.embed([str(n)])
    assert embed_service.connections == 1


def test_a_connection_that_the_service_closed_while_idle_is_replaced(embedder, embed_service):
    embed_service.hang_up_after_answer = True
    for n in range(3):
        assert embedder.embed([str(n)]).vectors.shape == (1, 8)


def test_text_of_any_kind_arrives_as_it_was(embedder, embed_service):
    texts = ["日本語", "\x00", "a\ud800b", "\U0001f600", ""]
    embedder.embed(texts)
    assert embed_service.asked == [texts]


def test_the_identity_is_the_model_that_the_service_names(embedder, embed_service):
    assert embedder.model.identity == ""
    assert embedder.embed(["a"]).model == ""
    embed_service.model = "e5-small"
    assert embedder.embed(["a"]).model == "e5-small"
    assert embedder.model.identity == "e5-small"


@pytest.mark.parametrize(
    "body",
    [
        {"embeddings": []},
        {"embeddings": [[1, 2]]},
        {"embeddings": [[1, 2], [3, 4], [5, 6]]},
        {"embeddings": [[1, 2], [3]]},
        {"embeddings": [[], []]},
        {"embeddings": [[1, 2], ["3", 4]]},
        {"embeddings": [[1, 2], [None, 4]]},
        {"embeddings": [[1, 2], [True, 4]]},
        {"embeddings": [[1, 2], [[3], 4]]},
        {"embeddings": [[1, 2], [0, 0]]},
        {"embeddings": [[1, 2], None]},
        {"embeddings": None},
        {"vectors": [[1, 2], [3, 4]]},
        [[1, 2], [3, 4]],
        b'{"embeddings": [[1, 2], [NaN, 4]]}',
        b'{"embeddings": [[1, 2], [Infinity, 4]]}',
        b'{"embeddings": [[1, 2], [1e999, 4]]}',
        b'{"embeddings": [[1, 2], [' + b"9" * 400 + b", 4]]}",
        b'{"embeddings": [[1, 2], [3, 4]]',
        b'{"embeddings": \xff}',
        b"",
    ],
)
def test_an_answer_that_is_not_two_vectors_is_refused_whole(embedder, embed_service, body):
    embed_service.say(body)
    with pytest.raises(EmbeddingFailure):
        embedder.embed(["a", "b"])
    assert embedder.model.dimension is None


def test_very_large_and_very_small_numbers_still_make_unit_vectors(embedder, embed_service):
    embed_service.say({"embeddings": [[1e308, 1e308], [1e-300, 0]]})
    assert np.allclose(embedder.embed(["a", "b"]).vectors, [[0.5**0.5, 0.5**0.5], [1, 0]])


@pytest.mark.parametrize("status", [204, 301, 400, 404, 500, 503])
def test_a_status_other_than_200_is_a_failure_that_names_it(embedder, embed_service, status):
    embed_service.say(b"", status)
    with pytest.raises(EmbeddingFailure, match=f"HTTP {status}"):
        embedder.embed(["a"])


def test_a_failure_leaves_the_embedder_usable(embedder, embed_service):
    embed_service.say(b"no", 500)
    with pytest.raises(EmbeddingFailure):
        embedder.embed(["a"])
    embed_service.answer = embed_service.good
    assert embedder.embed(["a"]).vectors.shape == (1, 8)


def test_a_width_other_than_the_one_seen_is_refused(embedder, embed_service):
    embedder.embed(["a"])
    embed_service.width = 16
    with pytest.raises(EmbeddingFailure, match="16 numbers, the database's have 8"):
        embedder.embed(["a"])


def test_a_width_other_than_the_databases_is_refused_from_the_first_answer_on(embedder):
    embedder.expect("", 384)
    with pytest.raises(EmbeddingFailure, match="8 numbers, the database's have 384"):
        embedder.embed(["a"])


def test_another_named_model_may_have_another_width(embedder, embed_service):
    embedder.expect("small", 384)
    embed_service.model = "large"
    assert embedder.embed(["a"]).vectors.shape == (1, 8)
    embed_service.width = 16
    with pytest.raises(EmbeddingFailure):
        embedder.embed(["a"])


def test_a_service_that_leaves_its_name_out_is_held_to_the_width_it_had(embedder, embed_service):
    embed_service.model = "small"
    embedder.embed(["a"])
    embed_service.model = None
    embedder.embed(["a"])
    embed_service.width = 16
    with pytest.raises(EmbeddingFailure):
        embedder.embed(["a"])


def test_only_identities_that_are_surely_two_models_may_differ_in_width():
    assert may_change_width("a", "b")
    assert may_change_width("builtin:x:1", "")
    assert not may_change_width("a", "a")
    assert not may_change_width("", "a")
    assert not may_change_width("a", "")


def test_a_model_that_changes_in_the_middle_of_a_batch_is_refused(embedder, embed_service):
    def answer(texts):
        return 200, json.dumps({"embeddings": [[1, 2]] * len(texts), "model": f"of {len(texts)}"}).encode()

    embed_service.answer = answer
    with pytest.raises(EmbeddingFailure, match="changed its model"):
        embedder.embed(["a"] * 40)


def test_a_service_that_does_not_answer_fails_at_the_timeout(embed_service):
    embed_service.gate.clear()
    slow = embedder_at(embed_service.url, 0.1)
    with pytest.raises(EmbeddingFailure, match="did not answer in time"):
        slow.embed(["a"])


def test_closing_ends_a_call_that_waits_for_its_answer(embedder, embed_service):
    embedder.embed(["first, so that the connection is a kept one"])
    embed_service.entered.clear()
    embed_service.gate.clear()
    outcome = []

    def call():
        try:
            embedder.embed(["a"])
        except EmbeddingFailure as error:
            outcome.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    assert embed_service.entered.wait(20)
    embedder.unload()
    thread.join(20)
    assert len(outcome) == 1


def test_nobody_listening_is_a_failure_that_says_so():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(EmbeddingFailure, match=f"127.0.0.1:{port} refuses connections"):
        embedder_at(f"http://127.0.0.1:{port}/embed", 5.0).embed(["a"])


def test_a_server_that_speaks_no_http_is_a_failure():
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer():
            peer, _ = listener.accept()
            with peer:
                peer.recv(65536)
                peer.sendall(b"SSH-2.0-nonsense\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(EmbeddingFailure, match="no answer in HTTP"):
            embedder_at(f"http://127.0.0.1:{listener.getsockname()[1]}/", 20.0).embed(["a"])
        thread.join(20)


def test_a_password_in_the_address_is_sent_and_never_shown(embed_service):
    url = embed_service.url.replace("http://", "http://me:s3cret@") + "?token=t0ken"
    embedder = embedder_at(url, 20.0)
    embed_service.say(b"", 500)
    with pytest.raises(EmbeddingFailure) as failure:
        embedder.embed(["a"])
    assert "s3cret" not in str(failure.value) and "t0ken" not in str(failure.value)
    embedder.unload()


@pytest.mark.parametrize("url", ["", "localhost:8400/embed", "ftp://host/", "http://", "http://host:port/"])
def test_an_address_that_is_none_is_a_conflict_of_settings(url):
    with pytest.raises(SettingsConflict, match="CPERSONA_EMBEDDING_URL"):
        embedder_at(url, 5.0)
