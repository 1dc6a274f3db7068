"""Response shapes: how to tell success from failure. Contract: answer.shape, store.answer.

The walk over every method stands in test_response_shapes.py.
"""

import pytest
from contract_kit import Agent, memory
from store_kit import opened_store


def test_store_reports_its_outcome_in_result(reader):
    """Contract: store.answer."""
    outcomes = [reader.own("store", content=text)["result"] for text in ("a text", "a text", "")]
    assert outcomes == ["stored", "skipped", "rejected"]


def test_a_rejected_write_does_not_look_like_a_successful_one(reader):
    """Contract: store.answer."""
    answer = reader.own("store", content="a text", timestamp="x" * 65)
    assert answer["ok"] is False and "id" not in answer and reader.code == "refused"


def test_store_puts_its_explanation_in_reason(reader):
    """Contract: store.answer."""
    answer = reader.own("store", content="")
    assert answer["reason"] and "error" not in answer


def test_check_health_reports_the_single_status_verdict_without_a_healthy_boolean(reader):
    """Contract: health.checks."""
    answer = reader.own("check_health", checks=["sqlite_integrity"])
    assert answer["status"] == "healthy" and "healthy" not in answer


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("update_memory", {"memory_id": 10**9, "content": "x"}),
        ("delete_memory", {"memory_id": 10**9}),
        ("lock_memory", {"memory_id": 10**9}),
        ("unlock_memory", {"memory_id": 10**9}),
        ("delete_episode", {"episode_id": 10**9}),
        ("archive_episode", {"agent_id": "a", "summary": "  "}),
        ("update_profile", {"agent_id": "a", "profile": "  "}),
        ("get_contents", {"agent_id": "a", "refs": []}),
        ("get_contents", {"agent_id": "", "refs": ["mem:1"]}),
        ("get_contents", {"agent_id": "a", "refs": ["mem:1"] * 21}),
        ("calibrate_threshold", {"agent_id": "nobody"}),
        ("set_recall_precision", {"agent_id": "nobody", "precision": "sharp"}),
        ("merge_memories", {"source_agent_id": "a", "target_agent_id": "a"}),
        ("delete_agent_data", {"agent_id": ""}),
        ("import_memories", {"input_path": "/nowhere/at/all.jsonl"}),
        ("export_memories", {"output_path": "../out.jsonl"}),
        ("check_health", {"checks": ["no such check"]}),
        ("pause_persistence", {"ttl_seconds": 0}),
        ("recall", {"agent_id": "a", "query": "x" * 8001}),
        ("recall_with_context", {"agent_id": "a", "exclude_contents": ["x"] * 1001}),
        ("reconstruct", {"agent_id": "a", "query": "x" * 8001}),
        ("traverse", {"agent_id": "a"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_failure_that_a_handler_returns_carries_ok_false_and_error(reader, method, params):
    """Contract: answer.shape."""
    answer = reader.ask(method, **params)
    assert answer["ok"] is False and isinstance(answer["error"], str) and answer["error"]
    assert reader.code is not None


def test_a_failed_recall_has_an_empty_list_of_messages(reader):
    """Contract: answer.shape."""
    for method in ("recall", "recall_with_context"):
        assert reader.own(method, query="x" * 8001)["messages"] == []


def test_an_unknown_method_is_answered_with_a_bare_error_and_no_ok(reader):
    """Contract: answer.shape."""
    assert list(reader.ask("no_such_method")) == ["error"]
    assert reader.code == "unknown_method"


def test_an_exception_that_escapes_a_handler_is_answered_with_a_bare_error_and_no_ok():
    """Contract: answer.shape."""
    with opened_store() as (store, directory):
        agent = Agent(store.call, directory, None)
        part, store.ctx.embedding = store.ctx.embedding, None  # a part is missing, which no handler expects
        answer = agent.own("recall", query="heliotrope")
        store.ctx.embedding = part
        assert (list(answer), agent.code) == (["error"], "internal")


@pytest.mark.parametrize(
    ("method", "params", "keys"),
    [
        ("get_contents", {"refs": ["mem:1"]}, {"items", "missing", "count"}),
        ("list_memories", {}, {"memories", "count"}),
        ("list_episodes", {}, {"episodes", "count"}),
        ("get_profile", {}, {"profile"}),
    ],
)
def test_a_successful_read_returns_its_payload_with_no_ok(reader, method, params, keys):
    """Contract: answer.shape."""
    assert set(reader.own(method, **params)) == keys


def test_a_successful_recall_carries_neither_ok_nor_error(reader):
    """Contract: answer.shape."""
    reader.load(memory("a heliotrope"))
    for method in ("recall", "recall_with_context", "reconstruct"):
        answer = reader.own(method, query="heliotrope")
        assert "ok" not in answer and "error" not in answer


def test_a_field_named_error_means_a_failure_and_its_absence_success(reader):
    """Contract: answer.shape."""
    for method, params in (
        ("recall", {"query": "x"}),
        ("list_memories", {}),
        ("get_profile", {}),
        ("store", {"content": "a text"}),
    ):
        answer = reader.own(method, **params)
        assert "error" not in answer and answer.get("ok") is not False and reader.code is None
