"""Pauses of persistence by session key. Contract: pause.answers."""

from __future__ import annotations

import pytest

from cpersona_daemon.errors import Refused
from cpersona_daemon.rpc.pauses import Pauses


class HeldClock:
    """A clock that moves only when told to."""

    def __init__(self):
        self.seconds = 1_767_225_600.0

    def now(self) -> float:
        return self.seconds

    monotonic = now


@pytest.fixture
def clock() -> HeldClock:
    return HeldClock()


@pytest.fixture
def pauses(clock) -> Pauses:
    return Pauses(clock)


def test_nothing_is_paused_at_first(pauses):
    assert pauses.status() == {"paused": False, "ttl_remaining_seconds": None, "scope": "process"}
    assert not pauses.is_paused("")


def test_a_pause_names_its_end_and_its_scope(pauses):
    assert pauses.pause(600) == {
        "paused": True,
        "ttl_seconds": 600,
        "expires_at": "2026-01-01T00:10:00+00:00",
        "scope": "process",
    }
    assert pauses.pause(60, "s")["scope"] == "session"


def test_a_pause_ends_by_itself(pauses, clock):
    pauses.pause(600)
    clock.seconds += 599.5
    assert pauses.status() == {"paused": True, "ttl_remaining_seconds": 1, "scope": "process"}
    clock.seconds += 0.5
    assert not pauses.is_paused("")
    assert pauses.resume() == {"paused": False, "was_active": False, "scope": "process"}


def test_resume_tells_whether_a_pause_was_active(pauses):
    pauses.pause(600, "s")
    assert pauses.resume("s") == {"paused": False, "was_active": True, "scope": "session"}
    assert pauses.resume("s")["was_active"] is False


def test_a_key_and_everyone_without_one_are_paused_apart(pauses):
    pauses.pause(600, "s")
    assert pauses.is_paused("s") and not pauses.is_paused("") and not pauses.is_paused("t")
    pauses.pause(600)
    pauses.resume("s")
    assert pauses.is_paused("") and not pauses.is_paused("s")


@pytest.mark.parametrize("ttl", [0, -1, 1.5, "600", True, None])
def test_a_ttl_that_is_no_whole_number_from_one_on_is_refused(pauses, ttl):
    with pytest.raises(Refused):
        pauses.pause(ttl)


@pytest.mark.parametrize(("ttl", "lasts"), [(1, 1), (86_400, 86_400), (999_999, 86_400)])
def test_a_pause_lasts_a_day_at_most(pauses, ttl, lasts):
    assert pauses.pause(ttl)["ttl_seconds"] == lasts
    assert pauses.status()["ttl_remaining_seconds"] == lasts


def test_at_most_256_pauses_are_live_and_expired_ones_make_room(pauses, clock):
    for number in range(256):
        pauses.pause(100, f"s{number}")
    with pytest.raises(Refused):
        pauses.pause(100, "one more")
    assert pauses.pause(200, "s0")["ttl_seconds"] == 200
    clock.seconds += 100
    assert pauses.pause(100, "one more")["paused"] is True
    assert pauses.is_paused("s0") and not pauses.is_paused("s1")
