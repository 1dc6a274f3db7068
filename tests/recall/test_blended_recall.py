"""A blend in a real store with hand-made vectors: what comes back, what does not, and what is said about it.

Contract: blend.score, blend.gate, gate.identifier, missed.best.
"""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest

from cpersona_daemon.embedding.values import Declared, Part
from cpersona_daemon.model.clock import SystemClock
from cpersona_daemon.model.identity import Embedded
from cpersona_daemon.model.instants import iso_now
from cpersona_daemon.model.kinds import MEMORY
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.recall import pipeline, prepare
from cpersona_daemon.recall.channels.vectors import scans_of
from cpersona_daemon.recall.run import Run
from cpersona_daemon.recall.types import Query, VectorQuery
from cpersona_daemon.shared import paths
from cpersona_daemon.shared.settings import load
from cpersona_daemon.storage import backlog, memories
from cpersona_daemon.storage.database import Database
from cpersona_daemon.storage.memories import NewMemory
from cpersona_daemon.vectors.fallback import WithFallback
from cpersona_daemon.vectors.local.engine import LocalEngine

WIDTH = 24
START = 1_750_000_000.0
QUESTION = np.eye(WIDTH, dtype=np.float32)[0]
BETAS = {"strict": 2.0, "balanced": 1.0, "lenient": 0.5}
SPOKEN = '{"id": "me"}'  # memories that name no source have no neighbours
_places = itertools.count(2)


def near(cosine: float) -> np.ndarray:
    """A unit vector with this cosine to the question, in a direction of its own."""
    vector = np.zeros(WIDTH, np.float32)
    vector[0], vector[2 + next(_places) % (WIDTH - 2)] = cosine, (1 - cosine * cosine) ** 0.5
    return vector


class House:
    """A database with its vector store, and recalls through the pipeline as a reader thread runs them."""

    def __init__(self, directory, **options):
        self.settings = load(
            {"HOME": str(directory)}, {"db_path": str(directory / "t.db"), "recall_mode": "blend", **options}
        )
        places = paths.places(self.settings, {"HOME": str(directory)})
        self.vectors = WithFallback(LocalEngine(places))
        self.db = Database(places.db, SystemClock(), self.vectors.apply)
        self.db.open()
        self.vectors.open(self.db)

    def close(self):
        self.db.close()
        self.vectors.close()

    def add(self, *rows, agent="kit", minute=0.0, apart=60.0, **more):
        """Store (text, vector or None), an hour apart unless told otherwise, and return the refs."""

        def job(tx):
            ids = []
            for n, (text, vector) in enumerate(rows):
                ids.append(
                    memories.insert(
                        tx, NewMemory(agent, text, timestamp=iso_now(START + (minute + n * apart) * 60), **more)
                    )
                )
                if vector is not None:
                    backlog.attach_vector(tx, MEMORY, ids[-1], Embedded(vector, "m"))
            return ids

        return [f"mem:{i}" for i in self.db.write_now(job)]

    def fill(self, count):
        rng = np.random.default_rng(7)
        words = "harbour lantern violin granite orchard compass meadow turbine saddle glacier".split()
        vectors = rng.normal(size=(count, WIDTH)).astype(np.float32)
        vectors[:, 0] *= 0.1  # unrelated to the question, more or less
        self.add(
            *(
                (f"the {words[n % 10]} {words[n * 7 % 10]} of row {n}", v / np.linalg.norm(v))
                for n, v in enumerate(vectors)
            ),
            minute=1e6,
        )

    def recall(
        self,
        text,
        vector=QUESTION,
        *,
        precision="balanced",
        limit=10,
        declared=None,
        measured=None,
        gates=None,
        set=None,
        **more,
    ):
        settings = self.settings.with_overrides(set or {})
        query, depth = Query(text, Scope("kit"), limit, **more), prepare.depth_of(settings, limit)
        make = partial(
            Run,
            settings=settings,
            query=query,
            question=pipeline.question_of(settings, query),
            vector=None if vector is None else VectorQuery(vector, "m", 0.0, prepare.part_of(vector, declared)),
            vectors=self.vectors,
            now=START,
            depth=depth,
            scans=scans_of(settings, depth),
            declared=declared,
            measured=gates or ({} if measured is None else {"blend": measured}),
            beta=BETAS[precision],
            cosine_scale=(0.2, 0.75),
        )
        return self.db.read_now(pipeline.answer, make)

    def refs(self, *args, **options):
        return [row.ref for row in self.recall(*args, **options).rows]


@pytest.fixture
def house(tmp_path):
    house = House(tmp_path)
    yield house
    house.close()


# -- what comes back and what does not


def test_what_stands_above_the_background_comes_back_and_a_question_about_nothing_is_answered_with_nothing(house):
    house.fill(60)
    (gold,) = house.add(("quite other words", near(0.7)))
    assert house.refs("where is heliotrope kept")[0] == gold
    assert house.refs("where is heliotrope kept", -QUESTION) == []


@pytest.mark.parametrize("others", [3, 300])
@pytest.mark.parametrize("precision", BETAS)
@pytest.mark.parametrize("measured", [None, 0.5])
def test_an_exact_identifier_comes_back_first_at_every_precision_before_and_after_calibration(
    house, others, precision, measured
):
    house.fill(others)
    far = house.add(
        *(
            (f"{name} and what came of it", near(-0.2))
            for name in ("CVE-2024-3094", "9d3fe55ab01c", "/etc/acme/agentd.toml", "E1103")
        )
    )
    for ref, question in zip(
        far,
        ("CVE-2024-3094", "what was commit 9d3fe55 about", "/etc/acme/agentd.toml", "have we seen E1103 before?"),
        strict=True,
    ):
        assert house.refs(question, precision=precision, measured=measured)[0] == ref


@pytest.mark.parametrize("gates", [{}, {"cosine": 0.9, "rrf": 3 / 61}])
@pytest.mark.parametrize("cosine", [-0.2, 0.1, 0.25])
def test_under_rank_fusion_an_identifier_passes_beside_an_embedder_that_declares_its_numbers(house, gates, cosine):
    house.fill(60)
    (ref,) = house.add(("CVE-2024-3094 and what came of it", near(cosine)))
    rrf, declared = {"recall_mode": "rrf"}, Declared(0.26, 0.2, 0.1, 0.6)
    found = house.recall("was CVE-2024-3094 fixed", declared=declared, gates=gates, set=rrf, trace=True)
    assert ref in [row.ref for row in found.rows]
    if gates:
        assert ref not in house.refs("was CVE-2024-3094 fixed", gates=gates, set=rrf)
    (whole,) = house.add(("pip says externally-managed-environment there", near(cosine)))
    assert whole in house.refs("externally-managed-environment", declared=declared, gates=gates, set=rrf)
    assert ref not in house.refs("was CVE fixed", declared=declared, gates={"cosine": 0.9, "rrf": 3 / 61}, set=rrf)


def test_a_few_shared_common_words_bring_nothing_back(house):
    house.fill(60)
    house.add(*((f"the deploy of the server on day {n}", near(0.0)) for n in range(20)))
    assert house.refs("which heliotrope vendor did the accountants choose for the server deploy") == []


def test_without_an_embedder_words_decide(tmp_path):
    house = House(tmp_path, embedding_mode="none")
    try:
        (gold, other) = house.add(
            ("The heliotrope is watered on Mondays", None), ("A violin needs new strings", None), apart=1.0
        )
        assert house.refs("when is the heliotrope watered?", None) == [gold]
        assert house.refs("when are the taxes due?", None) == []
        row = house.recall("when is the heliotrope watered?", None).rows[0]
        assert set(row.match_reason) == {"signal", "score", "coverage"}
    finally:
        house.close()


def test_a_row_that_is_not_embedded_yet_is_judged_by_its_words(house):
    house.fill(30)
    (late,) = house.add(("the heliotrope is watered on Mondays", None))
    assert house.refs("when is the heliotrope watered", -QUESTION) == [late]


@pytest.mark.parametrize("text", ["heliotrope watered", "harbour lantern", "row 7", "violin"])
def test_the_rows_admitted_never_shrink_from_strict_to_lenient(house, text):
    house.fill(80)
    house.add(*((f"heliotrope {n}", near(0.1 * n)) for n in range(8)))
    strict, balanced, lenient = (set(house.refs(text, precision=p, limit=200)) for p in BETAS)
    assert strict <= balanced <= lenient


def test_an_excluded_text_neither_comes_back_nor_through_its_neighbour(house):
    first, second = house.add(
        ("the heliotrope stands in the hall", near(0.8)),
        ("it is watered on Mondays", near(0.1)),
        apart=1.0,
        source=SPOKEN,
    )
    assert house.refs("heliotrope hall") == [first, second]
    assert house.refs("heliotrope hall", exclude=("it is watered on Mondays",)) == [first]


# -- what is weighed


def test_a_neighbour_in_time_and_source_is_lifted(house):
    house.fill(40)
    best, beside = house.add(
        ("the heliotrope stands in the hall", near(0.7)),
        ("and it is watered on Mondays", near(-0.1)),
        apart=1.0,
        source=SPOKEN,
    )
    (stranger,) = house.add(("and it is watered on Tuesdays", near(-0.1)), minute=5e5, source=SPOKEN)
    found = {row.ref: row for row in house.recall("where is the heliotrope", limit=100).rows}
    assert best in found and beside in found and stranger not in found
    assert found[beside].candidate.scored.lent == pytest.approx(0.3 * found[best].candidate.scored.own)


def test_the_multilingual_part_finds_what_the_whole_vector_does_not_see(house):
    declared = Declared(0.26, 0.2, 0.1, 0.6, background=0.05, part=Part(WIDTH // 2, WIDTH, 0.5))
    rng, half = np.random.default_rng(3), 0.5**0.5

    def both(first, second):
        return np.concatenate([first, second]).astype(np.float32) * half

    unit = lambda v: v / np.linalg.norm(v)  # noqa: E731
    house.add(*((f"row {n}", both(unit(rng.normal(size=12)), unit(rng.normal(size=12)))) for n in range(100)))
    meaning, here, there = unit(rng.normal(size=12)), unit(rng.normal(size=12)), unit(rng.normal(size=12))
    (gold,) = house.add(("別の言葉", both(unit(there - 2 * here), meaning)))
    result = house.recall("something else entirely", both(here, meaning), declared=declared)
    assert result.rows[0].ref == gold and result.rows[0].match_reason["score"] > result.rows[0].match_reason["cosine"]


@pytest.fixture
def chat(house):
    """Sixty rows, of which nine name Tobias, each a little near to whatever is asked of him; others speak of a wallet
    elsewhere.
    """
    house.fill(51)
    house.tobias = house.add(
        *(
            (f"Tobias: {word}", near(0.12))
            for word in "lantern violin granite orchard compass meadow turbine saddle glacier".split()
        )
    )
    house.add(("lose the brown wallet", near(0.0)), agent="else")
    return house


WALLET = "Where did Tobias lose his wallet?"


def test_words_that_no_row_in_scope_holds_keep_a_familiar_name_from_being_an_answer(chat):
    assert chat.refs(WALLET) == [] and set(chat.refs("Where did Tobias go with his violin?")) & set(chat.tobias)
    chat.add(("Tobias: his wallet, lose it", near(0.0)), minute=1e4)
    assert chat.refs(WALLET) != []


@pytest.mark.parametrize("limit", [1, 10, 60, 100])
@pytest.mark.parametrize("spared", [0, 3, 8])
def test_neither_the_limit_nor_what_is_excluded_moves_the_gate(chat, limit, spared):
    exclude = [
        "Tobias: lantern",
        "Tobias: violin",
        "Tobias: granite",
        "Tobias: orchard",
        "Tobias: compass",
        "Tobias: meadow",
        "Tobias: turbine",
        "Tobias: saddle",
    ][:spared]
    assert chat.refs(WALLET, limit=limit, exclude=tuple(exclude)) == []


def test_another_name_for_a_familiar_person_admits_nothing(chat):
    chat.add(*((f"Kit, number {n}", near(0.1)) for n in range(60)), minute=2e4)
    assert chat.refs(WALLET) == chat.refs(WALLET, also_lexical=("Kit",)) == []


def test_how_much_a_missing_word_says_hangs_on_the_agents_rows_and_not_on_the_stores(chat):
    before = chat.recall(WALLET, trace=True).trace["unfamiliarity"]
    chat.add(*((f"somebody else's note {n}", near(0.0)) for n in range(600)), agent="else", minute=3e4)
    assert chat.recall(WALLET, trace=True).trace["unfamiliarity"] == pytest.approx(before, rel=0.05)


def test_a_name_that_is_common_but_stands_on_no_list_is_known(house):
    house.add(*((f"boiler valve {n}", near(0.3)) for n in range(90)))
    house.add(
        *(
            (f"Tobias and the weekly market walk with a long list of things to buy, number {n}", near(-0.1))
            for n in range(120)
        ),
        minute=1e4,
    )
    assert {row.match_reason["signal"] for row in house.recall("Does the boiler of Tobias have a valve?").rows} == {
        "blend"
    }
    assert house.recall("Does the boiler of Tobias have a valve?", trace=True).trace.get("unfamiliarity") is None


def test_where_nothing_was_looked_at_nothing_is_unfamiliar(house):
    assert "unfamiliarity" not in house.recall("Where did Tobias lose his wallet?", trace=True).trace


def test_a_question_brings_back_no_rows_that_share_nothing_but_its_language(house):
    declared = Declared(0.26, 0.2, 0.1, 0.6, background=0.05, part=Part(WIDTH // 2, WIDTH, 0.5))
    rng, axis = np.random.default_rng(3), np.eye(12)[0]

    def vector(language, meaning):
        """Half of it knows the language only (None: some other), half of it the meaning; other meanings are at right
        angles.
        """
        first, second = (rng.normal(size=12) * [0, *[1] * 11] for _ in range(2))
        first = first if language is None else axis * 1.2 + 0.3 * first
        second = second * [1, *[0.1] * 11] if meaning is None else meaning
        second = second + (meaning is None) * np.eye(12)[1 + next(_places) % 11]
        return np.concatenate([first / np.linalg.norm(first), second / np.linalg.norm(second)]).astype(
            np.float32
        ) * np.float32(0.5**0.5)

    house.add(*((f"row {n}", vector(None, None)) for n in range(100)))
    house.add(*((f"{word} bleu", vector("French", None)) for word in ("canard", "cheval", "bateau")))
    (answer,) = house.add(("gant vert", vector("French", axis)))
    assert house.refs("où est la moufle perdue", vector("French", axis), declared=declared)[0] == answer
    assert {"mem:101", "mem:102", "mem:103"} & set(house.refs("keywords", vector("French", -axis), declared=declared))
    assert house.refs("où est la moufle perdue", vector("French", -axis), declared=declared) == []


def test_another_name_adds_a_vote_and_never_a_pass(house):
    house.fill(60)
    ours, _ = house.add(("the Aurora plan", near(0.3)), ("the other plan", near(0.31)), minute=1.0)
    before = house.recall("northern lights").rows
    lifted = house.recall("northern lights", also_lexical=("Aurora",)).rows
    assert {row.ref for row in lifted} == {row.ref for row in before}
    score = lambda rows: next(row.match_reason["score"] for row in rows if row.ref == ours)  # noqa: E731
    assert score(lifted) > score(before)
    assert house.refs("northern lights", -QUESTION, also_lexical=("Aurora",)) == []


# -- what is said


def test_match_reason_names_the_blend_with_cosine_and_coverage_beside_it(house):
    house.add(("the heliotrope stands in the hall", near(0.75)))
    (row,) = house.recall("heliotrope hall").rows
    assert set(row.match_reason) == {"signal", "score", "cosine", "coverage"}
    assert (
        row.match_reason["signal"] == "blend"
        and row.match_reason["cosine"] == pytest.approx(0.75)
        and row.match_reason["coverage"] == 1.0
    )


def test_the_parts_of_a_traced_recall_add_up_and_every_candidate_is_accounted_for(house):
    house.fill(80)
    house.add(*((f"heliotrope {n} stands here", near(0.08 * n)) for n in range(9)), minute=1.0)
    trace = house.recall("heliotrope harbour 3", trace=True, limit=3).trace
    assert trace["mode"] == "blend" and trace["thresholds"]["blend"]["from"] == "store size"
    for row in trace["rows"]:
        assert row["fused"] == pytest.approx(max(0.0, row["similarity"] + row["words"]) + row["neighbours"])
        assert row["fate"] in ("returned", "limit", "gate", "tail") and row["passes"] == (
            row["score"] >= row["threshold"] or row.get("identifier", False)
        )
    assert sum(row["fate"] == "returned" for row in trace["rows"]) == 3
    assert len(trace["rows"]) == trace["stages"]["considered"]


def test_a_row_found_by_nothing_is_explained(house):
    house.fill(120)
    (hidden,) = house.add(("nothing in common", near(-0.5)))
    verdict = house.recall("heliotrope", why_not=(MEMORY, int(hidden[4:]))).trace["why_not"]
    assert verdict["stage"] == "retrieval" and {c["reason"] for c in verdict["channels"]} == {
        "floor",
        "no_word_in_common",
    }


def test_a_row_with_nothing_to_weigh_is_no_candidate_and_is_explained(house):
    (ref,) = house.add(("nothing in common", near(0.1)))
    result = house.recall("heliotrope", why_not=(MEMORY, int(ref[4:])))
    assert (result.rows, result.considered, result.gated) == ([], 0, 0)
    assert result.trace["why_not"]["stage"] == "weighing"


def test_of_two_versions_the_question_chooses_where_that_is_asked_for(house):
    house.fill(40)
    twin = near(0.8)
    (old,) = house.add(("our office is on Canal Street", twin))
    (new,) = house.add(
        (
            "our office moved to Mill Lane",
            (0.98 * twin + 0.02 * near(0.3)) / np.linalg.norm(0.98 * twin + 0.02 * near(0.3)),
        ),
        minute=60 * 24 * 200,
    )
    on = {"version_order": True}
    assert (
        house.refs("where is our office now", set=on)[0] == new
        and house.refs("where was our office before", set=on)[0] == old
    )
    assert house.refs("office address", set=on) == house.refs("office address")
    first = next(
        row
        for question in ("where is our office now", "where was our office before")
        for row in house.recall(question, set=on).rows[:1]
        if "version" in row.match_reason
    )
    assert first.match_reason["version"]["places"] == 1 and first.match_reason["version"]["over"] in (old, new)


def test_the_same_store_and_question_give_the_same_answer(house):
    house.fill(100)
    answers = [
        [
            (row.ref, row.match_reason)
            for row in house.recall("where is the harbour lantern of row 5?", QUESTION, limit=50).rows
        ]
        for _ in range(3)
    ]
    assert answers[0] == answers[1] == answers[2] and answers[0]


def test_a_measurement_moves_the_gate_of_a_sentence_and_not_that_of_keywords(house):
    house.fill(100)

    def gate(text):
        return house.recall(text, -QUESTION, measured=0.5, trace=True).trace["thresholds"]["blend"]["value"]

    assert gate("ketchup bottle") == pytest.approx(0.11)
    assert gate("bottle of ketchup") == pytest.approx((0.11 + gate("where is the ketchup kept?")) / 2)
    assert gate("where is the ketchup kept?") == pytest.approx(0.5)
