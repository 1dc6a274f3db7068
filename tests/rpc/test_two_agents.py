"""With a grant for one agent, no method tells or changes anything of another. Contract: access.denial."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from cpersona_cli.wire import client
from cpersona_daemon.shared import methods
from cpersona_daemon.shared.settings import load

# Words that stand in the other agent's rows alone, and so can only come from there.
MARKS = ("zebrafish", "mnemosyne", "quokka", "theirproject")
IDS = "(SELECT id FROM memories WHERE agent_id = 'theirs')"
TABLES = {
    **dict.fromkeys(
        ("memories", "episodes", "profiles", "entities", "entity_aliases", "relations", "canaries", "past"),
        "agent_id = 'theirs'",
    ),
    "entity_mentions": f"record_id IN {IDS}",
    "batches": f"kind = 'mem' AND id IN {IDS}",
    "memory_vectors": f"id IN {IDS}",
}


@pytest.fixture(scope="module")
def environ(module_home):
    access = Path(module_home["HOME"]) / "access.json"
    access.write_text(
        json.dumps(
            {
                "clients": [
                    {"client_id": "owner", "token": "all", "grants": {"*": "read-write"}},
                    {"client_id": "one", "token": "mine", "grants": {"mine": "read-write"}},
                ]
            }
        )
    )
    access.chmod(0o600)
    return module_home | {"CPERSONA_ACL_FILE": str(access)}


def connected(environ, token):
    mine = environ | {"CPERSONA_TOKEN": token}
    return client.connect(load(mine), mine)


@pytest.fixture(scope="module")
def owner(environ):
    with connected(environ, "all") as connection:
        yield connection


@pytest.fixture(scope="module")
def one(environ, owner):
    with connected(environ, "mine") as connection:
        yield connection


@pytest.fixture(scope="module")
def rows(owner):
    """A few rows of each kind for both agents; returns the other agent's refs."""

    def ok(method, **params):
        answer, code = owner.call(method, params)
        assert code is None, answer
        return answer

    for agent, words, more in (
        ("mine", "walrus", {}),
        ("theirs", "zebrafish mnemosyne", {"project_id": "theirproject"}),
    ):
        number = ok(
            "store",
            agent_id=agent,
            content=f"the {words} eats at noon",
            id={"mine": "mykey", "theirs": "theirkey"}[agent],
            batch="shared",
            **more,
        )["id"]
        for place in range(12):
            ok(
                "store",
                agent_id=agent,
                content=f"{words} note {place} of the day",
                batch="theirbatch" if agent == "theirs" else "mybatch",
                **more,
            )
        episode = ok("archive_episode", agent_id=agent, summary=f"{words} day", keywords=words, **more)["episode_id"]
        ok("update_profile", agent_id=agent, profile=f"likes {words}")
        ok(
            "declare_associations",
            agent_id=agent,
            anchor_ref=f"mem:{number}",
            associations={
                "entities": [{"name": words.split()[0], "aliases": ["quokka" if agent == "theirs" else "tusk"]}],
                "relations": [{"subject": words.split()[0], "predicate": "knows", "object": f"mem:{number}"}],
            },
        )
        ok("update_memory", agent_id=agent, memory_id=number + 1, content=f"{words} note 0 in other words")
        ok("delete_memory", agent_id=agent, memory_id=number + 2)
        ok("add_canary", agent_id=agent, query=f"{words} noon", ref=f"mem:{number}")
    found = ok("list_canaries", agent_id="theirs")["canaries"][0]["id"]
    return {"memory": number, "episode": episode, "canary": found}


def of_the_other(environ):
    """Return everything that the database holds of the other agent."""
    with closing(sqlite3.connect(environ["CPERSONA_DB_PATH"])) as conn:
        return {
            table: conn.execute(f"SELECT * FROM {table} WHERE {which}").fetchall() for table, which in TABLES.items()
        }


def calls(rows):
    """Every method with the granted agent, aimed at the other agent's rows wherever a parameter may name one."""
    memory, episode, mine = rows["memory"], rows["episode"], {"agent_id": "mine"}
    ref, query = f"mem:{memory}", "zebrafish mnemosyne quokka noon"
    yield "store", mine | {"content": "the sea is cold", "id": "theirkey", "batch": "theirbatch"}
    yield (
        "store",
        mine
        | {
            "content": "anchored",
            "associations": {"relations": [{"subject": ref, "predicate": "supersedes", "object": f"ep:{episode}"}]},
        },
    )
    for trace in (False, True):
        yield "recall", mine | {"query": query, "trace": trace, "why_not": ref} if trace else mine | {"query": query}
        yield "recall", mine | {"query": "", "project_id": "theirproject", "limit": 100}
        yield "reconstruct", mine | {"query": query}
    yield "recall_with_context", mine | {"query": query, "external_context": []}
    yield "exists", mine | {"content": "the zebrafish mnemosyne eats at noon"}
    yield "traverse", mine | {"entity": "zebrafish"}
    yield (
        "declare_associations",
        mine
        | {
            "associations": {"entities": [{"name": "walrus"}]},
            "anchor_ref": ref,
            "retract": {"relations": [1, 2], "mentions": [{"entity": 2, "ref": ref}]},
        },
    )
    yield "list_associations", mine
    yield "get_contents", mine | {"refs": [ref, f"ep:{episode}"]}
    yield "scan_texts", mine | {"holds": "eats"}
    yield "scan_texts", mine | {"kind": "ep", "after": ["9999-01-01 00:00:00", 10**15]}
    for gone in (memory, memory + 1, memory + 2):
        yield "row_history", mine | {"ref": f"mem:{gone}"}
        yield "restore_row", mine | {"ref": f"mem:{gone}"}
    yield "restore_row", {"ref": f"mem:{memory + 2}"}
    yield "purge_rows", mine | {"refs": [f"mem:{memory}", f"mem:{memory + 2}", f"ep:{episode}"]}
    yield "undo_last", mine | {"dry_run": True}
    yield "undo_last", mine
    yield "undo_last", {"agent_id": "theirs"}
    yield "list_batches", mine
    yield "list_batches", {}
    yield "find_ids", mine | {"ids": ["theirkey", "mykey"]}
    yield "find_notes", mine | {"ids": ["theirkey", "new"]}
    yield "find_notes", mine | {"prefix": "their"}
    yield "replace_notes", mine | {"content": "note", "id": "new", "replaces": ["theirkey"]}
    for method, name, number in (
        ("update_memory", "memory_id", memory),
        ("delete_memory", "memory_id", memory),
        ("lock_memory", "memory_id", memory),
        ("unlock_memory", "memory_id", memory),
        ("delete_episode", "episode_id", episode),
        ("remove_canary", "canary_id", rows["canary"]),
    ):
        yield method, mine | {name: number} | ({"content": "mine now"} if method == "update_memory" else {})
    yield "list_axes", {}
    yield "store_stats", {}
    for method in (
        "store_stats",
        "list_memories",
        "list_episodes",
        "list_axes",
        "get_profile",
        "list_canaries",
        "run_canaries",
        "get_recall_precision",
        "calibrate_threshold",
    ):
        yield method, mine
    yield "add_canary", mine | {"query": "q", "ref": ref}
    yield "archive_episode", mine | {"summary": "sea day"}
    yield "update_profile", mine | {"profile": "likes the sea"}
    yield "set_recall_precision", mine | {"precision": "strict"}
    yield "merge_memories", {"source_agent_id": "theirs", "target_agent_id": "mine", "mode": "copy"}
    yield "merge_memories", {"source_agent_id": "mine", "target_agent_id": "theirs", "mode": "move"}
    yield "undo_batch", mine | {"batch": "theirbatch"}
    yield "undo_batch", mine | {"batch": "shared"}
    yield "check_health", mine | {"fix": True, "deep": True}
    for method in (
        "daemon_status",
        "backlog_status",
        "run_status",
        "daemon_stop",
        "reindex",
        "backup_database",
        "export_memories",
        "import_memories",
        "pause_persistence",
        "resume_persistence",
        "persistence_status",
    ):
        yield method, {}
    yield "export_memories", mine | {"output_path": "/tmp/never-written.jsonl"}
    yield "delete_agent_data", mine


def test_no_method_tells_or_changes_anything_of_another_agent(environ, one, rows):
    before, asked = of_the_other(environ), set()
    assert before["memories"] and before["canaries"] and before["entities"]
    for method, params in calls(rows):
        asked.add(method)
        given = json.dumps(params)
        answer, code = one.call(method, params)
        told = json.dumps(answer)
        assert code != "internal", (method, answer)
        assert not [mark for mark in MARKS if mark in told and mark not in given], (method, answer)
        assert "theirs" not in told or "theirs" in given, (method, answer)
        assert of_the_other(environ) == before, method
    assert set(methods.METHODS) <= asked


def test_a_named_run_that_wrote_for_others_too_says_so_only_to_who_may_see_them(one, owner, rows):
    assert "other_agents" not in one.call("undo_batch", {"agent_id": "mine", "batch": "theirbatch"})[0]
    assert owner.call("undo_batch", {"agent_id": "mine", "batch": "theirbatch"})[0]["other_agents"] == 11


def test_health_of_one_agent_looks_at_its_rows_and_refuses_the_whole_store(one, owner):
    run = one.call("check_health", {"agent_id": "mine"})[0]["checks_run"]
    assert "contamination" in run and not {"spool", "vector_index", "permissions"} & set(run)
    answer, code = one.call("check_health", {"agent_id": "mine", "checks": ["spool"]})
    assert code == "permission_denied" and "*" in answer["error"]
    assert {"spool", "vector_index"} <= set(owner.call("check_health", {})[0]["checks_run"])


def test_a_repair_asked_for_one_agent_leaves_the_rows_of_another(environ, one, owner, rows):
    for agent in ("mine", "theirs"):
        assert owner.call("store", {"agent_id": agent, "content": f"echo {agent}"})[1] is None
    with closing(sqlite3.connect(environ["CPERSONA_DB_PATH"])) as conn, conn:
        conn.execute("UPDATE memories SET content = '[Memory from 2026-01-02] ' || content WHERE content LIKE 'echo %'")
    for params in ({"fix": True}, {"fix": True, "checks": ["contamination"]}):
        one.call("check_health", {"agent_id": "mine", **params})
    with closing(sqlite3.connect(environ["CPERSONA_DB_PATH"])) as conn:
        marked = [
            agent for (agent,) in conn.execute("SELECT agent_id FROM memories WHERE content LIKE '[Memory from%'")
        ]
    assert marked == ["theirs"]
