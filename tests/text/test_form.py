"""Whether a question is a sentence or keywords. Contract: blend.keywords."""

from __future__ import annotations

import pytest

from cpersona_daemon.text.form import sentence_form


@pytest.mark.parametrize(
    "text",
    [
        *("zebra", "composite index", "asdfghjkl", "webhook secrets", "OPS-1427", "pg_backup", "file cleanup week"),
        *("空调", "農薬", "토큰", "пароль", "wifi пароль", "", "42"),
    ],
)
def test_a_few_words_without_function_words_are_keywords(text):
    assert sentence_form(text) == 0.0


@pytest.mark.parametrize(
    "text",
    [
        *("where are keys kept", "who owns billing", "zebra?", "recipe for the pie", "keys to be kept in a box"),
        *("Wer gibt sein Instrument her", "por qué se murieron", "température de la pièce", "what is x"),
        *("谁不能吃花生", "借りた本はいつ返す", "할머니 생신 파티 장소", "空调？", "где лежат ключи"),
        "red green blue white black grey pink",
    ],
)
def test_an_asking_word_function_words_or_many_words_make_a_sentence(text):
    assert sentence_form(text) == 1.0


@pytest.mark.parametrize("text", ["recipe for pie", "red green blue white black", "outil pour hacher"])
def test_what_may_be_either_is_half_of_each(text):
    assert sentence_form(text) == 0.5
