"""What other agents store moves nothing in an agent's answers: neither what a word weighs nor which rows are found.

Contract: coverage.share, scope.axes.
"""

from __future__ import annotations

import random

import pytest

from cpersona_daemon.model.kinds import MEMORY
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.storage import existence, frequencies, lexical, word_counts
from cpersona_daemon.text.terms import parse_query

WORDS = "kettle hub axle spoke rim valve chain saddle lamp bell PROJ-1042 東京駅 v2.3.1".split()


def answer(store, text, mode="blend", agent="kit"):
    """Everything that a client is told of its rows."""
    result = store.recall(text, mode, agent, trace=True)
    words = [channel["words"] for channel in result.trace["channels"] if "words" in channel]
    return (
        [(row.ref, row.match_reason) for row in result.rows],
        result.considered,
        result.gated,
        result.best_missed,
        words,
        result.trace["rows"],
        result.trace.get("unfamiliarity"),
    )


def without_bm25(told):
    """The same without the scores of the full-text lists, which have the statistics of the whole table."""
    *rest, rows, unfamiliarity = told
    bare = [
        {key: value for key, value in row.items() if key != "lists"}
        | {"lists": [place["channel"] for place in row["lists"]]}
        for row in rows
    ]
    return (*rest, bare, unfamiliarity)


def test_coverage_does_not_move_when_another_agent_stores_a_word_of_the_question(words):
    words.add("the boiler valve leaks", "a note about the garden")
    before = answer(words, "boiler valve handle")
    for _ in range(20):
        words.add("the handle of the boiler", agent="other", channel=str(random.random()))
    assert without_bm25(answer(words, "boiler valve handle")) == without_bm25(before)


@pytest.mark.parametrize("seed", range(4))
def test_no_answer_of_an_agent_moves_with_what_others_store(words, seed):
    pick = random.Random(seed)
    some = lambda most: " ".join(pick.sample(WORDS, pick.randrange(1, most)))  # noqa: E731
    words.add(*(f"{some(6)} {n}" for n in range(30)))
    words.episode(some(4), some(3))
    questions = [f"What did Tobias say about the {some(5)}?" for _ in range(12)] + [some(3) for _ in range(12)]
    before = [without_bm25(answer(words, question)) for question in questions]
    words.add(*(f"{some(9)} Tobias filler {n}" for n in range(1_500)), agent="other")
    words.episode(some(9), "Tobias", agent="other")
    assert [without_bm25(answer(words, question)) for question in questions] == before


def test_a_word_that_is_in_most_rows_of_others_still_votes(words):
    words.add("the kettle is new", "nothing")
    words.add(*(f"kettle {n}" for n in range(1_500)), agent="other")
    assert len(words.refs("kettle")) == 1 and words.refs("kettle valve") == words.refs("kettle")


def test_a_word_of_very_many_rows_of_others_finds_an_agents_few_rows(words):
    rows = words.add("a kettle by the wall", "the hub")
    words.add(*(f"kettle of others {n}" for n in range(200)), agent="other")
    for text in ("kettle", "kettle hub", "kettle unheard"):
        found = words.db.read_now(
            lambda conn, text=text: lexical.search(conn, MEMORY, parse_query(text), Scope("kit"), 10, common_rows=40)
        )
        assert f"mem:{found[0][0]}" in rows and {f"mem:{row}" for row, _ in found} <= set(rows), text
    assert (
        len(
            words.db.read_now(
                lambda conn: lexical.search(conn, MEMORY, parse_query("kettle hub"), Scope("kit"), 10, common_rows=40)
            )
        )
        == 2
    )


def test_whether_a_term_is_held_is_asked_of_the_agents_rows(words, monkeypatch):
    monkeypatch.setattr(existence, "LOOKED_THROUGH", 5)
    words.add("a hub")
    words.add(*(f"kettle {n}" for n in range(9)), agent="other")
    (kettle,) = parse_query("kettle").terms
    assert not words.db.read_now(existence.holds, kettle, Scope("kit"))
    assert words.db.read_now(existence.holds, kettle, Scope("other"))


def test_words_weigh_by_the_newest_rows_of_an_agent_however_many_it_and_others_have(words, monkeypatch):
    monkeypatch.setattr(frequencies, "NEWEST_ROWS", 20)
    monkeypatch.setattr(frequencies, "_CELL", 8)
    terms = parse_query("kettle hub").terms
    seen = []
    for n in range(60):
        words.add(f"{'kettle' if n % 2 else 'hub'} {n}")
        words.add(*(f"kettle hub {n} {m}" for m in range(n % 3)), agent="other")
        warm = words.db.read_now(word_counts.counted, "kit", (MEMORY,), terms)
        words.db.read_now(lambda conn: frequencies.share(conn, frequencies.Known()))  # forget what was counted
        assert words.db.read_now(word_counts.counted, "kit", (MEMORY,), terms) == warm
        assert sum(warm.terms) == warm.rows == min(n + 1, warm.rows) and (warm.rows <= 28) and warm.all == (n + 1 < 20)
        seen.append(warm.rows)
    assert max(seen) > 20 and len(set(seen[25:])) > 1


def test_a_name_of_an_agent_is_no_word_of_its_rows(words):
    words.add("a hub")
    assert words.refs(frequencies.owner("kit")) == words.refs(frequencies.owner("kit")[1:]) == []
