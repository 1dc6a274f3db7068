"""Contract: associations.declare, associations.names."""

from __future__ import annotations

import pytest

from cpersona_daemon.memory import edit

LEIPZIG = {
    "entities": [{"name": "Grandmother Ilse", "aliases": ["Oma", "OMA ", "Omi"]}, {"name": "Leipzig"}],
    "relations": [{"subject": "Grandmother Ilse", "predicate": "Lives  In", "object": "Leipzig"}],
}


def test_declaring_again_answers_the_same_ids_and_creates_nothing(in_store):
    async def body(world):
        memory = await world.remember("a visit")
        first = await world.declare(LEIPZIG, anchor_ref=f"mem:{memory}")
        again = await world.declare(LEIPZIG, anchor_ref=f"mem:{memory}")
        return first, again

    first, again = in_store(body)
    assert [e["created"] for e in first["entities"]] == [True, True] and [e["created"] for e in again["entities"]] == [
        False,
        False,
    ]
    assert first["mentions"] == again["mentions"] == 2
    assert ([e["id"] for e in first["entities"]], first["relations"], first["dropped"]) == (
        [e["id"] for e in again["entities"]],
        again["relations"],
        [],
    )


def test_names_resolve_folded_and_keep_the_form_they_were_first_written_in(in_store):
    async def body(world):
        await world.declare(LEIPZIG)
        return await world.declare(
            {"entities": [{"name": "ＯＭＡ"}, {"name": "  LEIPZIG "}, {"name": "grandmother\t ilse"}]}
        ), await world.traverse("omi")

    answer, seen = in_store(body)
    assert [e["id"] for e in answer["entities"]] == [1, 2, 1] and answer["entities"][1]["name"] == "LEIPZIG"
    assert seen["entities"][0]["name"] == "Grandmother Ilse" and seen["entities"][0]["aliases"] == ["Oma", "Omi"]
    assert seen["relations"][0]["predicate"] == "lives in"


@pytest.mark.parametrize(
    "spec, dropped",
    [
        ({"entities": [{"name": ""}, {"name": " \n"}, {"name": "x" * 257}, {"name": 7}, "bare", {"name": "mem:1"}]}, 6),
        ({"entities": [{"name": "A", "aliases": ["", None, "y" * 257, "mem:3"]}]}, 4),
        ({"entities": [{"name": "A", "aliases": "B"}]}, 1),
        ({"entities": [{"name": "A"}, {"name": "B", "aliases": ["a"]}]}, 1),
        ({"entities": {"name": "A"}, "relations": "none", "more": 1}, 3),
        (
            {
                "relations": [
                    {"subject": "A", "predicate": " ", "object": "B"},
                    {"subject": "A", "predicate": "p"},
                    {"subject": "A", "predicate": "p", "object": " a "},
                    {"subject": "A", "predicate": "p", "object": "mem:99"},
                    {"subject": "A", "predicate": "p", "object": "B", "weight": 1},
                    None,
                ]
            },
            6,
        ),
        (
            {
                "entities": [
                    {"name": f"e{i}", "aliases": [f"a{i}.{j}" for j in range(33 if i == 0 else 0)]} for i in range(66)
                ]
            },
            3,
        ),
        ("text", 1),
        (["list"], 1),
    ],
)
def test_a_bad_item_is_dropped_and_reported_and_never_fails_the_call(in_store, spec, dropped):
    async def body(world):
        return await world.declare(spec)

    answer = in_store(body)
    assert answer["ok"] is True and answer["result"] == "declared" and len(answer["dropped"]) == dropped
    assert all(d["item"] and d["reason"] for d in answer["dropped"])


def test_a_dropped_relation_registers_neither_of_its_ends(in_store):
    async def body(world):
        await world.declare({"relations": [{"subject": "New", "predicate": "p", "object": "mem:99"}]})
        return await world.traverse("New")

    assert in_store(body)["reason"] == "no_such_entity"


def test_an_endpoint_is_registered_and_mentioned_like_any_entity_the_call_names(in_store):
    async def body(world):
        memory = await world.remember("the queue runs on it")
        answer = await world.declare(
            {"relations": [{"subject": "queue", "predicate": "runs on", "object": "Postgres"}]},
            anchor_ref=f"mem:{memory}",
        )
        return answer, await world.traverse("postgres")

    answer, seen = in_store(body)
    assert [(e["name"], e["created"]) for e in answer["entities"]] == [("queue", True), ("Postgres", True)] and answer[
        "mentions"
    ] == 2
    assert seen["entities"][0]["mentions"] == ["mem:1"] and seen["relations"][0]["anchor_ref"] == "mem:1"


@pytest.mark.parametrize("anchor", ["mem:2", "mem:99", "ep:1", "nonsense", 7])
def test_an_anchor_that_is_not_a_record_of_the_agent_is_dropped_and_the_rest_stands(in_store, anchor):
    async def body(world):
        await world.remember("mine")
        await world.remember("foreign", agent="other")
        return await world.declare(LEIPZIG, anchor_ref=anchor)

    answer = in_store(body)
    assert [d["item"] for d in answer["dropped"]] == ["anchor_ref"] and answer["mentions"] == 0
    assert len(answer["entities"]) == 2 and answer["relations"] == [1]


def test_a_record_of_another_agent_is_no_endpoint_and_looks_like_one_that_is_not_there(in_store):
    async def body(world):
        await world.remember("mine")
        await world.remember("foreign", agent="other")
        relation = {"subject": "mem:1", "predicate": "supports"}
        return await world.declare({"relations": [{**relation, "object": "mem:2"}, {**relation, "object": "mem:3"}]})

    reasons = [d["reason"].replace("mem:3", "mem:2") for d in in_store(body)["dropped"]]
    assert len(reasons) == 2 and reasons[0] == reasons[1]


def test_names_resolve_in_the_own_bucket_then_the_project_then_the_channel_then_the_global_one(in_store):
    async def body(world):
        async def declared(project, channel):
            return (await world.declare({"entities": [{"name": "Oma"}]}, project=project, channel=channel))["entities"][
                0
            ]

        # From the narrowest to the widest bucket, so that none finds the one of another.
        made = [await declared(*bucket) for bucket in (("p", "c"), ("p", ""), ("", "c"), ("", ""))]
        found = [await declared(*bucket) for bucket in (("p", "c"), ("p", "d"), ("q", "c"), ("q", "d"))]
        return made, found

    made, found = in_store(body)
    assert [e["created"] for e in made] == [True] * 4 and [e["created"] for e in found] == [False] * 4
    assert [e["id"] for e in found] == [e["id"] for e in made]


def test_another_project_sees_no_entity_of_this_one(in_store):
    async def body(world):
        await world.declare(LEIPZIG, project="p")
        return (
            await world.declare(LEIPZIG, project="q"),
            await world.traverse("Oma", project_id="q"),
            await world.traverse("Oma", project_id=""),
        )

    again, in_q, in_global = in_store(body)
    assert [e["created"] for e in again["entities"]] == [True, True]
    assert [e["id"] for e in in_q["entities"]] == [3, 4] and in_global["reason"] == "no_such_entity"


def test_retracting_takes_back_relations_mentions_aliases_and_entities(in_store):
    async def body(world):
        await world.remember("a visit")
        await world.declare(LEIPZIG, anchor_ref="mem:1")
        first = await world.declare(
            retract={
                "relations": [1, 1],
                "mentions": [{"entity": "oma", "ref": "mem:1"}, {"entity": 2, "ref": "mem:9"}],
            }
        )
        left = await world.traverse("Oma")
        second = await world.declare(retract={"aliases": [{"entity": 1, "alias": "OMA"}], "entities": ["Leipzig", 99]})
        return (
            first,
            left,
            second,
            await world.traverse("Oma"),
            await world.traverse("Leipzig"),
            await world.traverse("Omi"),
        )

    first, left, second, by_alias, leipzig, by_other = in_store(body)
    assert first["retracted"] == {"relations": 1, "mentions": 1} and len(first["dropped"]) == 2
    assert "mentions" not in left["entities"][0] and left["relations"] == []
    assert (
        second["retracted"] == {"relations": 0, "mentions": 0, "aliases": 1, "entities": 1}
        and len(second["dropped"]) == 1
    )
    assert by_alias["reason"] == leipzig["reason"] == "no_such_entity" and by_other["entities"][0]["id"] == 1


def test_an_agent_cannot_retract_what_another_declared(in_store):
    async def body(world):
        await world.remember("a visit")
        await world.declare(LEIPZIG, anchor_ref="mem:1")
        answer = await world.declare(
            agent="other",
            retract={"relations": [1], "mentions": [{"entity": 1, "ref": "mem:1"}], "entities": [1, "Oma"]},
        )
        return answer, await world.traverse("Oma")

    answer, seen = in_store(body)
    assert not any(answer["retracted"].values()) and len(answer["dropped"]) == 4
    assert len(seen["entities"]) == 2 and seen["entities"][0]["mentions"] == ["mem:1"]


def test_deleting_a_record_deletes_its_mentions_and_every_relation_that_names_it(in_store):
    async def body(world):
        await world.remember("one")
        await world.remember("two")
        relations = [
            {"subject": "mem:1", "predicate": "supports", "object": "mem:2"},
            {"subject": "Oma", "predicate": "wrote", "object": "mem:1"},
        ]
        await world.declare({"entities": [{"name": "Oma"}], "relations": relations}, anchor_ref="mem:1")
        await world.ctx.db.write(lambda tx: edit.delete_memory(tx, 1, "kit"))
        return await world.traverse("Oma"), await world.declare({"relations": relations})

    seen, again = in_store(body)
    assert "mentions" not in seen["entities"][0] and again["relations"] == [] and len(again["dropped"]) == 2
