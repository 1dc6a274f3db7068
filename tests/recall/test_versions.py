"""Two notes about one thing: which of them comes first, and that nothing else moves. Contract: versions.order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpersona_daemon.model.kinds import PROFILE
from cpersona_daemon.recall.stages.versions import APART_SECONDS, LOOKED_AT, REACH, reorder
from cpersona_daemon.recall.types import Candidate, Moved
from cpersona_daemon.text.question import NOW, PAST, Question

DAY = APART_SECONDS


def rows(*ids):
    return [Candidate(("mem", i), blend=1.0 - n / 100) for n, i in enumerate(ids)]


def order(candidates):
    return [c.rid[1] for c in candidates]


def twins(*pairs):
    return lambda a, b: (a[1], b[1]) in pairs or (b[1], a[1]) in pairs


def days(**at):
    return {("mem", int(name[1:])): None if day is None else day * DAY for name, day in at.items()}


@pytest.mark.parametrize(
    "question",
    [
        "where is our office",
        "what do we pay now",
        "which one is the latest version?",
        "how does the customer currently pay",
        "can Tomas take penicillin",
        "what was it, and is it still so",
    ],
)
def test_present_tense_and_words_for_now_ask_about_now(question):
    assert Question(question).about == NOW


@pytest.mark.parametrize(
    "question",
    [
        "where was our office in 2023",
        "what did the gateway run on before",
        "the error budget in February 2024",
        "who used to lead the team",
        "the price a year ago",
        "where have we been on 3 June",
    ],
)
def test_past_tense_and_dates_ask_about_the_past(question):
    assert Question(question).about == PAST


@pytest.mark.parametrize("question", ["E1103", "office address", "営業時間", ""])
def test_what_tells_no_time_asks_about_neither(question):
    assert Question(question).about is None


def test_a_question_about_now_lifts_the_newer_version_and_one_about_the_past_the_older():
    found, at = rows(1, 2, 3), days(m1=0, m2=5, m3=9)
    assert order(reorder(found, NOW, at, twins((1, 3)))) == [3, 1, 2]
    assert order(reorder(found, PAST, at, twins((1, 3)))) == [1, 2, 3]
    assert order(reorder(rows(3, 2, 1), PAST, at, twins((1, 3)))) == [1, 3, 2]


def test_a_lifted_row_says_what_it_passed_and_keeps_its_score():
    lifted = reorder(rows(1, 2, 3), NOW, days(m1=0, m2=5, m3=9), twins((1, 3)))[0]
    assert lifted.version == Moved(NOW, ("mem", 1), 2) and lifted.blend == 0.98


def test_rows_that_are_not_alike_keep_their_order():
    found = rows(1, 2, 3)
    assert reorder(found, NOW, days(m1=0, m2=5, m3=9), twins()) == found


@pytest.mark.parametrize("later", [0.5, None])
def test_rows_of_one_day_and_undated_rows_are_no_versions_of_each_other(later):
    assert order(reorder(rows(1, 2), NOW, days(m1=0, m2=later), twins((1, 2)))) == [1, 2]


def test_a_row_passes_no_more_than_a_few_others():
    found, at = rows(1, 2, 3, 4, 5), days(m1=0, m2=1, m3=2, m4=3, m5=9)
    assert order(reorder(found, NOW, at, twins((1, 5)))) == [1, 2, 3, 4, 5]
    assert order(reorder(found, NOW, at, twins((2, 5)))) == [1, 5, 2, 3, 4]


def test_the_profile_stays_at_the_end():
    found = [*rows(1, 2), Candidate(PROFILE)]
    assert [c.rid for c in reorder(found, NOW, days(m1=0, m2=3), twins((1, 2)))] == [("mem", 2), ("mem", 1), PROFILE]


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=30),
    st.sets(st.tuples(st.integers(0, 29), st.integers(0, 29)), max_size=40),
    st.sampled_from([NOW, PAST]),
)
def test_the_same_rows_come_back_and_none_rises_further_than_it_says(instants, pairs, asked):
    found = rows(*range(len(instants)))
    after = reorder(found, asked, {("mem", i): day * DAY for i, day in enumerate(instants)}, twins(*pairs))
    assert sorted(order(after)) == sorted(order(found)) and order(after)[LOOKED_AT:] == order(found)[LOOKED_AT:]
    assert all(c.version is None or 1 <= c.version.places <= REACH for c in after)
    assert {c.rid for c in after if c.version is None} >= {c.rid for c in found[LOOKED_AT:]}
