"""A traced recall accounts for every candidate, and says what dropped a row and by how much.

Contract: explain.account.
"""

import random

import pytest
from contract_kit import episode, memory, refs

WORDS = "heliotrope lantern violin granite orchard compass meadow turbine saddle glacier".split()
MODES = {
    "rrf": {},
    "rsf": {"recall_mode": "rsf"},
    "rrf with reach": {"max_memories": 8, "vector_reach": 100, "prior_far_weight": 0.5},
    "rsf with reach": {"recall_mode": "rsf", "max_memories": 8, "vector_reach": 100, "prior_far_weight": 0.75},
    "cascade": {"recall_mode": "cascade"},
    "legacy": {"confidence_enabled": True, "confidence_ordering": "legacy"},
    "penalty": {"episode_penalty_enabled": True},
    "prior": {"prior_age_rate": 0.01},
}


def random_store(agent, seed):
    """Fill a store by chance and return some of its texts."""
    chance = random.Random(seed)
    agent.crowd(chance.choice((0, 60, 500)))
    rows = [
        memory(
            " ".join(chance.choices(WORDS, k=4)) + f" {n}",
            chance.choice((None, *(k / 32 for k in range(2, 32)))),
            at=-chance.random() * 500,
        )
        for n in range(30)
    ]
    rows += [
        episode(
            " ".join(chance.choices(WORDS, k=4)) + f" {n}",
            chance.choice((None, *(k / 32 for k in range(2, 32)))),
            at=-chance.random() * 500,
        )
        for n in range(5)
    ]
    agent.load(*rows)
    agent.own("update_profile", profile="likes tea")
    return chance, [row.get("content") or row["summary"] for row in rows]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(3))
def test_the_contributions_add_up_and_every_candidate_is_accounted_for(agent, mode, seed):
    """Contract: explain.account."""
    chance, texts = random_store(agent, seed)
    fused = MODES[mode].get("recall_mode", "rrf")
    for _ in range(4):
        query, limit = " ".join(chance.choices(WORDS, k=3)), chance.choice((1, 3, 10, 40))
        exclude = chance.sample(texts, 3)
        answer = agent.recall(query, MODES[mode], limit=limit, exclude_contents=exclude, trace=True)
        trace = answer["trace"]
        stages, rows = trace["stages"], {row["ref"]: row for row in trace["rows"]}
        returned = [row.get("ref", "profile") for row in answer["messages"]]
        assert {ref for ref, row in rows.items() if row["fate"] == "returned"} == set(returned)
        accounted = len(returned) + stages["below_gate"] + stages["autocut"] + stages["over_limit"]
        profile = rows.get("profile", {"fate": "gate"})["fate"] in ("returned", "limit")
        assert (stages["considered"], stages["returned"]) == (accounted - profile, len(returned))
        assert len([ref for ref in rows if ref != "profile"]) == stages["considered"]
        for ref, row in rows.items():
            if ref == "profile":
                continue
            if "score" in row:
                assert row["passes"] == (row["score"] >= row["threshold"])
            assert row["lists"], ref
            parts = [place["contribution"] for place in row["lists"] if "contribution" in place]
            if fused == "cascade":
                assert parts == [] and "fused" not in row
            else:
                assert len(parts) == len(row["lists"]) and row["fused"] == pytest.approx(sum(parts), abs=1e-15)
        scored = {
            row["ref"]: row["match_reason"] for row in answer["messages"] if "match_reason" in row and "ref" in row
        }
        for ref, reason in scored.items():
            assert (reason["signal"], reason["score"]) == (rows[ref]["signal"], rows[ref]["score"])
            if fused != "cascade":
                assert reason[fused] == pytest.approx(rows[ref]["fused"] * rows[ref].get("episode_penalty", 1.0))


def test_tracing_a_recall_changes_nothing_else_in_its_answer(agent):
    """Contract: explain.account, recall.stages."""
    random_store(agent, 9)
    for set in MODES.values():
        plain, traced = (agent.recall("heliotrope lantern", set, trace=trace, deep=True) for trace in (False, True))
        traced.pop("trace")
        for answer in (plain, traced):
            for row in answer["messages"]:
                row.pop("confidence", None)
        assert plain["messages"] and refs(plain) == refs(traced)
        if "confidence_enabled" not in set:
            assert plain == traced


def test_the_trace_shows_the_rank_and_score_of_a_row_on_every_channel(agent):
    """Contract: explain.account."""
    agent.crowd()
    first, second = agent.load(
        memory("heliotrope and lantern", 0.6), memory("heliotrope lantern heliotrope lantern", 0.7)
    )
    rows = {row["ref"]: row for row in agent.recall("heliotrope lantern", trace=True)["trace"]["rows"]}
    near, words = rows[first]["lists"]
    assert (near["channel"], near["rank"], near["contribution"]) == ("vector_near", 1, 1 / 62) and near[
        "score"
    ] == pytest.approx(0.6, abs=1e-6)
    assert (words["channel"], words["contribution"]) == ("memory_fts", 1 / (61 + words["rank"])) and words["score"] < 0
    assert rows[second]["lists"][0]["rank"] == 0


def dropped(agent, ref, query="a question", set=None, **params):
    return agent.recall(query, set, why_not=ref, **params)["trace"]["why_not"]


def test_why_not_names_the_scope(agent, other):
    """Contract: explain.account."""
    (row,) = agent.load(memory("elsewhere", 0.9, project_id="p", channel="c", source={"type": "User", "id": "u1"}))
    for params in ({"project_id": "q"}, {"channel": "d"}, {"source_id": "u2"}):
        assert dropped(agent, row, **params)["stage"] == "scope"
    assert dropped(other, row)["stage"] == dropped(agent, "mem:999999999")["stage"] == "scope"
    assert dropped(agent, row)["stage"] == "returned"


def test_why_not_does_not_tell_a_foreign_row_from_a_missing_one(agent, other):
    """Contract: explain.account, scope.axes."""
    (row,) = agent.load(memory("a secret", 0.9))
    found = [dropped(other, ref) for ref in (row, "mem:999999999")]
    assert found[0] | {"ref": None} == found[1] | {"ref": None}


def channels(answer):
    assert answer["stage"] == "retrieval"
    return {entry["channel"]: entry for entry in answer["channels"]}


def test_why_not_names_the_floor_and_the_number_it_missed_by(agent):
    """Contract: explain.account."""
    (row,) = agent.load(memory("far", 0.1))
    found = channels(dropped(agent, row))["vector_near"]
    assert (found["reason"], found["floor"]) == ("floor", 0.15) and found["missed_by"] == pytest.approx(0.05, abs=1e-6)


def test_why_not_names_the_depth(agent):
    """Contract: explain.account."""
    agent.crowd()
    rows = agent.load(*(memory(f"row {n}", 0.9 - n / 64) for n in range(5)))
    found = channels(dropped(agent, rows[4], limit=2))["vector_near"]
    assert (found["reason"], found["rank"], found["depth"], found["missed_by"]) == ("depth", 4, 2, 3)
    worded = agent.load(*(memory("heliotrope" + " again" * n) for n in range(4)))
    assert channels(dropped(agent, worded[3], "heliotrope", limit=2))["memory_fts"] == {
        "channel": "memory_fts",
        "reason": "depth",
        "rank": 3,
        "depth": 2,
        "missed_by": 2,
    }


def test_the_depth_is_missed_in_the_list_that_memories_and_episodes_share(agent):
    """Contract: explain.account, window.near."""
    agent.crowd()
    _, second, *_ = agent.load(memory("first", 0.9), memory("second", 0.6), episode("one", 0.8), episode("two", 0.7))
    found = channels(dropped(agent, second, limit=2))["vector_near"]
    assert (found["reason"], found["rank"], found["missed_by"]) == ("depth", 3, 2)


def test_the_depth_of_the_far_list_is_its_own(agent):
    """Contract: explain.account, window.reach."""
    agent.crowd()
    rows = agent.load(*(memory(f"row {n}", 0.6 + n / 64, at=-n) for n in range(6)))
    set = {"max_memories": 2, "vector_reach": 50, "vector_far_limit": 1}
    found = channels(dropped(agent, rows[3], set=set))["vector_far"]
    assert (found["reason"], found["rank"], found["depth"], found["missed_by"]) == ("depth", 2, 1, 2)
    for off in ({"prior_far_weight": 0}, {"recall_mode": "cascade"}):
        assert channels(dropped(agent, rows[3], set=set | off))["vector_near"]["reason"] == "window"


def test_why_not_names_the_room_that_a_cascade_had_left_for_words(agent):
    """Contract: explain.account, fusion.cascade."""
    agent.crowd()
    *_, worded = agent.load(memory("one", 0.9), memory("two", 0.8), memory("heliotrope"))
    found = dropped(agent, worded, "heliotrope", {"recall_mode": "cascade"}, limit=2)
    assert (found["stage"], found["channel"], found["rank"]) == ("limit", "memory_fts", 0)


def test_why_not_names_the_exclusion(agent):
    """Contract: explain.account."""
    (row,) = agent.load(memory("known already", 0.9))
    assert dropped(agent, row, exclude_contents=["Known already"])["stage"] == "exclusion"


def test_why_not_names_the_gate_with_the_threshold_and_the_number_it_missed_by(agent):
    """Contract: explain.account."""
    (row,) = agent.load(memory("weak", 0.3))
    found = dropped(agent, row)
    assert (found["stage"], found["signal"], found["threshold"]) == ("gate", "cosine", 0.4665)
    assert found["missed_by"] == pytest.approx(0.1665, abs=1e-6)
    (unscored,) = agent.load(memory("heliotrope"))
    assert dropped(agent, unscored, "heliotrope", {"recall_mode": "cascade"})["stage"] == "gate"


def test_why_not_names_the_limit(agent):
    """Contract: explain.account."""
    rows = agent.load(memory("one", 0.9), memory("two", 0.8), memory("three", 0.7))
    found = dropped(agent, rows[2], set={"recall_depth_floor": 10}, limit=1)
    assert (found["stage"], found["rank"], found["limit"], found["missed_by"]) == ("limit", 2, 1, 2)


def test_why_not_names_the_limit_of_a_blank_query_too(agent):
    """Contract: explain.account."""
    old, _ = agent.load(memory("old", at=0), memory("new", at=1))
    assert dropped(agent, old, "", limit=1)["stage"] == "limit"


def test_why_not_names_the_window(agent):
    """Contract: explain.account."""
    rows = agent.load(*(memory(f"row {n}", 0.9, at=-n) for n in range(4)))
    found = channels(dropped(agent, rows[3], set={"max_memories": 2}))["vector_near"]
    assert (found["reason"], found["window"]) == ("window", 2)


def test_why_not_names_autocut(agent):
    """Contract: explain.account."""
    agent.crowd()
    rows = agent.load(*(memory(f"row {n}", cosine) for n, cosine in enumerate((0.9, 0.88, 0.4))))
    assert dropped(agent, rows[2], set={"recall_mode": "cascade"})["stage"] == "autocut"


def test_why_not_names_a_row_without_a_vector_and_without_a_word_in_common(agent):
    """Contract: explain.account."""
    (row,) = agent.load(memory("silent"))
    found = channels(dropped(agent, row))
    assert (found["vector_near"]["reason"], found["memory_fts"]["reason"]) == ("no_usable_vector", "no_word_in_common")


def test_why_not_refuses_what_is_no_ref(agent):
    """Contract: explain.account."""
    answer = agent.own("recall", query="x", why_not="memory 1")
    assert answer["ok"] is False and agent.code == "invalid_params"


def test_a_recall_may_name_a_precision_for_itself_under_blend_alone(agent):
    """Contract: calibration.precision."""
    agent.load(memory("the heliotrope stands in the window", 0.6))

    def gate(**precision):
        answer = agent.recall("where is the heliotrope", {"recall_mode": "blend"}, trace=True, **precision)
        return answer["trace"]["thresholds"]["blend"]["value"]

    lenient, balanced, strict = (gate(precision=named) for named in ("lenient", "balanced", "strict"))
    assert lenient < balanced == gate() < strict
    for mode, named in (("blend", "exact"), ("rrf", "strict")):
        answer = agent.own("recall", {"recall_mode": mode}, query="heliotrope", precision=named)
        assert answer["messages"] == [] and "precision" in answer["error"] and agent.code == "invalid_params"
