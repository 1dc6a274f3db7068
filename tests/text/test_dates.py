"""Dates in the spellings that people type: whatever spelling is asked, a row is known by any other.

Contract: dates.spelled.
"""

import time

import pytest

from cpersona_daemon.recall.scoring.coverage import Sought
from cpersona_daemon.recall.scoring.reading import Reading
from cpersona_daemon.text.dates import is_named, spellings
from cpersona_daemon.text.question import Question

SPELLINGS = (
    "15.03.2024",
    "15.3.2024",
    "03/15/2024",
    "3/15/2024",
    "15/03/2024",
    "15-03-2024",
    "20240315",
    "2024-03-15",
    "2024/03/15",
    "15 March 2024",
    "15th of March 2024",
    "15th March, 2024",
    "March 15, 2024",
    "march 15th 2024",
    "15 Mar 2024",
    "Mar 15, 2024",
    "15-Mar-2024",
    "15. März 2024",
    "15 de marzo de 2024",
)
OTHERS = ("16.03.2024", "05/15/2024", "20240325", "2023-03-15", "15 April 2024", "March 16, 2024")


def coverage(question, text, when=None):
    return Sought(Question(question), lambda word: tuple(word.strip('"').split())).held(Reading(text, when)).coverage


@pytest.mark.parametrize("asked", SPELLINGS)
def test_a_date_is_one_in_every_spelling_and_another_date_is_none_of_it(asked):
    for stored in (*SPELLINGS, "2024-03-15T09:30:00Z", "backup-20240315.tar", "2024年3月15日", "March 15"):
        assert coverage(asked, f"the freeze begins, {stored}, for all") == 1.0, stored
    for other in OTHERS:
        assert coverage(asked, f"the freeze begins, {other}, for all") == 0.0, other


def test_where_two_readings_are_possible_both_are_meant():
    for stored in ("2024-04-03", "3 April 2024", "2024-03-04", "March 4, 2024", "04/03/2024", "04.03.2024"):
        assert coverage("03/04/2024", f"seen {stored}") == 1.0, stored
    assert coverage("03.04.2024", "seen 2024-03-04") == 0.0  # with dots the day comes first
    assert coverage("04/13/2024", "seen 2024-04-13") == 1.0


@pytest.mark.parametrize("asked", ["the outage in March 2024", "outage 2024-03"])
def test_a_month_is_met_by_each_of_its_days(asked):
    whole = coverage(asked, "the outage of March 2024 2024-03")
    for stored in ("15.03.2024", "2024-03-15", "3/15/2024", "15 March 2024"):
        assert coverage(asked, f"outage {stored}") == whole == 1.0, stored
    for other in ("15.04.2024", "2023-03-15", "20241103"):
        assert coverage(asked, f"outage {other}") < 1.0, other


def test_a_day_without_its_year_is_the_one_near_to_the_row():
    of_2023, of_2019 = 1_700_000_000, 1_550_000_000
    assert coverage("15 March 2024", "the launch is on March 15", of_2023) == 1.0
    assert coverage("15 March 2024", "the launch is on March 15", of_2019) == 0.0
    assert coverage("on 15 March", "the launch: 2019-03-15") == 1.0


@pytest.mark.parametrize(
    "text", ["we march 5 km in 2024", "host 1.15.03.2024", "version 1.15.3", "port 20249999", "30 Foobar 2024", ""]
)
def test_what_is_no_date_names_none(text):
    assert not is_named((2024, 3, 15), text, None)


@pytest.mark.parametrize("asked", ["15.03.2024", "March 15, 2024", "the freeze of 20240315"])
def test_a_search_asks_for_every_spelling_where_spellings_are_asked_for(asked):
    terms = {term.text: term for term in Question(asked, with_spellings=True).searched.terms}
    assert {"2024-03-15"} <= terms.keys() and {other.words for other in terms["2024-03-15"].others} >= {
        "20240315",
        "15 03 2024",
        "03 15 2024",
        "15th of march",
        "mar 15",
    }
    assert Question(asked).searched == Question(asked).written
    assert spellings((2024, 3, None)) == ("2024-03", ("march 2024", "mar 2024"))


def test_long_rows_full_of_numbers_cost_little():
    text, asked = "2024-05-03 10:15:03 took 3 ms, 15 rows, 3.1 of 33 " * 300, (2024, 3, 15)
    began = time.process_time()
    assert not is_named(asked, text, None)
    assert time.process_time() - began < 0.1
