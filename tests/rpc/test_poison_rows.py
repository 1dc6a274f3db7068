"""A row that cannot be read or sent costs itself alone: every answer names it, leaves it out and gives the others.

Contract: answer.fits.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from cpersona_cli.wire import client
from cpersona_daemon.life import frames
from cpersona_daemon.rpc.envelopes import Response
from cpersona_daemon.rpc.fitting import fit
from cpersona_daemon.shared import fields
from cpersona_daemon.shared.settings import load
from cpersona_daemon.storage.damaged import nests_deeper

NOT_UTF8 = b"a walnut harvest day \xff\xfe \xc3"
POISONS = {
    "bytes": ("content", NOT_UTF8),
    "source bytes": ("source", b'{"id": "\xff"}'),
    "stamp bytes": ("timestamp", b"2026-01-05\xff"),
    "deep source": ("source", '{"a":' * 900 + "1" + "}" * 900),
    "deep metadata": ("metadata", "[" * 100_000 + "]" * 100_000),
    "half a pair": ("metadata", '{"s": "\\ud800"}'),
}
SENT_WITHOUT_METADATA = {"half a pair"}


@pytest.fixture(scope="module")
def environ(module_home):
    return module_home | {"CPERSONA_RECALL_MODE": "blend"}


@pytest.fixture(scope="module")
def connection(environ):
    with client.connect(load(environ), environ) as opened:
        yield opened


def poisoned(environ, connection, agent, column, value, also=""):
    """Store three memories of an agent and spoil the one in the middle; return their refs."""
    ids = [
        connection.call(
            "store",
            {
                "agent_id": agent,
                "content": f"{word} walnut harvest {agent}{also}",
                "source": {"id": "me"},
                "timestamp": f"2026-01-05T00:00:0{n}Z",
            },
        )[0]["id"]
        for n, word in enumerate(("first", "second", "third"))
    ]
    spoil(environ, f"UPDATE memories SET {column} = CAST(? AS TEXT) WHERE id = ?", value, ids[1])
    return [f"mem:{i}" for i in ids]


def spoil(environ, statement, *values):
    with closing(sqlite3.connect(environ["CPERSONA_DB_PATH"])) as conn, conn:
        conn.execute(statement, values)


def refs(rows):
    return sorted(row["ref"] for row in rows)


@pytest.mark.parametrize("poison", POISONS)
def test_every_answer_names_the_row_and_gives_the_others(environ, connection, poison, tmp_path):
    agent = f"agent {poison}"
    one, bad, three = poisoned(environ, connection, agent, *POISONS[poison])
    asked = {"agent_id": agent}
    listed, code = connection.call("list_memories", asked)
    assert code is None and (refs(listed["memories"]), listed["count"], refs(listed["left_out"])) == (
        [one, three],
        2,
        [bad],
    )
    assert connection.call("list_memories", {"limit": 500})[1] is None
    for method, more, rows in (
        ("recall", {"query": "walnut harvest"}, "messages"),
        ("recall", {"query": ""}, "messages"),
        ("get_contents", {"refs": [one, bad, three]}, "items"),
        (
            "recall_with_context",
            {"query": "walnut harvest", "external_context": [{"role": "user", "content": "so?"}]},
            "messages",
        ),
    ):
        answer, code = connection.call(method, asked | more)
        assert code is None, answer
        found = refs(row for row in answer[rows] if "ref" in row)
        if poison in SENT_WITHOUT_METADATA:  # these answers do not hold a row's metadata
            assert found == [one, bad, three] and "left_out" not in answer
        else:
            assert found == [one, three] and refs(answer["left_out"]) == [bad], (method, answer)
        if method == "get_contents":
            assert answer["count"] == len(found) and answer["missing"] == ([] if bad in found else [bad])
    answer, code = connection.call("reconstruct", asked | {"query": "walnut harvest"})
    assert code is None and answer["items"]
    assert connection.call("exists", asked | {"text": "walnut harvest"})[0]["exists"]
    exported, code = connection.call("export_memories", {"agent_id": agent, "output_path": str(tmp_path / "e.jsonl")})
    assert code is None and exported["memories"] == 2 and refs(exported["left_out"]) == [bad]
    assert connection.call("delete_memory", {"memory_id": int(bad[4:])})[1] is None
    assert "left_out" not in connection.call("list_memories", asked)[0]


@pytest.mark.parametrize(
    ("written", "given"),
    [
        (2**63 - 1, 2**63 - 1),
        (2**64, 1.8446744073709552e19),
        (-(2**70), -1.1805916207174113e21),
        ("9" * 350, "9" * 350),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_a_whole_number_of_more_digits_than_an_answer_carries_is_given_as_near_as_it_can(
    environ, connection, written, given
):
    agent = f"numbers {len(str(written))} {str(written)[:3]}"
    poisoned(environ, connection, agent, "metadata", f'{{"n": {written}}}')
    listed = connection.call("list_memories", {"agent_id": agent})[0]
    assert listed["count"] == 3 and "left_out" not in listed and listed["memories"][1]["metadata"] == {"n": given}


def test_what_names_a_row_that_an_export_leaves_out_stays_out_too_and_the_file_imports_whole(
    environ, connection, tmp_path
):
    one, bad, three = poisoned(environ, connection, "tied", "content", NOT_UTF8)
    spec = {
        "entities": [{"name": "Orchard"}],
        "relations": [
            {"subject": bad, "predicate": "supports", "object": one},
            {"subject": three, "predicate": "supports", "object": one},
        ],
    }
    for anchor in (bad, three):
        assert (
            connection.call("declare_associations", {"agent_id": "tied", "associations": spec, "anchor_ref": anchor})[1]
            is None
        )
    path = tmp_path / "t.jsonl"
    assert connection.call("export_memories", {"agent_id": "tied", "output_path": str(path)})[0]["associations"] == {
        "entities": 1,
        "mentions": 1,
        "relations": 1,
    }
    counted, code = connection.call("import_memories", {"input_path": str(path), "target_agent_id": "copy"})
    assert code is None and "errors" not in counted and counted["imported_memories"] == 2
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[0]["memory_count"] == 2 and lines[0]["mention_count"] == lines[0]["relation_count"] == 1


def test_a_merge_moves_what_can_be_read_and_leaves_the_rest_where_it_is(environ, connection):
    one, bad, three = poisoned(environ, connection, "moves", "content", NOT_UTF8)
    merged, code = connection.call(
        "merge_memories", {"source_agent_id": "moves", "target_agent_id": "moved", "mode": "move"}
    )
    assert code is None and merged["merged_memories"] == 2
    assert connection.call("list_memories", {"agent_id": "moved"})[0]["count"] == 2
    assert refs(connection.call("list_memories", {"agent_id": "moves"})[0]["left_out"]) == [bad]
    assert connection.call("delete_agent_data", {"agent_id": "moves"})[0]["deleted_memories"] == 1


def test_a_damaged_episode_is_named_and_the_others_are_given(environ, connection, tmp_path):
    ids = [
        connection.call("archive_episode", {"agent_id": "ep", "summary": f"{n} walnut day", "keywords": "nuts"})[0][
            "episode_id"
        ]
        for n in range(3)
    ]
    for column in ("summary", "keywords"):
        spoil(environ, f"UPDATE episodes SET {column} = CAST(? AS TEXT) WHERE id = ?", NOT_UTF8, ids[1])
        listed = connection.call("list_episodes", {"agent_id": "ep"})[0]
        assert (listed["count"], refs(listed["left_out"])) == (2, [f"ep:{ids[1]}"])
        answer = connection.call("recall", {"agent_id": "ep", "query": "walnut day"})[0]
        assert (len(answer["messages"]), refs(answer["left_out"])) == (2, [f"ep:{ids[1]}"])
        answer = connection.call("get_contents", {"agent_id": "ep", "refs": [f"ep:{i}" for i in ids]})[0]
        assert (answer["count"], answer["missing"]) == (2, [f"ep:{ids[1]}"])
        assert (
            connection.call("export_memories", {"agent_id": "ep", "output_path": str(tmp_path / "e")})[0]["episodes"]
            == 2
        )
        spoil(environ, f"UPDATE episodes SET {column} = 'walnut day' WHERE id = ?", ids[1])


def test_a_damaged_profile_name_or_question_fails_no_answer(environ, connection, tmp_path):
    (ref, *_) = poisoned(environ, connection, "names", "metadata", b"{}")
    connection.call("update_profile", {"agent_id": "names", "profile": "likes nuts"})
    connection.call(
        "declare_associations",
        {
            "agent_id": "names",
            "associations": {"entities": [{"name": "Walnut", "aliases": ["juglans"]}]},
            "anchor_ref": ref,
        },
    )
    connection.call("add_canary", {"agent_id": "names", "query": "walnut", "ref": ref})
    for table, column in (
        ("profiles", "content"),
        ("entities", "name"),
        ("entity_aliases", "alias"),
        ("canaries", "query"),
    ):
        spoil(environ, f"UPDATE {table} SET {column} = CAST(? AS TEXT) WHERE agent_id = 'names'", NOT_UTF8)
    for method, more in (
        ("recall", {"query": "walnut"}),
        ("get_profile", {}),
        ("reconstruct", {"query": "walnut"}),
        ("traverse", {"entity": "juglans"}),
        ("list_associations", {}),
        ("list_canaries", {}),
        ("run_canaries", {}),
        ("export_memories", {"output_path": str(tmp_path / "n")}),
    ):
        answer, code = connection.call(method, {"agent_id": "names"} | more)
        assert code is None, (method, answer)
    assert {row["ref"] for row in answer["left_out"]} == {"a profile", "an entity"}


def test_health_looks_at_every_text_when_asked_to_look_deep_and_names_what_is_wrong(environ, connection):
    _, bad, _ = poisoned(environ, connection, "checked", "content", NOT_UTF8)
    other, deep, changed = poisoned(environ, connection, "checked", "metadata", "[" * 500 + "]" * 500, " more")
    cut = connection.call("store", {"agent_id": "checked", "content": "long " * 9_000})[0]["id"]
    assert connection.call("check_health", {"agent_id": "checked", "checks": ["contents"]})[0]["issues"] == []
    spoil(environ, "UPDATE memories SET content = 'said by nobody' WHERE id = ?", int(changed[4:]))
    found = connection.call("check_health", {"agent_id": "checked", "checks": ["contents"], "deep": True})[0]
    assert found["status"] == "unhealthy"
    messages = {issue["message"]: issue["count"] for issue in found["issues"]}
    assert (
        list(messages.values()) == [1, 1, 1]
        and [ref in message for ref, message in zip((bad, changed, deep), messages, strict=True)] == [True] * 3
    )
    spoil(environ, "UPDATE memories SET content = content || '.' WHERE id = ?", cut)
    assert (
        sum(
            issue["count"]
            for issue in connection.call("check_health", {"agent_id": "checked", "checks": ["contents"], "deep": True})[
                0
            ]["issues"]
        )
        == 4
    )
    for method in ("reindex", "check_health"):
        assert connection.call(method, {} if method == "reindex" else {"fix": True, "deep": True})[1] is None


def test_the_command_line_names_what_is_left_out(environ, connection):
    from cli_kit import runner

    one, bad, _ = poisoned(environ, connection, "shown", "content", NOT_UTF8)
    run = runner(environ)
    for command in (
        ["list", "--agent", "shown"],
        ["recall", "walnut", "--agent", "shown"],
        ["list", "--json", "--agent", "shown"],
    ):
        done = run(command)
        assert done.returncode == 0 and one in done.stdout and bad not in done.stdout.partition('"left_out"')[0]
        assert f"a row is left out: {bad} (its text is damaged" in done.stderr


@pytest.mark.parametrize(
    ("place", "depth", "kept"),
    [
        ("metadata", fields.MAX_VALUE_NESTING, True),
        ("metadata", fields.MAX_VALUE_NESTING + 1, False),
        ("source", fields.MAX_VALUE_NESTING, True),
        ("source", fields.MAX_VALUE_NESTING + 1, False),
    ],
)
def test_a_store_takes_values_as_deep_as_an_answer_carries(connection, place, depth, kept):
    value = {"end": 1}
    for _ in range(depth - 1):
        value = {"in": value}
    answer, code = connection.call("store", {"agent_id": "depth", "content": f"{place} {depth}", place: value})
    assert (answer["result"] == "stored") is kept and (code is None) is kept
    if not kept:
        assert place in answer["reason"] and "nests" in answer["reason"]
    else:
        (row,) = [
            row
            for row in connection.call("list_memories", {"agent_id": "depth"})[0]["memories"]
            if row["id"] == answer["id"]
        ]
        assert row[place] == value


def test_nesting_is_counted_outside_of_texts():
    assert not nests_deeper('{"a": "[[[[[["}', 1) and nests_deeper('{"a": "\\"]", "b": [1]}', 1)
    assert (
        not nests_deeper("[]" * 900, 1)
        and nests_deeper("[" * 900, 899)
        and not nests_deeper("[" * 899 + "]" * 899, 899)
    )


def test_names_that_are_too_long_to_be_names_are_refused_wherever_they_would_be_kept(connection):
    long = "x" * 300
    for method, params in (
        ("archive_episode", {"agent_id": long, "summary": "s"}),
        ("archive_episode", {"agent_id": "a", "summary": "s", "channel": long}),
        ("archive_episode", {"agent_id": "a", "summary": "s", "project_id": "a\0b"}),
        ("update_profile", {"agent_id": long, "profile": "p"}),
        ("set_recall_precision", {"agent_id": long, "precision": "strict"}),
        ("add_canary", {"agent_id": "a", "query": "q", "ref": "mem:1", "project_id": long}),
        ("merge_memories", {"source_agent_id": "a", "target_agent_id": long}),
        ("pause_persistence", {"session_key": long}),
    ):
        answer, code = connection.call(method, params)
        assert code == "refused" and "characters" in answer["error"] or "NUL" in answer["error"], (method, answer)
    stamp = " " * 5_000_000 + "2026-01-05T00:00:00Z"
    assert (
        connection.call("archive_episode", {"agent_id": "stamped", "summary": "s", "history": [{"timestamp": stamp}]})[
            1
        ]
        is None
    )
    assert connection.call("list_episodes", {"agent_id": "stamped"})[0]["episodes"][0]["start_time"] is None


# -- what is too large


def test_an_answer_above_a_frame_is_given_as_far_as_a_frame_carries(module_home):
    environ = module_home | {
        "CPERSONA_DB_PATH": str(Path(module_home["HOME"]) / "large" / "l.db"),
        "CPERSONA_MAX_CONTENT_LENGTH": "40000000",
    }
    with client.connect(load(environ), environ) as connection:
        ids = [
            connection.call(
                "store",
                {"agent_id": "a", "content": f"{n} walnut " + "é" * 6_000_000, "timestamp": f"2026-01-05T00:00:0{n}Z"},
            )[0]["id"]
            for n in range(4)
        ]
        answer, code = connection.call("list_memories", {"agent_id": "a"})
        assert code is None and [row["id"] for row in answer["memories"]] == ids[:1:-1] and answer["count"] == 2
        assert [row["ref"] for row in answer["left_out"]] == [
            f"mem:{i}" for i in ids[1::-1]
        ] and "fewer rows" in answer["left_out"][0]["reason"]
        assert connection.call("list_memories", {"agent_id": "a", "limit": 1})[0]["count"] == 1
        spoil(environ, "UPDATE memories SET content = content || content || content WHERE id = ?", ids[3])
        answer, code = connection.call("list_memories", {"agent_id": "a", "limit": 2})
        assert code is None and [row["id"] for row in answer["memories"]] == [ids[2]]
        assert answer["left_out"][0]["ref"] == f"mem:{ids[3]}" and "export" in answer["left_out"][0]["reason"]
        answer, code = connection.call("get_contents", {"agent_id": "a", "refs": [f"mem:{i}" for i in ids]})
        assert (
            code is None
            and answer["count"] == 2
            and sorted(answer["missing"]) == sorted(row["ref"] for row in answer["left_out"])
        )
        answer, code = connection.call("recall", {"agent_id": "a", "query": "walnut", "limit": 2})
        assert code is None and answer["messages"]


def test_the_best_rows_are_kept_and_what_else_the_answer_says_stays():
    rows = [{"ref": f"mem:{n}", "content": "x" * (7 << 20)} for n in range(6)]
    for name, best in (("messages", rows[2:]), ("items", rows[:4])):
        fitted = fit({name: rows, "considered": 9, "left_out": [{"ref": "mem:99", "reason": "r"}]})
        assert fitted[name] == best and fitted["considered"] == 9 and len(fitted["left_out"]) == 3
        assert len(frames.encode(Response(1, fitted))) <= fields.MAX_FRAME_BYTES + 4
    assert fit({"messages": [{"ref": "mem:1", "content": "\ud800"}, {"ref": "mem:2", "n": 2**70}, {"ref": "mem:3"}]})[
        "messages"
    ] == [{"ref": "mem:3"}]
