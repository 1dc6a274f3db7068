"""Contract: associations.bundle, associations.claims."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cpersona_daemon.associations.bundles import bundle
from cpersona_daemon.associations.evidence import Evidence
from cpersona_daemon.associations.records import Record
from cpersona_daemon.associations.roles import claims, roles
from cpersona_daemon.storage.associations import Relation


def memory(number: int, at: float | None = None, **fields) -> Record:
    fields = {"bucket": ("", ""), **fields}
    return Record(
        ("mem", number), f"text {number}", f"stamp {at}", float(number if at is None else at), instant=at, **fields
    )


def episode(number: int, start: float, end: float, bucket: tuple[str, str] = ("", "")) -> Record:
    return Record(("ep", number), f"[Episode] {number}", f"stamp {start}", start, bucket, span=(start, end))


def relation(number: int, subject: int, predicate: str, obj: int) -> Relation:
    return Relation(number, ("mem", subject), predicate, ("mem", obj), None, "kit", "2026-01-01 00:00:00")


def refs(bundles) -> list[list[str]]:
    return [[record.ref for record in item.records] for item in bundles]


def test_a_single_candidate_is_an_item_of_its_own_without_a_rule():
    (item,) = bundle([memory(1)], [], 60)
    assert item.head.ref == "mem:1" and item.why == {}


def test_versions_of_one_message_are_one_item_and_the_newer_supersedes_the_older():
    items = bundle([memory(1, 10, message="m"), memory(2, 5000), memory(3, 9000, message="m")], [], 60)
    assert refs(items) == [["mem:1", "mem:3"], ["mem:2"]]
    assert items[0].why == {("mem", 1): "same_message", ("mem", 3): "same_message"}
    assert roles(items[0].records, []) == {("mem", 1): [{"ref": "mem:3", "role": "supersedes"}]}


def test_an_episode_takes_in_the_memories_of_its_span_project_and_channel_and_supports_them():
    inside, late, elsewhere = memory(1, 50), memory(2, 101), memory(3, 60, bucket=("p", ""))
    items = bundle([inside, late, elsewhere, episode(1, 50, 100)], [], 60)
    assert refs(items) == [["mem:1", "ep:1"], ["mem:2"], ["mem:3"]]
    assert set(items[0].why.values()) == {"episode_span"}
    assert roles(items[0].records, []) == {("mem", 1): [{"ref": "ep:1", "role": "supports"}]}


def test_a_run_of_one_source_ends_sixty_seconds_after_its_first_record():
    run = [memory(i, at, source="u") for i, at in ((1, 0), (2, 40), (3, 60), (4, 61), (5, 100))]
    assert refs(bundle([*run, memory(6, 10), memory(7, 10, source="v")], [], 60)) == [
        ["mem:1", "mem:2", "mem:3"],
        ["mem:4", "mem:5"],
        ["mem:6"],
        ["mem:7"],
    ]


def test_an_undated_memory_and_one_without_a_source_never_join_a_run():
    assert (
        len(bundle([memory(1, 0), memory(2, 0), memory(3, None, source="u"), memory(4, None, source="u")], [], 60)) == 4
    )


def test_a_declared_relation_bundles_only_when_both_ends_are_candidates():
    items = bundle(
        [memory(1), memory(2), memory(3)], [relation(1, 3, "see also", 1), relation(2, 2, "supports", 9)], 60
    )
    assert refs(items) == [["mem:1", "mem:3"], ["mem:2"]] and items[0].why[("mem", 1)] == "relation:see also"


def test_a_role_word_labels_the_subject_towards_the_object_and_any_other_predicate_does_not():
    members = [memory(1), memory(2), memory(3)]
    given_roles = roles(
        members,
        [relation(1, 1, "contradicts", 2), relation(2, 3, "see also", 2), relation(3, 3, "temporal_predecessor", 2)],
    )
    assert given_roles == {
        ("mem", 2): [{"ref": "mem:3", "role": "temporal_predecessor"}, {"ref": "mem:1", "role": "contradicts"}]
    }


def test_claims_stand_newest_first_with_the_rule_of_each():
    found = Evidence(("mem", 9), "relation:near", 2)
    said = claims([memory(1, 5), memory(2, 7)], {("mem", 1): "adjacent"}, [(found, memory(9, 6))], [])
    assert [c["ref"] for c in said] == ["mem:2", "mem:9", "mem:1"]
    assert (
        said[1] == {"ref": "mem:9", "as_of": "stamp 6", "why": "relation:near", "hops": 2}
        and said[2]["why"] == "adjacent"
        and "why" not in said[0]
    )


_records = st.lists(
    st.builds(
        lambda at, source, message: (at, source, message),
        st.none() | st.integers(0, 300),
        st.sampled_from(["", "u", "v"]),
        st.sampled_from(["", "", "a", "b"]),
    ),
    max_size=12,
)
_pairs = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), max_size=6)


@given(_records, _pairs, st.integers(0, 120))
def test_bundling_keeps_every_candidate_once_and_items_in_the_order_of_their_best(rows, pairs, seconds):
    records = [memory(i + 1, at, source=source, message=message) for i, (at, source, message) in enumerate(rows)]
    items = bundle(records, [relation(i + 1, a, "p", b) for i, (a, b) in enumerate(pairs) if a != b], seconds)
    assert sorted(r.rid for item in items for r in item.records) == [r.rid for r in records]
    heads = [records.index(item.head) for item in items]
    assert heads == sorted(heads)
    for item in items:
        places = [records.index(r) for r in item.records]
        assert places == sorted(places)
        assert set(item.why) == ({r.rid for r in item.records} if len(places) > 1 else set())


@given(_records, st.integers(0, 120))
def test_more_relations_only_ever_join_items(rows, seconds):
    records = [memory(i + 1, at, source=source, message=message) for i, (at, source, message) in enumerate(rows)]
    before = bundle(records, [], seconds)
    after = bundle(records, [relation(1, 1, "p", len(records) or 1), relation(2, 2, "q", 3)], seconds)
    homes = {r.rid: i for i, item in enumerate(after) for r in item.records}
    assert all(len({homes[r.rid] for r in item.records}) == 1 for item in before)
