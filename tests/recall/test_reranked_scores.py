"""How a reranker's score and the blend become one. Contract: rerank.blend."""

from __future__ import annotations

import pytest

from cpersona_daemon.model.kinds import MEMORY, PROFILE
from cpersona_daemon.recall.scoring import reranked
from cpersona_daemon.recall.types import Candidate, Scored


def row(row_id, score):
    return Candidate((MEMORY, row_id), blend=score, scored=Scored(0.4, score, 0.0, 0.0))


def blends(rows):
    return [(c.rid[1], round(c.blend, 4)) for c in rows]


def rid(row_id):
    return (MEMORY, row_id)


@pytest.mark.parametrize(
    ("scores", "moved"),
    [
        ([0.5], [0.0]),
        ([0.0], [-0.2]),
        ([1.0], [0.2]),
        ([0.9], [0.0732]),
        ([0.1], [-0.0366]),  # alone it is its own median
        ([0.9, 0.5, 0.5], [0.0732, 0.0, 0.0]),
        ([0.9, 0.9, 0.9], [0.0732, 0.0732, 0.0732]),
        ([0.3, 0.01, 0.01], [0.0483, -0.0766, -0.0766]),
        ([0.3, 0.1, 0.1], [0.0084, -0.0366, -0.0366]),
        ([], []),
    ],
)
def test_a_row_moves_by_what_the_reranker_is_sure_of_beside_what_it_says_of_most(scores, moved):
    assert list(reranked.moves(dict(enumerate(scores))).values()) == pytest.approx(moved, abs=1e-4)


def test_both_scores_decide_the_order_and_none_falls_below_nothing():
    rows = [row(1, 0.4), row(2, 0.35), row(3, 0.1)]
    found = reranked.blended(rows, {rid(1): 0.01, rid(2): 0.9, rid(3): 0.0})
    assert blends(found) == [(2, 0.4998), (1, 0.3234), (3, 0.0)]
    assert [c.rerank for c in found] == [0.9, 0.01, 0.0]
    assert all(c.blend == c.scored.score for c in found)


def test_a_row_behind_those_that_were_asked_about_passes_none_of_them():
    rows = [row(n, 0.6 - n / 100) for n in range(reranked.ASKED + 10)]
    scores = {c.rid: 0.02 if c.rid[1] == 7 else 0.3 for c in rows[: reranked.ASKED]}
    found = reranked.blended(rows, scores)
    assert [c.rid[1] for c in found[reranked.ASKED :]] == list(range(reranked.ASKED, len(rows)))
    assert {c.rerank for c in found[reranked.ASKED :]} == {None}
    assert found[reranked.ASKED].blend == pytest.approx(0.4 + reranked.moves(scores)[rid(7)])


def test_what_a_reranker_likes_lifts_nothing_that_it_was_not_asked_about():
    rows = [row(n, 0.5 - n / 100) for n in range(reranked.ASKED + 1)]
    found = reranked.blended(rows, {c.rid: 0.9 for c in rows[: reranked.ASKED]})
    assert found[-1].blend == rows[-1].blend


def test_one_of_the_best_that_was_stored_meanwhile_keeps_its_own_score():
    rows = [row(1, 0.4), row(2, 0.3)]
    assert blends(reranked.blended(rows, {rid(2): 0.0})) == [(1, 0.4), (2, 0.1)]


def test_without_scores_and_for_the_profile_nothing_changes():
    rows = [row(1, 0.4), Candidate(PROFILE)]
    assert reranked.blended(rows, {}) == rows
    assert reranked.blended(rows, {rid(1): 0.9})[-1] == Candidate(PROFILE)
