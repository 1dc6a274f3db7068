"""The noise of a store and the gate of the blend that follows from it.

Contract: calibration.noise.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured_store import START, WIDTH, bursts, insert

from cpersona_daemon.calibration import noise
from cpersona_daemon.calibration.at_start import _recalibrate
from cpersona_daemon.calibration.plan import Plan
from cpersona_daemon.calibration.precision import set_precision
from cpersona_daemon.calibration.run import calibrate
from cpersona_daemon.embedding.values import Declared, Probes
from cpersona_daemon.errors import Refused
from cpersona_daemon.model.identity import Embedded
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.recall import pipeline, prepare
from cpersona_daemon.recall.scoring import blend
from cpersona_daemon.recall.types import Candidate, Query
from cpersona_daemon.storage.calibration import Sampled
from cpersona_daemon.text.question import Question

BLEND = {"recall_mode": "blend", "embedding_mode": "http", "embedding_url": "http://127.0.0.1:9/embed"}


def found(row_id, score):
    return Candidate(("mem", row_id), scored=blend.scored(score, score, 0.0))


def unit_rows(count):
    rows = np.random.default_rng(1).normal(size=(count, WIDTH)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


# -- arithmetic


def test_noise_is_the_lower_quartile_of_the_best_unrelated_rows_and_needs_ten_queries():
    assert noise.noise_of([0.1, 0.2, 0.3, 0.4, 0.9] * 2) == pytest.approx(0.2)
    assert noise.noise_of([0.1] * 9) is None and noise.gate_from(None, 1000, True) is None


def test_the_noise_of_questions_is_the_median_of_their_best_rows():
    rows = [
        [Candidate(("mem", n), blend=score, coverage=0.9), Candidate(("mem", 9), blend=0.01, coverage=1.0)]
        for n, score in enumerate((0.1, 0.2, 0.3, 0.4))
    ]
    assert noise.noise_of_questions([*rows, []]) == pytest.approx(0.2)


def test_the_memory_itself_and_rows_of_the_same_half_hour_are_related():
    asked = Sampled(1, "kit", START, "m1", np.zeros(2, np.float32))
    rows = [found(1, 0.9), found(2, 0.8), found(3, 0.3), found(4, 0.2)]
    instants = {("mem", 2): START + 1800, ("mem", 3): START + 1801, ("mem", 4): None}
    assert noise.best_unrelated(asked, rows, instants, 1800) == pytest.approx(0.3)
    assert noise.best_unrelated(asked, rows[:2], instants, 1800) == 0.0


def test_a_store_of_few_rows_keeps_the_shipped_gate_and_a_larger_one_moves_without_a_jump():
    gates = [noise.gate_from(0.9, rows, True) for rows in (0, 1, 3, 10, 30, 100, 1000, 100_000)]
    assert gates[0] == blend.GATE and gates == sorted(gates) and gates[1] - gates[0] < 0.001 and gates[2] < 0.115
    assert gates[-1] == pytest.approx(blend.size_gate(100_000) * noise.RANGE[1], abs=1e-3)


@given(st.floats(0, 5), st.integers(0, 10**6))
def test_the_gate_stays_within_its_range_whatever_is_measured(measured, rows):
    for asked, (low, high) in ((True, noise.RANGE), (False, noise.RANGE_OPENINGS)):
        by_size = blend.size_gate(rows)
        assert low * by_size - 1e-4 <= noise.gate_from(measured, rows, asked) <= high * by_size + 1e-4


# -- in a store


def test_calibrating_under_blend_measures_the_blend_and_nothing_else(in_store):
    async def body(ctx):
        insert(ctx, "kit", bursts(20, 4))
        answer = await calibrate(ctx, ctx.settings, Plan("kit"))
        assert set(answer["gates"]) == {"blend"}
        low, high = noise.RANGE_OPENINGS
        assert low * blend.GATE <= answer["gates"]["blend"] <= high * blend.GATE
        assert ctx.calibration.gate("kit", "blend", "blend", "m1") == answer["gates"]["blend"]
        assert (await calibrate(ctx, ctx.settings, Plan("kit")))["gates"] == answer["gates"]

    in_store(body, **BLEND)


def test_questions_about_anything_that_come_with_the_embedder_are_asked_and_move_the_gate(in_store):
    vectors = unit_rows(24)
    asked = Probes(tuple(f"question {n} about anything" for n in range(24)), vectors)
    rows = [
        (text, at, vector * -1 if vector @ vectors.mean(axis=0) > 0 else vector) for text, at, vector in bursts(20, 4)
    ]
    answers = [(f"an answer {n}", START + 1e7 + n * 1e5, vector) for n, vector in enumerate(vectors[:14])]

    async def body(ctx):
        ctx.embedding._embedder.declared = Declared(
            admission=0.26, min_similarity=0.2, cosine_floor=0.1, cosine_ceil=0.6, questions=asked
        )
        insert(ctx, "silent", rows)
        insert(ctx, "answering", [*rows, *answers])
        return [
            (await calibrate(ctx, ctx.settings, Plan(agent)))["gates"]["blend"]
            for agent in ("silent", "answering", "silent")
        ]

    silent, answering, again = in_store(body, **BLEND)
    assert blend.GATE * noise.RANGE[0] <= silent < answering <= blend.GATE * noise.RANGE[1] and again == silent


def test_more_noise_is_a_higher_gate():
    for asked in (True, False):
        gates = [noise.gate_from(measured, 500, asked) for measured in (0.0, 0.1, 0.115, 0.3)]
        assert gates == sorted(gates) and gates[0] < gates[-1]


def test_a_precision_under_blend_needs_no_measurement(in_store):
    async def body(ctx):
        insert(ctx, "kit", bursts(1, 3))
        for precision, beta in (("strict", 2.0), ("lenient", 0.5)):
            answer = await set_precision(ctx, ctx.settings, "kit", precision)
            assert answer["ok"] and ctx.calibration.beta("kit") == beta
        with pytest.raises(Refused):
            await calibrate(ctx, ctx.settings, Plan("kit"))

    in_store(body, **BLEND)


async def sizes_by_precision(ctx, questions):
    """Return how many rows each precision admits in all, after asserting that none admits less than the stricter one on
    any question.
    """
    admitted = {}
    for precision in ("strict", "balanced", "lenient"):
        await set_precision(ctx, ctx.settings, "kit", precision)
        for n, vector in enumerate(questions):
            query = Query(f"harbour lantern {n}", Scope("kit"), 1000)
            made = Embedded(vector, ctx.embedding.model.identity)
            run = prepare.run_of(ctx, ctx.settings, query, Question(query.text), made)
            result = await ctx.db.read(pipeline.answer, run)
            admitted.setdefault(n, []).append({row.ref for row in result.rows})
    assert all(strict <= balanced <= lenient for strict, balanced, lenient in admitted.values())
    return [sum(len(rows[i]) for rows in admitted.values()) for i in range(3)]


@pytest.mark.parametrize("mode", ["blend", "rrf", "rsf", "cascade"])
def test_the_rows_admitted_never_shrink_from_strict_over_balanced_to_lenient(in_store, mode):
    async def body(ctx):
        insert(ctx, "kit", bursts(24, 4, noise=1.0))
        strict, balanced, lenient = await sizes_by_precision(ctx, unit_rows(30))
        assert strict < balanced < lenient and set(ctx.calibration.current.gates["kit"]) == {mode}

    in_store(body, **BLEND | {"recall_mode": mode, "tail_share": 0.0})


def test_a_precision_moves_the_blend_of_a_store_too_small_to_measure(in_store):
    async def body(ctx):
        insert(ctx, "kit", bursts(3, 3, noise=0.8))
        strict, balanced, lenient = await sizes_by_precision(ctx, unit_rows(40))
        assert strict < balanced < lenient and "kit" not in ctx.calibration.current.gates

    in_store(body, **BLEND)


def test_an_agent_that_doubled_is_measured_again_at_start(in_store):
    async def first(ctx):
        insert(ctx, "kit", bursts(20, 4))
        insert(ctx, "same", bursts(20, 4, seed=9))
        for agent in ("kit", "same"):
            await calibrate(ctx, ctx.settings, Plan(agent))
        return ctx.calibration.current

    async def second(ctx):
        insert(ctx, "kit", [(f"more {text}", at + 9e6, vector) for text, at, vector in bursts(30, 4, seed=2)])
        before = ctx.calibration.current
        await _recalibrate(ctx, ctx.settings)
        return before, ctx.calibration.current

    in_store(first, **BLEND)
    before, after = in_store(second, **BLEND)
    assert after.counts == {"kit": 200, "same": 80} and before.counts == {"kit": 80, "same": 80}
