"""Contract: associations.reconstruct, associations.evidence."""

from __future__ import annotations

import json

import pytest
from assoc_kit import axis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

QUARTZ = ("quartz", "quartz note", "quartz answer")
DAY = "2026-01-{:02d}T00:00:00Z"


@pytest.fixture
def in_world(in_store, model):
    """A store whose model server puts the questions for quartz on the first axis."""
    for question in QUARTZ:
        model.vectors[question] = axis(1.0)
    return lambda body: in_store(body, embedding_mode="http", embedding_url=model.url)


async def notes(world, n: int = 6) -> None:
    """Write n memories that a question for quartz finds, the first one best, each on a day and from a source of its
    own.
    """
    for i in range(1, n + 1):
        await world.remember(
            f"quartz note {i}: " + "word " * i,
            timestamp=DAY.format(i),
            source=f'{{"type": "User", "id": "u{i}"}}',
            vector=axis(0.95 - 0.02 * i),
        )


def heads(answer: dict) -> list[str]:
    return [item["head_ref"] for item in answer["items"]]


def test_candidates_without_links_are_items_in_the_order_of_the_recall(in_world):
    async def body(world):
        await notes(world)
        return await world.recall("quartz"), await world.reconstruct("quartz")

    recalled, answer = in_world(body)
    assert heads(answer) == recalled and len(recalled) == 6
    assert all(len(item["claims"]) == 1 and set(item["claims"][0]) == {"ref", "as_of"} for item in answer["items"])
    assert (answer["effective_count"], answer["returned_count"], answer["shortfall_reason"]) == (
        10,
        6,
        "exhausted_candidates",
    )


def test_count_shows_more_or_fewer_of_the_same_items(in_world):
    async def body(world):
        await notes(world, 12)
        names = {"entities": [{"name": "Root"}]}
        for i in range(1, 13):
            await world.declare(names, anchor_ref=f"mem:{i}")
        await world.remember("reached only by a relation")
        await world.declare({"relations": [{"subject": "Root", "predicate": "near", "object": "Side"}]})
        await world.declare({"entities": [{"name": "Side"}]}, anchor_ref="mem:13")
        return [await world.reconstruct("quartz", count=n) for n in (1, 2, 5, 10, 11, None)]

    *some, most, clamped, default = in_world(body)
    for answer in some:
        assert answer["items"] == most["items"][: answer["effective_count"]] and "shortfall_reason" not in answer
        assert answer["bounds"]["omitted"][0] == "count"
    assert most == clamped == default and len(most["items"]) == 10
    assert most["items"][0]["claims"][0]["why"] == "relation:near"


@pytest.mark.parametrize(
    "settings, asked, count",
    [
        ({}, None, 10),
        ({}, 3, 3),
        ({}, -4, 0),
        ({}, 99, 10),
        ({"reconstruct_default_count": 4}, None, 4),
        ({"reconstruct_forced_count": 2}, 7, 2),
        ({"reconstruct_max_count": 20, "reconstruct_default_count": 15}, None, 12),
    ],
)
def test_count_is_the_forced_one_else_the_asked_one_else_the_default_within_the_maximum(
    in_world, settings, asked, count
):
    async def body(world):
        await notes(world, 12)
        return await world.reconstruct("quartz", settings=settings, count=asked)

    answer = in_world(body)
    assert answer["returned_count"] == len(answer["items"]) == count


def test_a_shortfall_says_why(in_world):
    async def body(world):
        await notes(world, 3)
        return [
            await world.reconstruct("quartz", count=0),
            await world.reconstruct("unheard of"),
            await world.reconstruct("quartz", count=4),
            await world.reconstruct("quartz", count=3, budget=30),
            await world.reconstruct("quartz", agent="nobody"),
        ]

    answers = in_world(body)
    assert [a.get("shortfall_reason") for a in answers] == [
        "count_zero",
        "no_relevant_evidence",
        "exhausted_candidates",
        "budget_exhausted",
        "no_relevant_evidence",
    ]
    assert [a["returned_count"] for a in answers] == [0, 0, 3, 1, 0] and answers[3]["bounds"] == {"omitted": ["budget"]}


def test_only_weak_rows_are_said_to_be_below_the_threshold(in_store, model):
    async def body(world):
        model.vectors["faint"] = axis(1.0)
        await world.remember("a distant thing", vector=axis(0.4))
        return await world.reconstruct("faint")

    answer = in_store(body, embedding_mode="http", embedding_url=model.url)
    assert answer["items"] == [] and answer["shortfall_reason"] == "below_quality_threshold"


def test_a_declared_relation_between_candidates_makes_them_one_item_with_its_role(in_world):
    async def body(world):
        await notes(world, 3)
        before = await world.reconstruct("quartz")
        best, _, worst = heads(before)
        await world.declare({"relations": [{"subject": worst, "predicate": "supersedes", "object": best}]})
        return before, await world.reconstruct("quartz")

    before, after = in_world(body)
    best, middle, worst = heads(before)
    assert heads(after) == [best, middle]
    by_ref = {claim["ref"]: claim for claim in after["items"][0]["claims"]}
    assert by_ref[best]["roles"] == [{"ref": worst, "role": "supersedes"}] and "roles" not in by_ref[worst]
    assert {claim["why"] for claim in by_ref.values()} == {"relation:supersedes"}
    assert [x["ref"] for x in after["items"][0]["excerpts"]] == [worst]


def test_a_shared_entity_bundles_nothing_and_is_no_evidence(in_world):
    async def body(world):
        await notes(world, 2)
        await world.remember("mentions the same")
        before = await world.reconstruct("quartz")
        for i in (1, 2, 3):
            await world.declare({"entities": [{"name": "Shared"}]}, anchor_ref=f"mem:{i}")
        return before, await world.reconstruct("quartz")

    before, after = in_world(body)
    assert before == after


def test_evidence_comes_nearest_first_once_in_a_response_and_within_its_bounds(in_world):
    async def body(world):
        await notes(world, 2)
        for i in range(3, 9):
            await world.remember(f"elsewhere {i}", timestamp=DAY.format(i))
        await world.archive("an episode elsewhere", start_time=DAY.format(20))
        mentions = {
            "Root": ["mem:1", "mem:2"],
            "One": ["mem:3", "mem:4", "ep:1"],
            "Two": ["mem:5", "mem:3"],
            "Near": ["mem:6", "mem:2"],
        }
        for entity, refs in mentions.items():
            for ref in refs:
                await world.declare({"entities": [{"name": entity}]}, anchor_ref=ref)
        await world.declare(
            {
                "relations": [
                    {"subject": "Root", "predicate": "uses", "object": "One"},
                    {"subject": "Two", "predicate": "part of", "object": "One"},
                    {"subject": "Near", "predicate": "beside", "object": "Root"},
                ]
            }
        )
        return [
            await world.reconstruct("quartz", max_hops=h, max_evidence=e, trace=True)
            for h, e in ((2, 40), (1, 40), (0, 40), (2, 2))
        ]

    full, one_hop, no_hop, two = in_world(body)
    first = full["trace"]["evidence"][0]
    assert [(e["ref"], e["why"], e["hops"]) for e in first] == [
        ("mem:6", "relation:beside", 1),
        ("ep:1", "relation:uses", 1),
        ("mem:3", "relation:uses", 1),
        ("mem:4", "relation:uses", 1),
        ("mem:5", "relation:part of", 2),
    ]
    assert full["trace"]["evidence"][1] == [] and heads(full) == heads(no_hop)
    assert [e["ref"] for e in one_hop["trace"]["evidence"][0]] == ["mem:6", "ep:1", "mem:3", "mem:4"] and one_hop[
        "bounds"
    ] == {"omitted": ["max_hops"]}
    assert no_hop["trace"]["evidence"] == [[], []] and "bounds" not in no_hop
    assert [e["ref"] for e in two["trace"]["evidence"][0]] == ["mem:6", "ep:1"] and two["bounds"] == {
        "omitted": ["max_evidence"]
    }


def test_evidence_and_names_stay_inside_the_scope_of_the_question(in_world):
    async def body(world):
        await world.remember("quartz here", project_id="p", channel="c", source='{"id": "user:1"}', vector=axis(0.9))
        for i, (project, channel) in enumerate((("p", "c"), ("p", "d"), ("q", "c"), ("", ""))):
            await world.remember(
                f"elsewhere {i}", project_id=project, channel=channel, source='{"id": "user:1"}' if i == 3 else "{}"
            )
        await world.remember("foreign", agent="other")
        await world.declare({"relations": [{"subject": "Root", "predicate": "uses", "object": "One"}]})
        await world.declare({"entities": [{"name": "Root"}]}, anchor_ref="mem:1")
        for i in range(2, 6):
            await world.declare({"entities": [{"name": "One"}]}, anchor_ref=f"mem:{i}")

        async def refs(**scope):
            (item,) = (await world.reconstruct("quartz", **scope))["items"]
            return sorted(claim["ref"] for claim in item["claims"])

        return [
            await refs(),
            await refs(project_id="p"),
            await refs(project_id="p", channel="c"),
            await refs(source_id="user:1"),
        ]

    assert in_world(body) == [
        ["mem:1", "mem:2", "mem:3", "mem:4", "mem:5"],
        ["mem:1", "mem:2", "mem:3", "mem:5"],
        ["mem:1", "mem:2", "mem:5"],
        ["mem:1", "mem:5"],
    ]


def test_an_alias_lifts_a_row_that_was_voted_for_and_recall_does_not_read_it(in_store, model):
    async def body(world):
        model.vectors["how is Oma doing"] = axis(1.0)
        for i in range(12):
            await world.remember(f"Shift report {i}")
        await world.remember("Called the bakery about bread", vector=axis(0.7))
        await world.remember("Visited Grandmother Ilse in the hospital", vector=axis(0.6))
        await world.remember("Grandmother Ilse also likes plums", vector=axis(0.0, 0.9))
        asked = "how is Oma doing"
        before = await world.reconstruct(asked), await world.recall(asked)
        await world.declare({"entities": [{"name": "Grandmother Ilse", "aliases": ["Oma"]}]})
        return before, (await world.reconstruct(asked), await world.recall(asked))

    (before, recalled), (after, recalled_after) = in_store(body, embedding_mode="http", embedding_url=model.url)
    assert heads(before) == ["mem:13", "mem:14"] and heads(after) == ["mem:14", "mem:13"]
    assert recalled == recalled_after == ["mem:13", "mem:14"]


def test_what_concerns_other_questions_leaves_an_answer_byte_for_byte_as_it_was(in_world):
    async def body(world):
        await notes(world, 5)
        before = await world.reconstruct("quartz note", trace=True)
        await world.declare(
            {
                "entities": [{"name": "Qqrst", "aliases": ["Wwxyz"]}],
                "relations": [{"subject": "Qqrst", "predicate": "knows", "object": "Vvuts"}],
            }
        )
        return before, await world.reconstruct("quartz note", trace=True)

    before, after = in_world(body)
    assert json.dumps(before) == json.dumps(after)


def test_a_long_head_is_quoted_in_passages_and_a_short_one_whole(in_world):
    async def body(world):
        short = "quartz " + "s" * 700
        long = "Opening line.\n" + "filler text. " * 200 + "\nThe quartz answer is here.\n" + "more filler. " * 200
        await world.remember(short, vector=axis(0.9))
        await world.remember(long, vector=axis(0.8))
        return (
            short,
            long,
            await world.reconstruct("quartz answer"),
            await world.reconstruct("quartz answer", settings={"reconstruct_full_quotes": 0}),
        )

    short, long, answer, tails = in_world(body)
    by_ref = {item["head_ref"]: item for item in answer["items"]}
    assert by_ref["mem:1"]["content"] == short and "content_truncated" not in by_ref["mem:1"]
    assert "The quartz answer is here." in by_ref["mem:2"]["content"] and len(by_ref["mem:2"]["content"]) <= 800
    assert by_ref["mem:2"]["content_truncated"] is True and by_ref["mem:2"]["content_len"] == len(long)
    assert all(len(item["content"]) <= 400 for item in tails["items"])


_declared = st.lists(
    st.tuples(st.sampled_from("ABCD"), st.sampled_from(["uses", "near", "supports"]), st.sampled_from("ABCD")),
    max_size=5,
)
_mentions = st.lists(st.tuples(st.sampled_from("ABCD"), st.integers(1, 8)), max_size=10)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_declared, _mentions)
def test_entity_relations_add_evidence_but_never_an_item_nor_another_order(in_world, relations, mentions):
    async def body(world):
        await notes(world, 4)
        for i in range(5, 9):
            await world.remember(f"elsewhere {i}")
        before = await world.reconstruct("quartz")
        for entity, number in mentions:
            await world.declare({"entities": [{"name": f"entity {entity}"}]}, anchor_ref=f"mem:{number}")
        await world.declare(
            {
                "relations": [
                    {"subject": f"entity {s}", "predicate": p, "object": f"entity {o}"} for s, p, o in relations
                ]
            }
        )
        return before, await world.reconstruct("quartz"), [await world.reconstruct("quartz", count=n) for n in (1, 3)]

    before, after, fewer = in_world(body)
    assert heads(before) == heads(after)
    refs = [claim["ref"] for item in after["items"] for claim in item["claims"]]
    assert len(refs) == len(set(refs))
    for answer in fewer:
        assert answer["items"] == after["items"][: answer["effective_count"]]
    contents = {item["head_ref"]: item["content"] for item in before["items"]}
    assert all(item["content"] == contents[item["head_ref"]] for item in after["items"])
