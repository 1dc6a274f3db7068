"""What a store checks and cleans before anything is written. Contract: store.checks, store.cleaned, store.source."""

import json

import pytest

from cpersona_daemon.errors import Refused
from cpersona_daemon.memory.cleaning import sanitise
from cpersona_daemon.memory.draft import prepare
from cpersona_daemon.memory.source import normalise_source
from cpersona_daemon.shared.settings import load

DEFAULTS = load({"HOME": "/nonexistent"})
NOW = 1_770_000_000.0


def draft(settings=DEFAULTS, **given):
    return prepare(
        **{
            "agent_id": "a",
            "content": "a note",
            "msg_id": "",
            "source": None,
            "timestamp": "",
            "metadata": None,
            "channel": "",
            "project_id": "",
            "locked": False,
            "now": NOW,
            "settings": settings,
            **given,
        }
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, {}),
        ("user", {"type": "User", "id": "", "name": ""}),
        ("assistant", {"type": "Agent", "id": "", "name": ""}),
        ("ai", {"type": "Agent", "id": "", "name": ""}),
        ({"type": "USER", "id": "a"}, {"type": "User", "id": "a"}),
        ({"type": "session", "id": "s"}, {"type": "System", "id": "s"}),
        ({"type": "Robot", "id": "x"}, {"type": "Robot", "id": "x"}),
        ({"User": "u9"}, {"type": "User", "id": "u9", "name": "u9"}),
        ({"System": "cron"}, {"type": "System", "id": "cron", "name": ""}),
        ({"Agent": {"id": "k"}}, {"type": "Agent", "id": "k", "name": ""}),
        ({"url": "x", "n": 1}, {"url": "x", "n": 1}),
    ],
)
def test_a_source_becomes_one_form_whatever_form_it_came_in(given, expected):
    assert normalise_source(given) == expected


def test_a_source_that_is_neither_map_text_nor_null_is_refused():
    with pytest.raises(Refused, match="source"):
        normalise_source([1])


def test_memory_annotations_are_removed_until_none_is_left():
    assert sanitise("[Memory from 2026-01-01] real text") == "real text"
    assert sanitise("[Memory [Memory from a] from b] real") == "real"
    assert sanitise("keep [Memory fro this") == "keep [Memory fro this"


def test_text_is_cut_at_the_cap_and_the_cut_is_said():
    assert draft(content="x" * 16_000).remarks() == {}
    assert draft(content="  " + "x" * 16_000 + "  ").remarks() == {}
    long = draft(content="x" * 16_001)
    assert len(long.memory.content) == 16_000 and long.remarks() == {
        "truncated": True,
        "cut": {"kept": 16_000, "of": 16_001},
    }


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"content": ""}, "content"),
        ({"content": " \n\t"}, "content"),
        ({"content": None}, "content"),
        ({"content": 5}, "content"),
        ({"content": "[Memory from x] "}, "content"),
        ({"content": "a\0b"}, "NUL"),
        ({"msg_id": "i" * 257}, "id"),
        ({"channel": "c" * 257}, "channel"),
        ({"project_id": "p" * 257}, "project_id"),
        ({"timestamp": "2" * 65}, "timestamp"),
        ({"metadata": {"a": "x" * 8000}}, "metadata"),
        ({"source": {"type": "User", "id": "x" * 8000}}, "source"),
        ({"metadata": {"n": float("nan")}}, "metadata"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_its_reason(given, named):
    with pytest.raises(Refused, match=named):
        draft(**given)


def test_exactly_256_characters_of_an_id_are_kept():
    assert draft(msg_id="i" * 256).memory.msg_id == "i" * 256


def test_a_timestamp_is_kept_as_written_and_a_missing_one_becomes_now_with_its_offset():
    assert draft(timestamp="not a date").memory.timestamp == "not a date"
    assert draft().memory.timestamp == "2026-02-02T02:40:00+00:00"


def test_a_timestamp_more_than_five_minutes_ahead_is_said_refused_or_let_through_by_setting():
    ahead = "2026-02-02T02:50:00Z"
    assert draft(timestamp=ahead).remarks() == {
        "timestamp_ahead_of_clock": {"timestamp": ahead, "ahead_by_seconds": 600, "allowance_seconds": 300}
    }
    assert draft(timestamp="2026-02-02T02:45:00Z").remarks() == {}
    with pytest.raises(Refused, match="ahead"):
        draft(load({"HOME": "/nonexistent", "CPERSONA_FUTURE_TIMESTAMP_MODE": "reject"}), timestamp=ahead)
    assert (
        draft(load({"HOME": "/nonexistent", "CPERSONA_FUTURE_TIMESTAMP_MODE": "off"}), timestamp=ahead).remarks() == {}
    )


def test_metadata_travels_as_json_with_its_own_letters():
    assert json.loads(draft(metadata={"k": [1, None, "ü"]}).memory.metadata) == {"k": [1, None, "ü"]}
