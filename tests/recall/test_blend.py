"""The blend's arithmetic and its gate: pure functions of numbers. Contract: blend.score, blend.gate."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpersona_daemon.embedding.values import Declared, Part, Probes
from cpersona_daemon.model.signals import Signal
from cpersona_daemon.recall.pipeline import PLANS
from cpersona_daemon.recall.scoring import blend, gate, penalty, prior, similarity
from cpersona_daemon.recall.stages import autocut
from cpersona_daemon.recall.types import Candidate
from cpersona_daemon.storage.candidates import Facts
from cpersona_daemon.vectors.backend import Background

DECLARED = Declared(admission=0.26, min_similarity=0.2, cosine_floor=0.1, cosine_ceil=0.6, background=0.1)


def unit(*numbers):
    row = np.array(numbers, np.float32)
    return row / np.linalg.norm(row)


def probes(*vectors):
    return Probes((), np.array(vectors, np.float32))


def row(score, rid=1, **more):
    return Candidate(("mem", rid), blend=score, **more)


def limits(blend_gate=blend.GATE, **more):
    return gate.thresholds(
        0, k=60, deep=more.pop("deep", False), blank=False, admission=None, measured={}, blend_gate=blend_gate
    )


# -- similarity


def test_similarity_is_what_stands_above_the_background_of_question_and_row():
    rows, query = np.stack([unit(1, 0, 0), unit(0, 1, 0)]), unit(1, 0, 0)
    centre = np.array([0.4, 0.2, 0.0])
    cosines, above = similarity.similarities(rows, query, Background(10_000, 20_000, centre), DECLARED)
    assert cosines == pytest.approx([1.0, 0.0])
    assert above == pytest.approx([1.0 - 0.75 * (0.4 + 0.4), 0.0 - 0.75 * (0.4 + 0.2)], abs=1e-3)


def test_a_store_of_few_rows_stands_between_what_was_expected_and_what_it_shows():
    rows, query = unit(0, 1)[None], unit(1, 0)
    centre = np.array([0.9, 0.9])
    values = [
        float(similarity.similarities(rows, query, Background(n, n + 1, centre), DECLARED)[1][0])
        for n in (1, 4, 16, 256)
    ]
    assert values == sorted(values, reverse=True)
    expected = float(similarity.similarities(rows, query, None, DECLARED)[1][0])
    assert values[0] < expected == pytest.approx(-0.15)


def test_a_row_is_no_background_of_itself():
    rows = np.stack([unit(1, 0), unit(0, 1)])
    _, above = similarity.similarities(
        rows, unit(1, 0), Background(2, 2, rows.mean(axis=0, dtype=np.float64)), DECLARED
    )
    # The question and each row have 0 with the other row, and eight rows of 0.1 were expected beforehand.
    assert above == pytest.approx([1 - 0.75 * (0.8 / 9 + 0.8 / 9), -0.75 * (1.8 / 9 + 0.8 / 9)])


def test_the_multilingual_part_speaks_where_the_whole_is_silent():
    declared = Declared(0.26, 0.2, 0.1, 0.6, background=0.0, part=Part(2, 4, 0.5))
    half = 0.5**0.5
    query, stranger = np.array([half, 0, half, 0], np.float32), np.array([-half, 0, half, 0], np.float32)
    cosines, above = similarity.similarities(stranger[None], query, None, declared)
    assert cosines[0] == pytest.approx(0.0) and above[0] == pytest.approx(similarity.PART_WORTH)


def test_what_is_near_to_every_question_must_be_nearer_to_this_one():
    asked = Declared(0.26, 0.2, 0.1, 0.6, background=0.0, questions=probes((0.0, 0.8, 0.0)))
    answer, exclamation, question = unit(1, 0, 1), unit(1, 1, 0), unit(1, 0, 0)
    rows, shares = np.stack([answer, exclamation]), similarity.SENTENCE
    without = similarity.similarities(rows, question, None, replace(asked, questions=None))[1]
    assert without == pytest.approx([0.5**0.5] * 2)
    assert similarity.similarities(rows, question, None, asked)[1] == pytest.approx(
        [0.5**0.5 + shares.level, 0.5**0.5 * (1 - shares.probes * 0.8) + shares.level]
    )


def test_a_row_whose_cosines_with_anything_spread_must_stand_out_by_more():
    steady = Declared(0.26, 0.2, 0.1, 0.6, background=0.0, questions=probes((0.0, 0.3, 0.0), (0.0, 0.3, 0.0)))
    spread = replace(steady, questions=probes((0.0, 0.6, 0.0), (0.0, 0.0, 0.0)))
    row, question = unit(1, 1, 0)[None], unit(1, 0, 0)
    (narrow,), (wide,) = (similarity.similarities(row, question, None, d)[1] for d in (steady, spread))
    assert narrow - wide == pytest.approx(similarity.SENTENCE.spread * 0.3 * 0.5**0.5)


def test_a_row_that_is_near_to_any_keyword_is_no_answer_to_one_and_may_be_to_a_sentence():
    declared = Declared(
        0.26, 0.2, 0.1, 0.6, background=0.0, questions=probes((0.0, 0.0, 1.0)), keywords=probes((0.0, 0.5, 0.0))
    )
    short, query = unit(1, 2, 0)[None], unit(1, 0, 0)
    as_keyword, mixed, as_sentence = (
        float(similarity.similarities(short, query, None, declared, similarity.Form(sentence=share))[1][0])
        for share in (0.0, 0.5, 1.0)
    )
    assert as_keyword < 0 < blend.GATE < as_sentence and mixed == pytest.approx((as_keyword + as_sentence) / 2)


def test_words_that_the_embedder_does_not_know_lower_what_their_vector_claims():
    row, query = unit(1, 0)[None], unit(1, 0)
    claims = [
        float(similarity.similarities(row, query, None, DECLARED, similarity.Form(sense=sense))[1][0])
        for sense in (0.0, 1 / 3, 2 / 3, 1.0)
    ]
    assert claims[0] == 0.0 < claims[1] == pytest.approx(claims[3] / 4) and claims[2] == pytest.approx(claims[3])


def test_where_questions_about_anything_are_known_the_questions_own_background_counts_less():
    shares = similarity.SENTENCE
    declared = Declared(0.26, 0.2, 0.1, 0.6, background=0.0, questions=probes((0.0, 0.0, 0.5)))
    behind = Background(10**9, 10**9 + 1, np.array([0.4, 0.2, 0.0]))
    above = similarity.similarities(unit(0, 1, 0)[None], unit(1, 0, 0), behind, declared)[1]
    assert above == pytest.approx([shares.level - shares.question * 0.4 - shares.row * 0.2])


def test_what_a_row_has_with_any_question_counts_in_the_multilingual_part_too():
    shares, half = similarity.SENTENCE, 0.5**0.5
    declared = Declared(
        0.26, 0.2, 0.1, 0.6, background=0.0, part=Part(2, 4, 0.5), questions=probes((0.0, 0.0, 0.3, 0.0))
    )
    row, question = np.array([-half, 0, half, 0], np.float32), np.array([half, 0, half, 0], np.float32)
    behind = Background(10**9, 10**9 + 1, np.array([0.0, 0.0, 0.1, 0.0]))
    of_part = 1 - 0.3 / half * shares.probes - 0.1 / half * (shares.question + shares.row)
    assert similarity.similarities(row[None], question, behind, declared)[1] == pytest.approx(
        [similarity.PART_WORTH * of_part + shares.level], abs=1e-6
    )


def test_a_question_in_another_language_hears_the_multilingual_part():
    declared = Declared(0.26, 0.2, 0.1, 0.6, background=0.0, part=Part(2, 4, 0.5))
    half = 0.5**0.5
    question = np.array([half, 0, half, 0], np.float32)
    same_language, same_meaning = np.array([half, 0, 0, half], np.float32), np.array([0, half, half, 0], np.float32)
    rows = np.stack([same_language, same_meaning])
    english = similarity.similarities(rows, question, None, declared)[1]
    foreign = similarity.similarities(rows, question, None, declared, similarity.Form(english=False))[1]
    assert english == pytest.approx([0.5, similarity.PART_WORTH])
    assert foreign == pytest.approx(
        [0.5 * similarity.FOREIGN_WHOLE, 0.5 * similarity.FOREIGN_WHOLE + similarity.FOREIGN_PART]
    )
    assert foreign[0] < blend.gate_of(blend.GATE, 1.0) < foreign[1]


def test_two_rows_are_as_alike_as_their_cosine_stands_above_the_background_of_both():
    rows = np.stack([unit(1, 0), unit(1, 1), unit(0, 1)])
    asked = Declared(0.26, 0.2, 0.1, 0.6, background=0.1, questions=probes((0.9, 0.1)))
    alike = similarity.alike(rows, Background(10_000, 20_000, np.array([0.2, 0.4])), asked)
    assert alike == pytest.approx(alike.T) and alike[0, 2] == pytest.approx(-0.75 * 0.6, abs=1e-3)
    assert similarity.alike(rows[:0], None, asked).shape == (0, 0)


# -- words and neighbours


def test_a_row_without_a_vector_is_judged_by_its_words_alone():
    assert blend.GATE < blend.scored(None, None, 0.3).score < 1.1 * blend.GATE
    assert blend.scored(0.2, 0.0, 0.3).score == pytest.approx(0.063)


def test_half_of_two_keywords_says_less_than_half_of_a_sentence():
    sentence, keywords = (blend.scored(0.2, 0.0, 0.5, sentence=share).score for share in (1.0, 0.0))
    assert keywords < 0.2 * sentence
    assert blend.scored(0.2, 0.0, 1.0, sentence=0.0).score == blend.scored(0.2, 0.0, 1.0).score


def test_the_gate_grows_with_the_logarithm_of_the_rows_from_a_hundred_on():
    assert blend.size_gate(0) == blend.size_gate(100) == blend.GATE
    steps = [blend.size_gate(10 * rows) - blend.size_gate(rows) for rows in (100, 1_000, 10_000)]
    assert steps == pytest.approx([steps[0]] * 3) and 0.1 < steps[0] < 0.11
    assert blend.growth(5_000, 50_000) == pytest.approx(steps[0]) == pytest.approx(-blend.growth(50_000, 5_000))
    assert blend.growth(3, 90) == 0
    # Whole words are an answer in a store of any size.
    assert blend.scored(0.0, 0.0, 1.0).score > blend.size_gate(10_000_000)


def test_what_is_unfamiliar_asks_for_the_same_more_in_a_store_of_any_size():
    for gate_of_store in (0.11, 0.3):
        more = blend.gate_of(gate_of_store, 1.0, blend.UNKNOWN_NAME) - gate_of_store
        assert more == pytest.approx(blend.GATE * (blend.UNKNOWN_NAME - 1))


def test_three_shared_common_words_reach_no_gate_and_a_whole_identifier_reaches_every_gate():
    assert blend.scored(0.1, 0.0, 0.25).score < blend.gate_of(blend.GATE, 0.5)
    assert blend.scored(0.0, -0.3, 1.0).score > blend.gate_of(blend.GATE, 2.0, blend.UNKNOWN_NAME)


def test_a_rare_identifier_counts_however_long_the_question_is():
    assert (
        blend.scored(0.1, 0.0, 0.2, identified=True).score
        == blend.IDENTIFIED
        > blend.gate_of(blend.GATE, 2.0, blend.UNKNOWN_NAME)
    )
    assert blend.scored(0.1, 0.0, 1.0, identified=True).score == blend.WORDS


def test_a_score_is_never_below_zero():
    assert blend.scored(-0.2, -0.4, 0.0).score == 0.0


def test_neighbours_lend_a_share_of_the_better_one_both_ways():
    a, b, c, far = (("mem", i) for i in (1, 2, 3, 9))
    scores = {
        a: blend.scored(0.5, 0.5, 0),
        b: blend.scored(0.1, 0.1, 0),
        c: blend.scored(0.3, 0.3, 0),
        far: blend.scored(0.9, 0.9, 0),
    }
    assert blend.lend(scores, [(b, a), (b, c)]) == {
        a: pytest.approx(0.03),
        b: pytest.approx(0.15),
        c: pytest.approx(0.03),
    }


def test_a_neighbour_that_says_nothing_lends_nothing():
    a, b = ("mem", 1), ("mem", 2)
    assert blend.lend({a: blend.scored(-0.5, -0.5, 0), b: blend.scored(0.1, 0.1, 0)}, [(a, b), (a, ("mem", 3))]) == {
        a: pytest.approx(0.03)
    }


def test_an_identifier_names_its_row_and_none_beside_it():
    a, b = ("mem", 1), ("mem", 2)
    assert blend.lend({a: blend.scored(0.0, -0.1, 0), b: blend.scored(0.3, 0.1, 1.0, identified=True)}, [(a, b)]) == {
        a: pytest.approx(0.03)
    }
    assert blend.lend({a: blend.scored(0.0, -0.1, 0), b: blend.scored(0.0, -0.1, 1.0, identified=True)}, [(a, b)]) == {}


def test_a_row_without_a_vector_is_lent_to_when_it_shares_a_word():
    a, b, c = (("mem", i) for i in (1, 2, 3))
    scores = {a: blend.scored(None, None, 1.0), b: blend.scored(None, None, 0.0), c: blend.scored(None, None, 0.1)}
    assert set(blend.lend(scores, [(a, b), (a, c)])) == {a, c}


# -- the gate


def test_nothing_passes_while_no_row_reaches_the_gate_and_half_of_it_is_enough_afterwards():
    weak, best = row(0.7 * blend.GATE, 1), row(1.5 * blend.GATE, 2)
    assert gate.split([weak], limits().opened([weak])) == ([], [weak])
    assert gate.split([best, weak], limits().opened([best, weak])) == ([best, weak], [])
    assert gate.split([best, row(0.45 * blend.GATE)], limits().opened([best]))[0] == [best]


def test_a_row_that_holds_a_rare_identifier_passes_whatever_it_scores():
    assert gate.passes(row(0.0, identified=True), limits(9.0))


def test_a_name_that_no_row_holds_raises_the_gate():
    assert (
        blend.unfamiliarity(100, True, True, 0.9)
        == blend.UNKNOWN_NAME
        > blend.unfamiliarity(100, False, False, 0.9)
        == 1.0
    )
    assert blend.gate_of(blend.GATE, 1.0, 1.8) == pytest.approx(1.8 * blend.gate_of(blend.GATE, 1.0))


def test_words_that_no_row_holds_raise_the_gate_of_a_question_about_a_familiar_person_and_more_so_in_a_large_store():
    factors = [
        blend.unfamiliarity(rows, False, True, share)
        for rows, share in ((100, 0.0), (10, 0.5), (100, 0.5), (10_000, 0.5), (10_000, 1.0))
    ]
    assert factors[0] == 1.0 and factors[2] == pytest.approx(1.3) and factors == sorted(factors)


def test_deep_halves_the_gate():
    assert limits(deep=True).values["blend"] == pytest.approx(limits().values["blend"] / 2)


@given(
    st.lists(st.tuples(st.floats(0, 2, allow_nan=False), st.booleans()), max_size=30),
    st.floats(0.01, 1),
    st.floats(1, 3),
    st.booleans(),
)
def test_from_strict_over_balanced_to_lenient_the_rows_admitted_never_shrink(drawn, of_store, unfamiliarity, deep):
    rows = [row(score, i, identified=identified) for i, (score, identified) in enumerate(drawn)]
    admitted = []
    for beta in (2.0, 1.0, 0.5):
        at = limits(blend.gate_of(of_store, beta, unfamiliarity), deep=deep).opened(rows)
        admitted.append({c.rid for c in gate.split(rows, at)[0]})
    assert admitted[0] <= admitted[1] <= admitted[2]


# -- what else touches a blend


def test_autocut_never_cuts_a_blend():
    assert not {autocut.cut_cosines, autocut.cut_confidences} & set(PLANS["blend"])


def test_the_episode_penalty_multiplies_a_blend_and_sorts_again():
    rows = [row(0.5, 1), row(0.4, 2)]
    facts = {("mem", 1): Facts(0.0), ("mem", 2): Facts(1e9)}
    weighed = penalty.apply(rows, facts, 1e9, rate=0.01, floor=0.5)
    assert [(c.rid[1], c.blend) for c in weighed] == [(2, 0.4), (1, 0.25)]


def test_the_prior_orders_a_blend():
    rows = [row(0.5, 1), row(0.4, 2)]
    facts = {("mem", 1): Facts(0.0), ("mem", 2): Facts(1e9)}
    ordered = prior.apply(rows, facts, (0.0, 1e9), signal=Signal.BLEND, rate=1.0, floor=0.1, anchor="newest", now=1e9)
    assert [c.rid[1] for c in ordered] == [2, 1] and [c.blend for c in ordered] == [0.4, 0.5]


def test_the_signal_of_a_blended_row_is_the_blend():
    assert row(0.5, cosine=0.9).signal() == ("blend", 0.5)
    assert row(0.5, confidence=0.7).signal() == ("confidence", 0.7)
