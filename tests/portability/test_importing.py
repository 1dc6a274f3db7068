"""What an import restores, skips and reports. Contract: import.lines."""

import base64
import os
import struct

import pytest
from embed_kit import EmbedServer
from house_kit import memory

from cpersona_daemon.storage import backlog


def b64(*values):
    return base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode()


def contents(house, agent="a"):
    return [row["content"] for row in reversed(house.ask("list_memories", agent_id=agent)["memories"])]


def load(house, *lines, **params):
    return house.ask("import_memories", input_path=house.write("in.jsonl", *lines), **params)


def test_importing_twice_changes_nothing(house):
    lines = [memory("x", msg_id="1"), memory("y"), {"_type": "episode", "agent_id": "a", "summary": "e"}]
    first = load(house, *lines)
    assert (first["imported_memories"], first["skipped_memories"], first["imported_episodes"]) == (2, 0, 1)
    again = load(house, *lines)
    assert (
        again["imported_memories"],
        again["skipped_memories"],
        again["imported_episodes"],
        again["skipped_episodes"],
    ) == (0, 2, 0, 1)
    assert contents(house) == ["x", "y"]


def test_duplicates_are_compared_on_their_exact_axes(house):
    answer = load(
        house,
        memory("x"),
        memory("x", project_id="p"),
        memory("x", channel="c"),
        {**memory("x"), "agent_id": "b"},
        memory("y", msg_id="m"),
        memory("z", msg_id="m", channel="c"),
        memory("z", msg_id="m", project_id="p"),
    )
    assert (answer["imported_memories"], answer["skipped_memories"]) == (6, 1)


def test_a_skipped_row_uses_up_no_id(house):
    load(house, memory("x"), memory("x"), memory("y"))
    assert house.sql("SELECT id FROM memories ORDER BY id") == [(1,), (2,)]


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_dry_run_counts_what_the_import_then_does(house, dry_run):
    load(
        house,
        memory("there"),
        {"_type": "profile", "agent_id": "a", "content": "old", "updated_at": "2026-01-01 00:00:00"},
    )
    lines = [
        memory("there"),
        memory("new"),
        memory("new"),
        memory("m", msg_id="1"),
        memory("other", msg_id="1"),
        {"_type": "episode", "agent_id": "a", "summary": "e"},
        {"_type": "episode", "agent_id": "a", "summary": "e"},
        {"_type": "profile", "agent_id": "a", "content": "older", "updated_at": "2025-01-01 00:00:00"},
    ]
    answer = load(house, *lines, dry_run=dry_run)
    assert (
        answer["imported_memories"],
        answer["skipped_memories"],
        answer["imported_episodes"],
        answer["skipped_episodes"],
    ) == (2, 3, 1, 1)
    assert answer["profile_updated"] is False and answer["dry_run"] is dry_run
    assert len(contents(house)) == (1 if dry_run else 3)


def test_age_lock_and_counters_are_restored(house):
    load(
        house,
        memory(
            "x",
            created_at="2026-01-05T02:00:00+02:00",
            locked=1,
            recall_count=5,
            last_recalled_at="2026-02-01 00:00:00",
            timestamp="whenever",
        ),
    )
    assert house.sql("SELECT created_at, locked, recall_count, last_recalled_at, timestamp FROM memories") == [
        ("2026-01-05 00:00:00", 1, 5, "2026-02-01 00:00:00", "whenever")
    ]


def test_an_unreadable_age_becomes_the_time_of_the_import_and_is_said(house):
    answer = load(house, memory("x", created_at="once upon a time"))
    assert answer["imported_memories"] == 1 and answer["errors"][0].startswith("Line 1: created_at")
    assert house.ask("list_memories", agent_id="a")["memories"][0]["created_at"] > "2026"


def test_content_is_cleaned_like_that_of_a_store(house):
    load(house, memory("  [Memory from yesterday] hello \n"))
    assert contents(house) == ["hello"]


def nested(levels):
    return {} if levels == 1 else {"in": nested(levels - 1)}


def test_what_an_answer_can_carry_is_imported(house):
    assert load(house, memory("x", metadata=nested(58) | {"n": 2**63 - 1}))["imported_memories"] == 1
    assert house.ask("list_memories", agent_id="a")["memories"][0]["metadata"] == nested(58) | {"n": 2**63 - 1}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{broken", "not valid JSON"),
        ("[1]", "not a JSON object"),
        ("7", "not a JSON object"),
        ('{"_type": "mystery"}', "unknown _type"),
        ("{}", "no _type"),
        (b'{"_type": "memory", "agent_id": "a", "content": "\xff"}', "not valid JSON"),
        ('{"_type": "memory", "agent_id": "a", "content": "\\ud800"}', "not valid JSON"),
        ("[" * 5000 + "]" * 5000, "nested too deeply"),
        ('{"_type": "memory", "agent_id": "a", "content": "a\\u0000b"}', "NUL"),
        (memory("x", agent_id=None), "no agent_id"),
        (memory(""), "content is empty"),
        (memory(7), "content is text"),
        (memory("x", msg_id="i" * 257), "msg_id has 257"),
        (memory("x", channel=3), "channel is text"),
        (memory("x", timestamp="t" * 65), "timestamp has 65"),
        (memory("x", source=nested(900)), "source nests deeper"),
        (memory("x", metadata=nested(59)), "metadata nests deeper"),
        (memory("x", source_text="[" * 900), "source nests deeper"),
        (memory("x", locked="yes"), "locked is"),
        ({"_type": "mention", "entity": 1, "ref": "mem:1"}, "no entity"),
        ({"_type": "mention", "entity": 1, "ref": "who"}, "names no record"),
        ({"_type": "entity", "agent_id": "a", "name": " "}, "without a name"),
        ({"_type": "entity", "agent_id": "a", "name": "n", "aliases": "no"}, "aliases"),
        ({"_type": "relation", "agent_id": "a", "subject_kind": "what"}, "subject_kind"),
        ({"_type": "profile", "agent_id": "a", "content": " "}, "content is empty"),
    ],
)
def test_a_bad_line_is_reported_with_its_number_and_the_rest_goes_on(house, line, why):
    answer = load(house, memory("before"), line, memory("after"))
    assert answer["ok"] is True and answer["error_count"] == 1
    assert answer["errors"][0].startswith("Line 2: ") and why in answer["errors"][0]
    assert contents(house) == ["before", "after"]


def test_only_a_hundred_bad_lines_are_quoted_and_all_are_counted(house):
    answer = load(house, memory("x"), *["{" for _ in range(2300)])
    assert (len(answer["errors"]), answer["error_count"], answer["imported_memories"]) == (100, 2300, 1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b64(float("nan"), 1), "not finite"),
        (b64(float("inf"), 1), "not finite"),
        (b64(0, 0), "zero"),
        ("AAA", ""),
        ("AAAA", "3 bytes"),
        ("!!!!", ""),
        (7, ""),
    ],
)
def test_a_bad_vector_imports_the_row_without_it(house, text, why):
    answer = load(house, memory("x", embedding_b64=text, embedding_model="kit"))
    assert (
        answer["imported_memories"] == 1 and "without its vector" in answer["errors"][0] and why in answer["errors"][0]
    )
    assert house.sql("SELECT count(*) FROM memory_vectors") == [(0,)]


def test_vectors_are_stored_with_unit_length_and_their_model(house):
    load(house, memory("x", embedding_b64=b64(3, 4), embedding_model="kit"), memory("y", embedding_b64=b64(3e30, 4e30)))
    rows = house.sql("SELECT model, vector FROM memory_vectors ORDER BY id")
    assert [model for model, _ in rows] == ["kit", ""]
    for _, data in rows:
        assert struct.unpack("<2f", data) == pytest.approx((0.6, 0.8))
    assert house.ctx.vectors.status()["mem"]["rows"] == 2


def test_a_header_that_disagrees_ends_the_import_before_it_begins(house):
    header = {"_type": "header", "version": "cpersona-export/1.1", "memory_count": 2}
    answer = load(house, header, memory("x"))
    assert answer["ok"] is False and "2 memory" in answer["error"] and contents(house) == []


def test_a_cut_file_is_noticed(house):
    path = house.write(
        "in.jsonl", {"_type": "header", "version": "cpersona-export/1.1", "memory_count": 2}, memory("x"), memory("y")
    )
    os.truncate(path, os.path.getsize(path) - 5)
    assert house.ask("import_memories", input_path=path)["ok"] is False and contents(house) == []


def test_a_file_of_another_version_is_refused(house):
    assert load(house, {"_type": "header", "version": "cpersona-export/2.0"}, memory("x"))["ok"] is False
    assert load(house, {"_type": "header", "version": "cpersona-export/1.7"}, memory("x"))["ok"] is True


def test_exports_joined_into_one_file_keep_their_own_ids_apart(house):
    def part(agent, name):
        return [
            {
                "_type": "header",
                "version": "cpersona-export/1.1",
                "memory_count": 1,
                "entity_count": 1,
                "mention_count": 1,
            },
            {**memory(f"of {agent}", id=1), "agent_id": agent},
            {"_type": "entity", "id": 1, "agent_id": agent, "name": name},
            {"_type": "mention", "entity": 1, "ref": "mem:1"},
        ]

    answer = load(house, *part("a", "Alpha"), *part("b", "Beta"))
    assert answer["associations"] == {"entities": 2, "mentions": 2, "relations": 0} and "errors" not in answer
    assert house.sql(
        "SELECT e.agent_id, m.record_id FROM entity_mentions m JOIN entities e ON e.id = m.entity_id ORDER BY 1"
    ) == [("a", 1), ("b", 2)]


def test_associations_of_a_skipped_row_go_to_the_row_that_is_there(house):
    load(house, memory("other"), memory("x"))
    answer = load(
        house,
        memory("x", id=99),
        {"_type": "entity", "id": 5, "agent_id": "a", "name": "Alpha", "aliases": ["A", "Alpha"]},
        {"_type": "mention", "entity": 5, "ref": "mem:99"},
        {
            "_type": "relation",
            "agent_id": "a",
            "subject_kind": "entity",
            "subject_id": 5,
            "predicate": " Is  In ",
            "object_kind": "mem",
            "object_id": 99,
            "anchor_ref": "mem:50",
        },
    )
    assert answer["skipped_memories"] == 1 and answer["associations"] == {"entities": 1, "mentions": 1, "relations": 1}
    assert house.sql("SELECT kind, record_id FROM entity_mentions") == [("mem", 2)]
    assert house.sql("SELECT predicate, object_id, anchor_ref FROM relations") == [("is in", 2, None)]
    assert "anchor" in answer["errors"][0]


def test_an_association_never_reaches_another_agents_row(house):
    answer = load(
        house,
        {**memory("x", id=1), "agent_id": "b"},
        {"_type": "entity", "id": 1, "agent_id": "a", "name": "Alpha"},
        {"_type": "mention", "entity": 1, "ref": "mem:1"},
    )
    assert "another agent" in answer["errors"][0] and house.sql("SELECT count(*) FROM entity_mentions") == [(0,)]


def test_an_alias_that_names_another_entity_is_left_out(house):
    answer = load(
        house,
        {"_type": "entity", "id": 1, "agent_id": "a", "name": "Alpha", "aliases": ["X"]},
        {"_type": "entity", "id": 2, "agent_id": "a", "name": "Beta", "aliases": ["x"]},
    )
    assert answer["associations"]["entities"] == 2 and "'x'" in answer["errors"][0]


def test_an_older_profile_never_replaces_a_newer_one(house):
    def profile(content, **more):
        return load(house, {"_type": "profile", "agent_id": "a", "content": content, **more})["profile_updated"]

    assert profile("first", updated_at="2026-01-02 00:00:00") is True
    assert profile("older", updated_at="2026-01-01 00:00:00") is False
    assert profile("of unknown age") is False
    assert house.ask("get_profile", agent_id="a") == {"profile": "first"}
    assert profile("same age", updated_at="2026-01-02T00:00:00Z") is True
    assert house.ask("get_profile", agent_id="a") == {"profile": "same age"}


def test_everything_goes_to_the_target_agent(house):
    answer = load(
        house,
        memory("x"),
        memory("y", agent_id=None),
        {"_type": "profile", "agent_id": "b", "content": "p"},
        target_agent_id="t",
    )
    assert (
        answer["imported_memories"] == 2
        and contents(house, "t") == ["x", "y"]
        and house.ask("get_profile", agent_id="t") == {"profile": "p"}
    )


def test_a_source_that_is_no_object_survives_a_round_trip(house):
    load(house, memory("x", source="user:1"), memory("y", source={}, source_text="{not json"), memory("z", source=None))
    assert [row[0] for row in house.sql("SELECT source FROM memories ORDER BY id")] == ["user:1", "{not json", "{}"]
    lines = house.export("out.jsonl")[1:]
    assert [line["source"] for line in lines] == [{}, {}, {}] and [line.get("source_text") for line in lines] == [
        "user:1",
        "{not json",
        None,
    ]
    assert [row["source"] for row in house.ask("list_memories", agent_id="a")["memories"]] == [{}, {}, {}]


def test_large_numbers_in_metadata_keep_every_digit(house):
    load(
        house,
        (
            '{"_type": "memory", "agent_id": "a", "content": "x", "metadata": {"n": 123456789012345678901234567890, '
            '"f": 0.1}}'
        ),
    )
    assert house.export("out.jsonl")[1]["metadata"] == {"n": 123456789012345678901234567890, "f": 0.1}


def test_a_byte_order_mark_blank_lines_and_crlf_do_no_harm(house):
    answer = load(
        house, b'\xef\xbb\xbf{"_type": "memory", "agent_id": "a", "content": "x"}\r', "", "  ", memory("y"), "{"
    )
    assert contents(house) == ["x", "y"] and answer["errors"][0].startswith("Line 5: ")


def test_a_line_longer_than_any_is_passed_over(house, monkeypatch):
    monkeypatch.setattr("cpersona_daemon.portability.imports.survey.MAX_LINE_BYTES", 1000)
    answer = load(house, memory("y"), memory("x" * 5000))
    assert answer["errors"][0].startswith("Line 2: longer") and contents(house) == ["y"]


def test_files_that_cannot_be_read_twice_are_refused(house):
    os.mkfifo(house.root / "pipe")
    for path in (house.root / "pipe", house.root, house.root / "absent", "in.jsonl", "/tmp/../x", ""):
        answer = house.ask("import_memories", input_path=str(path))
        assert answer["ok"] is False and house.code == "refused"


def test_a_file_over_the_limit_is_refused(make_house):
    house = make_house(CPERSONA_MAX_IMPORT_BYTES="100")
    assert "CPERSONA_MAX_IMPORT_BYTES" in load(house, memory("x" * 200))["error"]
    assert load(house, memory("x"))["ok"]


def test_rows_without_a_vector_are_listed_for_embedding_only_when_asked(make_house):
    house = make_house(CPERSONA_EMBEDDING_MODE="http", CPERSONA_EMBEDDING_URL="http://127.0.0.1:9/embed")
    load(house, memory("x"))
    assert house.sql("SELECT count(*) FROM embedding_backlog") == [(0,)]
    answer = load(house, memory("y"), memory("z", embedding_b64=b64(1, 0)), embed=True)
    assert house.sql("SELECT kind, id FROM embedding_backlog") == [("mem", 2)]
    # Nobody can say whether the other's vector fits an embedder that does not answer.
    assert (answer["listed_for_embedding"], answer["vectors_of_unknown_fit"]) == (1, 1)


@pytest.fixture
def model():
    """A service that answers vectors of two numbers as the model `kit`."""

    class Model(EmbedServer):
        def reply(self, texts):
            return {"embeddings": [[0.6, 0.8]] * len(texts), "model": "kit"}

    served = Model()
    yield served
    served.stop()


STRANGERS = [
    memory("of the model", embedding_b64=b64(1, 0), embedding_model="kit"),
    memory("of an unknown one", embedding_b64=b64(0, 1)),
    memory("of another", embedding_b64=b64(1, 0), embedding_model="other"),
    memory("of another width", embedding_b64=b64(1, 0, 0), embedding_model="kit"),
    memory("without one"),
    {"_type": "episode", "agent_id": "a", "summary": "an episode without one"},
]


def test_rows_with_a_vector_of_another_model_are_listed_and_said_at_the_end(make_house, model):
    house = make_house(CPERSONA_EMBEDDING_MODE="http", CPERSONA_EMBEDDING_URL=model.url)
    house.run(house.ctx.backlog.stop())
    assert (
        load(house, *STRANGERS, dry_run=True, embed=True).get("without_usable_vector") == 2
    )  # the service has not said yet which model it is
    answer = load(house, *STRANGERS, embed=True)
    assert answer["listed_for_embedding"] == 4
    assert house.sql("SELECT kind, id FROM embedding_backlog ORDER BY kind, id") == [
        ("ep", 1),
        ("mem", 3),
        ("mem", 4),
        ("mem", 5),
    ]
    assert load(house, *STRANGERS, dry_run=True, target_agent_id="b")["without_usable_vector"] == 4
    assert "listed_for_embedding" not in load(house, *STRANGERS, embed=True)


def test_an_import_that_does_not_embed_says_how_many_rows_lack_a_vector(make_house, model):
    house = make_house(CPERSONA_EMBEDDING_MODE="http", CPERSONA_EMBEDDING_URL=model.url)
    house.ask("recall", agent_id="a", query="which model is it")
    answer = load(house, *STRANGERS)
    assert answer["without_usable_vector"] == 4 and house.sql("SELECT count(*) FROM embedding_backlog") == [(0,)]


def test_a_strangers_vectors_do_not_hold_the_embedder_to_their_width(make_house, model):
    house = make_house(CPERSONA_EMBEDDING_MODE="http", CPERSONA_EMBEDDING_URL=model.url)
    model.reply = lambda texts: {"embeddings": [[0.6, 0.8]] * len(texts)}
    assert house.ask("store", agent_id="a", content="first")["embedded"]
    load(house, memory("of a stranger", embedding_b64=b64(1, 0, 0), embedding_model="other"))
    assert house.run(known(house)) == ("", 2)


async def known(house):
    return await house.ctx.db.read(backlog.known_width)


def test_nothing_is_listed_for_embedding_without_an_embedder(house):
    load(house, memory("x"), embed=True)
    assert house.sql("SELECT count(*) FROM embedding_backlog") == [(0,)]


def test_a_paused_import_answers_its_skeleton(house):
    house.ask("pause_persistence")
    answer = load(house, memory("x"))
    assert answer["ok"] is True and answer["persisted"] is False and answer["imported_memories"] == 0


def test_progress_ends_at_the_number_of_lines(house):
    load(house, *[memory(f"row {i}") for i in range(2500)], "")
    assert [step["done"] for step in house.progress] == sorted(step["done"] for step in house.progress)
    assert house.progress[-1] == {"done": 2501, "total": 2501}


def test_broken_json_of_metadata_is_kept_letter_by_letter_both_ways(house):
    broken = ['{"a": 1', "plain words", '{"n": NaN}', '{"big": 1e999}']
    lines = [memory(f"row {i}", metadata={}, metadata_text=text) for i, text in enumerate(broken)]
    load(house, *lines, memory("a list", metadata=[1, "two"]), memory("none", metadata={}, metadata_text=""))
    assert [text for (text,) in house.sql("SELECT metadata FROM memories ORDER BY id")] == [*broken, '[1,"two"]', "{}"]
    out = house.export("out.jsonl")[1:]
    assert [(line["metadata"], line.get("metadata_text")) for line in out] == [
        *(({}, text) for text in broken),
        ([1, "two"], None),
        ({}, None),
    ]
    rows = house.ask("list_memories", agent_id="a")["memories"]
    assert house.code is None and [row["metadata"] for row in reversed(rows)][: len(broken)] == broken


STAMP = "2026-01-05T02:00:00.123456+02:00"


def test_instants_of_associations_keep_their_microseconds_and_their_offset(house):
    lines = [
        memory("x", id=1),
        {"_type": "entity", "id": 1, "agent_id": "a", "name": "Alpha", "created_at": STAMP},
        {"_type": "mention", "entity": 1, "ref": "mem:1", "created_at": STAMP},
        {
            "_type": "relation",
            "agent_id": "a",
            "subject_kind": "entity",
            "subject_id": 1,
            "predicate": "is in",
            "object_kind": "mem",
            "object_id": 1,
            "declared_at": STAMP,
        },
    ]
    load(house, *lines)
    _, _, entity, mention, relation = house.export("out.jsonl")
    assert (entity["created_at"], mention["created_at"], relation["declared_at"]) == (STAMP, STAMP, STAMP)
    # What lists sort by stays an instant in the one form.
    assert house.sql("SELECT declared_at FROM relations") == [("2026-01-05 00:00:00",)]
    house.ask("merge_memories", source_agent_id="a", target_agent_id="b")
    assert [line["created_at"] for line in house.export("b.jsonl", agent_id="b") if line["_type"] == "entity"] == [
        STAMP
    ]


def test_a_stamp_that_names_no_instant_becomes_the_time_of_the_import(house):
    for stamp in ("once", 7, None, "2026-01-05T00:00:00+00:00" + " " * 60):
        load(house, {"_type": "entity", "agent_id": "a", "name": f"of {stamp}", "created_at": stamp})
    assert all(line["created_at"] > "2026-02" for line in house.export("out.jsonl")[1:])


def profile_of(user, content, agent="a", **more):
    return {"_type": "profile", "agent_id": agent, "user_id": user, "content": content, **more}


def test_profiles_of_other_users_stay_beside_the_agents_own_and_come_out_again(house):
    stamp = {"updated_at": "2026-01-05 00:00:00"}
    lines = [profile_of("", "own", **stamp), profile_of("u1", "of u1", **stamp), profile_of("u2", "of u2", **stamp)]
    for dry_run in (True, False):
        answer = load(house, *lines, dry_run=dry_run)
        assert answer["profile_updated"] is True and answer["other_profiles"] == 2 and "errors" not in answer
    assert house.ask("get_profile", agent_id="a") == {"profile": "own"}
    assert [(line["user_id"], line["content"]) for line in house.export("out.jsonl")[1:]] == [
        ("", "own"),
        ("u1", "of u1"),
        ("u2", "of u2"),
    ]
    house.ask("update_profile", agent_id="a", profile="changed")
    assert house.ask("get_profile", agent_id="a") == {"profile": "changed"}
    done = house.ask("merge_memories", source_agent_id="a", target_agent_id="b", mode="move")
    assert done["source_deleted"]["deleted_profiles"] == 3
    assert [line["user_id"] for line in house.export("b.jsonl", agent_id="b")[1:]] == ["", "u1", "u2"]
    assert house.ask("delete_agent_data", agent_id="b")["deleted_profiles"] == 3


def test_without_an_own_profile_the_first_of_another_user_stands_in(house):
    load(house, profile_of("u2", "of u2"), profile_of("u1", "of u1"))
    assert house.ask("get_profile", agent_id="a") == {"profile": "of u1"}
    house.ask("update_profile", agent_id="a", profile="own")
    assert house.ask("get_profile", agent_id="a") == {"profile": "own"}


def test_a_move_leaves_the_profile_that_the_target_has_already(house):
    load(house, profile_of("", "of a"), profile_of("u1", "of u1"), profile_of("", "of b", "b"))
    dry = house.ask("merge_memories", source_agent_id="a", target_agent_id="b", mode="move", dry_run=True)
    done = house.ask("merge_memories", source_agent_id="a", target_agent_id="b", mode="move")
    assert dry["profile_copied"] and dry["skipped_profile"] and done["left_at_source"]["profiles"] == 1
    assert house.sql("SELECT agent_id, user_id FROM profiles ORDER BY 1, 2") == [("a", ""), ("b", ""), ("b", "u1")]


def test_folders_of_the_reference_are_counted_and_no_fault(house):
    header = {"_type": "header", "version": "cpersona-export/1.2", "memory_count": 1, "folder_count": 2}
    folders = [{"_type": "folder", "id": i, "agent_id": "a", "name": "f"} for i in (1, 2)]
    member = {"_type": "folder_member", "ref": "mem:1", "folder_id": 1}
    for dry_run in (True, False):
        answer = load(house, header, memory("x", id=1), *folders, member, dry_run=dry_run)
        assert answer["unkept"] == {"folders": 2, "folder_members": 1} and "errors" not in answer
    assert contents(house) == ["x"]


def test_vectors_of_another_model_are_left_as_they_are_when_asked(make_house, model):
    house = make_house(CPERSONA_EMBEDDING_MODE="http", CPERSONA_EMBEDDING_URL=model.url)
    house.run(house.ctx.backlog.stop())
    answer = load(house, *STRANGERS, embed=True, keep_vectors=True)
    assert (answer["listed_for_embedding"], answer["foreign_vectors"], answer["without_usable_vector"]) == (2, 2, 2)
    assert house.sql("SELECT kind, id FROM embedding_backlog ORDER BY kind, id") == [("ep", 1), ("mem", 5)]
    assert load(house, *STRANGERS, embed=True, target_agent_id="b")["foreign_vectors"] == 2


def test_numbers_that_python_alone_writes_are_no_fault_of_a_line(house):
    line = '{"_type": "memory", "agent_id": "a", "content": "x", "metadata": {"n": NaN}, "source": {"id": "u"}, %s}'
    header = '{"_type": "header", "version": "cpersona-export/1.1", "memory_count": 1}'
    answer = load(house, header, line % '"recall_count": Infinity')
    assert answer["imported_memories"] == 1 and answer["errors"] == [
        "Line 2: recall_count 'inf' is no count; it starts at 0"
    ]
    assert house.sql("SELECT metadata, source, source_id FROM memories") == [('{"n": NaN}', '{"id": "u"}', "u")]
    assert house.export("out.jsonl")[1]["metadata_text"] == '{"n": NaN}'
    bad = load(house, header, '{"_type": "memory", "content": NaN')
    assert bad["imported_memories"] == 0 and "not valid JSON" in bad["errors"][0]
