"""Times that are named by words, in the machine's zone. Contract: time.typed, time.asked."""

import time
from datetime import datetime

import pytest

from cpersona_daemon.shared import periods


@pytest.fixture(autouse=True)
def berlin(monkeypatch):
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def now():
    return datetime(2026, 12, 3, 12).timestamp()  # a Thursday


def shown(period):
    start, end = period
    return f"{start:%Y-%m-%d %H:%M%z} {end:%Y-%m-%d %H:%M%z}"


@pytest.mark.parametrize(
    "text, meant",
    [
        ("today", "2026-12-03 00:00+0100 2026-12-03 23:59+0100"),
        ("Yesterday", "2026-12-02 00:00+0100 2026-12-02 23:59+0100"),
        ("last  week", "2026-11-23 00:00+0100 2026-11-29 23:59+0100"),
        ("this week", "2026-11-30 00:00+0100 2026-12-06 23:59+0100"),
        ("last month", "2026-11-01 00:00+0100 2026-11-30 23:59+0100"),
        ("last year", "2025-01-01 00:00+0100 2025-12-31 23:59+0100"),
        ("3 days ago", "2026-11-30 00:00+0100 2026-11-30 23:59+0100"),
        ("a week ago", "2026-11-26 00:00+0100 2026-11-26 23:59+0100"),
        ("two months ago", "2026-10-03 00:00+0200 2026-10-03 23:59+0200"),
        ("90 minutes ago", "2026-12-03 10:30+0100 2026-12-03 10:30+0100"),
        ("last 3 days", "2026-11-30 00:00+0100 2026-12-03 12:00+0100"),
        ("past week", "2026-11-26 00:00+0100 2026-12-03 12:00+0100"),
        ("monday", "2026-11-30 00:00+0100 2026-11-30 23:59+0100"),
        ("thursday", "2026-12-03 00:00+0100 2026-12-03 23:59+0100"),
        ("last thursday", "2026-11-26 00:00+0100 2026-11-26 23:59+0100"),
        ("march", "2026-03-01 00:00+0100 2026-03-31 23:59+0200"),
        ("last december", "2025-12-01 00:00+0100 2025-12-31 23:59+0100"),
        ("March 2024", "2024-03-01 00:00+0100 2024-03-31 23:59+0200"),
    ],
)
def test_a_name_means_whole_days_of_the_machines_zone(text, meant):
    assert shown(periods.typed(text, now())) == meant


@pytest.mark.parametrize("text", ["", "week", "last", "noon", "yesterday morning", "mondays", "some days ago"])
def test_other_words_are_the_name_of_no_time(text):
    assert periods.typed(text, now()) is None


@pytest.mark.parametrize(
    "question, words",
    [
        ("what did we decide last week about billing", "last week"),
        ("Who was on call on Monday?", "on monday"),
        ("which hosts failed in the past two weeks", "past two weeks"),
        ("the outage three days ago", "three days ago"),
        ("the budget of last March", "last march"),
    ],
)
def test_a_question_names_a_time_among_its_other_words(question, words):
    found, period = periods.asked(question, now())
    assert found == words and period[0].timestamp() < now()


@pytest.mark.parametrize(
    "question",
    ["who cleans on Mondays", "the Monday meeting", "the last week of March", "9999 years ago", "weekly report", ""],
)
def test_a_question_without_a_time_names_none(question):
    assert periods.asked(question, now()) is None
