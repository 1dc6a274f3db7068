"""Rows that no answer can carry: a merge leaves them where they are and names them, and no import brings one in.

Contract: merge.copies, import.lines.
"""

import json

import pytest
from house_kit import memory

from cpersona_daemon.portability.imports import columns
from cpersona_daemon.portability.imports.records import BadRecord
from cpersona_daemon.shared import fields

POISON = {
    "nested": ("UPDATE memories SET source = ? WHERE content = 'poison'", '{"a":' * 900 + "1" + "}" * 900),
    "bytes": ("UPDATE memories SET content = CAST(? AS TEXT) WHERE content = 'poison'", b"flipped \xff byte"),
}


@pytest.fixture(params=POISON)
def poisoned(house, request):
    house.ask(
        "import_memories",
        input_path=house.write(
            "in.jsonl",
            *[memory(text, agent_id="src") for text in ("before", "poison", "after")],
            {"_type": "episode", "agent_id": "src", "summary": "e"},
        ),
    )
    house.change(*POISON[request.param])
    return house


@pytest.mark.parametrize("mode", ["copy", "move"])
def test_a_merge_leaves_a_row_that_cannot_be_sent_at_its_agent_and_names_it(poisoned, mode):
    dry = poisoned.ask("merge_memories", source_agent_id="src", target_agent_id="dst", mode=mode, dry_run=True)
    done = poisoned.ask("merge_memories", source_agent_id="src", target_agent_id="dst", mode=mode)
    assert (
        poisoned.code is None
        and done["merged_memories"] == 2
        and [row["ref"] for row in done["left_out"]] == ["mem:2"]
        and done["left_out"][0]["reason"]
    )
    done.pop("source_deleted", None)
    assert {**dry, "dry_run": False} == done
    assert [row["content"] for row in poisoned.ask("list_memories", agent_id="dst")["memories"]] == ["after", "before"]
    if mode == "move":
        assert (
            poisoned.sql("SELECT id FROM memories WHERE agent_id = 'src'") == [(2,)]
            and done["left_at_source"]["memories"] == 1
        )


def test_an_episode_that_cannot_be_read_is_left_too(house):
    for summary in ("good", "poison"):
        house.ask("archive_episode", agent_id="src", summary=summary)
    house.change("UPDATE episodes SET summary = CAST(? AS TEXT) WHERE summary = 'poison'", b"\xff")
    done = house.ask("merge_memories", source_agent_id="src", target_agent_id="dst", mode="move")
    assert (
        done["merged_episodes"] == 1
        and [row["ref"] for row in done["left_out"]] == ["ep:2"]
        and done["left_at_source"]["episodes"] == 1
    )


SOURCES = [
    {"source_text": '{"id": "\\ud800"}'},
    {"source": '{"id": "\\udc00 alone"}'},
    {"source": '{"a":' * 900 + "1" + "}" * 900},
    {"source": {}, "source_text": "[" * 900 + "]" * 900},
    {"source": json.loads("[" * 60 + "]" * 60)},
    {"metadata": json.loads("[" * 60 + "]" * 60)},
    {"source": "x\0y"},
]


@pytest.mark.parametrize("more", SOURCES)
def test_no_import_brings_in_what_no_answer_carries(house, more):
    answer = house.ask(
        "import_memories",
        input_path=house.write("in.jsonl", memory("before"), memory("poison", **more), memory("after")),
    )
    assert (answer["imported_memories"], answer["rejected"]) == (2, 1) and answer["errors"][0].startswith("Line 2: "), (
        answer
    )
    assert [row["content"] for row in house.ask("list_memories", agent_id="a")["memories"]] == ["after", "before"]


@pytest.mark.parametrize(
    "text",
    [
        "user:1",
        '{"id": 123456789012345678901234567890}',
        '{"n": NaN}',
        "[1, 2",
        '"\\u00e9"',
        '{"id": "\\ud83d\\ude00"}',
    ],
)
def test_a_source_of_any_text_that_an_answer_carries_comes_in(house, text):
    answer = house.ask("import_memories", input_path=house.write("in.jsonl", memory("x", source=text)))
    assert answer["imported_memories"] == 1 and house.sql("SELECT source FROM memories") == [(text,)]
    assert len(house.ask("list_memories", agent_id="a")["memories"]) == 1 and house.code is None


def test_a_row_of_more_bytes_than_an_answer_has_is_refused_and_below_no_length_is():
    half = "x" * (fields.MAX_FRAME_BYTES // 2)
    columns.carried("content", half, "{}")
    with pytest.raises(BadRecord, match="more than an answer carries"):
        columns.carried("content", half, half)


def test_metadata_and_sources_longer_than_a_store_takes_come_in_and_go_out(house):
    long = memory("x", metadata={"k": "v" * 20_000}, source={"id": "s" * 20_000})
    assert house.ask("import_memories", input_path=house.write("in.jsonl", long))["imported_memories"] == 1
    (line,) = house.export("out.jsonl")[1:]
    assert line["metadata"] == long["metadata"] and line["source"] == long["source"]
    (row,) = house.ask("list_memories", agent_id="a")["memories"]
    assert row["metadata"] == long["metadata"]
