"""What is indexed for a text, and what a question asks for. Contract: lexical.terms, lexical.index."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpersona_daemon.shared.stopwords import ENGLISH
from cpersona_daemon.text.spelling import normalise
from cpersona_daemon.text.terms import IDENTIFIER_LENGTH, TERM_LIMIT, beside, index_text, parse_query


def terms(text):
    return [term.text for term in parse_query(text).terms]


def only(text):
    (term,) = parse_query(text).terms
    return term


def appended(text):
    return beside(normalise(text)).split()


def test_plain_words_are_indexed_by_themselves():
    assert index_text('He said: "go home, now" (please).').split() == ["he", "said", "go", "home", "now", "please"]


@pytest.mark.parametrize(
    "name",
    [
        "CVE-2024-3094",
        "C++",
        "src/a.b/c.py",
        "don't",
        "foo_bar",
        "C#",
        "5%",
        "--dry-run",
        "4f2a9ced",
        "ops@example.test",
        "%Y-%m-%d",
    ],
)
def test_an_identifier_is_appended_once_as_the_token_its_query_asks_for(name):
    (token,) = appended(f"see {name} there")
    assert only(name).token == f'"{token}"'
    assert all(c.isalnum() or 0xE000 <= ord(c) <= 0xF8FF for c in token)


def test_sentence_punctuation_around_an_identifier_is_not_part_of_it():
    assert appended("(`foo-bar`),") == appended("foo-bar") == appended('"foo-bar"...')


def test_a_number_is_its_own_token_and_is_not_repeated():
    assert index_text("in 2022, on port 9187").split() == ["in", "2022", "on", "port", "9187"]
    assert only("2022").token == '"2022"'


def test_no_vowel_and_no_s_of_an_identifier_is_left_for_the_stemmer():
    token, *_ = appended("12abced/running.settings")
    assert not set(token) & set("aeiouys")


def test_a_long_identifier_is_also_a_prefix_and_a_short_one_is_not():
    assert only("56dd097").prefix == "56dd097"
    assert only("OPS-1").prefix == ""


def test_an_identifier_asks_for_its_words_as_a_phrase_and_never_one_by_one():
    term = only("recall.max_tokens")
    assert term.kind == "identifier" and term.phrase == '"recall max tokens"'
    assert terms("recall.max_tokens") == ["recall.max_tokens"]


@pytest.mark.parametrize("name", ["C++", "c#", "5%", "-v"])
def test_the_bare_letter_of_a_short_name_is_not_asked_for(name):
    assert only(name).phrase == ""


def test_a_blob_is_known_by_its_first_characters():
    blob = "data:" + "A1" * 5000
    (token,) = appended(f"x {blob}")
    assert len(token) == IDENTIFIER_LENGTH and only(blob).token == f'"{token}"' and only(blob).phrase == ""


def test_a_run_of_cjk_becomes_overlapping_pairs_and_its_last_character():
    assert index_text("東京tower").split() == ["東京", "京", "tower"]
    assert index_text("日本語").split() == ["日本", "本語", "語"]
    assert terms("日本語tower") == ["日本", "本語", "tower"]


def test_one_cjk_character_is_asked_for_as_a_prefix():
    assert only("猫").prefix == "猫"


def test_halfwidth_and_fullwidth_are_the_usual_letters():
    assert index_text("ﾊﾝｶｸ ＡＢＣ").split() == ["ハン", "ンカ", "カク", "ク", "abc"]


def test_an_identifier_glued_to_cjk_is_still_an_identifier():
    assert only("CVE-2024-3094").token.strip('"') in index_text("CVE-2024-3094を修正").split()


@given(st.text(st.characters(codec="utf-8"), max_size=80))
def test_composed_and_decomposed_spellings_are_one(text):
    composed, decomposed = unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)
    assert index_text(composed).split() == index_text(decomposed).split()
    assert parse_query(composed) == parse_query(decomposed)


def test_stop_words_are_left_out_and_named():
    query = parse_query("What is the {Build} of it?")
    assert [term.text for term in query.terms] == ["build"]
    assert query.stop_words == ("what", "is", "the", "of", "it")


def test_a_query_of_stop_words_alone_asks_for_them():
    assert terms("the the") == ["the"]
    assert terms("to be or not to be") == ["to", "be", "or", "not"]
    assert only("don't").kind == "identifier"


def test_a_repeated_word_votes_once():
    assert terms("tmux tmux TMUX") == ["tmux"]


def test_possessives_and_elisions_ask_for_the_word_they_carry():
    assert terms("Caroline's l'eau") == ["caroline", "eau"]
    assert terms("Caroline’s") == ["caroline"]
    assert only("O'Brien").kind == "identifier"


def test_loose_dashes_separate_words():
    assert terms("redis—postgres") == ["redis", "postgres"]


def test_punctuation_alone_asks_for_nothing():
    for text in ("", "  ", ";:!?", "%", "__", "-", '"', "*", "()", "\0"):
        assert parse_query(text).terms == ()


def test_a_pasted_page_keeps_its_identifiers_and_first_words_and_says_what_was_too_much():
    page = " ".join(f"word{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(100)) + " OPS-1427"
    query = parse_query(page)
    assert len(query.terms) == TERM_LIMIT and query.beyond_limit == 101 - TERM_LIMIT
    assert query.terms[-1].text == "ops-1427" and query.terms[0].text == "wordaa"


def test_stop_words_are_written_the_way_queries_are_compared():
    assert all(word == word.lower() and " " not in word for word in ENGLISH)


@given(st.text(st.characters(codec="utf-8"), max_size=200))
def test_every_expression_is_one_quoted_string(text):
    for term in parse_query(text).terms:
        for expression in filter(None, (term.token, term.phrase, *term.words)):
            assert (
                expression[0] == expression[-1] == '"'
                and '"' not in expression[1:-1].replace('""', "")
                and "\0" not in expression
            )


def test_a_short_number_inside_cjk_text_is_not_asked_for_alone_but_a_long_one_is():
    assert "56" not in [t.text for t in parse_query("リトライ回数を56回に変更した").terms]
    assert "1234" in [t.text for t in parse_query("チケット1234の件").terms]


def test_a_hyphenated_compound_is_indexed_as_its_words_and_asked_for_as_a_phrase():
    assert index_text("the velvet-Dienst restarts").split() == ["the", "velvet", "dienst", "restarts"]
    (term,) = parse_query("velvet-Dienst").terms
    assert (term.kind, term.token) == ("identifier", '"velvet dienst"')
