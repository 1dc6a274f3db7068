"""What a client with a grant for one agent is answered does not depend on what another agent has in the same store.

Contract: access.denial, coverage.share.
"""

from __future__ import annotations

import json
import os
import re

import pytest
from house_kit import house, make_house  # noqa: F401

from cpersona_daemon.shared import methods

# What of an answer is a number of this very store or moment: each is told apart elsewhere.
VARYING = {"trace", "created_at", "ran_at", "declared_at", "updated_at", "expires_at", "episode_id"}
LATER = 16  # from here on the numbers of rows tell how many others there are


def fill(house, agent, words, others=0):  # noqa: F811
    """Give an agent rows of every kind; the same number of them whatever the words."""

    def ok(method, **params):
        answer = house.ask(method, **params)
        assert house.code is None, answer
        return answer

    number = ok(
        "store",
        agent_id=agent,
        content=f"the {words} eats at noon",
        id="key",
        batch="shared",
        timestamp="2026-01-05T00:00:00Z",
    )["id"]
    for place in range(14 + others):
        ok(
            "store",
            agent_id=agent,
            content=f"{words} note {place} of the day",
            batch="shared",
            timestamp=f"2026-01-05T00:{place:02}:00Z",
            lock=place == 3,
        )
    ok("archive_episode", agent_id=agent, summary=f"{words} day", keywords=words)
    ok("update_profile", agent_id=agent, profile=f"likes {words}")
    ok(
        "declare_associations",
        agent_id=agent,
        anchor_ref=f"mem:{number}",
        associations={
            "entities": [{"name": "harbour", "aliases": [words]}],
            "relations": [{"subject": "harbour", "predicate": "knows", "object": f"mem:{number}"}],
        },
    )
    ok("add_canary", agent_id=agent, query=f"{words} noon", ref=f"mem:{number}")
    return number


@pytest.fixture
def houses(make_house, tmp_path):  # noqa: F811
    """A store that holds one agent, and one that holds the same rows and damaged ones of another agent."""
    access = tmp_path / "access.json"
    access.write_text(
        json.dumps(
            {
                "clients": [
                    {"client_id": "owner", "grants": {"*": "read-write"}},
                    {"client_id": "one", "token": "mine", "grants": {"mine": "read-write"}},
                ]
            }
        )
    )
    access.chmod(0o600)
    alone, beside = (make_house(name, CPERSONA_ACL_FILE=str(access)) for name in ("alone", "beside"))
    for one in (alone, beside):
        fill(one, "mine", "walrus")
    fill(beside, "theirs", "zebrafish", others=6)
    beside.change(
        "UPDATE memories SET content = '[Memory from 2026-01-02] ' || content WHERE agent_id = 'theirs' AND id % 3 = 0"
    )
    beside.change("UPDATE memories SET content = CAST(x'ff' AS TEXT) WHERE agent_id = 'theirs' AND id % 5 = 0")
    beside.change("UPDATE memories SET instant = 1 WHERE agent_id = 'theirs'")
    beside.change("INSERT INTO memory_vectors SELECT id, 'm', x'00' FROM memories WHERE agent_id = 'theirs' AND id % 2")
    for one in (alone, beside):
        one.caller = one.ctx.access.identify("mine", os.getuid())
    return alone, beside


def calls():
    mine, theirs = {"agent_id": "mine"}, {"agent_id": "theirs"}
    for asked in (mine, theirs, {}):
        for method in (
            "list_memories",
            "list_episodes",
            "get_profile",
            "list_canaries",
            "run_canaries",
            "check_health",
            "list_associations",
            "get_recall_precision",
        ):
            yield method, asked
    for query in ("walrus noon", "zebrafish", "harbour zebrafish", ""):
        yield "recall", mine | {"query": query, "limit": 100}
        yield "recall_with_context", mine | {"query": query}
        yield "reconstruct", mine | {"query": query}
        yield "exists", mine | {"text": query or "the"}
    for name in ("harbour", "walrus", "zebrafish"):
        yield "traverse", mine | {"entity": name, "max_hops": 5}
    for checks in (None, ["spool"], ["contents"], ["lexical_index"]):
        yield "check_health", mine | {"deep": True, "fix": True} | ({"checks": checks} if checks else {})
    yield "get_contents", mine | {"refs": ["mem:1", "mem:20", "mem:999", "ep:2"]}
    yield "recall", mine | {"query": "walrus", "as_of": "2020-01-01T00:00:00Z"}
    for number in (20, 999):
        for method in ("update_memory", "delete_memory", "lock_memory", "unlock_memory"):
            yield method, mine | {"memory_id": number} | ({"content": "other"} if method == "update_memory" else {})
    yield "delete_episode", mine | {"episode_id": 2}
    yield "remove_canary", mine | {"canary_id": 2}
    yield "add_canary", mine | {"query": "q", "ref": "mem:20"}
    yield (
        "declare_associations",
        mine
        | {
            "anchor_ref": "mem:20",
            "associations": {"relations": [{"subject": "mem:20", "predicate": "knows", "object": "mem:999"}]},
            "retract": {"relations": [2, 999], "mentions": [{"entity": 2, "ref": "mem:20"}], "entities": [2]},
        },
    )
    yield "store", mine | {"content": "the zebrafish eats at noon", "id": "key2", "batch": "shared"}
    yield "store", mine | {"content": "the zebrafish eats at noon"}
    yield "replace_notes", mine | {"notes": [{"id": "n", "content": "a note", "replaces": ["key3"]}]}
    yield "archive_episode", mine | {"summary": "zebrafish day"}
    yield "update_profile", mine | {"profile": "likes the sea"}
    yield "calibrate_threshold", mine
    yield "set_recall_precision", mine | {"precision": "strict"}
    yield "merge_memories", {"source_agent_id": "mine", "target_agent_id": "theirs"}
    for dry in (True, False):
        yield "undo_batch", mine | {"batch": "shared", "dry_run": dry}
    for method in methods.METHODS:
        if method != "daemon_status":
            yield method, {}
    yield "delete_agent_data", mine


def told(value, key=""):
    """Return an answer without what varies between two stores: numbers of rows that came later, and moments."""
    if key in VARYING:
        return "…"
    if isinstance(value, dict):
        return {name: told(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [told(one, key) for one in value]
    if key == "id" and isinstance(value, int):
        return min(value, LATER)
    if isinstance(value, str):
        value = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\d]*(\+00:00)?", "…", value)
        return re.sub(
            r"(mem|ep):(\d+)",
            lambda found: f"{found[1]}:{min(int(found[2]), LATER)}" if found[1] == "mem" else "ep:…",
            value,
        )
    return value


def test_no_answer_and_no_progress_changes_with_what_others_have(houses):
    alone, beside = houses
    for method, params in calls():
        answers = []
        for one in houses:
            one.progress.clear()
            answer = one.ask(method, **params)
            answers.append((told(answer), one.code, list(one.progress)))
        assert answers[0] == answers[1], (method, params)


def test_what_one_agent_does_runs_no_saved_question_of_another(houses):
    _, beside = houses
    before = beside.sql("SELECT * FROM canaries WHERE agent_id = 'theirs'")
    beside.change(
        "UPDATE canaries SET ran_at = '2020-01-01 00:00:00', state = 'found', rank = 7 WHERE agent_id = 'theirs'"
    )
    before = beside.sql("SELECT * FROM canaries WHERE agent_id = 'theirs'")
    for number in range(12):
        beside.change("INSERT OR REPLACE INTO memory_vectors VALUES (?, 'm', zeroblob(8))", number + 1)
    for method, params in (
        ("calibrate_threshold", {"agent_id": "mine"}),
        ("set_recall_precision", {"agent_id": "mine", "precision": "strict"}),
        ("run_canaries", {"agent_id": "mine"}),
    ):
        beside.ask(method, **params)
    for_good = ("Spool", "forget_what_is_old")  # they end with the daemon
    while any(not any(name in repr(task) for name in for_good) for task in beside.ctx.tasks):
        beside.ask("list_canaries", agent_id="mine")
    assert beside.sql("SELECT * FROM canaries WHERE agent_id = 'theirs'") == before
