"""A question is read once, into one value.

Rules: recall.blank, blend.language, versions.order.
"""

import pytest

from cpersona_daemon.text import question as module
from cpersona_daemon.text.question import NOW, PAST, Question


def test_a_question_without_anything_is_blank_and_one_of_signs_alone_is_wordless():
    assert Question("  ").blank and not Question("  ").wordless
    assert Question("()*").wordless and not Question("()*").blank
    assert not Question("tea").blank and not Question("tea").wordless


def test_other_names_are_searched_for_and_are_no_terms_of_what_was_written():
    asked = Question("northern lights", ("aurora", "the northern glow"))
    assert [term.text for term in asked.terms] == ["northern", "lights"]
    assert [term.text for term in asked.other_terms] == ["aurora", "glow"]
    assert {"aurora", "glow", "lights"} <= {term.text for term in asked.searched.terms}


def test_a_text_is_parsed_once_however_often_its_terms_are_asked_for(monkeypatch):
    parsed, parse = [], module.parse_query
    monkeypatch.setattr(module, "parse_query", lambda text, **how: parsed.append(text) or parse(text, **how))
    asked = Question("where does the heliotrope stand")
    assert asked.terms and asked.searched is asked.written and not asked.other_terms and asked.names == frozenset()
    assert parsed == ["where does the heliotrope stand"]


@pytest.mark.parametrize(("text", "about"), [("what is it now", NOW), ("what was it", PAST), ("in May 2020", PAST)])
def test_a_question_may_be_about_now_or_the_past(text, about):
    assert Question(text).about == about
