"""Every answer and its whole account are those that were recorded. How to record anew: see golden_kit.

Contract: recall.stages, explain.account.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import golden_kit as kit
import numpy as np
import pytest
from store_kit import Store, opened_store

from cpersona_daemon.embedding.http import HttpEmbedder
from cpersona_daemon.embedding.values import Declared, Part, Probes

ASKED = kit.VARIANTS + kit.WHY_NOT
SHOWN = 5
_SMALL_TALK = ("how was your day", "what is the weather like", "tell me something nice")


def declared() -> Declared:
    """Return what an embedder with a part of its own and known small talk declares."""
    vectors = np.array([kit.bag(text) for text in _SMALL_TALK], dtype=np.float32)
    return Declared(
        admission=0.4,
        min_similarity=0.35,
        cosine_floor=0.25,
        cosine_ceil=0.8,
        background=0.3,
        part=Part(kit.WORD_WIDTH, kit.WORD_WIDTH + kit.SIGN_WIDTH, kit.SIGN_SHARE),
        questions=Probes(_SMALL_TALK, vectors),
    )


@contextmanager
def filled(name: str) -> Iterator[Store]:
    """Open the store that a variant names, filled."""
    embedder = kit.BagEmbedder()
    environ = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": embedder.url}
    with pytest.MonkeyPatch.context() as patch:
        if name == "parts":
            patch.setattr(HttpEmbedder, "declared", declared())
        try:
            with opened_store(kit.StillClock(), **({} if name == "words" else environ)) as (store, directory):
                kit.fill(store, directory)
                yield store
        finally:
            embedder.stop()


async def ask(store: Store, variant: kit.Variant, texts: list[str], answers: dict[str, dict]) -> None:
    for key, params, settings in kit.asked(variant, texts):
        answer, code = await store.answer(variant.method, params, settings)
        assert code is None, (key, params, answer)
        answers[key] = answer


@pytest.fixture(scope="module")
def greenwich() -> Iterator[None]:
    """The machine's zone, in which last year begins, as it was where the answers were recorded."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC0")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture(scope="module")
def now(greenwich: None) -> dict[str, dict]:
    """Every answer as it is now."""
    texts, answers = kit.questions(), {}
    for name in ("vectors", "parts", "words"):
        with filled(name) as store:
            for variant in ASKED:
                if variant.store == name:
                    store.run(ask(store, variant, texts, answers))
    if os.environ.get("CPERSONA_RECORD_GOLDEN"):
        kit.write({key: kit.reduced(answer) for key, answer in answers.items()})
    return answers


@pytest.fixture(scope="module")
def recorded(now: dict[str, dict]) -> dict[str, dict]:
    return kit.read()


@pytest.mark.parametrize("variant", ASKED, ids=[v.name.replace(" ", "_") for v in ASKED])
def test_every_answer_is_the_one_that_was_recorded(now, recorded, variant):
    differing, asked = [], [key for key in now if key.startswith(f"{variant.name}/")]
    texts = kit.questions()
    for key in asked:
        assert key in recorded, f"{key} was never recorded; see golden_kit"
        found = kit.difference(recorded[key], kit.reduced(now[key]))
        if found:
            differing.append(f"{key} ({texts[int(key.rpartition('/')[2])]!r}) {found}")
    told = "\n  ".join(differing[:SHOWN])
    assert not differing, f"{len(differing)} of {len(asked)} answers differ, the first:\n  {told}"


def test_nothing_was_recorded_that_is_no_longer_asked(now, recorded):
    assert set(recorded) == set(now)


def accounts(recorded: dict[str, dict]) -> list[dict]:
    return [answer["trace"] for answer in recorded.values()]


def test_there_are_accounts_of_every_mode(recorded):
    assert {a["mode"] for a in accounts(recorded)} == {*kit.MODES, "recency"}


def test_there_are_rows_of_every_fate(recorded):
    assert {row["fate"] for a in accounts(recorded) for row in a["rows"]} == {
        "returned",
        "gate",
        "autocut",
        "tail",
        "limit",
        "gate_fallback",
    }


def test_there_are_rows_of_every_channel(recorded):
    assert {c["channel"] for a in accounts(recorded) for c in a["channels"]} == {
        "vector_near",
        "vector_part",
        "vector_far",
        "episode_fts",
        "memory_fts",
        "memory_keyword",
        "recent",
    }


def test_there_are_rows_asked_after_that_every_stage_dropped(recorded):
    asked = [a["why_not"] for a in accounts(recorded) if "why_not" in a]
    assert {a["stage"] for a in asked} == {
        "scope",
        "exclusion",
        "limit",
        "retrieval",
        "gate",
        "tail",
        "autocut",
        "returned",
    }
    assert {c["reason"] for a in asked for c in a.get("channels", ())} == {
        "floor",
        "depth",
        "window",
        "no_usable_vector",
        "no_query_vector",
        "disabled",
        "no_word_in_common",
    }


def test_there_are_rows_with_everything_that_can_be_noted_of_one(recorded):
    noted = {key for a in accounts(recorded) for row in a["rows"] for key in row}
    assert {"version", "prior", "episode_penalty", "identifier", "cosine", "neighbours"} <= noted
    signals = {row["signal"] for a in accounts(recorded) for row in a["rows"] if "signal" in row}
    assert signals == {"confidence", "blend", "rsf", "cosine", "rrf"}


def test_there_are_answers_with_everything_that_can_be_said_beside_rows(recorded):
    assert {"unfamiliarity", "keyword_fallback"} <= {key for a in accounts(recorded) for key in a}
    assert {"best_missed", "gate_fallback", "no_words", "depth", "as_of"} <= {
        key for answer in recorded.values() for key in answer
    }
