"""Through the daemon: the answers' shapes, bounds of params, pauses, pages.

Contract: associations.declare, associations.traverse, pause.answers.
"""

from __future__ import annotations

import json

QUEUE = {"relations": [{"subject": "queue", "predicate": "runs on", "object": "Postgres"}]}


def test_a_stored_memory_is_the_anchor_of_what_it_declares(daemon):
    answer, _ = daemon.call(
        "store",
        {"agent_id": "kit", "content": "the queue moved", "associations": {**QUEUE, "entities": [{"name": ""}]}},
    )
    assert answer["associations"] == {
        "ok": True,
        "result": "declared",
        "mentions": 2,
        "relations": [1],
        "dropped": [{"item": "entities[0]", "reason": "the name is empty"}],
        "entities": [{"id": 1, "name": "queue", "created": True}, {"id": 2, "name": "Postgres", "created": True}],
    }
    seen, _ = daemon.call("traverse", {"agent_id": "kit", "entity": "postgres"})
    assert [e["mentions"] for e in seen["entities"]] == [["mem:1"], ["mem:1"]] and seen["relations"][0][
        "anchor_ref"
    ] == "mem:1"


def test_a_skipped_store_declares_nothing(daemon):
    daemon.call("store", {"agent_id": "kit", "content": "same"})
    answer, _ = daemon.call("store", {"agent_id": "kit", "content": "same", "associations": QUEUE})
    assert answer["result"] == "skipped"
    assert daemon.call("list_associations", {"agent_id": "kit"})[0]["entities"] == []


def test_numbers_beyond_their_bounds_are_clamped_and_of_a_wrong_type_become_the_default(daemon):
    daemon.call("declare_associations", {"agent_id": "kit", "associations": QUEUE})
    wild, _ = daemon.call("traverse", {"agent_id": "kit", "entity": "queue", "max_hops": 99, "limit": -1})
    assert (wild["max_hops"], wild["limit"], len(wild["entities"])) == (5, 1, 1)
    wrong, _ = daemon.call("traverse", {"agent_id": "kit", "entity": "queue", "max_hops": "two", "limit": True})
    assert (wrong["max_hops"], wrong["limit"]) == (1, 20)
    answer, code = daemon.call(
        "reconstruct",
        {
            "agent_id": "kit",
            "query": "x",
            "count": "many",
            "top_k": -3,
            "max_hops": 1.5,
            "max_evidence": None,
            "budget": [1],
        },
    )
    assert code is None and answer == {
        "items": [],
        "effective_count": 10,
        "returned_count": 0,
        "shortfall_reason": "no_relevant_evidence",
        "advisory": answer["advisory"],
    }


def test_a_question_that_cannot_be_asked_fails_in_the_shape_of_reconstruct(daemon):
    for query in ("x" * 8001, "nul\0"):
        answer, code = daemon.call("reconstruct", {"agent_id": "kit", "query": query})
        assert code == "invalid_params" and answer["ok"] is False and answer["items"] == [] and answer["error"]


def test_a_paused_declaration_answers_its_skeleton_and_writes_nothing(daemon):
    daemon.call("pause_persistence", {"ttl_seconds": 60})
    answer, _ = daemon.call("declare_associations", {"agent_id": "kit", "associations": QUEUE})
    assert (
        answer["ok"] is True and answer["persisted"] is False and answer["entities"] == [] and answer["relations"] == []
    )
    daemon.call("resume_persistence", {})
    assert daemon.call("list_associations", {"agent_id": "kit"})[0] == {
        "entities": [],
        "relations": [],
        "entity_count": 0,
        "relation_count": 0,
    }


def test_a_declaration_needs_an_agent(daemon):
    answer, code = daemon.call("declare_associations", {"agent_id": "", "associations": QUEUE})
    assert answer["ok"] is False and code == "refused"


def test_a_listing_comes_in_pages_that_together_hold_everything_once(daemon):
    for i in range(7):
        daemon.call(
            "declare_associations",
            {
                "agent_id": "kit",
                "associations": {
                    "entities": [{"name": f"e{i}", "aliases": [f"a{i}"]}],
                    "relations": [{"subject": f"e{i}", "predicate": "p", "object": "hub"}],
                },
            },
        )
    daemon.call("declare_associations", {"agent_id": "other", "associations": QUEUE})
    names, relations, params = [], [], {"agent_id": "kit", "limit": 3}
    while params is not None:
        page, _ = daemon.call("list_associations", params)
        names += [e["name"] for e in page["entities"]]
        relations += [(r["subject_name"], r["object_name"]) for r in page["relations"]]
        params = {**params, **page["next"]} if "next" in page else None
    assert sorted(names) == sorted(["hub", *(f"e{i}" for i in range(7))]) and relations == [
        (f"e{i}", "hub") for i in range(7)
    ]
    assert (page["entity_count"], page["relation_count"]) == (8, 7)


def test_recall_answers_the_same_bytes_before_and_after_a_declaration(daemon):
    for i in range(5):
        daemon.call(
            "store", {"agent_id": "kit", "content": f"Postgres note {i}", "timestamp": f"2026-01-0{i + 1}T00:00:00Z"}
        )
    asked = [
        ("recall", {"agent_id": "kit", "query": "the queue", "deep": True}),
        ("recall", {"agent_id": "kit", "query": "Postgres"}),
        ("recall_with_context", {"agent_id": "kit", "query": "queue Postgres", "external_context": []}),
    ]
    before = [json.dumps(daemon.call(method, dict(params))[0]) for method, params in asked]
    daemon.call(
        "declare_associations",
        {
            "agent_id": "kit",
            "anchor_ref": "mem:1",
            "associations": {
                "entities": [{"name": "Postgres", "aliases": ["queue", "note"]}],
                "relations": [{"subject": "mem:1", "predicate": "supersedes", "object": "mem:2"}],
            },
        },
    )
    assert [json.dumps(daemon.call(method, dict(params))[0]) for method, params in asked] == before
