"""Merging agents and deleting one. Contract: merge.copies, forget.agent."""

import base64
import struct

import pytest
from house_kit import memory

LINES = [
    memory(
        "one",
        agent_id="src",
        id=1,
        msg_id="m1",
        locked=1,
        recall_count=4,
        created_at="2026-01-05 00:01:00",
        embedding_b64=base64.b64encode(struct.pack("<2f", 0.6, 0.8)).decode(),
        embedding_model="kit",
    ),
    memory("two", agent_id="src", id=2),
    memory("two", agent_id="dst", id=3),
    {"_type": "episode", "id": 1, "agent_id": "src", "summary": "e", "resolved": True},
    {"_type": "profile", "agent_id": "src", "content": "who", "updated_at": "2026-01-01 00:00:00"},
    {"_type": "entity", "id": 1, "agent_id": "src", "name": "Alpha", "aliases": ["Al"]},
    {"_type": "mention", "entity": 1, "ref": "mem:1"},
    {"_type": "mention", "entity": 1, "ref": "mem:2"},
    {
        "_type": "relation",
        "agent_id": "src",
        "subject_kind": "mem",
        "subject_id": 1,
        "predicate": "supersedes",
        "object_kind": "mem",
        "object_id": 2,
        "anchor_ref": "mem:1",
    },
]


@pytest.fixture
def filled(house):
    answer = house.ask("import_memories", input_path=house.write("in.jsonl", *LINES))
    assert answer["ok"] and "errors" not in answer, answer
    return house


def counts(house, agent):
    return tuple(
        house.sql(f"SELECT count(*) FROM {table} WHERE agent_id = ?", agent)[0][0]
        for table in ("memories", "episodes", "profiles", "entities", "relations")
    )


def merge(house, **params):
    return house.ask("merge_memories", **{"source_agent_id": "src", "target_agent_id": "dst", **params})


@pytest.mark.parametrize("mode", ["copy", "move"])
def test_a_dry_run_counts_the_same_and_writes_nothing(filled, mode):
    before = filled.export("before.jsonl", include_embeddings=True)[1:]
    dry = merge(filled, mode=mode, dry_run=True)
    assert filled.export("after.jsonl", include_embeddings=True)[1:] == before
    done = merge(filled, mode=mode)
    done.pop("source_deleted", None)
    assert {**dry, "dry_run": False} == done and dry["merged_memories"] == 1 and dry["skipped_memories"] == 1


def test_a_copy_takes_age_lock_counters_and_vector_along(filled):
    merge(filled)
    assert filled.sql(
        "SELECT content, msg_id, locked, recall_count, created_at, model FROM memories m JOIN memory_vectors v ON "
        "v.id = m.id WHERE agent_id = 'dst'"
    ) == [("one", "m1", 1, 4, "2026-01-05 00:01:00", "kit")]
    assert filled.ctx.vectors.status()["mem"]["rows"] == 2
    assert counts(filled, "src") == (2, 1, 1, 1, 1) and counts(filled, "dst") == (2, 1, 1, 1, 1)


def test_associations_are_declared_again_on_the_targets_rows(filled):
    merge(filled)
    one, two = (
        filled.sql("SELECT id FROM memories WHERE agent_id = 'dst' AND content = ?", text)[0][0]
        for text in ("one", "two")
    )
    assert filled.sql("SELECT subject_id, object_id, anchor_ref FROM relations WHERE agent_id = 'dst'") == [
        (one, two, f"mem:{one}")
    ]
    assert filled.sql(
        "SELECT m.record_id FROM entity_mentions m JOIN entities e ON e.id = m.entity_id WHERE e.agent_id = 'dst' "
        "ORDER BY 1"
    ) == [(two,), (one,)]


def test_a_move_deletes_what_was_copied_and_nothing_else(filled):
    answer = merge(filled, mode="move")
    assert answer["source_deleted"] == {
        "ok": True,
        "agent_id": "src",
        "deleted_memories": 1,
        "deleted_profiles": 1,
        "deleted_episodes": 1,
    }
    assert answer["left_at_source"] == {"memories": 1, "episodes": 0, "profiles": 0}
    assert filled.sql("SELECT content FROM memories WHERE agent_id = 'src'") == [("two",)] and counts(filled, "src")[
        1:3
    ] == (0, 0)
    assert filled.ctx.vectors.status()["mem"]["rows"] == 1


def test_two_episodes_of_one_summary_become_one_at_the_target(house):
    # archive_episode knows no dedup, so the source may hold both.
    for _ in range(2):
        house.ask("archive_episode", agent_id="src", summary="same")
    assert merge(house, dry_run=True)["merged_episodes"] == 1
    answer = merge(house, mode="move")
    assert (answer["merged_episodes"], answer["skipped_episodes"], answer["left_at_source"]["episodes"]) == (1, 1, 1)
    assert counts(house, "dst")[1] == 1


def test_a_profile_that_the_target_has_stays(filled):
    filled.ask("update_profile", agent_id="dst", profile="mine")
    answer = merge(filled)
    assert answer["profile_copied"] is False and answer["skipped_profile"] is True
    assert filled.ask("get_profile", agent_id="dst") == {"profile": "mine"}


@pytest.mark.parametrize(
    "params",
    [
        {"target_agent_id": "src"},
        {"source_agent_id": ""},
        {"target_agent_id": ""},
        {"mode": "steal"},
        {"strategy": "overwrite"},
    ],
)
def test_a_merge_that_makes_no_sense_is_refused(filled, params):
    assert merge(filled, **params)["ok"] is False and merge(filled, **params, dry_run=True)["ok"] is False
    assert counts(filled, "dst") == (1, 0, 0, 0, 0)


def test_deleting_an_agent_takes_locked_rows_and_everything_it_declared_but_nobody_elses(filled):
    filled.ask("set_recall_precision", agent_id="src", precision="strict")
    answer = filled.ask("delete_agent_data", agent_id="src")
    assert answer == {
        "ok": True,
        "agent_id": "src",
        "deleted_memories": 2,
        "deleted_profiles": 1,
        "deleted_episodes": 1,
        "deleted_associations": {"entities": 1, "mentions": 2, "relations": 1},
    }
    assert counts(filled, "src") == (0, 0, 0, 0, 0) and counts(filled, "dst") == (1, 0, 0, 0, 0)
    assert filled.sql(
        "SELECT (SELECT count(*) FROM entity_aliases), (SELECT count(*) FROM entity_mentions), (SELECT count(*) "
        "FROM memory_vectors)"
    ) == [(0, 0, 0)]
    assert filled.ctx.vectors.status()["mem"]["rows"] == 0 and filled.ask("check_health")["status"] == "healthy"
    assert filled.ask("get_recall_precision", agent_id="src")["overridden"] is False


def test_nobody_is_deleted_by_an_empty_name(filled):
    assert filled.ask("delete_agent_data", agent_id="")["ok"] is False
    assert filled.ask("delete_agent_data", agent_id="nobody")["deleted_memories"] == 0
    assert counts(filled, "src")[0] == 2
