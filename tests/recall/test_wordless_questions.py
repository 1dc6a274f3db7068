"""A question of punctuation alone: there is nothing to look for, and the answer says so. Contract: recall.blank."""

from __future__ import annotations

import pytest

from cpersona_daemon.text.question import Question

WORDLESS = ("%", "()*", "…", "?!", "_", "-- //", "«»", "│", "•", "'", "€", "+=")


@pytest.mark.parametrize("text", WORDLESS)
def test_punctuation_is_no_question_and_brings_nothing_back(words, text):
    words.add("5% (done)* …?! a_b -- // «so» │ • it's € +=", "some other note")
    result = words.recall(text)
    assert (result.rows, result.considered, result.wordless) == ([], 0, True)
    (advice,) = result.advice
    assert advice.severity == "hint" and "nothing to look for" in advice.reason and repr(text) in advice.evidence


@pytest.mark.parametrize("mode", ["rrf", "rsf"])
def test_modes_that_know_rows_by_their_characters_find_those_with_exactly_these_and_say_it(words, mode):
    row, _ = words.add("5% done", "some other note")
    result = words.recall("%", mode)
    assert [found.ref for found in result.rows] == [row] and "exactly these characters" in result.advice[0].reason
    assert words.recall("()*", mode).rows == [] and "nothing to look for" in words.recall("()*", mode).advice[0].reason


@pytest.mark.parametrize("text", ["a", "5%", "C++", "🎉", "猫", "ก", "the", "%x", "½", ""])
def test_a_letter_a_digit_or_an_emoji_is_something_to_look_for(text):
    assert not Question(text).wordless


def test_an_agent_with_a_profile_is_not_answered_with_it_for_a_question_of_no_word(words):
    words.fill()
    words.db.write_now(
        lambda tx: tx.execute(
            "INSERT INTO profiles (agent_id, updated_at, content) VALUES ('kit', '2026-01-01', 'likes tea')"
        )
    )
    assert words.recall("()*").rows == [] and words.recall("unheard").rows != []
