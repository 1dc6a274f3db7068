"""A question that names a time: which rows come further up, by how much, and that nothing else moves.

Contract: time.asked.
"""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpersona_daemon.model.kinds import PROFILE
from cpersona_daemon.recall.stages.times import BETTER, LOOKED_AT, REACH, reorder
from cpersona_daemon.recall.types import Candidate, Lifted
from cpersona_daemon.text.times import AskedTime, asked_time

NOW = datetime(2026, 12, 3, 12, tzinfo=UTC).timestamp()
DAY = 86_400.0
LAST_WEEK = AskedTime("last week", since=NOW - 9 * DAY, until=NOW - 3 * DAY)


def rows(*ids, step=0.01):
    return [Candidate(("mem", i), blend=1.0 - n * step) for n, i in enumerate(ids)]


def order(candidates):
    return [c.rid[1] for c in candidates]


def days_ago(**days):
    return {("mem", int(name[1:])): None if ago is None else NOW - ago * DAY for name, ago in days.items()}


def at(*date):
    return datetime(*date, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    "question, words, inside, outside",
    [
        ("what did we decide last week", "last week", at(2026, 11, 25, 12), at(2026, 12, 1, 12)),
        ("who called yesterday about 2 of them", "yesterday", at(2026, 12, 2, 12), at(2026, 12, 1, 11)),
        ("what broke on 3 May 2024?", "3 May 2024", at(2024, 5, 3, 23), at(2024, 5, 4)),
        ("seen 03/04/2024", "03/04/2024", at(2024, 4, 3), at(2024, 4, 4)),
        ("what did we plan in March", "March", at(2021, 3, 9), at(2021, 4, 9)),
        ("the budget for March 2024", "March 2024", at(2024, 3, 9), at(2023, 3, 9)),
        ("the last week of May 2024", "May 2024", at(2024, 5, 30), at(2026, 11, 25)),
        ("who joined in 2019", "2019", at(2019, 7, 1), at(2020, 7, 1)),
        ("what we bought last March", "last march", at(2026, 3, 9), at(2025, 3, 9)),
    ],
)
def test_a_time_is_read_from_dates_and_from_words(question, words, inside, outside):
    asked = asked_time(question, NOW)
    assert (asked.words, asked.holds(inside), asked.holds(outside), asked.holds(None)) == (words, True, False, False)


@pytest.mark.parametrize("question", ["where is the key", "may I march on?", "the Monday meeting", "E1103", ""])
def test_a_question_that_names_no_time_lifts_nothing(question):
    assert asked_time(question, NOW) is None


def test_a_row_of_the_time_passes_a_few_of_other_times_and_says_so():
    found = rows(1, 2, 3, 4, 5)
    lifted = reorder(found, LAST_WEEK, days_ago(m1=30, m2=40, m3=None, m4=1, m5=5))
    assert order(lifted) == [1, 5, 2, 3, 4]
    assert lifted[1].lifted == Lifted("last week", REACH) and lifted[1].blend == found[4].blend


def test_rows_of_the_time_keep_their_order_and_pass_each_other_never():
    assert order(reorder(rows(1, 2, 3, 4), LAST_WEEK, days_ago(m1=5, m2=30, m3=6, m4=7))) == [1, 3, 4, 2]
    assert order(reorder(rows(1, 2, 3), LAST_WEEK, days_ago(m1=5, m2=6, m3=7))) == [1, 2, 3]


def test_a_row_that_is_far_better_is_not_passed():
    found = [Candidate(("mem", 1), blend=0.9), Candidate(("mem", 2), blend=0.9 / BETTER - 0.01)]
    assert order(reorder(found, LAST_WEEK, days_ago(m1=30, m2=5))) == [1, 2]


def test_the_profile_stays_at_the_end():
    found = [*rows(1, 2), Candidate(PROFILE)]
    assert [c.rid for c in reorder(found, LAST_WEEK, days_ago(m1=30, m2=5))] == [("mem", 2), ("mem", 1), PROFILE]


@given(st.lists(st.one_of(st.none(), st.integers(0, 20)), min_size=1, max_size=30), st.sampled_from([0.001, 0.03]))
def test_the_same_rows_come_back_and_none_rises_further_than_it_says(ages, step):
    found = rows(*range(len(ages)), step=step)
    after = reorder(found, LAST_WEEK, days_ago(**{f"m{i}": ago for i, ago in enumerate(ages)}))
    assert sorted(order(after)) == sorted(order(found)) and order(after)[LOOKED_AT:] == order(found)[LOOKED_AT:]
    assert all(c.lifted is None or 1 <= c.lifted.places <= REACH for c in after)
