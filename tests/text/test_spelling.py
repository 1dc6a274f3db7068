"""One spelling of words for index, question and reading: what it leaves of a text, and that the index takes it as it
is.

Contract: lexical.index.
"""

from __future__ import annotations

import unicodedata

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpersona_daemon.storage import stemmer
from cpersona_daemon.text.spelling import words
from cpersona_daemon.text.terms import index_text

SURROGATES = range(0xD800, 0xE000)


@pytest.fixture(scope="module")
def tokens():
    """What the tokenizer of the index makes of a text, without stemming."""
    conn = apsw.Connection(":memory:")
    unicode61 = conn.fts5_tokenizer(*stemmer.TOKENIZER[1][:1], list(stemmer.TOKENIZER[1][1:]))
    yield lambda text: list(
        unicode61(text.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False)
    )
    conn.close()


def test_the_index_takes_every_word_as_one_token_whatever_characters_it_has(tokens):
    for block in (*range(0, 0x34000, 0x400), *range(0xE0000, 0x110000, 0x4000)):  # the planes between hold nothing
        chars = [chr(code) for code in range(block, block + 0x400) if code not in SURROGATES]
        for text in ("\n".join(f"a{char}b" for char in chars), "\n".join(chars)):
            spelled = words(text)
            assert tokens(spelled) == spelled.split(), hex(block)


@given(st.text(st.characters(codec="utf-8"), max_size=80))
def test_what_is_spelled_is_spelled_alike_in_every_normal_form(text):
    assert (
        len({tuple(words(unicodedata.normalize(form, text)).split()) for form in ("NFC", "NFD", "NFKC", "NFKD")}) == 1
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Андрей", "АНДРЕИ"),
        ("ёлка", "Елка"),
        ("ὈΔΌΣ", "οδος"),
        ("Straße", "STRASSE"),
        ("ILIK", "ılık"),
        ("İzmir", "izmir"),
        ("Łódź", "lodz"),
        ("smørrebrød", "smorrebrod"),
        ("كِتَاب", "كتاب"),
        ("أحمد", "احمد"),
        ("مـــرحبا", "مرحبا"),
        ("שָׁלוֹם", "שלום"),
        ("می\u200cخواهم", "میخواهم"),
        ("co\u00adoperate", "cooperate"),
        ("ինչպե՞ս", "ինչպես"),
        ("ｶﾞｽ", "ガス"),
        ("１２", "12"),
        ("१२", "12"),
        ("٣", "3"),
        ("㎏", "kg"),
        ("ﬁn", "fin"),
        ("👍🏽", "👍"),
        ("❤️", "❤"),
        ("1️⃣", "1"),
    ],
)
def test_two_spellings_of_a_word_are_one(one, other):
    assert words(one).split() == words(other).split() != []


@pytest.mark.parametrize(
    ("one", "other"), [("が", "か"), ("की", "का"), ("ที่", "ทา"), ("ദ", "ദി"), ("🎉", "🎊"), ("e", "ε")]
)
def test_marks_that_make_another_word_are_kept(one, other):
    assert words(one).split() != words(other).split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("放在E4417目录里", ["放在", "e4417", "目录里"]),
        ("ไทยlatinไทย", ["ไทย", "latin", "ไทย"]),
        ("party🎉x", ["party", words("🎉").strip(), "x"]),
        ("snake_case", ["snake", "case"]),
        ("─│┌ ● ■ ✓", [words("✓").strip()]),
        ("!? %() …", []),
        ("бог-бог", ["бог", "бог"]),
        ("ལྷ་ས", words("ལྷ ས").split()),
        ("\0a\0", ["a"]),
    ],
)
def test_words_are_set_apart_from_what_they_are_glued_to(text, expected):
    assert words(text).split() == expected


def test_no_text_is_spelled_with_the_letter_that_begins_an_agents_name():
    for text in ("\uf8ff123", "a\uf8ff", "\uf8ff"):
        assert "\uf8ff" not in words(text) and "\uf8ff" not in index_text(text)
