"""The first pass: no score is further off than its margin, and no pass changes an answer.

Contract: vectors.exact.
"""

import math
import sys
import tempfile
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from vector_kit import House, Row, created, following, unit

from cpersona_daemon.model.changes import VectorPut
from cpersona_daemon.model.kinds import MEMORY
from cpersona_daemon.storage.generations import NOTHING
from cpersona_daemon.vectors.local import names, simd
from cpersona_daemon.vectors.local.files import MatrixFile
from cpersona_daemon.vectors.local.index import Index
from cpersona_daemon.vectors.local.rows import as_slice
from cpersona_daemon.vectors.local.sketch import QuerySketch, sketch, sketch_one
from cpersona_daemon.vectors.local.topk import best, exact, float32_scan, scored

ODD = [
    0.0,
    1.0,
    -1.0,
    0.5,
    1e-45,
    -1e-40,
    1e-30,
    1e-20,
    3e38,
    -3e38,
    1 / 127,
    0.5 / 127,
    1.5 / 127,
    63.5 / 127,
    126.5 / 127,
    float(np.nextafter(np.float32(0.5), 1)),
]
number = st.one_of(st.sampled_from(ODD), st.floats(-1, 1, width=32))


def vectors(width):
    return hnp.arrays(np.float32, width, elements=number).filter(lambda vector: vector.any())


@settings(max_examples=200)
@given(
    st.integers(1, 40).flatmap(
        lambda width: st.tuples(st.lists(vectors(width), min_size=1, max_size=6), vectors(width))
    )
)
def test_a_score_made_of_codes_is_never_further_off_than_its_margin(drawn):
    rows, query = np.array(drawn[0]), drawn[1]
    codes, scales, residuals, norms = sketch(rows, rows.shape[1], 64)
    asked = QuerySketch(query, 64, float(norms.max()))
    products = codes.astype(np.int64) @ asked.codes[0].astype(np.int64)
    for row, product, scale, residual in zip(rows, products.tolist(), scales.tolist(), residuals.tolist(), strict=True):
        margin = residual * asked.per_residual + asked.fixed
        score = product * scale * asked.scale
        true = math.fsum((row.astype(np.float64) * query.astype(np.float64)).tolist())
        assert abs(true - score) <= margin
        assert abs(exact(row[None], query)[0] - score) <= margin


@settings(max_examples=100)
@given(st.integers(1, 40).flatmap(vectors))
def test_residuals_and_norms_are_upper_bounds_whether_rows_are_sketched_alone_or_together(row):
    together = [values[0] for values in sketch(row[None], len(row), 64)]
    for codes, scale, residual, norm in (together, sketch_one(row, 64)):
        rest = [
            float(x) - float(scale) * int(c) for x, c in zip(row, codes, strict=False)
        ]  # each product and difference is exact enough for hypot
        assert math.hypot(*rest) <= float(residual) and math.hypot(*map(float, row)) <= float(norm)
        assert np.array_equal(codes, together[0]) and scale == together[1]


@pytest.fixture(scope="module")
def simd_pass():
    made = simd.first_pass()
    assert isinstance(made, simd.SimdPass), "simsimd is a dependency: the quick pass must be there"
    yield made
    made.close()


@pytest.fixture
def index(tmp_path):
    return Index(MEMORY, str(tmp_path / "x.vec"), b"s" * 16, NOTHING)


def fill(index, rows, seconds):
    index.apply(
        [
            VectorPut(MEMORY, number + 1, created(second), "a", "", "", None, "m", row)
            for number, (row, second) in enumerate(zip(rows, seconds, strict=True))
        ],
        (),
        following(index.generation),
    )
    return index.view


def plain(view, slots, query, floor, k):
    scores = scored(view, slots, query)
    order = np.lexsort((view.columns.id[slots], -view.columns.created[slots], -scores))
    return [(int(view.columns.id[slots[i]]), float(scores[i])) for i in order if scores[i] >= floor][:k]


@pytest.fixture(params=["float32", "int8", "int8 in small pieces on two threads"])
def first_pass(request, simd_pass, monkeypatch):
    if request.param.startswith("int8 in"):
        monkeypatch.setattr(simd, "_SHARED_FROM_BYTES", 0)
        monkeypatch.setattr(simd, "_PIECE_BYTES", 1)
        monkeypatch.setattr(simd, "_GATHER_CHUNK", 7)
        monkeypatch.setattr(simd, "_PIECES", 1000)
    return float32_scan if request.param == "float32" else simd_pass


def crowd(rng, width, count):
    """Vectors that int8 puts in the wrong order: duplicates, opposites, neighbours a float32 step apart, nearly
    nothing, spikes.
    """
    base = rng.normal(size=(8, width))
    base[1, rng.integers(width)] = 40  # a spike: all else rounds to a code or two
    base[2] = base[0] + rng.normal(size=width) * 1e-4  # well below a step of the codes
    base[3] = -base[0]
    base = (base / np.linalg.norm(base, axis=1, keepdims=True)).astype(np.float32)
    rows = base[rng.integers(8, size=count)]
    nudged = rng.random(count) < 0.5
    places = rng.integers(width, size=count)
    rows[nudged, places[nudged]] = np.nextafter(rows[nudged, places[nudged]], np.float32(rng.choice([-9, 9])))
    near_zero = rng.random(count) < 0.1
    rows[near_zero] *= np.float32(10.0) ** -rng.integers(1, 44, (near_zero.sum(), 1)).astype(np.float32)
    rows[~rows.any(axis=1), 0] = 1e-45
    return rows, base


@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 2**32 - 1),
    width=st.sampled_from([1, 2, 24, 64, 100, 384]),
    count=st.sampled_from([1, 5, 60, 700]),
)
def test_every_first_pass_gives_the_answer_of_the_plain_scan(first_pass, seed, width, count):
    rng = np.random.default_rng(seed)
    rows, base = crowd(rng, width, count)
    with tempfile.TemporaryDirectory() as directory:
        view = fill(
            Index(MEMORY, directory + "/x.vec", b"s" * 16, NOTHING),
            rows,
            np.sort(rng.integers(0, max(2, count // 3), count)),
        )
        everything = np.arange(count)
        for query in (base[0], base[1], rows[rng.integers(count)], unit(rng.normal(size=width))):
            scores = scored(view, everything, query)
            for slots in (
                everything,
                everything[count // 4 : 3 * count // 4 + 1],
                np.flatnonzero(rng.random(count) < 0.7),
                np.flatnonzero(rng.random(count) < 0.1),
            ):
                for k in (1, 3, 40):
                    for floor in (-2.0, float(rng.choice(scores)), float(np.nextafter(rng.choice(scores), 2)), 0.3):
                        assert best(view, slots, query, floor, k, first_pass) == plain(view, slots, query, floor, k)


@pytest.mark.parametrize("width", [3, 768])
def test_huge_and_tiny_vectors_do_not_mislead_a_first_pass(index, first_pass, width):
    rng = np.random.default_rng(width)
    rows = rng.normal(size=(120, width)).astype(np.float32) * (
        np.float32(10.0) ** rng.integers(-44, 38, (120, 1)).astype(np.float32)
    )
    rows = rows[np.isfinite(rows).all(axis=1) & rows.any(axis=1)]
    view = fill(index, rows, range(len(rows)))
    for query in (unit(rng.normal(size=width)), rows[5], rows[40]):
        for k in (1, 30, 200):
            assert best(view, np.arange(len(rows)), query, -np.inf, k, first_pass) == plain(
                view, np.arange(len(rows)), query, -np.inf, k
            )


def test_only_rows_that_the_bound_cannot_exclude_are_read_as_float32(tmp_path, monkeypatch):
    house = House(tmp_path)
    try:
        rng = np.random.default_rng(2)
        house.add(*(Row(unit(rng.normal(size=256)), second) for second in range(2000)))
        house.restart()
        read, really_read = {names.MATRIX: 0, names.SKETCHES: 0}, MatrixFile.read

        def counted(self, slots, sums):
            read[names.MATRIX if self is house.store.engine._parts["mem"].index.view.matrix else names.SKETCHES] += len(
                slots
            )
            return really_read(self, slots, sums)

        monkeypatch.setattr(MatrixFile, "read", counted)
        house.check(unit(rng.normal(size=256)), stop=1500, k=5)
        assert read[names.SKETCHES] == 1500 and 5 <= read[names.MATRIX] < 500
        house.check(unit(rng.normal(size=256)), stop=1500, k=5)
        assert read[names.SKETCHES] == 1500, "codes are read once"
    finally:
        house.stop()


def test_without_the_simd_package_the_answers_are_the_same(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "simsimd", None)
    assert simd.first_pass() is float32_scan
    house = House(tmp_path)
    try:
        rng = np.random.default_rng(4)
        rows, base = crowd(rng, 48, 400)
        house.add(*(Row(row, int(second)) for row, second in zip(rows, rng.integers(0, 90, 400), strict=True)))
        for query in base[:3]:
            house.check(query, k=25)
        house.restart().check(base[0], start=20, stop=200)
    finally:
        house.stop()


def test_a_kernel_that_multiplies_wrongly_is_not_used(monkeypatch):
    def saturating(a, b, metric, *, out_dtype):
        pairs = a[:, None].astype(np.int16) * b.astype(np.int16)
        return (
            np.clip(pairs.reshape(*pairs.shape[:2], -1, 2).sum(axis=3, dtype=np.int64), -(2**14), 2**14)
            .sum(axis=2)
            .astype(out_dtype)
        )

    monkeypatch.setitem(sys.modules, "simsimd", SimpleNamespace(cdist=saturating))
    assert simd.first_pass() is float32_scan


def test_the_package_hands_out_no_reference_it_does_not_count(index, simd_pass):
    """Version 6.5 gives away ``None`` uncounted when it is told where to write; this process must never lose it."""
    view = fill(index, np.eye(8, dtype=np.float32), range(8))
    before = sys.getrefcount(None)
    for _ in range(500):
        simd_pass(view, np.arange(8), view.rows(np.array([3]))[0])
    assert sys.getrefcount(None) > before - 100


def test_a_closed_pass_still_answers(index, monkeypatch):
    monkeypatch.setattr(simd, "_SHARED_FROM_BYTES", 0)
    closed = simd.first_pass()
    closed.close()
    view = fill(index, np.eye(8, dtype=np.float32), range(8))
    assert best(view, np.arange(8), view.rows(np.array([3]))[0], 0.5, 3, closed) == [(4, 1.0)]


def test_ascending_slots_without_gaps_are_read_as_a_slice():
    assert as_slice(np.arange(4, 9)) == slice(4, 9)
    assert isinstance(as_slice(np.array([4, 6, 7])), np.ndarray) and len(as_slice(np.zeros(0, np.int64))) == 0
