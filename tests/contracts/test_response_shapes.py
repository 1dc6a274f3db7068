"""One table says which method answers what; every method is walked.

Contract: answer.shape, pause.answers, access.denial.
"""

import json

import pytest
from contract_kit import Agent
from store_kit import opened_store

from cpersona_daemon.errors import CPersonaError, Refused
from cpersona_daemon.rpc import dispatch
from cpersona_daemon.shared import fields, methods

# What a paused write answers beside `persisted`, `dry_run` and `reason`, and the params that name it.
SKELETONS = {
    "store": ({"content": "x"}, {"ok": True, "result": "skipped", "id": "no-persist", "embedded": False}),
    "declare_associations": (
        {},
        {"ok": True, "result": "declared", "entities": [], "mentions": 0, "relations": [], "dropped": []},
    ),
    "update_memory": ({"memory_id": 1, "content": "x"}, {"ok": True, "updated_id": None}),
    "delete_memory": ({"memory_id": 1}, {"ok": True, "deleted_id": None}),
    "lock_memory": ({"memory_id": 1}, {"ok": True, "locked_id": None}),
    "unlock_memory": ({"memory_id": 1}, {"ok": True, "unlocked_id": None}),
    "restore_row": ({"ref": "mem:1"}, {"ok": True, "ref": None}),
    "purge_rows": ({"refs": ["mem:1"]}, {"ok": True, "purged": []}),
    "undo_last": ({}, {"ok": True, "undone": None, "rows": 0, "refs": []}),
    "archive_episode": ({"summary": "x"}, {"ok": True, "episode_id": None}),
    "delete_episode": ({"episode_id": 1}, {"ok": True, "deleted_id": None}),
    "update_profile": ({"profile": "x"}, {"ok": True, "profiles_updated": 0}),
    "replace_notes": ({"notes": [{"id": "n", "content": "x"}]}, {"ok": True, "deleted": 0, "notes": []}),
    "undo_batch": ({"batch": "b"}, {"ok": True, "deleted_memories": 0, "deleted_episodes": 0, "kept_locked": 0}),
    "add_canary": ({"query": "x", "ref": "mem:1"}, {"ok": True, "id": None}),
    "remove_canary": ({"canary_id": 1}, {"ok": True, "removed_id": None}),
    "import_memories": (
        {"input_path": "/nowhere"},
        {
            "ok": True,
            "imported_memories": 0,
            "skipped_memories": 0,
            "imported_episodes": 0,
            "skipped_episodes": 0,
            "profile_updated": False,
        },
    ),
    "merge_memories": (
        {"source_agent_id": "a", "target_agent_id": "b"},
        {
            "ok": True,
            "merged_memories": 0,
            "skipped_memories": 0,
            "merged_episodes": 0,
            "skipped_episodes": 0,
            "profile_copied": False,
            "skipped_profile": False,
        },
    ),
    "delete_agent_data": ({}, {"ok": True, "deleted_memories": 0, "deleted_profiles": 0, "deleted_episodes": 0}),
}
# Writes that keep nothing of a conversation: what they measure, mend or end is there already.
UNPAUSED = {
    "calibrate_threshold",
    "set_recall_precision",
    "run_canaries",
    "export_memories",
    "backup_database",
    "check_health",
    "reindex",
    "pause_persistence",
    "resume_persistence",
    "daemon_stop",
}


def test_every_method_of_the_wire_has_a_handler_and_the_other_way_round():
    """Contract: answer.shape."""
    assert set(dispatch.HANDLERS) == set(methods.METHODS)


@pytest.mark.parametrize("method", methods.METHODS)
def test_the_failure_of_every_method_has_the_shape_of_the_contract(reader, method):
    """Contract: answer.shape."""
    answer = reader.ask(method, no_such_parameter=1)
    text = answer.pop("reason" if method == "store" else "error")
    assert answer == {"ok": False, **methods.of(method).refusal}
    assert "no_such_parameter" in text or "is missing" in text
    assert reader.code == "invalid_params"


def test_every_method_is_either_paused_with_a_skeleton_or_meant_to_run():
    """Contract: pause.answers."""
    writes = {name for name, row in methods.METHODS.items() if not row.reads}
    assert writes == set(SKELETONS) | UNPAUSED
    assert {name for name, row in methods.METHODS.items() if row.paused is not None} == set(SKELETONS)


@pytest.mark.parametrize("method", SKELETONS)
def test_every_write_method_answers_its_paused_skeleton(reader, method):
    """Contract: pause.answers."""
    assert reader.ask("pause_persistence", session_key=reader.name)["scope"] == "session"
    params, skeleton = SKELETONS[method]
    agent = {"agent_id": reader.name} if "agent_id" in dispatch.HANDLERS[method].params.__struct_fields__ else {}
    answer = reader.ask(method, session_key=reader.name, **agent, **params)
    reason = answer.pop("reason")
    assert answer == {**skeleton, "persisted": False, "dry_run": True} and reason and reader.code is None


@pytest.fixture(scope="module")
def stranger():
    """A store whose access file grants the test's own user nothing."""
    import tempfile

    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"clients": [{"client_id": "stranger", "grants": {"*": "none"}}]}, file)
        file.flush()
        with opened_store(CPERSONA_ACL_FILE=file.name) as (store, directory):
            yield Agent(store.call, directory, None)


@pytest.mark.parametrize("method", methods.METHODS)
def test_the_denial_of_every_method_has_four_keys_and_no_other(stranger, method):
    """Contract: access.denial."""
    assert stranger.own(method) == {"ok": False, "error": "permission_denied", "tool": method, "client_id": "stranger"}
    assert stranger.code == "permission_denied"


def test_an_unknown_method_answers_error_alone(reader, stranger):
    """Contract: answer.shape."""
    for agent in (reader, stranger):
        for name in ("", "Recall", "__init__", "store "):
            assert list(agent.ask(name)) == ["error"] and agent.code == "unknown_method"


def test_every_error_code_has_an_exit_status_and_a_hint():
    """Contract: exit.status, answer.shape."""

    def tree(kind):
        return [kind, *(k for sub in kind.__subclasses__() for k in tree(sub))]

    for kind in tree(CPersonaError):
        status, _, hint = fields.ERRORS[kind.code]
        assert status > 0 and hint
    assert methods.of("store").failed("why") == {"ok": False, "result": "rejected", "reason": "why"}
    assert Refused("x").exit_status == fields.EXIT_FAILED


READS = {
    "recall": {},
    "recall_with_context": {},
    "reconstruct": {"query": "x"},
    "traverse": {"entity": "x"},
    "list_associations": {},
    "get_contents": {"refs": ["mem:1"]},
    "row_history": {"ref": "mem:1"},
    "list_memories": {},
    "list_episodes": {},
    "get_profile": {},
}


@pytest.mark.parametrize("method", READS)
def test_a_read_that_succeeds_carries_no_ok(reader, method):
    """Contract: answer.shape."""
    answer = reader.own(method, **READS[method])
    assert reader.code is None and "ok" not in answer and "error" not in answer
