"""Which part of a found passage a terminal has room for. Contract: passages.best."""

import pytest

from cpersona_cli.terminal.render import on_terminal, told
from cpersona_cli.terminal.view import marker

FILLER = "Nothing of this is asked for here. " * 6
ANSWER = "The lock is dropped after nine seconds."


def shown(passage, question, room=80):
    return told(passage, marker(question), room)


def test_a_passage_begins_with_the_sentence_that_holds_most_of_the_questions_words():
    assert shown(f"{FILLER}{ANSWER} {FILLER}", "when is the lock dropped").startswith(ANSWER)


def test_a_passage_that_fits_is_shown_whole():
    assert shown(f"Before. {ANSWER}", "when is the lock dropped") == f"Before. {ANSWER}"


@pytest.mark.parametrize("end", ["? ", "!\n", '." ', "\n- "])
def test_sentences_end_where_a_reader_sees_them_end(end):
    assert shown(f"{FILLER.strip()[:-1]}{end}{ANSWER}", "lock dropped seconds").lstrip("- ") == ANSWER


def test_a_script_without_spaces_is_cut_at_its_own_stops():
    text = "これは関係のない文です。" * 12 + "鍵は九秒後に外れます。"
    assert shown(text, "鍵はいつ外れますか", 40).startswith("鍵は九秒後")


def test_without_a_word_of_the_question_a_passage_begins_where_it_begins():
    assert shown(FILLER, "zebra crossing") == FILLER


def test_the_beginning_of_the_text_stands_before_a_passage_that_is_far_in():
    content = f"Runbook of the cluster. {FILLER}{FILLER}{ANSWER}"
    row = {"content": content, "passage": {"start": 64, "end": len(content)}}
    text = on_terminal(row, marker("when is the lock dropped"), 120)
    assert text == f"{content[:40].strip()} … {ANSWER}"
