"""The preview tier: recall shows a prefix, get_contents the whole.

Contract: preview.prefix, preview.budget, contents.refs, exclude.texts.
"""

import pytest
from contract_kit import Agent, episode, memory, refs
from store_kit import opened_store

from cpersona_daemon.model.scope import Scope
from cpersona_daemon.recall.pipeline import recall
from cpersona_daemon.recall.types import Query

MANY = " ".join(["heliotrope"] * 100)
LONG = "heliotrope " + "é日🙂x" * 500


def only(reader, query="heliotrope", set=None, **params):
    (row,) = reader.recall(query, set, **params)["messages"]
    return row


def test_every_row_has_a_ref_with_its_kind_memories_and_episodes(agent):
    """Contract: answer.rows."""
    agent.crowd()
    rows = agent.load(memory("the word heliotrope"), episode("an episode of heliotrope"))
    assert [row.partition(":")[0] for row in rows] == ["mem", "ep"]
    assert set(refs(agent.recall("heliotrope"))) == set(rows)


def test_a_memory_and_an_episode_of_the_same_number_are_told_apart(reader):
    """Contract: answer.rows."""
    ref, number = reader.load(memory("a memory"))[0].split(":")
    answer = reader.own("get_contents", refs=[f"mem:{number}", f"ep:{10**9}"])
    assert (
        ref == "mem"
        and [item["content"] for item in answer["items"]] == ["a memory"]
        and answer["missing"] == [f"ep:{10**9}"]
    )


def test_content_is_a_pure_prefix_of_at_most_five_hundred_code_points(reader):
    """Contract: preview.prefix."""
    reader.load(memory(LONG))
    assert only(reader)["content"] == LONG[:500]


def test_a_trimmed_row_carries_its_full_length_and_says_that_it_is_trimmed(reader):
    """Contract: preview.prefix."""
    reader.load(memory(LONG))
    row = only(reader)
    assert (row["content_truncated"], row["content_len"]) == (True, len(LONG))


@pytest.mark.parametrize("length", [1, 499, 500])
def test_short_rows_carry_neither_marker(reader, length):
    """Contract: preview.prefix."""
    reader.load(memory("heliotrope".ljust(length, ".")[: max(length, 10)]))
    assert not {"content_truncated", "content_len"} & set(only(reader))


def test_there_is_no_ellipsis_marker(reader):
    """Contract: preview.prefix."""
    reader.load(memory(MANY))
    assert only(reader)["content"] == MANY[:500]


def test_a_preview_fed_back_into_a_later_call_still_matches_the_stored_full_text(reader):
    """Contract: exclude.texts, preview.prefix."""
    reader.load(memory(LONG), episode("a heliotrope" + " again" * 200))
    shown = [row["content"] for row in reader.recall("heliotrope", deep=True)["messages"]]
    assert reader.recall("heliotrope", deep=True, exclude_contents=shown)["messages"] == []
    assert (
        reader.own(
            "recall_with_context",
            query="heliotrope",
            external_context=[{"role": "system", "content": text} for text in shown],
        )["messages"]
        == []
    )


def test_the_match_is_a_normalised_bidirectional_starts_with(reader):
    """Contract: exclude.texts, preview.prefix."""
    text = "The heliotrope stands in the window of the old house"
    reader.load(memory(text))
    for entry, excluded in (
        (f"  {text.upper()}  ", True),
        (text[:32], True),
        (text[:31], False),
        (text + " and it is in flower", True),
        (text[1:], False),
        ("", False),
    ):
        assert (reader.recall("heliotrope", exclude_contents=[entry])["messages"] == []) is excluded, entry


def test_a_short_entry_excludes_only_its_equal(reader):
    """Contract: exclude.texts, preview.prefix."""
    reader.crowd()
    short, longer = reader.load(memory("heliotrope"), memory("heliotrope in the window"))
    assert refs(reader.recall("heliotrope", exclude_contents=["HELIOTROPE"])) == [longer]


def test_the_compared_and_the_trimmed_text_of_an_episode_is_its_displayed_text(reader):
    """Contract: exclude.texts, rows.text."""
    reader.load(episode(MANY))
    row = only(reader)
    assert row["content"] == f"[Episode] {MANY}"[:500] and row["source"] == {"System": "episode"}
    assert reader.recall("heliotrope", exclude_contents=[MANY])["messages"] != []
    assert reader.recall("heliotrope", exclude_contents=[f"[episode] {MANY}"])["messages"] == []


def test_echoed_conversation_entries_are_trimmed_uniformly_and_carry_no_ref(reader):
    """Contract: preview.prefix, context.merge."""
    answer = reader.own(
        "recall_with_context",
        external_context=[{"role": "user", "content": "y" * 700}, {"role": "user", "content": "short"}],
    )
    long, short = answer["messages"]
    assert (long["content"], long["content_truncated"], long["content_len"]) == ("y" * 500, True, 700)
    assert "content_truncated" not in short and all("ref" not in row for row in (long, short))


def test_full_content_opts_out(reader):
    """Contract: preview.budget."""
    reader.load(memory(LONG))
    row = only(reader, full_content=True)
    assert row["content"] == LONG and "content_truncated" not in row
    assert reader.own("recall_with_context", query="heliotrope", full_content=True)["messages"][0]["content"] == LONG


def giants(reader, count=15):
    """Rows of 16,000 characters; their order by recency is their order by relevance for a blank query."""
    return reader.load(*(memory(f"{n} " + "z" * 15_990, at=n) for n in range(count)))


def test_full_content_is_bounded_by_a_budget_of_two_hundred_thousand_characters_most_relevant_rows_whole(reader):
    """Contract: preview.budget."""
    giants(reader)
    answer = reader.recall("", limit=15, full_content=True)
    assert answer["full_content_budget_chars"] == 200_000
    assert ["content_truncated" in row for row in answer["messages"]] == [True] * 3 + [False] * 12
    assert [len(row["content"]) for row in answer["messages"]][2] == 500


def test_once_a_row_does_not_fit_it_and_all_before_it_are_previews(reader):
    """Contract: preview.budget."""
    reader.load(memory("a small row that would fit " + "s" * 600, at=-1))
    giants(reader)
    answer = reader.recall("", limit=16, full_content=True)
    assert answer["messages"][0]["content_truncated"] is True


def test_within_the_budget_a_response_does_not_mention_it(reader):
    """Contract: preview.budget."""
    giants(reader, 12)
    assert "full_content_budget_chars" not in reader.recall("", limit=12, full_content=True)
    assert "full_content_budget_chars" not in reader.recall("", limit=12)


def test_get_contents_resolves_refs_to_full_rows_in_the_order_asked_for(reader):
    """Contract: contents.refs."""
    rows = reader.load(
        memory(LONG, msg_id="m1", source={"type": "User", "id": "u1"}, timestamp="2026-01-05T00:00:00Z"),
        episode("an episode", at=0, resolved=True),
    )
    answer = reader.own("get_contents", refs=[rows[1], rows[0], rows[1]])
    whole_episode = {
        "ref": rows[1],
        "content": "[Episode] an episode",
        "source": {"System": "episode"},
        "timestamp": "2026-01-05 00:00:00",
        "resolved": True,
    }
    whole_memory = {
        "ref": rows[0],
        "content": LONG,
        "source": {"type": "User", "id": "u1"},
        "timestamp": "2026-01-05T00:00:00Z",
        "id": "m1",
    }
    assert answer == {"items": [whole_episode, whole_memory, whole_episode], "missing": [], "count": 3}
    stood, lay = reader.own("get_contents", refs=rows[:2], placed=True)["items"]
    assert stood == whole_memory | {
        "project_id": "",
        "channel": "",
        "created_at": "2026-01-05 00:00:00",
        "locked": False,
    }
    assert lay == whole_episode | {"project_id": "", "channel": "", "created_at": "2026-01-05 00:00:00"}


def test_another_agents_refs_land_in_missing(agent, other):
    """Contract: contents.refs."""
    theirs = other.load(memory("a secret"), episode("a secret episode"))
    assert agent.own("get_contents", refs=theirs) == {"items": [], "missing": theirs, "count": 0}


def test_malformed_refs_land_in_missing_as_they_were_sent_and_the_rest_is_served(reader):
    """Contract: contents.refs."""
    (row,) = reader.load(memory("a row"))
    bad = [
        "mem:",
        "mem:0",
        "mem:-1",
        "memory:1",
        "1",
        "",
        " " + row,
        "mem:1.0",
        "mem:" + "9" * 30,
        None,
        7,
        {"ref": row},
    ]
    answer = reader.own("get_contents", refs=[*bad, row])
    assert answer["missing"] == bad and [item["ref"] for item in answer["items"]] == [row]


def test_at_most_twenty_refs_are_taken(reader):
    """Contract: contents.refs."""
    (row,) = reader.load(memory("a row"))
    assert reader.own("get_contents", refs=[row] * 20)["count"] == 20
    assert reader.own("get_contents", refs=[row] * 21)["ok"] is False


@pytest.mark.parametrize(("chars", "shown"), [(10, 10), (5000, 2011), (0, 2011)])
def test_the_preview_length_is_a_setting_and_zero_disables_trimming(reader, chars, shown):
    """Configuration: "CPERSONA_RECALL_PREVIEW_CHARS — default 500 … 0 disables trimming entirely"."""
    reader.load(memory(LONG))
    assert len(LONG) == 2011
    assert len(only(reader, set={"recall_preview_chars": chars})["content"]) == shown


def test_the_library_returns_full_data_and_no_reversal():
    """Shaping and capping belong to the handlers; the library returns full data."""
    with opened_store() as (store, directory):
        agent = Agent(store.call, directory, None)
        rows = agent.load(*(memory(f"{n} {LONG}", at=n) for n in range(120)))
        result = store.run(recall(store.ctx, store.settings, Query("", Scope(agent.name), limit=120)))
        assert [row.ref for row in result.rows] == rows[::-1] and result.rows[0].text == f"119 {LONG}"
        assert len(agent.recall("", limit=120)["messages"]) == 100


def test_recall_writes_nothing_with_confidence_off(reader):
    """Contract: confidence.counts."""
    (row,) = reader.load(memory(LONG))
    reader.recall("heliotrope")
    assert reader.counted(row) == (0, None)


def test_a_row_shows_its_source_timestamp_and_message_id_and_leaves_out_what_it_has_not(reader):
    """Contract: answer.rows."""
    reader.load(
        memory("full", at=2, msg_id="m1", source={"type": "User", "id": "u1"}), memory("bare", at=1, timestamp="")
    )
    bare, full = reader.recall("")["messages"]
    assert set(bare) == {"content", "source", "ref"} and bare["source"] == {}
    assert set(full) == {"content", "source", "ref", "timestamp", "id"} and full["id"] == "m1"
