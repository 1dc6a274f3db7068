"""What is done in which order: one plan for each way to answer, and every list of signals from one table.

Rules: recall.stages, gate.signal, penalty.episode, prior.order.
"""

from __future__ import annotations

import itertools

import pytest

from cpersona_daemon.model.signals import BESIDE, FUSED, LEGACY, LISTED, ORDERING, PENALISED, Signal, compared_in
from cpersona_daemon.recall import pipeline
from cpersona_daemon.recall.pipeline import PLANS, plan_of
from cpersona_daemon.recall.stages.age import penalise, weigh_age
from cpersona_daemon.recall.stages.gate import gate, rescue
from cpersona_daemon.recall.stages.limit import limit
from cpersona_daemon.recall.stages.reserve import reserve
from cpersona_daemon.recall.stages.versions import order_versions
from cpersona_daemon.shared.settings import load
from cpersona_daemon.text.question import Question

MODES = ("blend", "rrf", "rsf", "cascade")
QUESTIONS = {"something": "tea", "nothing": " ", "signs": "()*"}


def settings(mode: str, ordering: str = "fusion"):
    values = {"recall_mode": mode, "confidence_enabled": True, "confidence_ordering": ordering}
    return load({"HOME": "/nonexistent"}, values)


def test_every_way_to_answer_has_a_plan_and_every_plan_is_some_way():
    ways = itertools.product(MODES, ("fusion", "legacy"), QUESTIONS.values())
    assert {plan_of(settings(mode, ordering), Question(text)) for mode, ordering, text in ways} == set(PLANS)


def test_a_question_without_a_word_is_a_plan_of_its_own_under_a_blend_alone():
    named = {mode: plan_of(settings(mode), Question("()*")) for mode in MODES}
    assert named == {"blend": "wordless", "rrf": "rrf", "rsf": "rsf", "cascade": "cascade"}


@pytest.mark.parametrize("name", PLANS)
def test_every_plan_has_one_gate_and_ends_with_the_limit_but_for_the_seats_beside_it(name):
    stages = PLANS[name]
    assert stages.count(gate) == 1 and stages.count(limit) == 1
    seats = (reserve,) if name.removeprefix("legacy ") in ("rrf", "rsf", "cascade") else ()
    assert stages[stages.index(limit) + 1 :] == seats


@pytest.mark.parametrize("name", PLANS)
def test_the_penalty_reaches_the_gate_and_what_only_orders_stands_behind_it(name):
    stages = PLANS[name]
    at = stages.index(gate)
    assert penalise not in stages[at:] and not {weigh_age, order_versions, rescue} & set(stages[:at])


def test_the_prior_is_for_modes_with_a_fused_score_and_never_for_the_legacy_ordering():
    assert {name for name in PLANS if weigh_age in PLANS[name]} == {signal.value for signal in FUSED}


def test_what_stages_take_from_the_table_of_signals_is_what_the_contract_names():
    assert [s.value for s in Signal] == ["confidence", "blend", "rsf", "cosine", "rrf"]
    assert ORDERING == ("blend", "rsf", "rrf", "cosine")
    assert set(PENALISED) == {"blend", "rsf", "cosine", "rrf"} and LEGACY == ("confidence",)
    assert LISTED == ("blend", "cosine", "rrf", "rsf", "confidence") and BESIDE == ("cosine", "rrf", "rsf")
    assert {mode: compared_in(mode) for mode in MODES} == {
        "blend": ("blend",),
        "rrf": ("cosine", "rrf"),
        "rsf": ("rsf", "cosine"),
        "cascade": ("cosine",),
    }
    assert {s.value for s in Signal if s.absolute} == {"confidence", "blend", "cosine"}


def test_a_minimum_on_the_scale_of_ranks_is_three_first_places_of_it():
    assert [s.scaled(0.2, 60) for s in Signal] == [0.2, 0.2, 0.2, 0.2, 0.2 * 3 / 61]


def test_a_stage_takes_what_the_one_before_it_left(monkeypatch):
    run = object()
    seen = []

    def stage(number):
        return lambda given, rows: seen.append((given is run, list(rows))) or [*rows, number]

    assert pipeline._walk(run, (stage(1), stage(2))) == [1, 2]
    assert seen == [(True, []), (True, [1])]
