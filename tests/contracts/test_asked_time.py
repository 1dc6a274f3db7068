"""A question that names a time, in a store: its rows further up, said on the moved row and nowhere else.

Contract: time.asked.
"""

from datetime import UTC, datetime

import pytest
from contract_kit import memory

BLEND = {"recall_mode": "blend"}
QUESTION = "which walnut table did we choose last year"
LAST = datetime.now(UTC).year - 1


@pytest.fixture
def walnuts(reader):
    texts = ("we did choose a walnut table", "walnut table, we choose", "a walnut table for all", "walnut to choose")
    years = (LAST - 1, LAST - 2, LAST, LAST - 3)
    reader.load(
        *(memory(t, timestamp=f"{y}-06-15T09:00:00Z", msg_id=str(y)) for t, y in zip(texts, years, strict=True))
    )
    return reader


def ids(answer):
    return [row["id"] for row in answer["messages"]][::-1]


def test_rows_of_the_time_stand_further_up_and_say_by_how_much(walnuts):
    asked = {"limit": 10, "deep": True, "trace": True}
    off = walnuts.recall(QUESTION, BLEND | {"time_order": False}, **asked)
    on = walnuts.recall(QUESTION, BLEND, **asked)
    here, passed = str(LAST), ids(off).index(str(LAST)) - ids(on).index(str(LAST))
    assert len(ids(on)) == 4 and [i for i in ids(on) if i != here] == [i for i in ids(off) if i != here]
    said = {row["id"]: row["match_reason"].get("time") for row in on["messages"]}
    assert passed > 0 and said.pop(here) == {"asked": "last year", "places": passed} and not any(said.values())
    assert [row["time"]["places"] for row in on["trace"]["rows"] if "time" in row] == [passed]
    assert on["trace"]["time"]["asked"] == "last year" and on["trace"]["time"]["since"][:4] in (here, str(LAST - 1))
    assert "time" not in off["trace"]


@pytest.mark.parametrize("mode", ["rrf", "rsf", "cascade"])
def test_the_other_modes_know_nothing_of_it(walnuts, mode):
    under = {"recall_mode": mode}
    assert walnuts.recall(QUESTION, under, deep=True) == walnuts.recall(
        QUESTION, under | {"time_order": False}, deep=True
    )
