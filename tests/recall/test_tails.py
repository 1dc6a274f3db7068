"""What follows a good answer from far behind. Contract: blend.tail."""

from __future__ import annotations

import pytest
from store_kit import opened_store

from cpersona_daemon.model.kinds import PROFILE
from cpersona_daemon.recall.stages.tails import split
from cpersona_daemon.recall.types import Candidate

AGENT = {"agent_id": "kit"}


def row(score, rid, **more):
    return Candidate(("mem", rid), blend=score, **more)


def test_a_row_below_its_share_of_the_best_is_left_out_wherever_it_stands():
    best, middle, weak = row(1.0, 1), row(0.25, 2), row(0.2499, 3)
    assert split([weak, best, middle], 0.25) == ([best, middle], [weak])
    assert split([weak], 0.25) == ([weak], []) and split([], 0.25) == ([], [])


def test_a_row_that_holds_an_identifier_of_the_question_stays_and_so_does_the_profile():
    best, named, profile = row(1.0, 1), row(0.01, 2, identified=True), Candidate(PROFILE)
    assert split([best, named, profile], 0.25) == ([best, named, profile], [])


@pytest.fixture(scope="module")
def store():
    with opened_store() as (store, _):
        for text in (
            "the billing service is owned by Noor and her team in Porto",
            "the service desk opens at nine",
            "a service was held for the billing clerk",
        ):
            store.call("store", AGENT | {"content": text})
        yield store


def recalled(store, overrides=None, **more):
    asked = AGENT | {"query": "which team in Porto owns the billing service, Noor?", "trace": True, **more}
    answer, _ = store.call("recall", asked, overrides)
    return [m["content"] for m in answer["messages"]], answer["trace"]


def test_an_answer_ends_where_a_row_says_next_to_nothing_beside_the_best(store):
    rows, trace = recalled(store, why_not="mem:3")
    assert len(rows) == trace["stages"]["tail"] == 1
    assert [row["fate"] for row in trace["rows"]] == ["returned", "tail", "gate"]
    assert trace["why_not"]["stage"] == "tail" and "0.25" in trace["why_not"]["text"]


def test_deep_and_a_share_of_nothing_leave_none_out(store):
    few, _ = recalled(store)
    for asked in ({"deep": True}, {"overrides": {"tail_share": "0"}}):
        rows, trace = recalled(store, **asked)
        assert len(rows) > len(few) and "tail" not in trace["stages"]
