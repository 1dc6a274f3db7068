"""Search against the contract read row by row, on random stores and on the corners by name.

Contract: window.near, window.reach, scope.axes, embedding.identity.
"""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vector_kit import House, Row, created, unit

from cpersona_daemon.model.instants import created_seconds
from cpersona_daemon.model.kinds import EPISODE, MEMORY
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.storage.vectors import created_column
from cpersona_daemon.vectors.local.topk import exact, float32_scan, scored

E0 = np.array([1, 0, 0, 0], np.float32)


def at(cosine: float) -> np.ndarray:
    return np.array([cosine, np.sqrt(1 - cosine * cosine), 0, 0], np.float32)


@pytest.fixture
def house(tmp_path):
    house = House(tmp_path)
    yield house
    house.stop()


def test_the_best_rows_come_first_and_scores_are_cosines(house):
    ids = house.add(*(Row(at(c), second) for second, c in enumerate((0.25, 0.75, 0.5))))
    assert house.search(E0, k=2) == [(ids[1], 0.75), (ids[2], 0.5)]


def test_a_score_equal_to_the_floor_passes(house):
    (row_id,) = house.add(Row(at(0.25)))
    assert house.search(E0, floor=0.25) == [(row_id, 0.25)]
    assert house.search(E0, floor=np.nextafter(0.25, 1)) == []


def test_ties_go_to_the_newer_row_and_within_a_second_to_the_lower_id(house):
    old, first, second = house.add(Row(at(0.5), 1), Row(at(0.5), 2), Row(at(0.5), 2))
    assert [row_id for row_id, _ in house.search(E0)] == [first, second, old]


def test_the_window_edge_inside_one_second_takes_lower_ids_first(house):
    ids = house.add(*(Row(at(0.5), 7) for _ in range(6)))
    assert [row_id for row_id, _ in house.search(E0, stop=4)] == ids[:4]
    assert [row_id for row_id, _ in house.search(E0, start=4, stop=9)] == ids[4:]


def test_a_row_older_than_the_rows_before_it_takes_its_place_by_created_at(house):
    newest, oldest, middle = house.add(Row(at(0.25), 9), Row(at(0.75), 1), Row(at(0.5), 5))
    assert [row_id for row_id, _ in house.search(E0, stop=2)] == [middle, newest]
    assert [row_id for row_id, _ in house.search(E0, start=2)] == [oldest]


def test_rows_of_another_width_or_known_model_hold_their_place_and_are_not_returned(house):
    old, _, _, unknown = house.add(
        Row(at(0.75), 1), Row(unit([1, 1]), 2), Row(at(0.75), 3, model="other"), Row(at(0.5), 4, model="")
    )
    assert house.search(E0, stop=3) == [(unknown, 0.5)]
    assert house.search(E0, stop=4) == [(old, 0.75), (unknown, 0.5)]
    assert len(house.search(E0, model="")) == 3


def test_vectors_that_are_not_finite_or_are_zero_take_no_place(house):
    wanted, *_ = house.add(
        Row(at(0.5), 1),
        Row(np.full(4, np.nan, np.float32), 2),
        Row(np.zeros(4, np.float32), 3),
        Row(np.full(4, np.inf, np.float32), 4),
    )
    assert house.search(E0, stop=1) == [(wanted, 0.5)]
    assert house.store.status()["mem"]["rows"] == 1
    house.update(("mem", wanted), np.zeros(4, np.float32))
    assert house.search(E0) == [] and house.store.status()["mem"]["rows"] == 0


def test_a_query_that_is_not_finite_or_is_zero_finds_nothing(house):
    house.add(Row(at(0.5)))
    assert house.search(np.full(4, np.nan, np.float32)) == house.search(np.zeros(4, np.float32)) == []


def test_vectors_of_a_minority_width_are_searched_in_the_database(house):
    house.add(*(Row(at(0.5), second) for second in range(3)))
    narrow = house.add(Row(unit([1, 1]), 4))
    assert house.store.status()[MEMORY]["width"] == 4
    house.check(unit([1, 0]))
    assert [row_id for row_id, _ in house.search(unit([1, 0]))] == narrow
    assert house.store.cosines(unit([1, 1]), [(MEMORY, narrow[0])], "m") == pytest.approx({(MEMORY, narrow[0]): 1.0})


def test_when_most_vectors_have_another_width_the_matrix_turns_to_it(house):
    house.add(*(Row(at(0.5), second) for second in range(3)))
    house.add(*(Row(unit([1, second]), second) for second in range(4)))
    house.store.wait()
    assert house.store.status()[MEMORY]["width"] == 2
    house.check(unit([1, 2]))
    house.check(E0)


def test_episodes_and_memories_are_apart_and_a_source_hides_episodes_unless_a_channel_is_given(house):
    house.add(Row(at(0.5), kind=EPISODE, channel="c"), Row(at(0.25), source="user:1", channel="c"))
    assert [score for _, score in house.search(E0, EPISODE)] == [0.5]
    assert house.search(E0, EPISODE, Scope("a", source_id="user:1")) == []
    assert [score for _, score in house.search(E0, EPISODE, Scope("a", channel="c", source_id="user:1"))] == [0.5]


def test_a_source_ending_in_punctuation_is_a_prefix(house):
    ids = house.add(*(Row(at(0.5), source=source) for source in ("user:1", "user:10", "User:1", None, "")))
    assert [row_id for row_id, _ in house.search(E0, scope=Scope("a", source_id="user:"))] == ids[:2]
    later = house.add(Row(at(0.5), source="user:later"))
    assert [row_id for row_id, _ in house.search(E0, scope=Scope("a", source_id="user:"))] == ids[:2] + later
    assert [row_id for row_id, _ in house.search(E0, scope=Scope("a", source_id="user:1"))] == ids[:1]


def test_cosines_of_given_rows_leave_out_what_cannot_be_compared(house):
    plain, other, gone = house.add(Row(at(0.5)), Row(at(0.5), model="x"), Row(at(0.5)))
    house.delete((MEMORY, gone))
    (episode,) = house.add(Row(at(0.75), kind=EPISODE))
    asked = [(MEMORY, plain), (MEMORY, other), (MEMORY, gone), (MEMORY, 10**12), (EPISODE, episode)]
    assert house.store.cosines(E0, asked, "m") == {(MEMORY, plain): 0.5, (EPISODE, episode): 0.75}


def test_near_equal_scores_below_float32_resolution_are_ordered_exactly(house):
    rng = np.random.default_rng(5)
    query = unit(rng.normal(size=256))
    base = unit(rng.normal(size=256))
    rows = []
    for second in range(300):
        vector = base.copy()
        place = rng.integers(256)
        vector[place] = np.nextafter(vector[place], np.float32(rng.choice([-1, 1])))
        rows.append(Row(vector, second))
    house.add(*rows)
    for k in (1, 7, 40):
        house.check(query, k=k)


@pytest.mark.parametrize("width", [2, 33, 768])
def test_the_first_pass_keeps_its_promised_margin(house, width):
    rng = np.random.default_rng(width)
    scales = 10.0 ** rng.uniform(-20, 3, (400, 1))
    house.add(
        *(
            Row(vector, second)
            for second, vector in enumerate((rng.normal(size=(400, width)) * scales).astype(np.float32))
        )
    )
    view, slots = house.store.engine._parts["mem"].index.view, np.flatnonzero(rng.random(400) < 0.4)
    for _ in range(20):
        query = rng.normal(size=width).astype(np.float32)
        scores, margin = float32_scan(view, slots, query)
        assert (np.abs(scores - scored(view, slots, query)) <= margin).all()


def test_exact_scores_do_not_depend_on_the_company_a_row_is_scored_in():
    rng = np.random.default_rng(1)
    matrix, query = rng.normal(size=(1300, 896)).astype(np.float32), rng.normal(size=896).astype(np.float32)
    together = exact(matrix, query)
    for row in (1, 2, 511, 512, 1299):
        assert (
            exact(matrix[row : row + 1], query)[0]
            == together[row]
            == exact(matrix[row : row + 1].copy(), query)[0]
            == exact(matrix[row - 1 : row + 1], query)[-1]
        )


def test_created_at_is_read_the_same_alone_and_in_bulk():
    stamps = [created(second) for second in range(20)] + [
        "1969-12-31 23:59:59",
        "0001-01-01 00:00:00",
        "9999-12-31 23:59:59",
    ]
    for texts in (stamps, [*stamps, ""], [*stamps, "2024-13-01 00:00:00"], [*stamps, "2024-01-01T00:00:00+02:00"]):
        assert created_column(texts).tolist() == [created_seconds(text) for text in texts]


@pytest.mark.parametrize("width", [1, 3, 16, 100, 16_500])
def test_any_width_works(house, width):
    rng = np.random.default_rng(width)
    house.add(*(Row(unit(rng.normal(size=width)), second) for second in range(20)))
    house.check(unit(rng.normal(size=width)))
    house.restart().check(unit(rng.normal(size=width)))


VECTORS = [unit([a, b, c]) for a in (-1, 0, 1) for b in (-1, 0, 2) for c in (0.5, 3)] + [
    unit([1, 2]),
    np.zeros(3, np.float32),
    np.full(3, np.nan, np.float32),
]
rows = st.builds(
    Row,
    st.sampled_from(VECTORS),
    st.integers(0, 12),
    st.sampled_from("aab"),
    st.sampled_from(["", "p", "q"]),
    st.sampled_from(["", "c", "d"]),
    st.sampled_from([None, "", "user:1", "user:10", "bot"]),
    st.sampled_from(["m", "m", "", "other"]),
    st.sampled_from([MEMORY, MEMORY, EPISODE]),
)
step = st.one_of(
    st.tuples(st.just("add"), st.lists(rows, min_size=1, max_size=12)),
    st.tuples(st.just("update"), st.integers(0, 50), st.sampled_from(VECTORS)),
    st.tuples(st.just("delete"), st.lists(st.integers(0, 50), min_size=1, max_size=5)),
    st.tuples(st.just("restart")),
    st.tuples(st.just("rebuild")),
)
scopes = st.builds(
    Scope,
    st.sampled_from(["a", "a", "b", "nobody"]),
    st.sampled_from([None, "", "p", "absent"]),
    st.sampled_from(["", "c", "absent"]),
    st.sampled_from(["", "", "user:", "user:1", "absent", "x:"]),
)
asked = st.fixed_dictionaries(
    {
        "kind": st.sampled_from([MEMORY, EPISODE]),
        "scope": scopes,
        "start": st.sampled_from([0, 0, 1, 3]),
        "stop": st.sampled_from([1, 2, 5, 10_000]),
        "floor": st.sampled_from([-2.0, 0.0, 0.5]),
        "k": st.sampled_from([1, 3, 100]),
        "model": st.sampled_from(["m", "", "other", "new"]),
    }
)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(
    st.lists(step, min_size=1, max_size=10),
    st.lists(st.tuples(st.sampled_from(VECTORS[:-2]), asked), min_size=4, max_size=12),
)
def test_every_search_equals_the_contract_read_row_by_row(steps, questions):
    with tempfile.TemporaryDirectory() as directory:
        house = House(Path(directory))
        try:
            for name, *arguments in steps:
                living = sorted(house.rows)
                if name == "add":
                    house.add(*arguments[0])
                elif name == "update" and living:
                    house.update(living[arguments[0] % len(living)], arguments[1])
                elif name == "delete" and living:
                    house.delete(*{living[number % len(living)] for number in arguments[0]})
                elif name == "restart":
                    house.restart()
                elif name == "rebuild":
                    house.store.rebuild()
                for query, question in questions[:3]:
                    house.check(query, **question)
            for query, question in questions:
                house.check(query, **question)
        finally:
            house.stop()


@pytest.mark.parametrize("monotone", [True, False])
def test_a_large_store_with_gaps_equals_the_contract_too(house, monotone):
    """Enough rows that blocks, dense runs, gathers and several windows all occur."""
    count = 12_500
    rng = np.random.default_rng(11)
    pool = [unit(v) for v in rng.normal(size=(40, 24))]
    seconds = np.sort(rng.integers(0, 4000, count)) if monotone else rng.integers(0, 4000, count)
    projects = np.where(np.arange(count) % 5000 < 2000, "p", rng.choice(["", "q", "r"], count))
    for first in range(0, count, 2500):
        house.add(
            *(
                Row(
                    pool[rng.integers(40)] if rng.random() < 0.5 else unit(rng.normal(size=24)),
                    int(seconds[row]),
                    project=str(projects[row]),
                )
                for row in range(first, first + 2500)
            )
        )
    house.delete(*((MEMORY, int(row_id)) for row_id in rng.choice(np.arange(1, count + 1), 1500, replace=False)))
    for scope in (Scope("a"), Scope("a", "p"), Scope("a", "q"), Scope("a", "")):
        for start, stop in ((0, 100), (0, 10_000), (100, 200), (10_000, 200_000), (9_000, 9_001)):
            house.check(pool[3], scope=scope, start=start, stop=stop, k=60, floor=0.1)
    before = [house.search(pool[5], k=50)]
    house.store.rebuild()
    assert [house.search(pool[5], k=50)] == before


def test_the_vectors_of_given_rows_leave_out_what_cannot_be_compared(house):
    plain, other, gone = house.add(Row(at(0.5)), Row(at(0.5), model="x"), Row(at(0.25)))
    house.delete((MEMORY, gone))
    (episode,) = house.add(Row(at(0.75), kind=EPISODE))
    asked = [(MEMORY, plain), (MEMORY, other), (MEMORY, gone), (EPISODE, episode)]
    rids, block = house.store.rows_of(asked, len(E0), "m")
    assert rids == [(MEMORY, plain), (EPISODE, episode)] and block.tolist() == [at(0.5).tolist(), at(0.75).tolist()]
    assert house.store.rows_of(asked, len(E0) + 1, "m")[0] == []


def test_the_background_is_the_mean_of_rows_evenly_spaced_in_the_window(house):
    cosines = (0.25, 0.5, 0.75, 0.5, 0.25, 0.125)
    house.add(
        *(Row(at(c), second) for second, c in enumerate(cosines)),
        Row(at(1.0), 9, agent="b"),
        Row(at(1.0), 9, model="x"),
    )
    rows, total, mean = house.store.background(Scope("a"), 100, len(E0), "m", 3)
    assert (rows, total) == (3, 6) and mean[0] == np.mean([cosines[i] for i in (5, 3, 0)])
    assert house.store.background(Scope("a"), 3, len(E0), "m")[:2] == (2, 2)
    assert house.store.background(Scope("nobody"), 100, len(E0), "m") is None


def test_the_background_follows_every_commit(house):
    house.add(Row(at(0.5)))
    assert house.store.background(Scope("a"), 100, len(E0), "m")[:2] == (1, 1)
    (late,) = house.add(Row(at(0.25)))
    assert house.store.background(Scope("a"), 100, len(E0), "m")[:2] == (2, 2)
    house.delete((MEMORY, late))
    assert house.store.background(Scope("a"), 100, len(E0), "m")[2][0] == 0.5


def test_without_an_index_vectors_and_background_are_read_from_the_database(house):
    rng = np.random.default_rng(3)
    ids = house.add(*(Row(unit(rng.normal(size=len(E0))), second // 3) for second in range(40)))
    asked = [(MEMORY, i) for i in ids[::7]]
    whole = house.store.rows_of(asked, len(E0), "m"), house.store.background(Scope("a"), 30, len(E0), "m", 7)
    part = house.store.engine._parts["mem"]
    index, part.index = part.index, None
    try:
        bare = house.store.rows_of(asked, len(E0), "m"), house.store.background(Scope("a"), 30, len(E0), "m", 7)
    finally:
        part.index = index
    assert bare[0][0] == whole[0][0] and np.array_equal(bare[0][1], whole[0][1])
    assert bare[1][:2] == whole[1][:2] and np.array_equal(bare[1][2], whole[1][2])
