"""A text that is cut is said to be, by how much, and stays another memory than one that only begins alike.

Contract: store.cleaned.
"""

from __future__ import annotations

import json

import pytest
from house_kit import memory

from cpersona_daemon.model.cuts import content_key
from cpersona_daemon.shared.settings import load

CAP = 16_000
HEAD = "the log of a long night " * 700  # longer than what is kept
ONE, OTHER = HEAD + "ends well", HEAD + "ends badly"
KEPT = {"kept": CAP, "of": len(ONE)}


def stored(house, content, **more):
    return house.ask("store", agent_id="a", content=content, **more)


def rows(house):
    return house.sql("SELECT id, length(content), whole_length FROM memories ORDER BY id")


def test_an_answer_says_how_much_of_how_much_was_kept(house):
    assert stored(house, ONE) == {
        "ok": True,
        "result": "stored",
        "id": 1,
        "embedded": False,
        "truncated": True,
        "cut": KEPT,
    }
    assert "cut" not in stored(house, "x" * CAP)
    assert rows(house) == [(1, CAP, len(ONE)), (2, CAP, None)]


def test_two_texts_that_begin_alike_are_two_memories_and_the_same_text_twice_is_one(house):
    assert [stored(house, text)["result"] for text in (ONE, OTHER, ONE, OTHER)] == [
        "stored",
        "stored",
        "skipped",
        "skipped",
    ]
    # A text that ends where the cut fell is another one than either.
    assert stored(house, HEAD[:CAP])["result"] == "stored"
    assert stored(house, f"  [Memory from yesterday] {ONE}\n")["id"] == 1
    assert len(rows(house)) == 3


def test_a_skip_says_that_the_text_which_stands_there_is_cut(house):
    stored(house, ONE, id="k")
    assert stored(house, ONE)["cut"] == KEPT
    again = stored(house, OTHER, id="k")
    assert (again["reason"], again["content_differs"], again["cut"]) == ("duplicate msg_id", True, KEPT)


def test_the_end_that_was_cut_counts_when_a_key_meets_another_text(house):
    stored(house, ONE, id="k")
    assert stored(house, OTHER, id="k", on_conflict="update") == {
        "ok": True,
        "result": "updated",
        "id": 1,
        "embedded": False,
        "truncated": True,
        "cut": {"kept": CAP, "of": len(OTHER)},
    }
    assert stored(house, OTHER)["result"] == "skipped" and stored(house, ONE)["result"] == "stored"


def test_a_text_that_fits_by_now_takes_the_place_of_its_beginning_when_asked_to(make_house):
    small = make_house("small", CPERSONA_MAX_CONTENT_LENGTH="100")
    stored(small, "x" * 300, id="k")
    small.ctx.settings = load(small.environ | {"CPERSONA_MAX_CONTENT_LENGTH": "1000"})
    assert stored(small, "x" * 300)["result"] == "skipped"
    assert stored(small, "x" * 300, on_conflict="update")["result"] == "updated"
    assert rows(small) == [(1, 300, None)]


def test_an_update_is_refused_for_the_text_of_another_row_and_not_for_its_beginning(house):
    stored(house, ONE)
    stored(house, "short")
    assert house.ask("update_memory", agent_id="a", memory_id=2, content=OTHER) == {
        "ok": True,
        "updated_id": 2,
        "truncated": True,
        "cut": {"kept": CAP, "of": len(OTHER)},
    }
    assert house.ask("update_memory", agent_id="a", memory_id=2, content=ONE)["ok"] is False
    house.ask("update_memory", agent_id="a", memory_id=2, content="short again")
    assert rows(house)[1] == (2, 11, None) and stored(house, OTHER)["result"] == "stored"


@pytest.mark.parametrize(
    ("method", "params", "cut"),
    [
        ("store", {"content": ONE}, "16,809"),
        ("update_memory", {"memory_id": 1, "content": ONE}, "16,809"),
        ("archive_episode", {"summary": ONE}, "16,809"),
        ("archive_episode", {"summary": "s", "keywords": "k" * 16_001}, "16,001"),
        ("update_profile", {"profile": "p" * 2_001}, "2,001"),
    ],
)
def test_who_wants_no_cut_text_is_refused_and_nothing_changes(house, method, params, cut):
    stored(house, "short")
    before = house.export("before", agent_id="")[1:]
    answer = house.ask(method, agent_id="a", fail_if_cut=True, **params)
    assert answer["ok"] is False and house.code == "refused" and cut in answer.get("reason", answer.get("error"))
    assert house.export("after", agent_id="")[1:] == before
    fits = {name: value[:50] if isinstance(value, str) else value for name, value in params.items()}
    assert house.ask(method, agent_id="a", fail_if_cut=True, **fits)["ok"] is True


def test_episodes_and_profiles_say_it_too(house):
    assert house.ask("archive_episode", agent_id="a", summary=ONE, keywords="k" * 16_001) == {
        "ok": True,
        "episode_id": 1,
        "truncated": True,
        "cut": KEPT,
        "keywords_cut": {"kept": CAP, "of": 16_001},
    }
    assert house.ask("update_profile", agent_id="a", profile="p" * 2_500) == {
        "ok": True,
        "profiles_updated": 1,
        "truncated": True,
        "cut": {"kept": 2_000, "of": 2_500},
    }


def test_rows_that_were_cut_carry_it_wherever_they_are_read_whole(house):
    stored(house, ONE)
    stored(house, "short")
    cut = {**KEPT, "digest": content_key(ONE).hex()}
    listed = house.ask("list_memories", agent_id="a")["memories"]
    assert [row.get("cut") for row in listed] == [None, cut]
    items = house.ask("get_contents", agent_id="a", refs=["mem:1", "mem:2"])["items"]
    assert [item.get("cut") for item in items] == [cut, None]


def test_what_was_read_can_be_stored_back_as_the_same_memory(house):
    stored(house, ONE)
    stored(house, OTHER)
    for row in house.ask("list_memories", agent_id="a")["memories"]:
        again = stored(house, row["content"], cut=row["cut"])
        assert (again["result"], again["id"]) == ("skipped", row["id"])
        assert house.ask("store", agent_id="b", content=row["content"], cut=row["cut"])["cut"] == {
            name: row["cut"][name] for name in ("kept", "of")
        }
    assert house.ask("store", agent_id="b", content=ONE)["result"] == "skipped"


@pytest.mark.parametrize(
    "cut",
    [
        {"of": 5},
        {"digest": "00" * 16},
        {"of": 3, "digest": "00" * 16},
        {"of": 2**63, "digest": "00" * 16},
        {"of": 50, "digest": "0" * 31},
        {"of": True, "digest": "00" * 16},
        {"of": 50, "digest": "zz" * 16},
    ],
)
def test_what_says_of_a_text_that_it_was_cut_must_be_able_to_be_so(house, cut):
    answer = stored(house, "a text", cut=cut)
    assert answer["result"] == "rejected" and "cut" in answer["reason"]


def test_export_and_import_carry_what_was_cut(make_house):
    one, other = make_house("one"), make_house("other")
    for text in (ONE, OTHER, "short"):
        stored(one, text)
    one.ask("archive_episode", agent_id="a", summary=ONE)
    one.ask("archive_episode", agent_id="a", summary=OTHER)
    lines = one.export("out.jsonl", agent_id="")
    assert [line.get("cut", {}).get("of") for line in lines] == [None, len(ONE), len(OTHER), None, len(ONE), len(OTHER)]
    path = str(one.root / "out.jsonl")
    for agent, imported in (("", 3), ("b", 3), ("", 0)):
        dry = other.ask("import_memories", input_path=path, target_agent_id=agent, dry_run=True)
        done = other.ask("import_memories", input_path=path, target_agent_id=agent)
        assert dry == {**done, "dry_run": True}
        assert (done["imported_memories"], done["imported_episodes"], done.get("cut")) == (
            imported,
            imported and 2,
            None,
        )
    assert one.ask("import_memories", input_path=path)["skipped_memories"] == 3
    assert [stored(other, text)["result"] for text in (ONE, OTHER, HEAD[:CAP])] == ["skipped", "skipped", "stored"]
    assert [{**line, "id": 0} for line in other.export("again.jsonl", agent_id="a")[1:]] == [
        {**line, "id": 0} for line in lines[1:4]
    ] + [{**line, "id": 0} for line in other.export("again.jsonl", agent_id="a")[4:]]


def test_an_import_counts_what_it_cuts_and_says_how_much(house):
    path = house.write(
        "in",
        memory(ONE),
        memory(OTHER),
        memory("short"),
        {"_type": "episode", "agent_id": "a", "summary": ONE},
        {"_type": "profile", "agent_id": "a", "content": "p" * 2_500},
    )
    done = house.ask("import_memories", input_path=path)
    assert (done["imported_memories"], done["imported_episodes"], done["cut"]) == (2 + 1, 1, 4)
    assert (
        done["errors"][0] == f"Line 1: content was cut: 16,000 of {len(ONE):,} characters are kept"
        and done["error_count"] == 4
    )
    assert house.ask("import_memories", input_path=path)["skipped_memories"] == 3
    assert stored(house, OTHER)["result"] == "skipped"


def test_an_import_that_wants_no_cut_text_leaves_those_lines_out(house):
    path = house.write(
        "in",
        memory(ONE),
        memory("short"),
        {"_type": "episode", "agent_id": "a", "summary": ONE},
        {"_type": "profile", "agent_id": "a", "content": "p" * 2_500},
    )
    done = house.ask("import_memories", input_path=path, fail_if_cut=True)
    assert (done["imported_memories"], done["imported_episodes"], done["profile_updated"], done["error_count"]) == (
        1,
        0,
        False,
        3,
    )
    assert "cut" not in done and f"{len(ONE):,}" in done["errors"][0]


@pytest.mark.parametrize("cut", [7, {"of": 5}, {"of": 10**30, "digest": "00" * 16}, {"of": 50, "digest": "zz"}])
def test_a_damaged_mark_of_a_cut_is_remarked_and_the_text_counts_as_whole(house, cut):
    done = house.ask("import_memories", input_path=house.write("in", memory("text", cut=cut)))
    assert done["imported_memories"] == 1 and "cut" in done["errors"][0] and rows(house) == [(1, 4, None)]


def test_a_merge_takes_the_identity_along(house):
    for text in (ONE, OTHER):
        stored(house, text)
    house.ask("archive_episode", agent_id="a", summary=ONE)
    house.ask("archive_episode", agent_id="a", summary=OTHER)
    done = house.ask("merge_memories", source_agent_id="a", target_agent_id="b")
    assert (done["merged_memories"], done["merged_episodes"]) == (2, 2)
    assert house.ask("store", agent_id="b", content=OTHER)["result"] == "skipped"
    again = house.ask("merge_memories", source_agent_id="a", target_agent_id="b")
    assert (again["skipped_memories"], again["skipped_episodes"]) == (2, 2)


def test_every_key_can_be_checked_against_what_is_kept(house):
    for text in (ONE, OTHER, "short"):
        stored(house, text)
    house.ask("merge_memories", source_agent_id="a", target_agent_id="b")
    house.ask("update_memory", agent_id="a", memory_id=3, content=ONE + "!")
    for content, key, kept in house.sql("SELECT content, content_key, kept_key FROM memories"):
        assert content_key(content) == (key if kept is None else kept)
    assert house.ask("check_health", deep=True)["status"] == "healthy"
    assert not [issue for issue in house.ask("check_health", deep=True)["issues"] if issue["check"] == "duplicates"]


def test_a_queued_note_is_cut_and_counted_like_a_stored_one(house):
    done = house.ask(
        "replace_notes", agent_id="a", notes=[{"id": "n1", "content": ONE}, {"id": "n2", "content": OTHER}]
    )
    assert [(note["result"], note["cut"]["of"]) for note in done["notes"]] == [
        ("stored", len(ONE)),
        ("stored", len(OTHER)),
    ]
    assert json.dumps(done)
