"""Times that a person types. Contract: time.typed."""

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpersona_cli.exits import Usage
from cpersona_cli.terminal import ages, times

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    "text, start",
    [
        ("2026-03-01T09:30Z", "2026-03-01T09:30:00+00:00"),
        ("2026-03-01 09:30:15+02:00", "2026-03-01T07:30:15+00:00"),
        ("2026-03-01T09:30", "2026-03-01T09:30:00+00:00"),
        ("90m", "2026-03-01T10:30:00+00:00"),
        ("3h", "2026-03-01T09:00:00+00:00"),
        ("2d", "2026-02-27T12:00:00+00:00"),
        ("1h30m", "2026-03-01T10:30:00+00:00"),
        ("1w", "2026-02-22T12:00:00+00:00"),
    ],
)
def test_an_instant_or_an_age_is_one_moment(text, start):
    typed = times.parse(text, NOW)
    assert typed.start.isoformat() == start and typed.end == typed.start


def test_a_date_is_its_whole_utc_day():
    typed = times.parse("2026-03-01", NOW)
    assert typed.start.isoformat() == "2026-03-01T00:00:00+00:00"
    assert typed.end.isoformat() == "2026-03-01T23:59:59.999999+00:00"


@pytest.mark.parametrize(
    "text", ["", "yesterdays", "9999 years ago", "2026-13-01", "3", "3x", "-2d", "2026-03-01T25:00", "999999999999d"]
)
def test_what_names_no_time_is_refused_with_examples(text):
    with pytest.raises(Usage, match="90m, 3h, 2d"):
        times.parse(text, NOW)


def test_a_name_of_a_time_is_read_in_the_machines_zone_and_warns_of_nothing(zone):
    zone("XST-9")
    typed = times.parse(" last  week ", NOW)
    assert (times.local(typed.start), times.local(typed.end)) == (
        "2026-02-16 00:00 +09:00",
        "2026-02-22 23:59:59 +09:00",
    )
    assert typed.named and times.zone_warning("last week", typed) is None and not times.parse("2d", NOW).named


@pytest.fixture
def zone(monkeypatch):
    def set_zone(name):
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield set_zone
    monkeypatch.undo()
    time.tzset()


def test_a_naive_time_warns_only_where_the_machine_is_in_another_zone(zone):
    zone("XST-9")
    assert "+09:00" in times.zone_warning("2026-03-01T09:30", times.parse("2026-03-01T09:30"))
    assert times.zone_warning("2026-03-01", times.parse("2026-03-01")) is not None
    assert times.zone_warning("2026-03-01T09:30Z", times.parse("2026-03-01T09:30Z")) is None
    assert times.zone_warning("2d", times.parse("2d")) is None
    zone("UTC0")
    assert times.zone_warning("2026-03-01T09:30", times.parse("2026-03-01T09:30")) is None


@pytest.mark.parametrize(
    "stamp, shown",
    [
        ("2026-03-01T11:59:30Z", "30s"),
        ("2026-03-01 11:00:00", "1h"),
        ("2026-02-27T12:00:00+00:00", "2d"),
        ("2024-03-01T12:00:00+00:00", "2.0y"),
        ("2026-03-01T13:00:00Z", "ahead"),
        ("some day", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_the_age_of_a_row_is_one_short_word(stamp, shown):
    assert ages.age(stamp, NOW) == shown


@given(st.datetimes(timezones=st.just(UTC)))
def test_the_age_of_a_usual_stamp_is_the_one_that_datetime_tells(moment):
    for written in (moment, moment.replace(microsecond=0), moment.replace(day=min(moment.day, 28))):
        usual = ages._usual(written.isoformat())
        assert usual is None or abs(usual - written.timestamp()) < 1e-4
        assert usual is not None or written.day > 28
    for refused in ("2026-02-30T00:00:00+00:00", "2026-13-01T00:00:00+00:00", "0000-01-01T00:00:00+00:00"):
        assert ages.age(refused, NOW) == ""
