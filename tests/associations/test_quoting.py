"""Contract: associations.quotes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cpersona_daemon.associations.layout import Sizes, default_budget, lay_out
from cpersona_daemon.associations.quotes import GAP, Wanted, passages, quote
from cpersona_daemon.associations.records import Record
from cpersona_daemon.text.terms import parse_query


def wanted(query, texts):
    return Wanted(parse_query(query).terms, texts)


_words = st.sampled_from(
    ["deploy", "rolled", "back", "cache", "Ünïcode", "設定ファイル", "v1.2.3", "a", "x" * 90, "The", "10:30"]
)
_ends = st.sampled_from([". ", "! ", "\n", "\n\n", " ", "。", "? ", ", "])
_texts = st.lists(st.tuples(_words, _ends), max_size=120).map(lambda parts: "".join(w + e for w, e in parts))
_queries = st.lists(_words, max_size=6).map(" ".join)


@given(_texts | st.text(max_size=500), _queries | st.text(max_size=40), st.integers(1, 300))
def test_every_part_of_a_quotation_is_text_of_the_row_in_its_order(text, query, limit):
    quoted = quote(text, limit, wanted(query, [text]))
    assert quoted.whole == (len(text) <= limit) and len(quoted.text) <= limit
    if quoted.whole:
        assert quoted.text == text
        return
    at = 0
    # The row itself may hold the gap's characters; then a split part is still text of the row.
    for part in quoted.text.split(GAP):
        found = text.find(part, at)
        assert found >= 0
        at = found + len(part)


@given(_texts)
def test_passages_cover_all_text_but_white_space(text):
    spans = passages(text)
    assert [(a, b) for a, b in spans] == sorted(spans) and all(a < b for a, b in spans)
    left = list(text)
    for start, end in spans:
        left[start:end] = [" "] * (end - start)
    assert not "".join(left).strip()


def test_the_passages_that_hold_the_rare_words_are_quoted():
    text = "\n".join(
        [
            *(f"Common notice number {i} about nothing." for i in range(40)),
            "The zebra migration needs a lock.",
            *(f"Common footer {i}." for i in range(40)),
        ]
    )
    quoted = quote(text, 120, wanted("common zebras migrate", [text, "common other", "common more"]))
    assert "The zebra migration needs a lock." in quoted.text


def test_two_distant_passages_stand_in_text_order_with_a_gap_between():
    middle = "Nothing to see here at all, move along please. " * 30
    text = f"The password rotates on Friday. {middle}Rotation of the password is Ilse's task."
    quoted = quote(text, 120, wanted("password rotation", [text]))
    assert (
        quoted.text.startswith("The password rotates on Friday.")
        and quoted.text.endswith("Rotation of the password is Ilse's task.")
        and GAP in quoted.text
    )


def test_one_overlong_passage_is_cut_around_the_words_of_the_question():
    text = "lorem " * 300 + "the needle lies here " + "ipsum " * 300
    quoted = quote(text, 100, wanted("where is the needle", [text]))
    assert "needle" in quoted.text and len(quoted.text) <= 100 and not quoted.text.startswith("orem")


def test_a_text_without_any_word_of_the_question_is_quoted_from_its_start():
    text = "First sentence. Second sentence. " * 20
    assert quote(text, 60, wanted("πώς", [text])).text.startswith("First sentence. Second sentence.")


SIZES = Sizes(head=80, full_heads=2, tail_head=30, excerpt=20)


def record(number: int, text: str) -> Record:
    return Record(("mem", number), text, "", 0.0, ("", ""))


def test_the_first_head_is_always_there_and_the_next_that_does_not_fit_ends_the_items():
    items = [(record(i, f"{i}" * 25), []) for i in range(1, 5)]
    question = wanted("", [])
    assert [len(lay_out(items, budget, SIZES, question).items) for budget in (1, 25, 49, 50, 99, 100)] == [
        1,
        1,
        1,
        2,
        3,
        4,
    ]
    assert lay_out(items, 60, SIZES, question).heads_left_out == 2


def test_excerpts_are_dealt_in_turn_over_the_items_while_the_budget_lasts():
    items = [
        (record(1, "head one"), [record(11, "a" * 10), record(12, "b" * 10)]),
        (record(2, "head two"), [record(21, "c" * 10)]),
    ]
    laid = lay_out(items, 16 + 20, SIZES, wanted("", []))
    assert [[e["ref"] for e in item.get("excerpts", [])] for item in laid.items] == [["mem:11"], ["mem:21"]]
    assert laid.excerpts_left_out == 1 and laid.used == 36


def test_the_default_budget_has_room_for_every_head():
    wide = Sizes(800, 5, 400, 500)
    assert [default_budget(n, wide) for n in (0, 1, 5, 10)] == [4000, 4000, 4000, 6000]
    assert default_budget(10, Sizes(9000, 5, 400, 500)) == 20_000


@given(
    st.lists(st.tuples(st.integers(0, 120), st.lists(st.integers(0, 60), max_size=3)), max_size=6), st.integers(1, 400)
)
def test_an_answer_never_exceeds_its_budget_but_for_the_first_head(shapes, budget):
    items = [
        (record(i, "x" * head), [record(100 * i + j, "y" * n) for j, n in enumerate(others)])
        for i, (head, others) in enumerate(shapes)
    ]
    laid = lay_out(items, budget, SIZES, wanted("", []))
    size = sum(len(e["content"]) + sum(len(x["content"]) for x in e.get("excerpts", [])) for e in laid.items)
    assert size == laid.used and (size <= budget or len(laid.items) == 1 and not laid.items[0].get("excerpts"))
