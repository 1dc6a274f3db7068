"""Contract: associations.traverse."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cpersona_daemon.associations.walk import MAX_REACHED, walk
from cpersona_daemon.storage.associations import RELATIONS_PER_STEP, Relation


def chain(*names: str) -> dict:
    return {
        "relations": [
            {"subject": a, "predicate": "leads to", "object": b} for a, b in zip(names, names[1:], strict=False)
        ]
    }


def test_a_walk_goes_both_ways_and_lists_a_relation_when_both_its_ends_are_listed(in_store):
    async def body(world):
        await world.declare(chain("a", "b", "c", "d"))
        return [await world.traverse("c", hops) for hops in (0, 1, 2, 5)]

    answers = in_store(body)
    assert [[e["name"] for e in a["entities"]] for a in answers] == [
        ["c"],
        ["c", "d", "b"],
        ["c", "d", "b", "a"],
        ["c", "d", "b", "a"],
    ]
    assert [[r["id"] for r in a["relations"]] for a in answers] == [[], [3, 2], [3, 2, 1], [3, 2, 1]]
    assert [a.get("bounds") for a in answers] == [{"omitted": ["max_hops"]}, {"omitted": ["max_hops"]}, None, None]


def test_a_limit_leaves_the_farthest_out_and_says_how_many(in_store):
    async def body(world):
        await world.declare(chain("a", "b", "c", "d"))
        return await world.traverse("a", 2, 2)

    answer = in_store(body)
    assert [e["name"] for e in answer["entities"]] == ["a", "b"] and [r["id"] for r in answer["relations"]] == [1]
    assert answer["entities_omitted"] == 1 and answer["bounds"] == {"omitted": ["max_hops", "limit"]}


def test_mentions_are_the_records_that_the_scope_sees_and_the_rest_is_counted(in_store):
    async def body(world):
        for i in range(25):
            await world.remember(
                f"memory {i}", source='{"id": "user:1"}' if i % 2 else "{}", project_id="p" if i < 3 else ""
            )
        await world.archive("an episode")
        for i in range(25):
            await world.declare({"entities": [{"name": "Oma"}]}, anchor_ref=f"mem:{i + 1}")
        await world.declare({"entities": [{"name": "Oma"}]}, anchor_ref="ep:1")
        return (
            await world.traverse("oma"),
            await world.traverse("oma", project_id=""),
            await world.traverse("oma", source_id="user:1"),
        )

    everything, shared, of_user = (answer["entities"][0] for answer in in_store(body))
    assert everything["mentions"] == [f"mem:{i}" for i in range(1, 21)] and everything["mentions_omitted"] == 6
    assert shared["mentions"][0] == "mem:4" and shared["mentions_omitted"] == 3
    assert of_user["mentions"] == [f"mem:{i}" for i in range(2, 26, 2)] and "mentions_omitted" not in of_user


def test_a_relation_declared_in_a_project_is_not_walked_from_another(in_store):
    async def body(world):
        await world.declare({"entities": [{"name": "a"}, {"name": "b"}]})
        await world.declare(chain("a", "b"), project="p")
        return [len((await world.traverse("a", project_id=p))["entities"]) for p in (None, "", "p", "q")]

    assert in_store(body) == [2, 1, 2, 1]


@given(
    st.lists(st.tuples(st.integers(1, 8), st.integers(1, 8)).filter(lambda e: e[0] != e[1]), max_size=16),
    st.integers(0, 5),
)
def test_every_entity_is_reached_by_its_shortest_way_and_by_the_newest_relation_of_that_length(edges, max_hops):
    relations = [
        Relation(i + 1, ("entity", a), "p", ("entity", b), None, "", "2026-01-01 00:00:00")
        for i, (a, b) in enumerate(edges)
    ]
    found = walk(
        [1], max_hops, lambda ids: [r for r in relations if r.subject[1] in ids or r.object[1] in ids], lambda ids: ids
    )
    distance = {1: 0}
    for hops in range(1, 9):
        for a, b in edges:
            for x, y in ((a, b), (b, a)):
                if distance.get(x) == hops - 1:
                    distance.setdefault(y, hops)
    assert {r.entity_id: r.hops for r in found.reached} == {e: d for e, d in distance.items() if d <= max_hops}
    assert found.beyond == any(d == max_hops + 1 for d in distance.values())
    for reached in found.reached[1:]:
        ways = [
            r
            for r in relations
            if {reached.entity_id} < {r.subject[1], r.object[1]}
            and any(distance.get(e) == reached.hops - 1 for e in (r.subject[1], r.object[1]))
        ]
        assert reached.relation == max(ways, key=lambda r: r.recency)
    keys = [(r.hops, -r.relation.id) for r in found.reached[1:]]
    assert keys == sorted(keys)


def test_a_hub_of_more_relations_than_a_step_reads_is_said_to_be_cut():
    hub = [
        Relation(i, ("entity", i + 1), "p", ("entity", 1), None, "", "2026-01-01 00:00:00")
        for i in range(1, RELATIONS_PER_STEP + 1)
    ]
    found = walk([1], 1, lambda ids: hub if 1 in ids else [], lambda ids: ids)
    assert found.cut and len(found.reached) == MAX_REACHED and found.reached[1].relation == hub[-1]
