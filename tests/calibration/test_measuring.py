"""The sweep and its relatives against plain references.

Contract: calibration.sample, calibration.gates.
"""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpersona_daemon.calibration import measure


def plain_separation(null: list[float], positive: list[float], beta: float) -> float:
    low, high = min(null + positive), max(null + positive)
    best, chosen = None, None
    for candidate in np.linspace(low, high, 256):
        kept = sum(s >= candidate for s in positive) * len(null)
        left_out = sum(s < candidate for s in null) * len(positive)
        value = kept + beta * left_out
        if best is None or value > best:
            best, chosen = value, float(candidate)
    return chosen


def unit_rows(n: int, width: int, seed: int = 3) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(n, width))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


scores = st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=40)


@given(null=scores, positive=scores, beta=st.sampled_from([0.5, 1.0, 2.0]))
def test_the_sweep_finds_what_trying_every_candidate_finds(null, positive, beta):
    assert measure.separation(np.array(null), np.array(positive), beta) == plain_separation(null, positive, beta)


@given(null=scores, positive=scores)
def test_a_stricter_precision_never_gives_a_lower_gate(null, positive):
    null, positive = np.array(null), np.array(positive)
    lenient, balanced, strict = (measure.separation(null, positive, beta) for beta in (0.5, 1.0, 2.0))
    assert lenient <= balanced <= strict


def test_two_clusters_are_parted_by_the_first_candidate_above_the_noise():
    null, positive = np.array([0.0, 0.1, 0.2]), np.array([0.8, 0.9, 1.0])
    value = measure.separation(null, positive, 1.0)
    assert 0.2 < value <= 0.2 + 1 / 255


@pytest.mark.parametrize("n", [2, 37, 513, 1100])
def test_every_pair_is_compared_once(n):
    rows = unit_rows(n, 8)
    expected = (rows.astype(np.float64) @ rows.astype(np.float64).T)[np.triu_indices(n, 1)]
    np.testing.assert_allclose(measure.pair_similarities(rows), expected, atol=1e-12)


@pytest.mark.parametrize("n", [2, 37, 1100])
def test_the_nearest_neighbour_of_a_row_is_another_row(n):
    rows = unit_rows(n, 8)
    matrix = rows.astype(np.float64) @ rows.astype(np.float64).T
    np.fill_diagonal(matrix, -2)
    np.testing.assert_allclose(measure.nearest_similarities(rows), matrix.max(axis=1), atol=1e-12)


def test_the_quantile_lies_between_neighbours_and_the_deviation_is_the_populations():
    null = np.array([0.4, 0.1, 0.3, 0.2])
    assert measure.quantile(null, 0.5) == pytest.approx(0.25)
    assert measure.quantile(null, 0.9) == pytest.approx(0.37)
    assert measure.zscore(null, 2.0) == pytest.approx(0.25 + 2 * statistics.pstdev(null.tolist()))


def test_a_gate_needs_ten_null_and_five_positive_scores():
    enough = [0.1] * 10 + [0.9] * 5, [False] * 10 + [True] * 5
    assert measure.draw_gate(*enough, 1.0) is not None
    assert measure.draw_gate(enough[0][1:], enough[1][1:], 1.0) is None
    assert measure.draw_gate(enough[0][:-1], enough[1][:-1], 1.0) is None
    assert measure.gate([([], [])], 1.0, 0.05, 4) is None


def test_the_gate_is_the_median_of_the_draws_that_had_scores_enough():
    draws = [([low] * 10 + [low + 0.5] * 5, [False] * 10 + [True] * 5) for low in (0.1, 0.3, 0.2)] + [([0.9], [True])]
    each = sorted(measure.draw_gate(*draw, 1.0) for draw in draws[:3])
    assert measure.gate(draws, 1.0, 0.05, 4) == round(each[1], 4)


def test_the_floor_of_a_rank_fusion_gate_lies_on_the_scale_of_rank_fusion():
    assert measure.least_gate("rrf", 0.05, 60) == pytest.approx(0.05 * 3 / 61)
    assert measure.least_gate("rrf", 0.05, 60) < 1 / 61
    assert measure.least_gate("cosine", 0.05, 60) == measure.least_gate("rsf", 0.05, 60) == 0.05
