"""Recall return order: last is best. Contract: recall.order, context.merge, time.utc."""

from contract_kit import episode, memory, reasons, refs, stamp

WIDE = {"recall_depth_floor": 100}


def five(agent, word="marigold"):
    return agent.load(*(memory(f"{word} note {n}", cosine) for n, cosine in enumerate((0.5, 0.9, 0.6, 0.8, 0.7))))


def test_the_response_is_ordered_by_ascending_score_and_the_final_element_is_the_strongest_match(agent):
    """Contract: recall.order."""
    rows = five(agent)
    answer = agent.recall("something else entirely")
    assert refs(answer) == [rows[0], rows[2], rows[4], rows[3], rows[1]]
    scores = [row["match_reason"]["score"] for row in answer["messages"]]
    assert scores == sorted(scores)


def test_candidates_are_cut_to_limit_from_the_best_end_and_then_reversed(agent):
    """Contract: recall.order."""
    rows = five(agent)
    # Five candidates before the cut: the depth of the channels does not follow the limit here.
    assert refs(agent.recall("something else entirely", WIDE, limit=2)) == [rows[3], rows[1]]


def test_hit_at_k_is_found_by_indexing_from_the_tail(agent):
    """Contract: recall.order."""
    five(agent)
    whole = refs(agent.recall("marigold note", WIDE))
    assert len(whole) == 5
    for k in range(1, 5):
        assert refs(agent.recall("marigold note", WIDE, limit=k)) == whole[-k:]


def test_recall_with_context_is_a_chronological_merge_and_not_a_score_ordering(agent):
    """Contract: context.merge."""
    best, worst = agent.load(memory("the oldest and best", 0.9, at=0), memory("the newest and worst", 0.6, at=10))
    agent._embedder.questions.add("a merged question")
    said = [{"role": "user", "content": "said between", "timestamp": stamp(5)}]
    answer = agent.own("recall_with_context", query="a merged question", external_context=said)
    assert [row["content"] for row in answer["messages"]] == [
        "the oldest and best",
        "said between",
        "the newest and worst",
    ]
    assert refs(agent.recall("a merged question")) == [worst, best]


def merged(reader, said, *stored, **params):
    """Recall everything of a reader (a blank query) merged with what was said, as texts."""
    if stored:
        reader.load(*stored)
    answer = reader.own("recall_with_context", external_context=said, **params)
    return [row["content"] for row in answer["messages"]]


def user(content, timestamp=None, **more):
    return {"role": "user", "content": content, **({} if timestamp is None else {"timestamp": timestamp}), **more}


def test_a_stamp_in_any_utc_offset_lands_where_it_belongs_whichever_side_wrote_it(reader):
    """Contract: context.merge, time.utc."""
    stored = [
        memory("stored at one", timestamp="2026-01-05T10:00:00+09:00"),
        memory("stored at four", timestamp="2026-01-04T23:00:00-05:00"),
    ]
    said = [user("said at two", "2026-01-05T02:00:00Z"), user("said at three", "2026-01-05T06:00:00+03:00")]
    assert merged(reader, said, *stored) == ["stored at one", "said at two", "said at three", "stored at four"]


def test_a_naive_stamp_is_read_as_utc(reader):
    """Contract: context.merge, time.utc."""
    stored = [
        memory("stored naive at two", timestamp="2026-01-05 02:00:00"),
        memory("stored at four", timestamp="2026-01-05T04:00:00Z"),
    ]
    said = [user("said naive at three", "2026-01-05T03:00:00"), user("said at one", "2026-01-05T01:00:00+00:00")]
    assert merged(reader, said, *stored) == [
        "said at one",
        "stored naive at two",
        "said naive at three",
        "stored at four",
    ]


def test_messages_that_name_no_instant_stand_ahead_of_every_dated_one_in_the_order_they_were_merged_in(reader):
    """Contract: context.merge."""
    stored = [
        memory("stored dated", timestamp="2020-01-01T00:00:00Z", at=3),
        memory("stored undated", timestamp="", at=2),
        memory("stored garbled", timestamp="last tuesday", at=1),
    ]
    said = [user("said undated"), user("said dated", "2019-01-01T00:00:00Z"), user("said garbled", "soon")]
    # A blank recall is newest first inside and reversed outside, so the garbled row was merged in before the undated
    # one.
    assert merged(reader, said, *stored) == [
        "stored garbled",
        "stored undated",
        "said undated",
        "said garbled",
        "said dated",
        "stored dated",
    ]


def test_the_end_of_the_merged_list_is_what_is_most_recent(reader):
    """Contract: context.merge."""
    stored = [
        memory("stored long ago", timestamp="2001-01-01T00:00:00Z"),
        memory("stored last", timestamp="2026-03-01T00:00:00Z"),
    ]
    assert (
        merged(reader, [user("no stamp"), user("said earlier", "2026-02-01T00:00:00Z")], *stored)[-1] == "stored last"
    )


def test_what_was_said_excludes_its_stored_copy(reader):
    """Contract: context.merge."""
    stored = [memory("We ship on Friday"), memory("We ship on Monday")]
    assert merged(reader, [user("  we SHIP on friday ", "2026-02-01T00:00:00Z")], *stored) == [
        "We ship on Monday",
        "we SHIP on friday",
    ]


def test_roles_user_and_assistant_are_echoed_with_their_source_and_others_only_filter(reader):
    """Contract: context.merge."""
    reader.load(memory("a system remark that is stored"))
    said = [
        {"role": "user", "content": " hi ", "user_id": "u9", "name": "Uma"},
        {"role": "assistant", "content": "hello"},
        {"role": "system", "content": "a system remark that is stored"},
        {"role": "user", "content": "   "},
    ]
    answer = reader.own("recall_with_context", external_context=said)
    assert answer["messages"] == [
        {
            "content": "hi",
            "source": {"type": "User", "id": "u9", "name": "Uma"},
            "timestamp": "",
            "context_type": "conversation",
        },
        {
            "content": "hello",
            "source": {"type": "Agent", "id": "self", "name": ""},
            "timestamp": "",
            "context_type": "conversation",
        },
    ]
    assert answer["context_entries_not_returned"] == 1


def test_nothing_is_cut_after_the_merge(reader):
    """Contract: context.merge."""
    said = [user(f"said {n}", stamp(n)) for n in range(4)]
    assert len(merged(reader, said, memory("stored a"), memory("stored b"), memory("stored c"), limit=2)) == 6


def test_a_blank_query_lists_memories_by_recency_with_the_newest_last(reader):
    """Contract: recall.blank."""
    rows = reader.load(
        memory("first", at=1), memory("third", at=3), memory("second", at=2), episode("never listed", at=9)
    )
    answer = reader.recall("  ")
    assert refs(answer) == [rows[0], rows[2], rows[1]]
    assert reasons(answer) == {}
