"""What an export writes, and what it leaves alone. Contract: export.file."""

import base64
import errno
import os
import stat

import numpy as np
import pytest
from house_kit import memory

ROW = memory(
    "hello",
    id=7,
    msg_id="m1",
    source={"type": "User", "id": "u"},
    timestamp="2026-01-05T00:01:00Z",
    metadata={"k": [1, "ü"]},
    created_at="2026-01-05 00:01:00",
    project_id="p",
    channel="c",
    locked=1,
    recall_count=3,
    last_recalled_at="2026-01-06 00:00:00",
)


def vector(*values):
    return base64.b64encode(np.asarray(values, "<f4").tobytes()).decode()


def test_a_file_that_goes_in_comes_out_the_same(house):
    lines = [
        {**ROW, "embedding_b64": vector(0.6, 0.8), "embedding_model": "kit"},
        {
            "_type": "episode",
            "id": 3,
            "agent_id": "a",
            "summary": "s",
            "keywords": "k l",
            "start_time": "2026-01-05T00:00:00Z",
            "end_time": None,
            "created_at": "2026-01-05 00:04:00",
            "resolved": True,
            "project_id": "p",
            "channel": "",
        },
        {
            "_type": "profile",
            "agent_id": "a",
            "user_id": "",
            "content": "who",
            "updated_at": "2026-01-05 00:00:00",
            "project_id": "",
        },
        {
            "_type": "entity",
            "id": 4,
            "agent_id": "a",
            "project_id": "",
            "channel": "",
            "name": "Alpha",
            "declared_by": "x",
            "created_at": "2026-01-05 00:00:00",
            "aliases": ["A1"],
        },
        {"_type": "mention", "entity": 4, "ref": "mem:7", "declared_by": "x", "created_at": "2026-01-05 00:00:00"},
        {
            "_type": "relation",
            "id": 5,
            "agent_id": "a",
            "project_id": "",
            "channel": "",
            "subject_kind": "ep",
            "subject_id": 3,
            "predicate": "supports",
            "object_kind": "mem",
            "object_id": 7,
            "anchor_ref": "mem:7",
            "declared_by": "x",
            "declared_at": "2026-01-05 00:05:00",
        },
    ]
    assert (answer := house.ask("import_memories", input_path=house.write("in.jsonl", *lines)))["ok"], answer
    header, *out = house.export("out.jsonl", agent_id="a", include_embeddings=True)
    assert [
        header[k]
        for k in ("memory_count", "episode_count", "profile_count", "entity_count", "mention_count", "relation_count")
    ] == [1] * 6
    renumbered = [
        {**lines[0], "id": 1},
        {**lines[1], "id": 1},
        lines[2],
        {**lines[3], "id": 1},
        {**lines[4], "entity": 1, "ref": "mem:1"},
        {**lines[5], "id": 1, "subject_id": 1, "object_id": 1, "anchor_ref": "mem:1"},
    ]
    assert out == renumbered


def test_vectors_travel_only_when_asked_for(house):
    house.ask(
        "import_memories",
        input_path=house.write("in.jsonl", {**ROW, "embedding_b64": vector(1, 0), "embedding_model": "kit"}),
    )
    assert "embedding_b64" not in house.export("plain.jsonl")[1]
    assert house.export("full.jsonl", include_embeddings=True)[1]["embedding_b64"] == vector(1, 0)


def test_the_file_is_private_and_nothing_else_is_left_in_the_directory(house):
    house.export("out.jsonl")
    assert stat.S_IMODE(os.stat(house.root / "out.jsonl").st_mode) == 0o600
    assert [p.name for p in house.root.iterdir() if p.is_file()] == ["out.jsonl"]


def test_the_empty_agent_means_everybody(house):
    house.ask("import_memories", input_path=house.write("in.jsonl", memory("x"), {**memory("y"), "agent_id": "b"}))
    assert [line["agent_id"] for line in house.export("out.jsonl")[1:]] == ["a", "b"]
    assert [line["agent_id"] for line in house.export("out.jsonl", agent_id="b")[1:]] == ["b"]


@pytest.mark.parametrize(
    "path", ["", "out.jsonl", "/tmp/../tmp/out.jsonl", "/no/such/directory/out.jsonl", "/dev/null", "/tmp/a\0b"]
)
def test_a_path_that_cannot_be_meant_is_refused(house, path):
    answer = house.ask("export_memories", output_path=path)
    assert answer["ok"] is False and answer["error"] and house.code == "refused"


def test_the_database_is_never_written_over(house):
    for name in (house.places.db, house.places.db + "-wal", house.places.calibration):
        assert house.ask("export_memories", output_path=name)["ok"] is False
    link = house.root / "link"
    link.symlink_to(house.places.db)
    assert house.ask("export_memories", output_path=str(link))["ok"] is False


def test_an_export_directory_confines_both_ways_and_links_do_not_lead_out(make_house, tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    house = make_house(CPERSONA_EXPORT_DIR=str(inside))
    outside = house.write("in.jsonl", memory("x"))
    (inside / "way-out").symlink_to(house.root)
    (inside / "in-link").symlink_to(outside)
    assert house.ask("export_memories", output_path=str(inside / "o.jsonl"))["ok"]
    assert house.ask("export_memories", output_path=str(house.root / "o.jsonl"))["ok"] is False
    assert house.ask("export_memories", output_path=str(inside / "way-out" / "o.jsonl"))["ok"] is False
    assert house.ask("import_memories", input_path=outside)["ok"] is False
    assert house.ask("import_memories", input_path=str(inside / "in-link"))["ok"] is False
    assert house.ask("import_memories", input_path=str(inside / "o.jsonl"))["ok"]


def test_an_export_that_fails_leaves_the_old_file_whole_and_no_other(house, monkeypatch):
    house.export("out.jsonl")
    before = (house.root / "out.jsonl").read_bytes()

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    answer = house.ask("export_memories", output_path=str(house.root / "out.jsonl"))
    assert answer["ok"] is False and "No space left" in answer["error"] and house.code == "full"
    assert (house.root / "out.jsonl").read_bytes() == before
    assert [p.name for p in house.root.iterdir() if p.is_file()] == ["out.jsonl"]


def test_progress_counts_the_lines(house):
    house.ask("import_memories", input_path=house.write("in.jsonl", *[memory(f"row {i}") for i in range(2500)]))
    house.progress.clear()
    house.export("out.jsonl")
    assert house.progress[0] == {"done": 1000, "total": 2501} and house.progress[-1] == {"done": 2501, "total": 2501}


def test_an_export_sees_one_moment(house):
    house.ask("import_memories", input_path=house.write("in.jsonl", *[memory(f"row {i}") for i in range(1500)]))
    from cpersona_daemon.portability.export import export

    def store_meanwhile(step):
        if step["done"] == 1000:
            house.ctx.db.write_now(lambda tx: tx.execute("DELETE FROM profiles") and None)
            house.ask("store", agent_id="a", content="too late")

    target = str(house.root / "out.jsonl")
    answer = house.ctx.db.read_now(export, "", target, 0.0, False, store_meanwhile)
    assert answer["memories"] == 1500 and len(house.read("out.jsonl")) == 1501
