"""Dedup semantics: skip, not upsert. Contract: dedup.skip, dedup.conflict."""

import json

import pytest
from contract_kit import reasons


def store(agent, content, **params):
    return agent.own("store", content=content, **params)


def content_of(agent, memory_id):
    return agent.own("get_contents", refs=[f"mem:{memory_id}"])["items"][0]["content"]


def test_a_store_with_a_known_msg_id_is_skipped_and_echoes_the_existing_rows_id(reader):
    """Contract: dedup.skip."""
    first = store(reader, "one text", id="m1")
    again = store(reader, "one text", id="m1")
    assert first["result"] == "stored"
    assert (again["result"], again["id"], again["reason"]) == ("skipped", first["id"], "duplicate msg_id")


def test_the_msg_id_probe_does_not_look_at_the_channel(reader):
    """Contract: dedup.skip."""
    first = store(reader, "one text", id="m1", channel="a")
    assert store(reader, "another text", id="m1", channel="b")["id"] == first["id"]


def test_the_msg_id_probe_spans_the_own_project_and_the_global_pool(reader):
    """Contract: dedup.skip."""
    shared = store(reader, "in the global pool", id="m1")
    assert store(reader, "in a project", id="m1", project_id="p")["id"] == shared["id"]
    inside = store(reader, "in a project", id="m2", project_id="p")
    assert store(reader, "elsewhere", id="m2", project_id="q")["result"] == "stored"
    assert store(reader, "in the global pool too", id="m2")["result"] == "stored"
    assert inside["result"] == "stored"


def test_the_msg_id_probe_spans_one_agent_alone(agent, other):
    """Contract: dedup.skip."""
    assert store(agent, "one text", id="m1")["result"] == "stored"
    assert store(other, "one text", id="m1")["result"] == "stored"


def test_an_identical_content_is_skipped_within_agent_project_and_channel(reader):
    """Contract: dedup.skip."""
    axes = {"project_id": "p", "channel": "c"}
    first = store(reader, "one text", **axes)
    again = store(reader, "one text", **axes)
    assert (again["result"], again["id"], again["reason"]) == ("skipped", first["id"], "duplicate content")
    assert store(reader, "one text", project_id="p", channel="d")["result"] == "stored"
    assert store(reader, "one text", project_id="q", channel="c")["result"] == "stored"


def test_the_content_probe_also_sees_the_global_pool(reader):
    """Contract: dedup.skip."""
    first = store(reader, "one text")
    for axes in ({"project_id": "p"}, {"channel": "c"}, {"project_id": "p", "channel": "c"}):
        assert store(reader, "one text", **axes)["id"] == first["id"]


def test_two_project_buckets_can_both_hold_a_content(reader):
    """Contract: dedup.skip."""
    ids = {store(reader, "one text", project_id=project)["id"] for project in ("p", "q", "")}
    assert len(ids) == 3


def test_a_changed_content_under_a_known_msg_id_does_not_update_the_stored_row(reader):
    """Contract: dedup.skip."""
    first = store(reader, "the first text", id="m1")
    again = store(reader, "a changed text", id="m1")
    assert (again["result"], again["content_differs"]) == ("skipped", True)
    assert content_of(reader, first["id"]) == "the first text"
    assert "content_differs" not in store(reader, "the first text", id="m1")


def test_update_memory_changes_a_stored_memory_and_embeds_it_again(agent, embedder):
    """Contract: edit.update."""
    row = store(agent, "the first text", id="m1")["id"]
    embedder.questions.add("a text that means what is asked")
    assert agent.own("update_memory", memory_id=row, content="a text that means what is asked") == {
        "ok": True,
        "updated_id": row,
    }
    assert content_of(agent, row) == "a text that means what is asked"
    assert reasons(agent.recall("no word in common"))[f"mem:{row}"]["cosine"] == pytest.approx(1.0)


def test_delete_memory_followed_by_store_changes_it_too(reader):
    """Contract: dedup.skip."""
    first = store(reader, "the first text", id="m1")["id"]
    assert reader.own("delete_memory", memory_id=first) == {"ok": True, "deleted_id": first}
    second = store(reader, "a changed text", id="m1")
    assert second["result"] == "stored" and second["id"] > first


def test_submitting_unchanged_content_again_is_harmless(reader):
    """Contract: dedup.skip."""
    corpus = [("one", "d1"), ("two", "d2"), ("three", "")]
    ids = [store(reader, text, id=key)["id"] for text, key in corpus]
    before = reader.own("list_memories")
    assert [store(reader, text, id=key)["id"] for text, key in corpus] == ids
    assert reader.own("list_memories") == before


def test_a_skip_costs_no_embedding(agent, embedder):
    """Contract: dedup.skip."""
    store(agent, "embedded once and only once", id="m1")
    store(agent, "embedded once and only once")
    store(agent, "never embedded at all", id="m1")
    assert embedder.asked.count("embedded once and only once") == 1
    assert "never embedded at all" not in embedder.asked


def test_the_source_is_not_compared(reader):
    """Contract: dedup.skip."""
    first = store(reader, "one text", source="user")
    assert store(reader, "one text", source="assistant")["id"] == first["id"]


def test_what_is_compared_is_the_sanitised_content(reader):
    """Contract: dedup.skip, store.cleaned."""
    first = store(reader, "one text")
    assert store(reader, "  [Memory from yesterday] one text ")["id"] == first["id"]


def test_a_store_carries_result_stored_skipped_or_rejected_with_its_reason(reader):
    """Contract: store.answer."""
    assert store(reader, "one text")["result"] == "stored"
    skipped = store(reader, "one text")
    assert (skipped["ok"], skipped["result"]) == (True, "skipped")
    rejected = store(reader, "   ")
    assert (rejected["ok"], rejected["result"]) == (False, "rejected") and rejected["reason"]


def test_a_store_while_persistence_is_paused_is_skipped(reader):
    """Contract: pause.answers."""
    reader.ask("pause_persistence", session_key="s")
    answer = store(reader, "not kept", session_key="s")
    assert answer["ok"] is True
    assert {k: answer[k] for k in ("result", "id", "embedded", "persisted", "dry_run")} == {
        "result": "skipped",
        "id": "no-persist",
        "embedded": False,
        "persisted": False,
        "dry_run": True,
    }
    assert reader.own("list_memories")["count"] == 0


def test_a_call_that_the_access_file_does_not_permit_answers_in_the_generic_shape_without_a_result(daemon_with, home):
    """Contract: access.denial."""
    path = f"{home['HOME']}/acl.json"
    with open(path, "w", encoding="utf-8") as handle:
        json.dump({"clients": [{"client_id": "watcher", "grants": {"*": "read"}}]}, handle)
    watcher = daemon_with(CPERSONA_ACL_FILE=path)
    assert store(watcher, "one text") == {
        "ok": False,
        "error": "permission_denied",
        "tool": "store",
        "client_id": "watcher",
    }
    assert watcher.code == "permission_denied"


@pytest.mark.parametrize(("policy", "result"), [("update", "updated"), ("fail", "rejected")])
def test_an_upsert_has_to_be_asked_for(reader, policy, result):
    """Contract: dedup.conflict."""
    row = store(reader, "the first text", id="m1")["id"]
    assert store(reader, "a changed text", id="m1", on_conflict=policy)["result"] == result
    assert content_of(reader, row) == ("a changed text" if policy == "update" else "the first text")
