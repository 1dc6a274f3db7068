"""Texts are compared in one form for each purpose: which forms agree, and where each two of them differ.

Rules: associations.names, exists.words, exclude.texts, lexical.keyword.
"""

from itertools import combinations

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpersona_daemon.text.folding import as_given, as_matched, as_meant, as_name

FOLDS = {f.__name__: f for f in (as_name, as_meant, as_given, as_matched)}
# Two texts that one fold takes for the same and another does not.
TELLING = {
    ("as_name", "as_meant"): ("don't", "don’t"),
    ("as_name", "as_given"): ("Straße", "STRASSE"),
    ("as_name", "as_matched"): ("Éva", "éva"),
    ("as_meant", "as_given"): ("two  blanks", "two blanks"),
    ("as_meant", "as_matched"): ("a–b", "a-b"),
    ("as_given", "as_matched"): (" edge", "edge"),
}

_words = st.lists(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1), min_size=1).map(" ".join)


@given(_words)
def test_plain_words_between_single_blanks_look_the_same_in_every_form(text):
    assert {fold(text) for fold in FOLDS.values()} == {text.lower()}


@pytest.mark.parametrize("pair", list(combinations(FOLDS, 2)), ids=" ".join)
def test_no_two_forms_are_the_same(pair):
    one, other = TELLING[pair]
    assert len({FOLDS[name](one) == FOLDS[name](other) for name in pair}) == 2


@given(st.text())
def test_what_is_kept_in_its_form_has_it_for_good(text):
    assert as_name(as_name(text)) == as_name(text)


@given(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=6),
    st.text(max_size=6),
)
def test_a_part_of_a_word_is_one_where_like_finds_it(part, around):
    text = "".join(c for c in around + part.swapcase() + around if c != "\0" and not 0xD800 <= ord(c) < 0xE000)
    pattern = "%" + part.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
    ((found,),) = apsw.Connection(":memory:").execute("SELECT ? LIKE ? ESCAPE '\\'", (text, pattern)).fetchall()
    assert bool(found) == (as_matched(part) in as_matched(text))
