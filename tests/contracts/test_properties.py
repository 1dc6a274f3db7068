"""What holds over random stores, whatever is in them.

Contract: recall.order, recall.stages, scope.axes, prior.order, scores.rsf, window.reach.


The stores are filled and asked through the daemon's own dispatch, in this process.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from contract_kit import Agent, Embedder, at_cosine, created, refs, stamp
from hypothesis import given, settings
from hypothesis import strategies as st
from store_kit import Store, opened_store

from cpersona_daemon.model.identity import Embedded
from cpersona_daemon.model.kinds import EPISODE, MEMORY
from cpersona_daemon.storage import backlog, episodes, memories

WORDS = "heliotrope lantern violin granite orchard".split()
PROJECTS, CHANNELS, SOURCES = ("", "p", "q"), ("", "c", "d"), ("", "u1", "u2", "10")
modest = settings(max_examples=25, derandomize=True, database=None, report_multiple_bugs=False)


@dataclass(frozen=True)
class Drawn:
    """A row before it is written. ``hours`` None leaves it undated, ``cosine`` None without a vector."""

    kind: str
    words: tuple[str, ...]
    cosine: float | None
    hours: int | None
    project: str
    channel: str
    source: str
    mine: bool


_rows = st.lists(
    st.builds(
        Drawn,
        st.sampled_from([MEMORY, MEMORY, MEMORY, EPISODE]),
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(tuple),
        st.one_of(st.none(), st.integers(1, 31).map(lambda k: k / 32)),
        st.one_of(st.none(), st.integers(-2000, 0)),
        st.sampled_from(PROJECTS),
        st.sampled_from(CHANNELS),
        st.sampled_from(SOURCES),
        st.booleans(),
    ),
    min_size=1,
    max_size=25,
)
_queries = st.lists(st.sampled_from([*WORDS, "somewhere"]), min_size=1, max_size=3).map(" ".join)
_modes = st.sampled_from(["rrf", "rsf", "cascade"])
_fusions = st.sampled_from(["rrf", "rsf"])
_axes = st.fixed_dictionaries(
    {},
    optional={
        "project_id": st.sampled_from(PROJECTS),
        "channel": st.sampled_from(CHANNELS[1:]),
        "source_id": st.sampled_from(["u1", "u2", "1", "10", "nobody"]),
    },
)


class World:
    """Two agents of one store, and what was written for each. The rows stand in ``rows`` by ref."""

    def __init__(self, store: Store, directory: Path, embedder: Embedder, drawn: list[Drawn]):
        self.store = store
        self.me, self.other = (Agent(store.call, directory, embedder) for _ in range(2))
        self.rows: dict[str, tuple[str, Drawn]] = {}
        for ref, row in zip(
            store.ctx.db.write_now(lambda tx: [self._write(tx, n, one) for n, one in enumerate(drawn)]),
            drawn,
            strict=True,
        ):
            self.rows[ref] = (self.me.name if row.mine else self.other.name, row)

    def _write(self, tx, number: int, row: Drawn) -> str:
        agent, text = (self.me if row.mine else self.other).name, " ".join((*row.words, f"n{number}"))
        axes = {"project_id": row.project, "channel": row.channel, "created_at": created(-number)}
        timestamp = "" if row.hours is None else stamp(row.hours)
        if row.kind == MEMORY:
            source = json.dumps({"type": "User", "id": row.source} if row.source else {})
            row_id = memories.insert(tx, memories.NewMemory(agent, text, timestamp=timestamp, source=source, **axes))
        else:
            row_id = episodes.insert(
                tx, episodes.NewEpisode(agent, text, start_time=timestamp or None, end_time=timestamp or None, **axes)
            )
        if row.cosine is not None:
            backlog.attach_vector(tx, row.kind, row_id, Embedded(np.array(at_cosine(row.cosine), np.float32), "kit"))
        return f"{row.kind}:{row_id}"

    def visible(self, ref: str, project_id: str | None = None, channel: str = "", source_id: str = "") -> bool:
        """Tell whether a row of mine is within the axes of a read."""
        owner, row = self.rows[ref]
        if (
            owner != self.me.name
            or (project_id is not None and row.project not in (project_id, ""))
            or (channel and row.channel not in (channel, ""))
        ):
            return False
        if row.kind == EPISODE:
            return not source_id or bool(channel)
        return not source_id or row.source == source_id

    def forget(self) -> None:
        for agent in (self.me, self.other):
            agent.own("delete_agent_data")


@pytest.fixture(scope="module")
def place(embedder: Embedder) -> Iterator:
    """Make worlds in one open store; each is forgotten after its block."""
    with opened_store(**embedder.settings) as (store, directory):

        @contextmanager
        def world(drawn: list[Drawn]):
            made = World(store, directory, embedder, drawn)
            try:
                yield made
            finally:
                made.forget()

        yield world


def byte_form(answer: dict) -> bytes:
    return json.dumps(answer).encode()


def ageless(answer: dict) -> bytes:
    """The bytes of an answer without what depends on the clock alone."""
    return json.dumps([{k: v for k, v in row.items() if k != "confidence"} for row in answer["messages"]]).encode()


@modest
@given(drawn=_rows, query=_queries, mode=_modes, axes=_axes)
def test_the_same_database_settings_and_query_give_the_same_bytes(place, drawn, query, mode, axes):
    """Contract: recall.stages."""
    with place(drawn) as world:
        first = world.me.recall(query, {"recall_mode": mode}, trace=True, **axes)
        assert byte_form(world.me.recall(query, {"recall_mode": mode}, trace=True, **axes)) == byte_form(first)
        assert byte_form(world.me.reconstruct(query, {"recall_mode": mode}, **axes)) == byte_form(
            world.me.reconstruct(query, {"recall_mode": mode}, **axes)
        )


@settings(max_examples=4, derandomize=True, database=None)
@given(drawn=_rows, queries=st.lists(_queries, min_size=3, max_size=3), mode=_modes)
def test_a_restart_changes_no_byte_of_an_answer(embedder, tmp_path_factory, drawn, queries, mode):
    """Contract: recall.stages."""
    root = tmp_path_factory.mktemp("restart")

    def answers(store, world):
        return [byte_form(world.me.recall(query, {"recall_mode": mode}, trace=True)) for query in queries]

    store = Store(root, **embedder.settings)
    try:
        world = World(store, root, embedder, drawn)
        before = answers(store, world)
    finally:
        store.close()
    store = Store(root, **embedder.settings)
    try:
        world.me._call = store.call
        assert answers(store, world) == before
    finally:
        store.close()


@modest
@given(drawn=_rows, query=st.one_of(_queries, st.just("")), mode=_modes, axes=_axes)
def test_no_row_of_another_agent_project_channel_or_source_is_in_any_answer(place, drawn, query, mode, axes):
    """Contract: scope.axes, scope.source."""
    with place(drawn) as world:
        me, under = world.me, {"recall_mode": mode, "max_memories": 10, "vector_reach": 20}
        for agent, ref in [(owner, ref) for ref, (owner, _) in world.rows.items()]:
            who = me if agent == me.name else world.other
            row = world.rows[ref][1]
            who.own(
                "declare_associations",
                associations={
                    "entities": [{"name": row.words[0], "aliases": [f"{row.words[0]} too"]}],
                    "relations": [
                        {"subject": row.words[0], "predicate": "next to", "object": row.words[-1]},
                        {"subject": ref, "predicate": "supports", "object": row.words[0]},
                    ],
                },
                anchor_ref=ref,
                project_id=row.project,
                channel=row.channel,
            )

        seen = set_of(me.recall(query, under, limit=100, deep=True, **axes))
        assert seen <= set_of_visible(world, **axes)
        if not query:
            assert seen == {ref for ref in set_of_visible(world, **axes) if ref.startswith(MEMORY)}
        answer = me.own(
            "recall_with_context",
            under,
            query=query,
            limit=100,
            deep=True,
            external_context=[{"role": "user", "content": "said"}],
            **axes,
        )
        assert {row["ref"] for row in answer["messages"] if "ref" in row} == seen
        answer = me.reconstruct(query, under, top_k=100, count=10, deep=True, **axes)
        assert {claim["ref"] for item in answer["items"] for claim in item["claims"]} <= set_of_visible(world, **axes)
        assert {excerpt["ref"] for item in answer["items"] for excerpt in item.get("excerpts", [])} <= set_of_visible(
            world, **axes
        )
        for word in WORDS:
            for entity in me.own("traverse", entity=word, max_hops=5, limit=100, **axes)["entities"]:
                assert set(entity.get("mentions", [])) <= set_of_visible(world, **axes)

        project = {"project_id": axes["project_id"]} if "project_id" in axes else {}
        listed = {
            row["ref"]
            for method, key in (("list_memories", "memories"), ("list_episodes", "episodes"))
            for row in me.own(method, limit=200, **project)[key]
        }
        assert listed == set_of_visible(world, **project)
        for start in range(0, len(world.rows), 20):
            asked = list(world.rows)[start : start + 20]
            served = me.own("get_contents", refs=asked)
            assert [item["ref"] for item in served["items"]] == [ref for ref in asked if world.visible(ref)]
            assert served["missing"] == [ref for ref in asked if not world.visible(ref)]


def set_of(answer: dict) -> set:
    return {ref for ref in refs(answer) if ref != "profile"}


def set_of_visible(world: World, **axes) -> set:
    return {ref for ref in world.rows if world.visible(ref, **axes)}


def ordering_scores(answer: dict, mode: str) -> list[float]:
    """The number that ordered each row, best first; None for a row without a score."""
    out = []
    for row in reversed(answer["messages"]):
        reason = row.get("match_reason")
        name = "cosine" if mode == "cascade" else mode
        out.append(None if reason is None else reason[name])
    return out


@modest
@given(drawn=_rows, query=_queries, mode=_modes, penalty=st.booleans())
def test_answers_ascend_by_the_score_that_orders_them_and_unscored_rows_stand_before_them(
    place, drawn, query, mode, penalty
):
    """Contract: recall.order."""
    with place(drawn) as world:
        scores = ordering_scores(
            world.me.recall(query, {"recall_mode": mode, "episode_penalty_enabled": penalty}, limit=100, deep=True),
            mode,
        )
        known = [score for score in scores if score is not None]
        assert scores[: len(known)] == known == sorted(known, reverse=True)


@modest
@given(drawn=_rows, query=_queries)
def test_under_legacy_answers_ascend_by_confidence(place, drawn, query):
    """Contract: confidence.beside."""
    with place(drawn) as world:
        answer = world.me.recall(
            query, {"confidence_enabled": True, "confidence_ordering": "legacy"}, limit=100, deep=True
        )
        values = [row["match_reason"]["score"] for row in answer["messages"]]
        assert values == sorted(values)


@modest
@given(drawn=_rows, query=_queries, mode=_fusions, k=st.integers(1, 10))
def test_the_limit_cuts_from_the_weak_end_and_moves_nothing(place, drawn, query, mode, k):
    """Contract: recall.order."""
    with place(drawn) as world:
        under = {"recall_mode": mode, "recall_depth_floor": 100}
        whole = world.me.recall(query, under, limit=100)["messages"]
        assert world.me.recall(query, under, limit=k)["messages"] == whole[-k:]


@modest
@given(
    drawn=_rows,
    query=_queries,
    mode=_fusions,
    rate=st.sampled_from([0.0001, 0.01, 1, 1e6]),
    floor=st.sampled_from([0, 0.3, 0.9, 1]),
    anchor=st.sampled_from(["newest", "now"]),
    deep=st.booleans(),
)
def test_the_set_that_passes_the_gate_is_the_same_for_any_rate_floor_and_anchor(
    place, drawn, query, mode, rate, floor, anchor, deep
):
    """Contract: prior.order."""
    with place(drawn) as world:
        plain = world.me.recall(query, {"recall_mode": mode}, limit=100, deep=deep)
        weighed = world.me.recall(
            query,
            {"recall_mode": mode, "prior_age_rate": rate, "prior_age_floor": floor, "prior_age_anchor": anchor},
            limit=100,
            deep=deep,
        )
        assert set_of(plain) == set_of(weighed)
        assert (plain.get("considered"), plain.get("gated")) == (weighed.get("considered"), weighed.get("gated"))
        by_ref = {row["ref"]: row for row in plain["messages"]}
        for row in weighed["messages"]:
            reason = dict(row["match_reason"])
            prior = reason.pop("prior", None)
            assert reason == by_ref[row["ref"]]["match_reason"] and (prior is None or 0 <= prior <= 1)


@modest
@given(drawn=_rows, query=_queries, mode=_fusions, rate=st.sampled_from([0.01, 1]))
def test_with_the_age_weight_answers_ascend_by_fused_score_times_prior(place, drawn, query, mode, rate):
    """Contract: prior.age, prior.order."""
    with place(drawn) as world:
        rows = world.me.recall(
            query, {"recall_mode": mode, "prior_age_rate": rate, "prior_age_floor": 0.01}, limit=100, deep=True
        )["messages"]
        # The answer rounds p to four places, so neighbours may differ by that much.
        scores = [
            (row["match_reason"][mode] * row["match_reason"].get("prior", 1.0), row["match_reason"][mode])
            for row in rows
        ]
        assert all(a <= b + 1e-4 * max(fa, fb) for (a, fa), (b, fb) in zip(scores, scores[1:], strict=False))


@modest
@given(drawn=_rows, query=_queries, weight=st.floats(0, 1), window=st.integers(1, 20))
def test_an_rsf_score_lies_between_zero_and_one(place, drawn, query, weight, window):
    """Contract: scores.rsf."""
    with place(drawn) as world:
        under = {"recall_mode": "rsf", "max_memories": window, "vector_reach": 40, "prior_far_weight": weight}
        rows = world.me.recall(query, under, limit=100, trace=True)["trace"]["rows"]
        assert all(-1e-12 <= row["fused"] <= 1 + 1e-12 for row in rows if row["ref"] != "profile")


@modest
@given(drawn=_rows, query=st.one_of(_queries, st.just("")), chars=st.integers(1, 40))
def test_a_preview_is_a_pure_prefix_of_the_stored_text_and_says_what_is_missing(place, drawn, query, chars):
    """Contract: preview.prefix."""
    with place(drawn) as world:
        for row in world.me.recall(query, {"recall_preview_chars": chars}, limit=100, deep=True)["messages"]:
            whole = world.me.own("get_contents", refs=[row["ref"]])["items"][0]["content"]
            assert row["content"] == whole[:chars]
            assert ("content_truncated" in row, row.get("content_len", len(whole))) == (len(whole) > chars, len(whole))
            assert ("content_len" in row) == ("content_truncated" in row)


@modest
@given(drawn=_rows, query=_queries, count=st.integers(0, 9), mode=_modes)
def test_count_alone_never_moves_what_a_reconstruct_is_made_of(place, drawn, query, count, mode):
    """Contract: associations.reconstruct."""
    with place(drawn) as world:
        whole, part = (
            world.me.reconstruct(query, {"recall_mode": mode}, count=c, budget=20_000, deep=True) for c in (10, count)
        )
        assert part["items"] == whole["items"][:count]
        assert (part["effective_count"], part["returned_count"]) == (count, min(count, whole["returned_count"]))


@modest
@given(drawn=_rows, query=st.one_of(_queries, st.just("")), mode=_modes, limit=st.integers(1, 30), deep=st.booleans())
def test_confidence_gives_the_same_rows_in_the_same_order_under_fusion_ordering(place, drawn, query, mode, limit, deep):
    """Contract: confidence.beside."""
    with place(drawn) as world:
        off = world.me.recall(query, {"recall_mode": mode}, limit=limit, deep=deep)
        on = world.me.recall(query, {"recall_mode": mode, "confidence_enabled": True}, limit=limit, deep=deep)
        assert refs(on) == refs(off) and all("confidence" in row for row in on["messages"])
        for row, plain in zip(on["messages"], off["messages"], strict=True):
            # A cosine computed for display may stand beside; nothing that decided differs.
            assert {k: v for k, v in row.get("match_reason", {}).items() if k != "cosine"} == {
                k: v for k, v in plain.get("match_reason", {}).items() if k != "cosine"
            }


@modest
@given(drawn=_rows, query=st.one_of(_queries, st.just("")), mode=_modes, axes=_axes)
def test_recall_is_byte_identical_with_and_without_declarations(place, drawn, query, mode, axes):
    """Contract: associations.silent."""
    with place(drawn) as world:
        me, under = world.me, {"recall_mode": mode}
        before = byte_form(me.recall(query, under, limit=30, trace=True, **axes))
        mine = [ref for ref in world.rows if world.visible(ref)]
        for number, ref in enumerate(mine):
            other = mine[number - 1]
            me.own(
                "declare_associations",
                anchor_ref=ref,
                associations={
                    "entities": [
                        {"name": WORDS[number % 5], "aliases": [WORDS[(number + 1) % 5] + " too", "somewhere"]}
                    ],
                    "relations": [
                        {"subject": ref, "predicate": "supersedes", "object": other},
                        {"subject": WORDS[number % 5], "predicate": "near", "object": "somewhere"},
                    ],
                },
            )
        assert byte_form(me.recall(query, under, limit=30, trace=True, **axes)) == before


@modest
@given(drawn=_rows, query=_queries, mode=_modes, window=st.integers(1, 12), reach=st.integers(0, 30))
def test_the_far_weight_has_both_identity_ends(place, drawn, query, mode, window, reach):
    """Contract: prior.far."""
    with place(drawn) as world:
        near = {"recall_mode": mode, "max_memories": window}
        off, unpriced = (
            world.me.recall(query, near, limit=30),
            world.me.recall(query, near | {"vector_reach": reach}, limit=30),
        )
        assert byte_form(
            world.me.recall(query, near | {"vector_reach": reach, "prior_far_weight": 0}, limit=30)
        ) == byte_form(off)
        assert byte_form(
            world.me.recall(query, near | {"vector_reach": reach, "prior_far_weight": 1}, limit=30)
        ) == byte_form(unpriced)
        if reach <= window or mode == "cascade":
            assert byte_form(unpriced) == byte_form(off)


@modest
@given(drawn=_rows, query=_queries, window=st.integers(1, 12), far_limit=st.integers(0, 5))
def test_under_rrf_the_reach_can_only_add_rows_and_votes(place, drawn, query, window, far_limit):
    """Contract: window.reach."""
    with place(drawn) as world:
        near = {"max_memories": window, "autocut_enabled": False}
        off, on = (
            {row["ref"]: row for row in world.me.recall(query, near | more, limit=100, trace=True)["trace"]["rows"]}
            for more in ({}, {"vector_reach": 40, "vector_far_limit": far_limit})
        )
        assert off.keys() <= on.keys()
        for ref, row in off.items():
            assert on[ref].get("fused", 0) >= row.get("fused", 0)
        far = [ref for ref, row in on.items() if any(p["channel"] == "vector_far" for p in row["lists"])]
        assert far_limit == 0 or len(far) <= far_limit
