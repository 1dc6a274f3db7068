"""Text to token ids, against ids that the published tokenizer gives. Contract: embedding.builtin."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

import cpersona_daemon.embedding
from cpersona_daemon.embedding.builtin.windows import split
from cpersona_daemon.embedding.builtin.wordpiece import WordPiece

VOCABULARY = (
    (Path(cpersona_daemon.embedding.__file__).parent / "builtin" / "data" / "minilm_vocab.txt")
    .read_text("utf-8")
    .rstrip("\n")
    .split("\n")
)


@pytest.fixture(scope="module")
def tokenizer():
    return WordPiece(VOCABULARY)


def pieces(tokenizer, text):
    return [VOCABULARY[i] for i in tokenizer.ids(text)]


def test_the_vocabulary_is_the_standard_one_of_30522_pieces():
    assert len(VOCABULARY) == 30522
    assert (VOCABULARY[100], VOCABULARY[101], VOCABULARY[102]) == ("[UNK]", "[CLS]", "[SEP]")


def test_known_sentences_have_their_known_ids(tokenizer):
    assert tokenizer.ids("hello world") == [7592, 2088]
    assert tokenizer.ids("Hello, World!") == [7592, 1010, 2088, 999]
    assert tokenizer.ids("The quick brown fox jumps over the lazy dog.") == [
        1996,
        4248,
        2829,
        4419,
        14523,
        2058,
        1996,
        13971,
        3899,
        1012,
    ]


def test_words_are_cut_into_the_longest_known_pieces(tokenizer):
    assert pieces(tokenizer, "embeddings") == ["em", "##bed", "##ding", "##s"]
    assert pieces(tokenizer, "unaffable") == ["una", "##ffa", "##ble"]


def test_accents_and_case_make_no_difference_in_either_normal_form(tokenizer):
    plain = tokenizer.ids("cafe naive uber")
    assert tokenizer.ids("Café naïve Über") == plain
    assert tokenizer.ids(unicodedata.normalize("NFD", "CAFÉ NAÏVE ÜBER")) == plain


def test_each_cjk_character_stands_alone(tokenizer):
    assert pieces(tokenizer, "日本x語") == ["日", "本", "x", "語"]


def test_every_punctuation_mark_stands_alone(tokenizer):
    assert pieces(tokenizer, "don't a_b c++ $5 «q»") == [
        "don",
        "'",
        "t",
        "a",
        "_",
        "b",
        "c",
        "+",
        "+",
        "$",
        "5",
        "«",
        "q",
        "»",
    ]


def test_control_characters_vanish_and_every_space_separates(tokenizer):
    assert tokenizer.ids("he\x00l\u200blo\ufffd\u00a0world\r\n\tworld\u2028world") == [7592, 2088, 2088, 2088]


def test_a_word_without_known_pieces_is_one_unknown(tokenizer):
    assert tokenizer.ids("ᚠ") == [100]
    assert tokenizer.ids("hello ☃☃ world") == [7592, 100, 2088]


def test_a_word_of_more_than_a_hundred_characters_is_one_unknown(tokenizer):
    assert tokenizer.ids("a" * 101) == [100]
    assert 100 not in tokenizer.ids("a" * 100)


def test_marks_written_in_a_text_are_ordinary_text(tokenizer):
    assert not {101, 102} & set(tokenizer.ids("[CLS] hello [SEP]"))


def test_nothing_and_blanks_have_no_ids(tokenizer):
    assert tokenizer.ids("") == tokenizer.ids(" \t\n") == []


def test_a_remembered_word_has_the_ids_of_its_first_time(tokenizer):
    assert tokenizer.ids("reconfigure reconfigure") == tokenizer.ids("reconfigure") * 2


def test_windows_hold_every_id_once_in_order_and_are_of_nearly_equal_length():
    for count in (0, 1, 253, 254, 255, 508, 509, 5000):
        windows = split(list(range(count)), 254)
        assert [i for window in windows for i in window] == list(range(count))
        assert max(map(len, windows)) <= 254
        assert max(map(len, windows)) - min(map(len, windows)) <= 1
    assert split([], 254) == [[]]
