"""What a row holds of a question, by the same reading as the full-text index. Contract: coverage.share, git.paths."""

import apsw
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from cpersona_daemon.model.instants import parse_instant
from cpersona_daemon.recall.scoring.coverage import ELSEWHERE_LEAST, ELSEWHERE_MOST, Sought, idf
from cpersona_daemon.recall.scoring.reading import WITHIN_WORD, Reading
from cpersona_daemon.storage import postings, schema, stemmer
from cpersona_daemon.text.dates import Named, dates_of
from cpersona_daemon.text.question import Question
from cpersona_daemon.text.terms import LexicalQuery, index_text, parse_query, quoted


@pytest.fixture(scope="module")
def conn():
    connection = apsw.Connection(":memory:")
    schema.migrate(connection, 0)
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def stem(conn):
    return stemmer.stemmer(conn)


def held(stem, question, text, when=None, rows=0, found=()):
    instant = None if when is None else parse_instant(when)
    return Sought(Question(question), stem, rows, found).held(Reading(text, instant))


def test_a_row_that_holds_every_content_word_covers_the_whole_question(stem):
    assert (
        held(stem, "which database do we use for the billing service", "The billing services use a database").coverage
        == 1.0
    )


def test_the_share_is_weighed_by_how_rare_each_word_is(stem):
    # "deploy" stands in 900 of 1,000 rows, "heliotrope" in one.
    world = 1000 + ELSEWHERE_LEAST + ELSEWHERE_MOST
    common, rare = idf(900, world), idf(1, world)
    assert held(stem, "deploy heliotrope", "we deploy on Fridays", rows=1000, found=(900, 1)).coverage == pytest.approx(
        common / (common + rare)
    )
    assert held(
        stem, "deploy heliotrope", "the heliotrope server", rows=1000, found=(900, 1)
    ).coverage == pytest.approx(rare / (common + rare))


def test_in_a_store_of_one_memory_its_words_are_not_common(stem):
    assert (
        held(
            stem, "which branch do deploys use", "Deploys go out from the release branch", rows=1, found=(1, 1, 0)
        ).coverage
        > 0.4
    )


def test_a_word_within_a_word_is_not_held_and_one_after_it_is(stem):
    assert held(stem, "word", "wordword swordword").coverage == 0.0
    assert held(stem, "word", "wordword sword_words").coverage == 1.0


def test_a_word_that_no_row_holds_weighs_most():
    assert idf(0, 100) > idf(1, 100) > idf(50, 100) > idf(100, 100) > 0


def test_stop_words_are_neither_asked_for_nor_held(stem):
    assert held(stem, "what is the budget", "what is the weather").coverage == 0.0


@pytest.mark.parametrize(
    "question, text",
    [
        ("CVE-2024-3094", "xz backdoor: CVE-2024-3094, see the advisory"),
        ("9d3fe55", "commit 9d3fe55ab01c fixes the cursor"),
        ("C++", "we write it in C++."),
        ("/etc/acme/agentd.toml", "config is `/etc/acme/agentd.toml`, mode 0640"),
        ("naïve café", "a NAIVE cafe\u0301"),
        ("running tests", "the test runs"),
        ("空调", "办公室的空调每天关闭"),
        ("Caroline's gift", "a gift for Caroline"),
    ],
)
def test_what_the_index_would_find_is_held(stem, question, text):
    assert held(stem, question, text).coverage == 1.0


@pytest.mark.parametrize(
    "question, text",
    [
        ("CVE-2024-3094", "CVE-2024-3095"),
        ("C++", "the C compiler"),
        ("cat", "concatenate"),
        ("空调", "空气调节"),
        ("E1103", "E11034"),
    ],
)
def test_what_the_index_would_not_find_is_not_held(stem, question, text):
    assert held(stem, question, text).coverage == 0.0


def test_a_row_written_on_the_day_holds_the_date(stem):
    question, text = "what did Maria buy on 3 June, 2023?", "Maria bought a lamp"
    assert (
        held(stem, question, text, "2023-06-03T10:00:00Z").coverage
        > held(stem, question, text, "2023-06-20T10:00:00Z").coverage
    )
    for other in ("2023-07-20T10:00:00Z", "2023-05-31T10:00:00Z", "2022-06-03T10:00:00Z", None):
        assert held(stem, question, text, other) == held(stem, question, text)


def test_a_row_written_in_the_month_of_a_day_may_tell_of_it_where_more_is_asked_for(stem):
    question, text, after = "what did Maria buy on 3 June, 2023?", "Maria bought a lamp", "2023-06-06T10:00:00Z"
    on_the_day = held(stem, question, text, "2023-06-03T10:00:00Z").coverage
    assert held(stem, question, text).coverage < held(stem, question, text, after).coverage < on_the_day
    assert held(stem, "3 June, 2023", text, after).coverage == 0.0


def test_dates_are_read_from_words_years_and_iso_stamps():
    assert dates_of("in March 2024 or on 2024-05-17") == {
        "2024": Named(((2024, None, None),)),
        "march": Named(((None, 3, None),)),
        "2024-05-17": Named(((2024, 5, 17),)),
    }
    assert dates_of("May I march on? version 3.2023 and port 20231") == {}
    assert dates_of("on May 3")["3rd"] == dates_of("on May 3")["may"] == Named(((None, 5, 3),), alone=False)


def test_a_rare_identifier_identifies_its_row_and_a_common_one_does_not(stem):
    assert held(stem, "what does E1103 stand for", "error E1103 is a timeout", rows=5000, found=(1, 3)).identified
    assert not held(stem, "what does E1103 stand for", "error E1103 is a timeout", rows=5000, found=(800, 3)).identified
    assert not held(stem, "off-by-one mistakes", "an off-by-one again", rows=5000, found=(1, 3)).identified
    assert not held(stem, "artists/bands", "artists/bands seen", rows=5000, found=(1,)).identified
    assert held(stem, "hooks/commit-msg", "see hooks/commit-msg", rows=5000, found=(1,)).identified
    assert not held(stem, "deploy target", "the deploy target", rows=5000, found=(1, 3)).identified


def test_a_word_inside_camel_case_counts_less_than_one_by_itself_but_not_two_that_stand_there_together(stem):
    assert held(stem, "mongo", "MongoEngine maps objects").coverage == pytest.approx(0.7)
    assert held(stem, "mongo", "MongoEngine is for mongo").coverage == 1.0
    assert held(stem, "tenant quota", "call resolveTenantQuota first").coverage == 1.0


@pytest.mark.parametrize("question", ["15.03.2024", "the 15th of March 2024"])
def test_a_day_that_no_row_has_is_absent_where_nothing_else_is_asked(stem, question):
    asked = Question(question)
    sought = Sought(asked, stem, 9, (1,) * len(asked.terms))
    other, same = (sought.held(Reading(text, None)).terms for text in ("since 2023-03-15, in March", "on 2024-03-15"))
    absent = sought.unmet(9, other, lambda term, reads: False)
    assert absent.bare and absent.absent == (question,) and not sought.unmet(9, same, lambda term, reads: False).bare


def unmet(stem, question, *rows, size=None, counts=None):
    """What of a question none of some rows holds, each term counted in these rows unless ``counts`` says otherwise."""
    asked = Question(question)
    masks = [Sought(asked, stem, 1, (1,) * len(asked.terms)).held(Reading(row, None)).terms for row in rows]
    found = tuple(sum(mask >> place & 1 for mask in masks) for place in range(len(asked.terms)))
    size = len(rows) if size is None else size
    return Sought(asked, stem, size, counts or found).unmet(
        size, 0, lambda term, reads: bool(found[asked.terms.index(term)])
    )


def test_a_question_that_names_what_no_row_holds_says_so(stem):
    keys = ("We rotate the Stripe key every spring", "the key of the cellar")
    assert unmet(stem, "When do we rotate the Datadog key?", *keys).name
    assert not unmet(stem, "When do we rotate the Stripe key?", *keys).name
    assert not unmet(stem, "When do we rotate the datadog key?", *keys).name
    assert unmet(stem, "how long are logs kept on db-05", "logs are kept on db-04 for so long").name
    assert not unmet(stem, "Wie hoch sind die Gebühren?", "nichts davon").name
    assert not unmet(stem, "What did we do in October 2023?", "nothing of it").name
    assert not unmet(stem, "When do we rotate the Datadog key?", *keys, size=0).name


def test_a_name_that_only_other_peoples_rows_hold_is_held_by_none(stem):
    assert unmet(stem, "When do we rotate the Datadog key?", "We rotate the key", counts=(1, 5, 1)).name


@pytest.mark.parametrize(
    "name",
    ["Zanzibar's", "<Zanzibar>", "*Zanzibar*", "«Zanzibar»", "„Zanzibar“", "{Zanzibar}", "Zanzibar…", "#Zanzibar"],
)
def test_a_name_is_one_whatever_stands_around_it(stem, name):
    assert unmet(stem, f"what did we say about {name} and the garden fence in the end", "the garden fence").name


@pytest.mark.parametrize(
    "question",
    [
        "what is the garden fence for? Thanks for your help with this",
        "what did we say on Monday about the garden fence",
        "Zanzibar is the place of the garden fence",
    ],
)
def test_the_beginning_of_a_sentence_and_a_day_are_no_names(stem, question):
    assert not unmet(stem, question, "the garden fence").name


def test_a_question_about_one_whom_many_rows_name_tells_how_much_of_it_none_holds(stem):
    rows = ("Tobias: I lose everything", "Tobias: hello", "Did Tobias call?", "Ines: no")
    wallet = unmet(stem, "Where did Tobias lose his wallet?", *rows)
    assert wallet.familiar and not wallet.name and 0 < wallet.share < 1
    assert unmet(stem, "Where did Tobias lose his wallet?", *rows, "Ines: a wallet").share == 0.0
    assert not unmet(stem, "Where did Tobias lose his wallet?", *rows[1:]).familiar
    assert not unmet(stem, "where did tobias lose his wallet", *rows).familiar
    assert not unmet(stem, "Where did Tobias lose his wallet?", *rows, size=200).familiar
    assert unmet(stem, "Where was Tobias in October 2023?", *rows).share == 0.0


def test_other_names_add_to_what_a_row_holds_and_not_to_what_there_is_to_hold(stem):
    plain = Sought(Question("northern lights"), stem, 10, (1, 1))
    named = Sought(Question("northern lights", ("aurora",)), stem, 10, (1, 1), (1,))
    text = Reading("the aurora project", None)
    assert plain.held(text).coverage == 0.0 and 0 < named.held(text).coverage <= 1.0
    assert named.held(Reading("northern lights", None)).coverage == 1.0


def test_a_question_without_words_covers_nothing(stem):
    assert held(stem, "?!", "anything").coverage == 0.0


PIECES = st.sampled_from(
    [
        "Run",
        "running",
        "runner",
        "foo_bar",
        "foo-bar",
        "C++",
        "a.b/c",
        "v1.2.3",
        "9d3fe55",
        "café",
        "naive",
        "空调",
        "密码重置",
        "don't",
        "x",
        "42",
        "Ünï",
        "hopping",
        "hope",
    ]
)


@hypothesis_settings(max_examples=150)
@given(
    st.lists(PIECES, min_size=1, max_size=4),
    st.lists(PIECES, min_size=1, max_size=6),
    st.sampled_from([" ", ", ", ". "]),
)
def test_reading_a_text_agrees_with_asking_the_index(asked, stored, between):
    connection = apsw.Connection(":memory:")
    schema.migrate(connection, 0)
    stem, text = stemmer.stemmer(connection), between.join(stored)
    postings.add_memories(connection, [(1, "kit", index_text(text))])
    for piece in asked:
        asked_for = Question(piece)
        for term in parse_query(piece).terms:
            forms = [term.token] + [quoted(term.prefix) + "*"] * bool(term.prefix) + [term.phrase] * bool(term.phrase)
            found = bool(
                connection.execute(
                    "SELECT 1 FROM memory_fts WHERE memory_fts MATCH ?", (" OR ".join(forms),)
                ).fetchall()
            )
            asked_for.written = LexicalQuery((term,))
            assert (Sought(asked_for, stem).held(Reading(text, None)).coverage > 0) == found, (piece, term, text)
    connection.close()


NOTE = f"Keep the order of answers\n\nfiles: src/recall/stages/limit.py, tests/test_limit.py\n\ncommit {'ab' * 20}"


@pytest.mark.parametrize("path", ["limit.py", "stages/limit.py", "src/recall/stages/limit.py", "test_limit.py"])
def test_a_path_of_a_commit_counts_as_any_identifier_does(stem, path):
    whole = held(stem, path, NOTE, rows=5000, found=(1,))
    assert whole.coverage == 1.0 and whole.identified


def test_a_word_that_only_a_path_of_a_commit_holds_counts_less(stem):
    assert held(stem, "order", NOTE).coverage == 1.0
    assert held(stem, "recall", NOTE).coverage == WITHIN_WORD
    # Of two that say the word once, the paths of one make it no longer.
    question = Sought(Question("order"), stem)
    bare = NOTE.replace("\n\nfiles: src/recall/stages/limit.py, tests/test_limit.py", "")
    assert question.said(Reading(NOTE, None)) == question.said(Reading(bare, None))
