"""How fast, and how long yet: only what was measured. Contract: progress.measured."""

import pytest

from cpersona_daemon.shared.pace import Followed, Pace, seconds_left


def paced(*steps):
    pace = Pace()
    for step in steps:
        pace.add(*step)
    return pace


@pytest.mark.parametrize(
    "steps, rate",
    [
        ((), None),
        (((2.0, 0),), None),  # time alone is no rate
        (((2.0, 10),), 5.0),
        (((2.0, 10), (2.0, 30)), 10.0),
        (((1.0, 1_000), (20.0, 20), (20.0, 20)), 1.0),  # what lies further back than the window does not count
        (((500.0, 5),), 0.01),  # a single step counts however long it took
    ],
)
def test_a_rate_is_what_was_done_in_the_latest_seconds_of_work(steps, rate):
    assert paced(*steps).rate == pytest.approx(rate) if rate else paced(*steps).rate is None


def test_what_is_forgotten_is_not_known():
    pace = paced((1.0, 5))
    pace.forget()
    assert pace.rate is None and seconds_left(10, pace.rate) is None


@pytest.mark.parametrize("count, rate, left", [(10, 2.0, 5.0), (0, None, 0.0), (1, None, None), (0, 3.0, 0.0)])
def test_without_a_rate_there_is_no_time_but_for_nothing(count, rate, left):
    assert seconds_left(count, rate) == left


def test_a_count_that_is_told_now_and_then_has_the_rate_of_its_growth():
    followed = Followed()
    assert followed.reached(100, 10.0) is None  # where it began says nothing of how fast it came there
    assert followed.reached(110, 10.1) is None  # too soon to tell
    assert followed.reached(120, 11.0) == 20.0
    assert followed.reached(0, 12.0) is None  # something else is counted
    assert followed.reached(5, 13.0) == 5.0
