"""Contract: associations.names."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cpersona_daemon.text.folding import as_name
from cpersona_daemon.text.names import Name, find_names, other_names


def name(entity: int, text: str, is_name: bool = False) -> Name:
    return Name(entity, as_name(text), text, is_name)


def test_the_longest_name_wins_and_none_overlap():
    names = [name(1, "New York"), name(2, "York"), name(3, "New")]
    assert [n.entity_id for n in find_names("a new york minute in YORK", names)] == [1, 2]


def test_names_compare_in_nfkc_and_folded_with_white_space_collapsed():
    assert as_name("  Ｏｍａ\t ILSE ") == "oma ilse"
    assert [n.entity_id for n in find_names("Straße der OMA  ilse", [name(1, "STRASSE"), name(2, "Oma Ilse")])] == [
        1,
        2,
    ]


def test_the_other_names_are_those_that_the_question_does_not_hold():
    every = {1: [name(1, "Grandmother Ilse", True), name(1, "Oma"), name(1, "Omi")]}
    assert other_names(find_names("oma and omi", every[1]), every) == ("Grandmother Ilse",)
    assert other_names(find_names("grandmother ilse", every[1]), every) == ("Oma", "Omi")


@given(st.text(max_size=60), st.lists(st.text(min_size=1, max_size=6), max_size=8))
def test_a_found_name_stands_in_the_question(query, spellings):
    names = [name(i, s) for i, s in enumerate(spellings)]
    assert all(found.normalized in as_name(query) for found in find_names(query, names))


@given(st.text(max_size=60))
def test_normalising_twice_is_normalising_once(text):
    assert as_name(as_name(text)) == as_name(text)
