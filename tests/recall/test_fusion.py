"""Fusion, exact to the last digit. Contract: fusion.rrf, scores.rsf, fusion.cascade."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpersona_daemon.model.signals import Signal
from cpersona_daemon.recall.scoring import fusion, rrf, rsf
from cpersona_daemon.recall.scoring.cascade import cascade
from cpersona_daemon.recall.types import EPISODE_FTS, FAR, KEYWORD, MEMORY_FTS, NEAR, Ranked


def mem(*ids):
    return tuple(("mem", i) for i in ids)


def near(*pairs):
    return Ranked(NEAR, mem(*(i for i, _ in pairs)), tuple(s for _, s in pairs))


def words(*pairs, channel=MEMORY_FTS):
    return Ranked(channel, mem(*(i for i, _ in pairs)), tuple(s for _, s in pairs))


def votes_of(lists, mode, k, far_weight):
    return rrf.votes(lists, k, far_weight) if mode == "rrf" else rsf.votes(lists, far_weight)


def fuse(lists, mode, k, far_weight):
    return fusion.fused(lists, votes_of(lists, mode, k, far_weight), Signal(mode))


def scores(candidates, mode):
    return {c.rid[1]: getattr(c, mode) for c in candidates}


def test_rrf_sums_reciprocal_ranks_counted_from_one_past_k():
    fused = fuse([near((1, 0.9), (2, 0.8)), words((2, -5.0), (3, -1.0))], "rrf", 60, 1.0)
    assert scores(fused, "rrf") == {1: 1 / 61, 2: 1 / 62 + 1 / 61, 3: 1 / 62}
    assert [c.rid[1] for c in fused] == [2, 1, 3]


def test_equal_rrf_scores_keep_the_order_in_which_the_lists_brought_them():
    fused = fuse([near((7, 0.9)), words((3, -1.0), channel=EPISODE_FTS), words((5, -1.0))], "rrf", 60, 1.0)
    assert [c.rid[1] for c in fused] == [7, 3, 5]


def test_a_row_seen_by_words_and_vectors_keeps_its_cosine():
    fused = fuse([near((1, 0.25)), words((1, -3.0))], "rrf", 60, 1.0)
    assert fused[0].cosine == 0.25 and fused[0].lexical


def test_excluded_rows_keep_their_rank_under_rrf_and_do_not_return():
    ranked = Ranked(NEAR, mem(1, 2), (0.9, 0.8), frozenset(mem(1)))
    assert scores(fuse([ranked], "rrf", 60, 1.0), "rrf") == {2: 1 / 62}


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ([near((1, 0.9), (2, 0.1)), words((3, -4.0), (4, -1.0))], {1: 0.5, 2: 0.0, 3: 0.5, 4: 0.0}),
        ([near((1, 0.9), (2, 0.1)), words((1, -4.0), (2, -1.0))], {1: 1.0, 2: 0.0}),
        ([near((1, 0.9), (2, 0.1))], {1: 1.0, 2: 0.0}),
        (
            [near((1, 0.9), (2, 0.1)), words((3, -4.0), (4, -1.0)), words((5, -2.0), channel=EPISODE_FTS)],
            {1: 1 / 3, 2: 0, 3: 1 / 3, 4: 0, 5: 1 / 3},
        ),
    ],
    ids=[
        "first on one of two lists is one half",
        "first on both is one",
        "one list gives its first one",
        "first on one of three is a third",
    ],
)
def test_rsf_scores_are_exact(lists, expected):
    assert scores(fuse(lists, "rsf", 60, 1.0), "rsf") == expected


def test_rsf_gives_every_row_of_equal_scores_one():
    assert scores(fuse([near((1, 0.4), (2, 0.4))], "rsf", 60, 1.0), "rsf") == {1: 1.0, 2: 1.0}


def test_rsf_drops_excluded_rows_before_normalising_and_does_not_count_a_list_left_empty():
    lists = [
        Ranked(NEAR, mem(1, 2, 3), (0.9, 0.8, 0.1), frozenset(mem(1))),
        Ranked(MEMORY_FTS, mem(1), (-1.0,), frozenset(mem(1))),
    ]
    assert scores(fuse(lists, "rsf", 60, 1.0), "rsf") == {2: 1.0, 3: 0.0}


def test_the_far_list_counts_whole_in_the_divisor_and_its_votes_are_priced():
    lists = [near((1, 0.9)), Ranked(FAR, mem(2), (0.8,))]
    assert scores(fuse(lists, "rsf", 60, 0.5), "rsf") == {1: 0.5, 2: 0.25}
    assert scores(fuse(lists, "rrf", 60, 0.5), "rrf") == {1: 1 / 61, 2: 0.5 / 61}


def test_cascade_appends_new_episode_rows_and_then_the_head_of_the_memory_list_that_fits():
    lists = [
        near((1, 0.9), (2, 0.8)),
        words((2, -9.0), (3, -5.0), channel=EPISODE_FTS),
        words((1, -4.0), (4, -3.0), (5, -2.0)),
    ]
    # Five places, three taken: two of the memory list are looked at, and one of them is there already.
    assert [c.rid[1] for c in cascade(lists, 5)] == [1, 2, 3, 4]
    assert all(c.rrf is None and c.rsf is None for c in cascade(lists, 5))


def test_a_keyword_list_has_no_scores_and_its_rows_are_equal_under_rsf():
    assert scores(fuse([Ranked(KEYWORD, mem(1, 2), None)], "rsf", 60, 1.0), "rsf") == {1: 1.0, 2: 1.0}


_ranked = st.builds(
    lambda channel, rows: Ranked(channel, tuple(("mem", i) for i, _ in rows), tuple(s for _, s in rows)),
    st.sampled_from([NEAR, FAR, EPISODE_FTS, MEMORY_FTS]),
    st.lists(st.tuples(st.integers(1, 30), st.floats(-50, 50)), max_size=12, unique_by=lambda r: r[0]),
)


@given(st.lists(_ranked, max_size=4, unique_by=lambda r: r.channel), st.floats(0, 1))
def test_rsf_stays_between_zero_and_one_whatever_the_lists(lists, weight):
    assert all(-1e-12 <= c.rsf <= 1 + 1e-12 for c in fuse(lists, "rsf", 60, weight))


@given(st.lists(_ranked, max_size=4, unique_by=lambda r: r.channel), st.floats(0, 1), st.sampled_from(["rrf", "rsf"]))
def test_the_votes_of_a_row_add_up_to_its_fused_score_and_the_order_follows_it(lists, weight, mode):
    fused = fuse(lists, mode, 60, weight)
    votes = votes_of(lists, mode, 60, weight)
    assert {c.rid for c in fused} == set(votes.of)
    assert all(getattr(c, mode) == sum(v for _, v in votes.of[c.rid]) / votes.divisor for c in fused)
    values = [getattr(c, mode) for c in fused]
    assert values == sorted(values, reverse=True)
