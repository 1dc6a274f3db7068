"""A long row is known by its passages. Contract: passages.derived, passages.best, block.reserved."""

from __future__ import annotations

import pytest
from passages_kit import ANSWER, Bag, held, indexed, long_text, put, recall, settle
from store_kit import Store

from cpersona_daemon.storage import passages as stored
from cpersona_daemon.text.passages import split


@pytest.fixture(scope="module")
def service():
    server = Bag()
    yield server
    server.stop()


@pytest.fixture
def store(tmp_path, service):
    store = Store(
        tmp_path, CPERSONA_EMBEDDING_MODE="http", CPERSONA_EMBEDDING_URL=service.url, CPERSONA_RECALL_MODE="blend"
    )
    yield store
    store.close()


def test_what_a_long_text_says_at_its_end_is_found_and_shown_where_it_stands(store):
    text = long_text("Ada", ANSWER)
    for name in ("Ben", "Cleo", "Dora"):
        put(store, long_text(name))
    row = put(store, text)
    settle(store)
    (*_, best) = recall(store, "Marguerite hid the violin", passages=True)["messages"]
    assert best["ref"] == f"mem:{row}" and ANSWER in best["passage"]["text"]
    assert text[best["passage"]["start"] : best["passage"]["end"]] == best["passage"]["text"]
    assert best["content"] == text[:500] and best["content_len"] == len(text)
    (*_, unasked) = recall(store, "Marguerite hid the violin")["messages"]
    assert unasked["passage"] == {"start": best["passage"]["start"], "end": best["passage"]["end"]}


def test_the_passage_of_an_episode_stands_in_what_is_shown_of_it(store):
    store.call("archive_episode", {"agent_id": "a", "history": [], "summary": long_text("Ada", ANSWER)})
    settle(store)
    (*_, best) = recall(store, "Marguerite hid the violin", full_content=True)["messages"]
    assert ANSWER in best["content"][best["passage"]["start"] : best["passage"]["end"]]


def test_a_long_text_is_stored_without_waiting_and_counted_until_it_has_its_passages(store):
    answer, _ = store.call("store", {"agent_id": "a", "content": long_text("Ada")})
    assert answer["embedded"] is False
    settle(store)
    row = answer["id"]
    assert held(store, row) == [long_text("Ada")[span.start : span.end] for span in split(long_text("Ada"))]
    counted = store.ctx.db.read_now(stored.count)
    assert counted == {"passages": len(held(store, row)), "rows": 1, "waiting": 0}
    assert store.run(store.ctx.backlog.status())["passages_pending"] == 0 and indexed(store) == counted["passages"]
    assert store.call("store", {"agent_id": "a", "content": "a short note"})[0]["embedded"] is True


def test_passages_go_with_the_text_and_with_the_row(store):
    row = put(store, long_text("Ada", ANSWER))
    settle(store)
    store.call("update_memory", {"memory_id": row, "content": long_text("Eve", pages=40)})
    assert held(store, row) == [] and indexed(store) == 0
    settle(store)
    assert held(store, row) and not any(ANSWER in passage for passage in held(store, row))
    assert all("violin" not in m["content"] or m["ref"] != f"mem:{row}" for m in recall(store, ANSWER)["messages"])
    store.call("update_memory", {"memory_id": row, "content": "now it is short"})
    settle(store)
    assert held(store, row) == [] and indexed(store) == 0
    store.call("update_memory", {"memory_id": row, "content": long_text("Eve")})
    settle(store)
    store.call("delete_memory", {"memory_id": row})
    assert indexed(store) == 0 == store.ctx.db.read_now(stored.count)["passages"]


def test_rows_of_others_and_of_other_scopes_lend_no_passage(store):
    put(store, long_text("Ada", ANSWER), agent="b")
    row = put(store, "Marguerite plays the violin on Sundays.")
    settle(store)
    assert [m["ref"] for m in recall(store, "Marguerite violin boiler", deep=True)["messages"]] == [f"mem:{row}"]


@pytest.mark.parametrize("mode", ["rrf", "rsf", "cascade"])
def test_seats_are_kept_for_long_rows_beside_the_answer_only_where_asked_for(store, mode):
    short = [put(store, f"Note {n} on the violin of Marguerite.") for n in range(3)]
    row = put(store, long_text("Ada", ANSWER))
    other = put(store, long_text("Ben", "Somebody moved the boiler."))
    settle(store)
    asked = {"query": "Marguerite violin boiler", "limit": 3}
    before = recall(store, mode=mode, **asked)["messages"]
    with_seat, _ = store.call("recall", {"agent_id": "a", **asked}, {"recall_mode": mode, "block_reservation": "1"})
    seated, *rest = with_seat["messages"]
    assert rest == before and seated["match_reason"] == {"signal": "block"}
    assert seated["ref"] not in [message["ref"] for message in before] and "passage" in seated
    missing = {f"mem:{row}", f"mem:{other}", *(f"mem:{n}" for n in short)} - {m["ref"] for m in before}
    assert seated["ref"] == (f"mem:{row}" if f"mem:{row}" in missing else f"mem:{other}")
    excluded, _ = store.call(
        "recall",
        {"agent_id": "a", **asked, "exclude_contents": [seated["content"]]},
        {"recall_mode": mode, "block_reservation": "2"},
    )
    assert seated["ref"] not in [message["ref"] for message in excluded["messages"]]


def test_an_identifier_in_a_passage_that_means_anything_is_found(store):
    for name in ("Ben", "Cleo"):
        put(store, long_text(name))
    row = put(store, long_text("Ada", "The pump failed with E-7731."))
    settle(store)
    (*_, best) = recall(store, "what about E-7731", passages=True)["messages"]
    assert best["ref"] == f"mem:{row}" and "E-7731" in best["passage"]["text"]


def test_as_many_long_rows_are_weighed_as_are_asked_for_and_of_others_it_is_said_that_they_were_not(store):
    for number in range(30):
        other = " ".join(f"word{number * 100 + place} thing{number * 100 + place}." for place in range(90))
        put(store, f"{other} Petra counted herring gulls.")
        put(store, f"Something else was noted, number {number}.")
    settle(store)
    assert len(recall(store, "Petra counted herring gulls", limit=30)["messages"]) == 30
    few = recall(store, "Petra counted herring gulls", limit=3)["messages"]
    verdicts = [
        recall(store, "Petra counted herring gulls", limit=3, why_not=f"mem:{row}")["trace"]["why_not"]
        for row in range(1, 60, 2)
    ]
    weighed = [verdict for verdict in verdicts if verdict["stage"] != "weighing"]
    assert len(few) == 3 and 15 <= len(weighed) < 30
    (said, *_) = (verdict for verdict in verdicts if verdict["stage"] == "weighing")
    assert said["rank"] >= said["depth"] == 15 and "it is long" in said["text"]
