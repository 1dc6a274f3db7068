"""Saved questions and what a calibration changes. Contract: canary.run, calibration.rollback, recall.uncounted."""

import asyncio
import base64
import struct

from house_kit import memory

from cpersona_daemon.health import canaries
from cpersona_daemon.model.identity import VectorModel
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.recall import recent
from cpersona_daemon.recall.scoring.blend import GATE
from cpersona_daemon.recall.types import Query
from cpersona_daemon.rpc.dispatch import dispatch
from cpersona_daemon.rpc.envelopes import Request


def keep(house, *texts, agent="a"):
    return [f"mem:{house.ask('store', agent_id=agent, content=text)['id']}" for text in texts]


def settled(house):
    """Wait for the canaries that run in the background."""

    async def wait():
        await asyncio.gather(*(task for task in house.ctx.tasks if task.get_coro().__name__ == "run_after"))

    house.run(wait())


def b64(*values):
    return base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode()


def test_a_canary_is_saved_with_how_its_question_goes_now_and_once_only(house):
    first, second = keep(house, "walnuts grow on trees", "the kettle whistles")
    added = house.ask("add_canary", agent_id="a", query=" walnuts ", ref=first)
    assert added == {
        "ok": True,
        "id": 1,
        "created": True,
        "agent_id": "a",
        "query": "walnuts",
        "ref": first,
        "state": "found",
        "rank": 1,
    }
    assert house.ask("add_canary", agent_id="a", query="walnuts", ref=first) | {"created": True} == added
    assert house.ask("add_canary", agent_id="a", query="walnuts", ref=second)["state"] == "lost"
    listed = house.ask("list_canaries", agent_id="a")
    assert listed["count"] == 2 and [(c["id"], c["state"], c.get("rank")) for c in listed["canaries"]] == [
        (1, "found", 1),
        (2, "lost", None),
    ]


def test_a_canary_needs_a_row_of_its_own_agent(house):
    (ref,) = keep(house, "walnuts", agent="b")
    for wrong in (ref, "mem:99", "ep:1"):
        assert (
            house.ask("add_canary", agent_id="a", query="walnuts", ref=wrong)["ok"] is False and house.code == "refused"
        )
    for params in ({"query": "walnuts", "ref": "12"}, {"query": " ", "ref": ref}, {"query": "x" * 8001, "ref": ref}):
        assert house.ask("add_canary", agent_id="b", **params)["ok"] is False and house.code == "invalid_params"
    assert house.ask("list_canaries") == {"canaries": [], "count": 0}


def test_a_run_tells_a_row_that_does_not_come_back_from_one_that_is_gone(house):
    first, second = keep(house, "walnuts grow on trees", "the kettle whistles")
    for query, ref in (("walnuts", first), ("kettle", second)):
        house.ask("add_canary", agent_id="a", query=query, ref=ref)
    house.ask("delete_memory", memory_id=1)
    house.ask("update_memory", memory_id=2, content="nothing of that")
    answer = house.ask("run_canaries", agent_id="a")
    assert (answer["ok"], answer["total"], answer["found"], answer["lost"]) == (True, 2, 0, 2)
    assert [c["state"] for c in answer["canaries"]] == ["gone", "lost"]


def test_health_runs_the_canaries_and_names_the_lost_ones(house):
    (ref,) = keep(house, "walnuts grow on trees")
    house.ask("add_canary", agent_id="a", query="walnuts", ref=ref)
    assert house.ask("check_health", checks=["canaries"])["status"] == "healthy"
    house.ask("update_memory", memory_id=1, content="almonds do too")
    answer = house.ask("check_health", checks=["canaries"])
    assert answer["status"] == "degraded" and [(i["canary"], i["ref"]) for i in answer["issues"]] == [(1, ref)]
    assert "walnuts" not in str(answer)


def test_a_canary_asks_within_its_project_and_channel(house):
    house.ask("store", agent_id="a", content="walnuts here", project_id="p", channel="c")
    assert (
        house.ask("add_canary", agent_id="a", query="walnuts", ref="mem:1", project_id="p", channel="c")["state"]
        == "found"
    )
    outside = house.ask("add_canary", agent_id="a", query="walnuts", ref="mem:1", project_id="q")
    assert (outside["state"], outside["project_id"]) == ("lost", "q")


def test_an_import_runs_the_canaries_in_the_background(house):
    (ref,) = keep(house, "walnuts grow on trees")
    house.ask("add_canary", agent_id="a", query="walnuts", ref=ref)
    house.change("UPDATE canaries SET state = '', ran_at = NULL")
    house.ask("import_memories", input_path=house.write("in.jsonl", memory("something else")))
    settled(house)
    assert house.sql("SELECT state, rank FROM canaries") == [("found", 1)]


def test_a_start_runs_them_only_when_version_model_or_scoring_changed(house):
    (ref,) = keep(house, "walnuts grow on trees")
    house.ask("add_canary", agent_id="a", query="walnuts", ref=ref)

    def restarted():
        house.change("UPDATE canaries SET state = ''")
        house.run(canaries.run_if_changed(house.ctx))
        return house.sql("SELECT state FROM canaries")[0][0]

    assert restarted() == "found"
    assert restarted() == ""
    house.change("UPDATE meta SET value = '0.0.1 none 1 rrf' WHERE key = 'canaries_ran_with'")
    assert restarted() == "found"


def test_they_run_again_where_the_model_changed_while_they_ran(house, monkeypatch):
    (ref,) = keep(house, "walnuts grow on trees")
    house.ask("add_canary", agent_id="a", query="walnuts", ref=ref)
    run = canaries.run

    async def run_and_change(ctx, *given):
        outcomes = await run(ctx, *given)
        monkeypatch.setattr(ctx.embedding._embedder, "model", VectorModel("another", 8))
        return outcomes

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(canaries, "run", run_and_change)
        house.run(canaries.run_if_changed(house.ctx))
    house.change("UPDATE canaries SET state = ''")
    house.run(canaries.run_if_changed(house.ctx))
    assert house.sql("SELECT state FROM canaries") == [("found",)]


def test_removing_a_canary_or_its_agent_leaves_none(house):
    (ref,) = keep(house, "walnuts grow on trees")
    for query in ("walnuts", "trees"):
        house.ask("add_canary", agent_id="a", query=query, ref=ref)
    assert house.ask("remove_canary", canary_id=1, agent_id="b")["ok"] is False
    assert house.ask("remove_canary", canary_id=1, agent_id="a") == {"ok": True, "removed_id": 1}
    house.ask("recall", agent_id="a", query="walnuts")
    house.ask("delete_agent_data", agent_id="a")
    assert house.ask("list_canaries")["count"] == 0 and house.ctx.recent.of("a") == []


def test_recent_questions_are_kept_once_at_most_fifty_and_never_while_paused(house):
    keep(house, "walnuts")
    for query in ("walnuts", "", "walnuts"):
        house.ask("recall", agent_id="a", query=query)
    house.ask("recall", agent_id="a", query="walnuts and more", exclude_contents=["x"])
    assert [query.text for query, _ in house.ctx.recent.of()] == ["walnuts"]
    house.ask("pause_persistence")
    house.ask("recall", agent_id="a", query="said in confidence")
    house.ask("resume_persistence")
    house.ask("recall", agent_id="a", query="said in passing", uncounted=True)
    assert len(house.ctx.recent.of("a")) == 1
    held = recent.RecentRecalls()
    for n in range(60):
        held.add(Query(f"q{n}", Scope("a"), 10), house.settings)
    assert [query.text for query, _ in held.of("a")] == [f"q{n}" for n in range(10, 60)] and held.of("b") == []


def calibrate(house, **params):
    """Ask for a calibration; its `method` would be taken for the request's."""
    answer, house.code = house.run(
        dispatch(house.ctx, house.caller, Request(1, "calibrate_threshold", {"agent_id": "a", **params}))
    )
    return answer


def bursts(house):
    """Twelve memories with vectors, in three bursts of related ones a day apart."""
    lines = []
    for topic in range(3):
        for n in range(4):
            vector = [0.05 * n, 0.02, 0.01, 0.3]
            vector[topic] += 1.0
            lines.append(
                memory(
                    f"topic {topic} number {n}",
                    timestamp=f"2026-01-0{topic + 1}T00:{n:02}:00Z",
                    embedding_b64=b64(*vector),
                )
            )
    assert house.ask("import_memories", input_path=house.write("bursts.jsonl", *lines))["ok"]


def test_a_calibration_tells_what_it_changes_and_a_rollback_returns_to_the_one_before(house):
    bursts(house)
    house.ask("add_canary", agent_id="a", query="topic", ref="mem:1")
    house.ask("recall", agent_id="a", query="number")
    first = calibrate(house)
    assert (
        first["old_gates"] == {"blend": GATE}
        and first["canaries"]["total"] == 1
        and first["recent_recalls"]["total"] == 1
    )
    dry = calibrate(house, method="percentile", percentile=0.5, dry_run=True)
    assert (
        dry["old_threshold"] == first["new_threshold"]
        and house.ctx.calibration.threshold("a") == first["new_threshold"]
    )
    second = calibrate(house, method="percentile", percentile=0.5)
    assert second["new_threshold"] != first["new_threshold"]
    looked = calibrate(house, rollback=True, dry_run=True)
    assert looked["rolled_back"] is False and house.ctx.calibration.threshold("a") == second["new_threshold"]
    back = calibrate(house, rollback=True)
    assert (back["rolled_back"], back["old_threshold"], back["new_threshold"]) == (
        True,
        second["new_threshold"],
        first["new_threshold"],
    )
    assert house.ctx.calibration.threshold("a") == first["new_threshold"] and back["gates"] == first["gates"]
    assert calibrate(house, agent_id="b", rollback=True)["ok"] is False and house.code == "refused"


def test_a_canary_that_a_calibration_would_lose_is_named_before_anything_is_kept(house):
    (ref,) = keep(house, "walnuts grow on trees")
    house.ask("add_canary", agent_id="a", query="walnuts", ref=ref)
    compare = canaries.comparison(house.ctx, house.settings, "a")
    before = house.ctx.calibration.current
    strict = before.with_gates("a", "rrf", ("cosine", "rrf"), {"rrf": 0.5})
    told = house.run(compare(before, strict))
    assert told["canaries"]["total"] == 1
    # A row that words alone could find passes at 1/(k+1) whatever the gate, so an identifier is never lost to a
    # calibration.
    assert told["canaries"]["lost"] == 0
    house.ask("update_memory", memory_id=1, content="gone from here")
    assert house.run(compare(before, strict))["canaries"]["lost"] == 1


def test_rolling_back_the_first_calibration_returns_to_the_built_in_number(house):
    bursts(house)
    first = calibrate(house)
    back = calibrate(house, rollback=True)
    assert back["new_threshold"] == first["old_threshold"] == 0.3 and back["gates"] == {"blend": GATE}
