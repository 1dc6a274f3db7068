"""One prior function: every weight for where a row sits, in order alone.

Contract: prior.age, prior.order, prior.far.
"""

import pytest
from contract_kit import episode, memory, reasons, refs, stamp

from cpersona_daemon.shared import settings_table

RATE = {"prior_age_rate": 0.01}
REACH = {"max_memories": 3, "vector_reach": 100}
MODES = ("rrf", "rsf")


def ladder(agent, count=8):
    """Rows with cosines of one step each, the oldest the nearest; ten hours apart."""
    return agent.load(*(memory(f"row {n}", 0.6 + n / 64, at=-10 * n) for n in range(count)))


def weight(hours, rate=0.01, floor=0.3):
    return max(floor, 1 / (1 + hours * rate))


# The prior


def test_the_ordering_score_under_rrf_is_the_prior_times_the_sum_of_reciprocal_ranks(agent):
    """Contract: prior.age, fusion.rrf."""
    agent.crowd()
    rows = ladder(agent)
    answer = agent.recall("a question", RATE)
    found = reasons(answer)
    for place, row in enumerate(rows):
        assert found[row]["rrf"] == 1 / (60 + (7 - place) + 1)
        assert found[row]["prior"] == round(weight(10 * place), 4)
    expected = sorted(rows, key=lambda row: found[row]["rrf"] * weight(10 * rows.index(row)))
    assert refs(answer) == expected != refs(agent.recall("a question"))


def test_the_weight_of_the_near_full_text_and_keyword_lists_is_one(agent):
    """Contract: prior.age, fusion.rrf."""
    agent.crowd()
    meant, worded = agent.load(memory("by meaning", 0.6), memory("the word heliotrope"))
    for set in ({}, {"fts_enabled": False}, {"prior_far_weight": 0.25}):
        assert {r["rrf"] for r in reasons(agent.recall("heliotrope", set)).values()} == {1 / 61}


@pytest.mark.parametrize("far_weight", [0.25, 0.5, 0.75])
def test_the_weight_of_the_far_list_is_the_far_weight(agent, far_weight):
    """Contract: prior.far."""
    agent.crowd()
    rows = ladder(agent)
    found = reasons(agent.recall("a question", REACH | {"prior_far_weight": far_weight}))
    assert [found[row]["rrf"] for row in rows[3:]] == [far_weight / (60 + rank + 1) for rank in (4, 3, 2, 1, 0)]
    assert [found[row]["rrf"] for row in rows[:3]] == [1 / 63, 1 / 62, 1 / 61]


@pytest.mark.parametrize("mode", MODES)
def test_a_far_weight_of_zero_is_the_reach_turned_off_to_the_digit(agent, mode):
    """Contract: prior.far."""
    agent.crowd()
    ladder(agent)
    off = agent.recall("a question", {"max_memories": 3, "recall_mode": mode})
    assert agent.recall("a question", REACH | {"prior_far_weight": 0, "recall_mode": mode}) == off


@pytest.mark.parametrize("mode", MODES)
def test_a_far_weight_of_one_is_the_unpriced_reach_to_the_digit(agent, mode):
    """Contract: prior.far."""
    agent.crowd()
    ladder(agent)
    plain = agent.recall("a question", REACH | {"recall_mode": mode})
    assert agent.recall("a question", REACH | {"prior_far_weight": 1, "recall_mode": mode}) == plain
    assert len(plain["messages"]) > 3 or mode == "rsf"


def test_the_age_weight_is_hyperbolic_with_a_floor(agent):
    """Contract: prior.age."""
    rows = agent.load(*(memory(f"row {n}", 0.6, at=-hours) for n, hours in enumerate((0, 50, 100, 10_000))))
    found = reasons(agent.recall("a question", RATE | {"prior_age_floor": 0.2}))
    assert [found[row]["prior"] for row in rows] == [1.0, round(1 / 1.5, 4), 0.5, 0.2]


def test_under_rsf_the_prior_multiplies_the_fused_normalised_score(agent):
    """Contract: prior.age."""
    agent.crowd()
    rows = agent.load(memory("new", 0.56, at=0), memory("old", 0.6, at=-1000), memory("last", 0.5, at=0))
    plain, weighed = (agent.recall("a question", set | {"recall_mode": "rsf"}) for set in ({}, RATE))
    assert (refs(plain), refs(weighed)) == ([rows[0], rows[1]], [rows[1], rows[0]])
    for row in rows[:2]:
        assert reasons(weighed)[row]["rsf"] == reasons(plain)[row]["rsf"]
    assert reasons(weighed)[rows[1]]["prior"] == 0.3


def test_under_rsf_the_far_channel_is_weighted_and_the_divisor_unchanged(agent):
    """Contract: prior.far."""
    agent.crowd()
    rows = ladder(agent, 6)
    found = {
        w: reasons(agent.recall("a question", REACH | {"recall_mode": "rsf", "prior_far_weight": w}, deep=True))
        for w in (1, 0.5)
    }
    assert (found[1][rows[5]]["rsf"], found[0.5][rows[5]]["rsf"]) == (0.5, 0.25)
    assert found[1][rows[2]]["rsf"] == found[0.5][rows[2]]["rsf"] == 0.5


# The prior orders; it never admits


@pytest.mark.parametrize("mode", MODES)
def test_the_set_of_rows_that_pass_the_gate_is_unchanged_however_extreme_the_prior_is(agent, mode):
    """Contract: prior.order."""
    ladder(agent)
    agent.load(memory("below the gate", 0.3, at=0), memory("the word heliotrope", at=-400))
    passing = {
        frozenset(
            refs(
                agent.recall(
                    "heliotrope",
                    {"recall_mode": mode, "prior_age_rate": rate, "prior_age_floor": floor, "prior_age_anchor": anchor},
                )
            )
        )
        for rate in (0, 0.001, 1000)
        for floor in (0, 0.3, 1)
        for anchor in ("newest", "now")
    }
    assert len(passing) == 1


def test_the_gate_and_autocut_keep_reading_the_fused_score(agent):
    """Contract: prior.order."""
    rows = ladder(agent)
    plain, weighed = (
        reasons(agent.recall("a question")),
        reasons(agent.recall("a question", {"prior_age_rate": 100, "prior_age_floor": 0})),
    )
    for row in rows:
        assert (weighed[row]["signal"], weighed[row]["score"]) == (plain[row]["signal"], plain[row]["score"])


def test_the_gate_reads_the_far_weight_since_a_votes_price_is_part_of_the_fusion(agent):
    """Contract: prior.far, prior.order."""
    agent.crowd()
    rows = ladder(agent, 5)
    set = REACH | {"recall_mode": "rsf"}
    assert rows[4] in refs(agent.recall("a question", set))
    assert rows[4] not in refs(agent.recall("a question", set | {"prior_far_weight": 0.1}))


def test_only_the_order_in_which_the_count_cuts_moves(agent):
    """Contract: prior.order."""
    agent.crowd()
    rows = ladder(agent)
    deep_enough = {"recall_depth_floor": 50}
    assert set(refs(agent.recall("a question", deep_enough, limit=2))) == set(rows[6:])
    assert set(
        refs(agent.recall("a question", deep_enough | {"prior_age_rate": 100, "prior_age_floor": 0}, limit=2))
    ) == set(rows[:2])


# How age is measured


def test_age_is_measured_from_the_newest_record_of_the_scope(agent):
    """Contract: prior.age."""
    first, second = agent.load(memory("newest", 0.6, at=-5000), memory("older", 0.6, at=-5100))
    found = reasons(agent.recall("a question", RATE))
    assert (found[first]["prior"], found[second]["prior"]) == (1.0, 0.5)


def test_the_newest_record_is_sought_in_the_axes_of_the_recall(agent):
    """Contract: prior.age."""
    row, _ = agent.load(memory("here", 0.6, at=-100, project_id="p"), memory("elsewhere", 0.6, at=0, project_id="q"))
    assert reasons(agent.recall("a question", RATE, project_id="p"))[row]["prior"] == 1.0
    assert reasons(agent.recall("a question", RATE))[row]["prior"] == 0.5


def test_an_episode_newer_than_the_newest_memory_counts_as_age_zero(agent):
    """Contract: prior.age."""
    older, newer = agent.load(memory("older", 0.6, at=-100), memory("newest memory", 0.6, at=0))
    (ahead,) = agent.load(episode("ahead", 0.6, at=500))
    found = reasons(agent.recall("a question", RATE))
    assert (found[ahead]["prior"], found[newer]["prior"], found[older]["prior"]) == (1.0, 1.0, 0.5)


def test_a_dormant_store_ranks_exactly_as_it_did_when_it_was_last_used(agent, other):
    """Contract: prior.age."""
    answers = []
    for who, start in ((agent, 0), (other, -87_600)):
        who.load(*(memory(f"row {n}", 0.6 + n / 64, at=start - 10 * n) for n in range(6)))
        answers.append([(row["content"], row["match_reason"]) for row in who.recall("a question", RATE)["messages"]])
    assert answers[0] == answers[1]


def test_the_anchor_now_measures_from_the_current_time(agent):
    """Contract: prior.age."""
    (row,) = agent.load(memory("of ten years ago", 0.6, at=-87_600))
    assert reasons(agent.recall("a question", RATE))[row]["prior"] == 1.0
    assert reasons(agent.recall("a question", RATE | {"prior_age_anchor": "now"}))[row]["prior"] == 0.3


def test_a_row_with_no_usable_timestamp_is_placed_at_the_middle_of_the_scopes_age_range(agent):
    """Contract: prior.age."""
    agent.load(memory("newest", 0.6, at=0), memory("oldest", 0.6, at=-200))
    undated, garbled = agent.load(
        memory("undated", 0.6, timestamp=""), memory("garbled", 0.6, timestamp="one fine day")
    )
    found = reasons(agent.recall("a question", RATE))
    assert found[undated]["prior"] == found[garbled]["prior"] == 0.5


def test_a_stamp_in_any_offset_is_the_instant_that_it_names(agent):
    """Contract: prior.age, time.utc."""
    agent.load(memory("newest", 0.6, timestamp="2026-01-05T10:00:00+09:00"))
    (row,) = agent.load(memory("an hour before", 0.6, timestamp="2026-01-04T19:00:00-05:00"))
    assert reasons(agent.recall("a question", {"prior_age_rate": 1.0}))[row]["prior"] == 0.5


def test_episodes_are_aged_by_their_own_timestamps_under_the_same_rule(agent):
    """Contract: prior.age."""
    agent.load(memory("newest", 0.6, at=0))
    started, created_only = agent.load(
        episode("with a start", 0.6, at=0, start_time=stamp(-100), end_time=stamp(-50)),
        episode("without one", 0.6, at=-300),
    )
    found = reasons(agent.recall("a question", {"prior_age_rate": 0.01, "prior_age_floor": 0.1}))
    assert (found[started]["prior"], found[created_only]["prior"]) == (0.5, 0.25)


def test_profile_rows_carry_no_score_and_are_not_weighted(agent):
    """Contract: prior.age, profile.row."""
    agent.crowd(50)
    agent.own("update_profile", profile="likes tea")
    (row,) = agent.load(memory("a row", 0.6, at=0))
    answer = agent.recall("a question", RATE)
    assert refs(answer) == ["profile", row] and set(reasons(answer)) == {row}


def test_the_prior_does_nothing_in_a_scope_without_a_dated_memory(agent):
    """Contract: prior.age."""
    agent.load(memory("undated", 0.6, timestamp=""), episode("an episode", 0.7, at=-500))
    assert agent.recall("a question", RATE) == agent.recall("a question")


def test_the_prior_does_nothing_under_cascade_or_legacy_ordering(agent):
    """Contract: prior.age."""
    ladder(agent)
    for set in ({"recall_mode": "cascade"}, {"confidence_enabled": True, "confidence_ordering": "legacy"}):
        plain, weighed = (
            agent.recall("a question", set, deep=True),
            agent.recall("a question", set | {"prior_age_rate": 10}, deep=True),
        )
        assert refs(plain) == refs(weighed) and all("prior" not in reason for reason in reasons(weighed).values())


# Confidence, the episode boundary penalty


def test_the_time_decay_inside_confidence_stops_affecting_order(agent):
    """Contract: confidence.beside."""
    agent.crowd()
    old, new = agent.load(memory("old", 0.6, at=-50_000), memory("new", 0.56, at=0))
    on = {"confidence_enabled": True, "decay_rate": 1.0}
    assert refs(agent.recall("a question", on)) == [new, old]
    assert refs(agent.recall("a question", on | RATE)) == [old, new]


def test_the_confidence_value_is_computed_and_returned_as_a_separate_value(agent):
    """Contract: confidence.beside."""
    agent.load(memory("a row", 0.6, at=0))
    assert set(agent.recall("a question", {"confidence_enabled": True})["messages"][0]["confidence"]) == {
        "age_hours",
        "cosine",
        "score",
    }


def test_legacy_restores_the_re_sort_and_the_confidence_gate(agent):
    """Contract: confidence.beside."""
    agent.crowd()
    old, new = agent.load(memory("old", 0.6, at=-50_000), memory("new", 0.56, at=0))
    answer = agent.recall(
        "a question",
        {
            "confidence_enabled": True,
            "confidence_ordering": "legacy",
            "decay_rate": 1.0,
            "decay_floor": 0.0,
            "decay_ceil": 0.0,
        },
    )
    assert {reason["signal"] for reason in reasons(answer).values()} <= {"confidence"} and old not in refs(answer)[-1:]


def test_the_episode_penalty_stays_available_as_an_opt_in(agent):
    """Contract: penalty.episode."""
    agent.crowd()
    row, _ = agent.load(memory("before", 0.8, at=-1000), episode("boundary", at=0))
    assert reasons(agent.recall("a question", {"episode_penalty_enabled": True}))[row]["cosine"] == pytest.approx(
        0.4, abs=1e-6
    )


# Settings


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("CPERSONA_PRIOR_FAR_WEIGHT", 1.0),
        ("CPERSONA_PRIOR_AGE_RATE", 0.0),
        ("CPERSONA_PRIOR_AGE_FLOOR", 0.3),
        ("CPERSONA_PRIOR_AGE_ANCHOR", "newest"),
        ("CPERSONA_CONFIDENCE_ORDERING", "fusion"),
    ],
)
def test_the_settings_have_the_defaults_of_the_table(name, default):
    """Contract: settings.values, prior.age."""
    setting = next(s for s in settings_table.TABLE if s.variable == name)
    assert (setting.default, setting.scope) == (default, settings_table.RETRIEVAL)


def test_at_the_defaults_nothing_of_the_prior_shows(agent):
    """Contract: prior.age."""
    ladder(agent)
    defaults = {
        "prior_far_weight": 1.0,
        "prior_age_rate": 0,
        "prior_age_floor": 0.3,
        "prior_age_anchor": "newest",
        "confidence_ordering": "fusion",
    }
    answer = agent.recall("a question")
    assert agent.recall("a question", defaults) == answer
    assert all(set(reason) == {"signal", "score", "cosine", "rrf"} for reason in reasons(answer).values())


def test_the_far_weight_is_only_meaningful_when_the_reach_is_above_the_window(agent):
    """Contract: prior.far, window.reach."""
    ladder(agent)
    assert agent.recall("a question", {"prior_far_weight": 0.1}) == agent.recall("a question")
