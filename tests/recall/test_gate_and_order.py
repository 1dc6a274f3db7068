"""Gate, autocut, prior, penalty and confidence.

Contract: gate.signal, gate.minimum, autocut.gap, prior.age, penalty.episode, confidence.score.
"""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpersona_daemon.model.kinds import PROFILE
from cpersona_daemon.model.signals import FUSED, Signal
from cpersona_daemon.recall.pipeline import LEGACY, PLANS
from cpersona_daemon.recall.scoring import gate, penalty, prior
from cpersona_daemon.recall.scoring.confidence import Frame, confidence
from cpersona_daemon.recall.stages import autocut
from cpersona_daemon.recall.stages.confidence import by_confidence
from cpersona_daemon.recall.types import Candidate
from cpersona_daemon.shared.settings import load
from cpersona_daemon.storage.candidates import Facts

DEFAULTS = load({"HOME": "/nonexistent"})
HOUR = 3600.0


def limits(pool=1000, admission=None, measured=None, deep=False, blank=False):
    return gate.thresholds(pool, k=60, deep=deep, blank=blank, admission=admission, measured=measured or {})


@pytest.mark.parametrize(("pool", "expected"), [(-1, 0.5), (0, 0.5), (1, 0.4665), (499, 0.2), (500, 0.2), (10**6, 0.2)])
def test_the_heuristic_minimum_falls_from_a_half_to_a_fifth(pool, expected):
    assert gate.heuristic_minimum(pool) == expected


def test_a_score_equal_to_its_threshold_passes():
    assert gate.passes(Candidate(("mem", 1), cosine=0.2), limits())
    assert not gate.passes(Candidate(("mem", 1), cosine=0.19999), limits())


def test_the_signal_chain_is_confidence_under_legacy_then_rsf_then_cosine_then_rrf():
    row = Candidate(("mem", 1), cosine=0.1, rrf=0.2, rsf=0.3, confidence=0.4)

    assert row.signal() == ("confidence", 0.4)
    row = row.with_(confidence=None)  # only the legacy ordering gives it one
    assert row.signal() == ("rsf", 0.3)
    assert row.with_(rsf=None).signal() == ("cosine", 0.1)
    assert row.with_(rsf=None, cosine=None).signal() == ("rrf", 0.2)
    assert Candidate(("mem", 1)).signal() is None


def test_only_the_legacy_ordering_gives_rows_a_confidence():
    assert {name for name in PLANS if by_confidence in PLANS[name]} == {n for n in PLANS if n.startswith(LEGACY)}


def test_rrf_compares_with_the_minimum_scaled_to_three_first_places():
    assert limits(pool=10**6).values["rrf"] == 0.2 * 3 / 61


def test_a_row_that_only_words_could_have_found_passes_on_one_first_place_in_the_smallest_store():
    first = Candidate(("mem", 1), rrf=1 / 61)
    assert not gate.passes(first, limits(pool=1))
    assert gate.passes(first.with_(has_vector=False), limits(pool=1))


def test_a_declared_admission_takes_the_place_of_the_minimum_for_cosine_and_rrf_alone():
    declared = limits(pool=1, admission=0.26)
    assert (declared.values["cosine"], declared.values["rrf"]) == (0.26, 0.26 * 3 / 61)
    assert declared.values["rsf"] == declared.values["confidence"] == gate.heuristic_minimum(1)


def test_a_measured_gate_wins_over_a_declared_one_and_rrf_compares_with_it_directly():
    measured = limits(admission=0.26, measured={"cosine": 0.31, "rrf": 0.02})
    assert (measured.values["cosine"], measured.values["rrf"]) == (0.31, 0.02)
    assert measured.word_rrf == 1 / 61


def test_deep_halves_every_threshold():
    assert limits(deep=True, measured={"cosine": 0.3}).values["cosine"] == 0.15
    assert limits(deep=True).values["rsf"] == 0.1


def test_rows_without_a_signal_need_a_pool_of_a_hundred_or_a_blank_query():
    row = Candidate(("mem", 1))
    assert not gate.passes(row, limits(pool=99))
    assert gate.passes(row, limits(pool=100))
    assert gate.passes(row, limits(pool=1, blank=True))


def test_the_profile_row_needs_a_pool_of_fifty_under_every_ordering():
    for row in (Candidate(PROFILE), Candidate(PROFILE, confidence=0.99)):
        assert not gate.passes(row, limits(pool=49))
        assert gate.passes(row, limits(pool=50))


def cosines(*values, **more):
    return [Candidate(("mem", i), cosine=v, **more) for i, v in enumerate(values)]


def cut(rows, **options):
    return autocut.cut(rows, Signal.COSINE, **{"min_results": 3, "min_gap_ratio": 0.15, **options})[0]


def test_autocut_ends_a_cosine_list_at_its_first_largest_gap():
    assert len(cut(cosines(0.9, 0.88, 0.5, 0.12))) == 2
    assert len(cut(cosines(0.9, 0.5, 0.48))) == 1


def test_autocut_needs_three_rows_and_a_gap_of_fifteen_percent_of_the_first_score():
    assert len(cut(cosines(0.9, 0.1))) == 2
    assert len(cut(cosines(0.9, 0.8, 0.7))) == 3
    assert len(cut(cosines(0.9, 0.1), min_results=2)) == 1


def test_autocut_leaves_fused_lists_and_mixed_lists_alone():
    for fused in FUSED:
        assert not {autocut.cut_cosines, autocut.cut_confidences} & set(PLANS[fused])
    assert len(cut([*cosines(0.9, 0.2, 0.1), Candidate(("mem", 9))])) == 4


def test_autocut_never_counts_or_cuts_the_profile_row():
    rows = [*cosines(0.9, 0.2, 0.1), Candidate(PROFILE)]
    assert [c.rid for c in cut(rows)] == [("mem", 0), PROFILE]


SPAN = (0.0, 100 * HOUR)


def order(rows, facts, **options):
    return prior.apply(
        rows,
        facts,
        SPAN,
        **{"signal": Signal.RRF, "rate": 0.1, "floor": 0.3, "anchor": "newest", "now": 1000 * HOUR, **options},
    )


def test_the_age_weight_falls_hyperbolically_to_its_floor():
    assert prior.age_weight(10, 0.1, 0.3) == 0.5
    assert prior.age_weight(10_000, 0.1, 0.3) == 0.3


def test_age_is_measured_from_the_newest_record_so_that_a_dormant_store_ranks_as_it_did():
    rows = [Candidate(("mem", 1), rrf=0.02), Candidate(("mem", 2), rrf=0.019)]
    facts = {("mem", 1): Facts(SPAN[0]), ("mem", 2): Facts(SPAN[1])}
    assert [c.rid[1] for c in order(rows, facts)] == [2, 1]
    assert order(rows, facts)[0].prior == 1.0
    assert order(rows, facts, anchor="now")[0].prior == 0.3


def test_an_undated_row_stands_at_the_middle_of_the_range_and_a_newer_episode_has_age_zero():
    rows = [Candidate(("mem", 1), rrf=0.02), Candidate(("ep", 1), rrf=0.02)]
    weighed = {
        c.rid: c.prior
        for c in order(rows, {("mem", 1): Facts(None), ("ep", 1): Facts(SPAN[1] + HOUR, is_episode=True)}, rate=0.02)
    }
    assert weighed == {("mem", 1): 1 / (1 + 50 * 0.02), ("ep", 1): 1.0}


def test_the_profile_row_is_not_weighted_and_keeps_the_end():
    rows = [Candidate(("mem", 1), rrf=0.02), Candidate(PROFILE)]
    assert [c.rid for c in order(rows, {("mem", 1): Facts(0.0)})] == [("mem", 1), PROFILE]


_rows = st.lists(
    st.tuples(st.floats(0.001, 0.05), st.one_of(st.none(), st.floats(0, 100 * HOUR))), min_size=1, max_size=15
)


@given(_rows, st.floats(0, 100), st.floats(0, 1), st.sampled_from(["newest", "now"]))
def test_the_prior_never_changes_which_rows_there_are(drawn, rate, floor, anchor):
    rows = [Candidate(("mem", i), rrf=score) for i, (score, _) in enumerate(drawn)]
    facts = {("mem", i): Facts(instant) for i, (_, instant) in enumerate(drawn)}
    out = order(rows, facts, rate=rate, floor=floor, anchor=anchor)
    assert {(c.rid, c.rrf) for c in out} == {(c.rid, c.rrf) for c in rows}


def test_the_episode_penalty_multiplies_what_is_older_than_the_boundary_down_to_its_floor():
    rows = [Candidate(("mem", 1), cosine=0.8, rrf=0.02), Candidate(("mem", 2), cosine=0.5, rrf=0.015)]
    facts = {("mem", 1): Facts(0.0), ("mem", 2): Facts(200 * HOUR)}
    out = penalty.apply(rows, facts, 100 * HOUR, rate=0.01, floor=0.5)
    assert [c.rid[1] for c in out] == [2, 1]
    assert (out[1].cosine, out[1].rrf) == (0.4, 0.01)
    assert penalty.factor(10, 0.01, 0.5) == math.exp(-0.1)


def test_episodes_undated_rows_and_a_store_without_a_boundary_are_exempt_from_the_penalty():
    rows = [Candidate(("ep", 1), cosine=0.8, rrf=0.02), Candidate(("mem", 2), cosine=0.5, rrf=0.015)]
    facts = {("ep", 1): Facts(0.0, is_episode=True), ("mem", 2): Facts(None)}
    assert penalty.apply(rows, facts, 100 * HOUR, rate=1, floor=0.1) == rows
    assert penalty.apply(rows, facts, None, rate=1, floor=0.1) == rows


def frame(now=100 * HOUR, span=SPAN, deep=False):
    return Frame(DEFAULTS, now, span, DEFAULTS.cosine_floor, DEFAULTS.cosine_ceil, deep)


def test_confidence_blends_similarity_and_age():
    value = confidence(frame(), Facts(50 * HOUR), 0.475)
    decay = 1 / (1 + 50 * 0.005)
    assert value == {"age_hours": 50.0, "cosine": 0.475, "score": round(math.sqrt(0.5 * decay), 4)}


def test_confidence_of_an_undated_row_takes_the_middle_age_and_says_so():
    assert confidence(frame(), Facts(None), None)["age_unknown"] is True
    assert confidence(frame(), Facts(None), None)["age_hours"] == 50.0
    assert confidence(frame(span=None), Facts(None), None)["age_hours"] == 12.0


def test_confidence_lowers_resolved_episodes_and_rows_recalled_a_moment_ago_unless_deep():
    plain = confidence(frame(), Facts(100 * HOUR), None)["score"]
    assert confidence(frame(), Facts(100 * HOUR, resolved=True), None)["score"] == round(plain * 0.3, 4)
    assert confidence(frame(), Facts(100 * HOUR, 1, 100 * HOUR - 60), None)["score"] == round(plain * 0.7, 4)
    assert confidence(frame(deep=True), Facts(0.0, 1, 100 * HOUR - 60, True), None)["score"] == 1.0
