"""Quoted words and words left out, in a store without vectors. Contract: question.quoted, question.without."""

from __future__ import annotations

import pytest
from words_kit import WordStore

from cpersona_daemon.model.kinds import MEMORY
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.recall.types import Query
from cpersona_daemon.text.question import Question

ROWS = {
    "job": "Priya works as a mechanical engineer at the dam",
    "jobs": "two mechanical engineers left in spring",
    "apart": "the engineer repaired the mechanical clock, a mechanical wonder",
    "clock": "a mechanical clock stands in the hall",
    "cat": "the jaguar slept near the river",
    "car": "the jaguar is a fast car with leather seats",
    "cars": "cars such as the jaguar need oil",
    "race": "we run go test -race before every merge",
    "races": "the race condition in the merge queue is fixed",
    "kanji": "彼は機械工学を学んだ",
    "kanji apart": "機械の音と土木工学",
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = WordStore(tmp_path_factory.mktemp("quotes"))
    store.fill()
    store.known = dict(zip(ROWS, store.add(*ROWS.values()), strict=True))
    store.named = {ref: name for name, ref in store.known.items()}
    yield store
    store.close()


def found(store, text, **options):
    return [store.named.get(ref, ref) for ref in store.refs(text, **options)]


@pytest.mark.parametrize("text", ['"mechanical engineer"', "“Mechanical engineers”"])
def test_rows_that_hold_quoted_words_together_come_before_those_that_hold_them_apart(store, text):
    rows = found(store, text)
    assert set(rows[:2]) == {"job", "jobs"} and "apart" in rows[2:]


def test_a_phrase_of_a_text_without_spaces_stands_together_too(store):
    assert found(store, "「機械工学」")[0] == "kanji" and found(store, '"機械工学"')[0] == "kanji"


@pytest.mark.parametrize(
    "text", ['"engineer mechanical"', '"fast jaguar"', '"zebra"', '"機械土木"', '"the river slept"']
)
def test_quoted_words_that_no_row_holds_together_are_answered_with_nothing(store, text):
    assert found(store, text) == []
    result = store.recall(text, trace=True)
    assert result.not_held == (text.strip('"'),) == tuple(result.trace["not_held"])
    for mode in ("rrf", "rsf"):
        assert store.recall(text, mode).not_held == ()


def test_every_quoted_phrase_must_be_held_where_nothing_else_is_asked(store):
    assert found(store, '"fast car" "leather seats"')[0] == "car"
    assert found(store, '"fast car" "near the river"') == []


def test_a_phrase_inside_a_question_weighs_as_much_as_its_words(store):
    whole, apart = (
        store.recall('who is the "mechanical engineer" here', trace=True),
        found(store, "mechanical engineer"),
    )
    assert store.named[whole.rows[0].ref] in ("job", "jobs") and whole.trace["quoted"] == ["mechanical engineer"]
    held = {store.named.get(row.ref): row.candidate.coverage for row in whole.rows}
    assert held["job"] == held["jobs"] == 1.0 and 0.4 < held["apart"] < 0.6 and "apart" in apart


@pytest.mark.parametrize("text", ['""', '"?"', '"" ""'])
def test_quotes_around_nothing_ask_for_nothing(store, text):
    assert store.recall(text).wordless and found(store, text) == []


@pytest.mark.parametrize("text", ['mechanical "engineer', "mechanical engineer's", '5" mechanical 6" engineer'])
def test_an_unpaired_quote_is_none(store, text):
    assert found(store, text)[0] in ("job", "jobs", "apart") and not store.recall(text).question.phrases


@pytest.mark.parametrize("text", ['"a" AND NOT "b*"', '"NEAR(x y)"', '"col: {x}" -"y OR z"', '"x""y" -"""'])
def test_nothing_that_is_quoted_is_syntax(store, text):
    store.recall(text)


def test_rows_that_hold_a_word_left_out_come_back_in_no_channel(store):
    assert {"cat", "car", "cars"} <= set(found(store, "jaguar"))
    result = store.recall("jaguar -car", trace=True)
    assert [store.named[row.ref] for row in result.rows] == ["cat"] and result.trace["without"] == ["car"]
    assert found(store, 'jaguar -"leather seats"').count("car") == 0
    assert "car" in found(store, "jaguar -seat") or found(store, "jaguar -seat") == ["cat", "cars"]
    why = store.recall("jaguar -car", why_not=(MEMORY, int(store.known["car"][4:])))
    assert why.trace["why_not"]["stage"] in ("exclusion", "retrieval")


def test_in_the_modes_of_the_protocol_a_hyphen_and_a_quote_say_nothing(store):
    for mode in ("rrf", "rsf", "cascade"):
        assert "car" in found(store, "jaguar -car", mode=mode)


def test_an_option_that_a_row_holds_is_looked_for_and_not_left_out(store):
    assert found(store, "merge queue -race")[0] in ("races", "race")
    assert store.recall("merge queue -race").question.without == ()
    assert store.recall("merge queue -river").question.without != ()


def test_a_row_is_found_behind_more_rows_of_a_word_left_out_than_a_list_holds(store):
    agent = "crowd"
    store.add(*(f"orchard report number {n} about apples" for n in range(120)), agent=agent)
    (pears,) = store.add(
        "an orchard report that somebody wrote at some length about pears and nothing else", agent=agent
    )
    assert store.refs("orchard report -apples", agent=agent) == [pears]


def test_a_question_knows_its_phrases_only_where_they_count():
    assert Question('"red fox"').phrases == () and Query('"red fox"', Scope("a"), 3).text == '"red fox"'
