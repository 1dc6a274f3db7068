"""An engine elsewhere is asked before the snapshot; inside it nothing but the database is.

Contract: vectors.ahead, advisory.says.
"""

import asyncio
import threading
import time
import types
from functools import partial

import numpy as np
import pytest
from vector_kit import House, Row, unit

from cpersona_daemon.model.scope import Scope
from cpersona_daemon.recall import elsewhere, pipeline, prepare
from cpersona_daemon.recall.channels.vectors import scans_of
from cpersona_daemon.recall.run import Run
from cpersona_daemon.recall.types import Query, VectorQuery
from cpersona_daemon.shared.settings import load
from cpersona_daemon.vectors import ahead
from cpersona_daemon.vectors.ahead import Asking
from cpersona_daemon.vectors.backend import Capabilities, NoAnswer, NotReady
from cpersona_daemon.vectors.fallback import WithFallback

RNG = np.random.default_rng(23)
QUESTION = unit(RNG.normal(size=12))


class Far:
    """An engine elsewhere that knows what a local one knows."""

    capabilities = Capabilities(True, True, frozenset(), True, elsewhere=True)
    outbox = None
    place = "far.away"

    def __init__(self, local):
        self._local = local
        self.cosines, self.rows_of, self.background = local.cosines, local.rows_of, local.background
        self.asked = []
        self.failing = None

    def open(self, db, background=False):
        pass

    def search(self, *asked):
        assert self.failing is not None, "asked inside a snapshot"
        raise NoAnswer("nothing of it is here")

    def ask(self, asks, text, deadline):
        self.asked.append((list(asks), text, deadline))
        if self.failing is not None:
            self.failing()
        return [self._local.search(*one) for one in asks]


@pytest.fixture
def house(tmp_path):
    house = House(tmp_path)
    house.add(*(Row(unit(QUESTION + 0.1 * i * RNG.normal(size=12)), i) for i in range(60)))
    house.far = Far(house.store)
    house.vectors = WithFallback(house.far, Asking(house.far))
    house.vectors.open(house.db)
    yield house
    house.vectors.elsewhere.close()
    house.stop()


def recalled(house, vectors, limit=10, mode="rrf", **more):
    settings = load({"HOME": "/"}, {"recall_mode": mode, "vector_reach": "40", "max_memories": "30"})
    query = Query("what is it about", Scope("a"), limit, **more)
    depth = prepare.depth_of(settings, limit)
    make = partial(
        Run,
        settings=settings,
        query=query,
        question=pipeline.question_of(settings, query),
        vector=VectorQuery(QUESTION, "m", -1.0),
        vectors=vectors,
        now=1.0,
        depth=depth,
        scans=scans_of(settings, depth),
    )
    ctx = types.SimpleNamespace(db=house.db, vectors=vectors)

    async def run():
        reader = await elsewhere.reader(ctx, make)
        return await reader.read(pipeline.answer), reader.advice()

    return asyncio.run(run())


def ranked(result):
    return [(row.ref, row.candidate.cosine) for row in result.rows]


@pytest.mark.parametrize("mode", ["blend", "rrf", "rsf", "cascade"])
def test_an_engine_elsewhere_is_asked_once_and_the_answer_is_that_of_a_local_one(house, mode):
    here, _ = recalled(house, house.store, mode=mode)
    there, advice = recalled(house, house.vectors, mode=mode)
    assert ranked(there) == ranked(here) != [] and advice is None
    ((asks, text, deadline),) = house.far.asked
    assert text == "what is it about" and len(asks) == {"blend": 4, "cascade": 2}.get(mode, 4)
    assert deadline < time.monotonic() + ahead.ASK_SECONDS


def test_what_a_stage_turns_out_to_need_is_asked_outside_of_the_snapshot(house):
    missing = ("mem", 45)  # behind the reach, so that the account looks for it deep down
    asked = {"limit": 3, "why_not": missing, "trace": True}
    here, _ = recalled(house, house.store, **asked)
    there, advice = recalled(house, house.vectors, **asked)
    assert there.trace["why_not"] == here.trace["why_not"] and advice is None
    assert len(house.far.asked) > 1


def test_a_failure_is_answered_from_the_database_and_said(house):
    def fail():
        raise NoAnswer("the service is down")

    house.far.failing = fail
    here, _ = recalled(house, house.store)
    for severity in ("hint", "fault"):
        there, advice = recalled(house, house.vectors)
        assert (
            ranked(there) == ranked(here) and advice.severity == severity and advice.evidence == "the service is down"
        )


def test_a_service_that_fails_again_is_let_alone_for_a_while_and_then_asked(house, monkeypatch):
    def fail():
        raise NoAnswer("the service is down")

    house.far.failing = fail
    for _ in range(4):
        recalled(house, house.vectors)
    assert len(house.far.asked) == ahead.TRIES
    house.far.failing = None
    monkeypatch.setattr(house.vectors.elsewhere, "_again_at", 0.0)
    assert recalled(house, house.vectors)[1] is None and house.vectors.elsewhere.failures == 0


def test_an_engine_that_is_still_being_filled_is_asked_each_time(house):
    def fail():
        raise NotReady("12 of 60 rows are there")

    house.far.failing = fail
    for _ in range(4):
        _, advice = recalled(house, house.vectors)
        assert advice.severity == "hint" and "12 of 60" in advice.evidence
    assert len(house.far.asked) == 4


def test_a_service_that_hangs_costs_its_deadline_and_no_more(house, monkeypatch):
    let_go = threading.Event()
    monkeypatch.setattr(elsewhere, "ASK_SECONDS", 0.2)
    house.far.failing = lambda: let_go.wait(20)
    try:
        here, _ = recalled(house, house.store)
        begun = time.monotonic()
        there, advice = recalled(house, house.vectors)
        assert ranked(there) == ranked(here) and "in time" in advice.evidence and time.monotonic() - begun < 5
    finally:
        let_go.set()


def test_a_database_that_takes_too_long_as_well_leaves_words_alone(house, monkeypatch):
    def fail():
        raise NoAnswer("the service is down")

    house.far.failing = fail
    monkeypatch.setattr(ahead, "SCAN_SECONDS", -1.0)
    there, advice = recalled(house, house.vectors)
    assert there.rows == [] and "words alone" in advice.reason
