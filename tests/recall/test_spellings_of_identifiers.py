"""One identifier in its many spellings is one thing, and one that no row holds is answered with nothing or said.

Contract: lexical.spellings, blend.absent, gate.identifier.
"""

from __future__ import annotations

import pytest
from identifier_spellings import ABSENT, ABSENT_WITH_WORDS, SPELLINGS, Asked, all_in_one, stored
from words_kit import MODES, WordStore

ROWS = 300
SENTENCE = "did the upload of the weekly ledger fail again because of {} last night"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = WordStore(tmp_path_factory.mktemp("spellings"))
    yield store
    store.close()


@pytest.fixture(scope="module")
def sizes(store):
    def add(agent, texts):
        return store.add(*texts, agent=agent)

    return {**stored(add), "all": all_in_one(add, ROWS)}


@pytest.fixture(scope="module")
def asked(store, sizes):
    return Asked(lambda text, agent: store.recall(text, agent=agent))


@pytest.mark.parametrize("size", ["1", "20", "all"])
def test_an_identifier_is_found_first_in_its_other_spellings_whatever_the_size_of_the_store(asked, sizes, size):
    wrong = asked.wrong_spellings(*sizes[size])
    assert [asked for asked, _, _ in wrong] == ["4500221877"] and len(SPELLINGS) >= 52  # digits joined over hyphens


def test_an_identifier_that_no_row_holds_brings_no_look_alike(asked):
    assert asked.wrong_absent("all-300") == [] and len(ABSENT) >= 27


@pytest.mark.parametrize("question", ABSENT_WITH_WORDS)
def test_a_word_or_two_beside_an_absent_identifier_bring_nothing_either(asked, store, question):
    result = store.recall(question, agent="all-300")
    assert result.rows == [] and result.absent


def test_a_sentence_that_names_an_absent_identifier_marks_what_only_comes_near(words):
    (row,) = words.add(SENTENCE.format("a full disk"))
    result = words.recall(SENTENCE.format("ZED-4171"))
    (near,) = result.rows
    assert (near.ref, result.absent, near.match_reason["near"]) == (row, ("ZED-4171",), True)
    assert "near" not in words.recall(SENTENCE.format("it")).rows[0].match_reason


def test_a_row_that_holds_another_identifier_of_the_question_is_an_answer(words):
    (row,) = words.add("release v6.1.4 broke the importer")
    result = words.recall("v6.1.4 v6.1.5")
    assert [found.ref for found in result.rows] == [row] and result.absent == ("v6.1.5",)
    assert "near" not in result.rows[0].match_reason


def test_an_identifier_of_another_scope_is_absent_here(words):
    words.add("ZED-4171 is done", project_id="there")
    words.add("ZED-4172 is done", project_id="here")
    from cpersona_daemon.model.scope import Scope

    result = words.recall("ZED-4171", scope=Scope("kit", "here"))
    assert result.rows == [] and result.absent == ("ZED-4171",)


@pytest.mark.parametrize("mode", sorted(set(MODES) - {"blend"}))
def test_the_modes_of_the_protocol_know_an_identifier_as_it_is_written(words, mode):
    words.fill()
    words.add("error code E4417 means the pump is dry")
    assert words.recall("E-4417", mode).rows == [] and words.recall("E-4417", mode).absent == ()


def test_a_question_with_an_acronym_that_no_row_holds_asks_for_no_more(words):
    words.add("analysts run heavy queries on the replica", "Ines fixed the lamp")
    acronym, name = (
        words.recall(f"where should the analysts run {word} queries", trace=True).trace for word in ("SQL", "Redash")
    )
    assert "unfamiliarity" not in acronym and name["unfamiliarity"] > 0.09
