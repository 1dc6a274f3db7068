"""The file beside the database: private, whole or absent, never trusted blindly.

Contract: calibration.file, files.damage.
"""

from __future__ import annotations

import json
import os
import resource
import stat
from pathlib import Path

import pytest

from cpersona_daemon.calibration.file import CalibrationFile
from cpersona_daemon.calibration.measured import Threshold, scoring_version
from cpersona_daemon.errors import Refused, StorageFailure

T = Threshold(0.21, "separation", 200, 0.95, 1.0)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "t.db.calibration.json")


def fill(book: CalibrationFile, model: str = "m1", dimension: int = 8, version: str = "1-fusion") -> None:
    book.update(
        lambda held: (
            held.for_model(model, dimension, version)
            .with_threshold("kit", T)
            .with_beta("kit", 2.0)
            .with_gates("kit", "rrf", ("cosine", "rrf"), {"cosine": 0.31, "rrf": 0.0141})
        )
    )


def test_what_was_kept_is_read_back_by_the_next_process(path):
    fill(CalibrationFile(path))
    again = CalibrationFile(path)
    assert again.problem is None
    assert again.threshold("kit", "m1") == 0.21 and again.beta("kit") == 2.0 and again.precision("kit") == "strict"
    assert again.gate("kit", "rrf", "rrf", "m1") == 0.0141
    assert again.gate("kit", "rsf", "cosine", "m1") is None and again.gate("kit", "rrf", "cosine", "m2") is None


def test_the_files_are_private_and_nothing_is_left_beside_them(path):
    old = os.umask(0)
    try:
        fill(CalibrationFile(path))
    finally:
        os.umask(old)
    assert stat.S_IMODE(os.stat(path).st_mode) == stat.S_IMODE(os.stat(path + ".previous").st_mode) == 0o600
    assert sorted(os.listdir(os.path.dirname(path))) == [os.path.basename(path), os.path.basename(path) + ".previous"]


def test_an_agent_without_a_threshold_of_its_own_has_the_one_of_all_agents(path):
    book = CalibrationFile(path)
    fill(book)
    assert book.threshold("other") is None
    book.update(lambda held: held.with_threshold("", Threshold(0.4, "zscore", 50, 0.95, 2.0)))
    assert book.threshold("other") == 0.4 and book.threshold("kit") == 0.21


def test_nothing_measured_with_another_model_is_answered(path):
    book = CalibrationFile(path)
    fill(book)
    assert book.threshold("kit", "m2") is None
    assert book.threshold("kit", "") == 0.21


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"{}",
        b'{"checksum": "x", "calibration": {}}',
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"thresholds": {"kit": 0.3}}',
    ],
)
def test_a_damaged_or_foreign_file_is_moved_aside_and_counts_as_absent(path, raw):
    with open(path, "wb") as handle:
        handle.write(raw)
    book = CalibrationFile(path)
    assert book.problem and book.stale("m1", 8, "1-fusion") and book.threshold("kit") is None
    assert not os.path.exists(path)
    with open(book.damaged_path, "rb") as handle:
        assert handle.read() == raw
    fill(book)
    assert book.problem is None and CalibrationFile(path).threshold("kit") == 0.21


def test_a_number_changed_by_hand_or_by_a_failing_disk_is_noticed(path):
    fill(CalibrationFile(path))
    with open(path) as handle:
        document = json.load(handle)
    document["calibration"]["thresholds"]["kit"]["value"] = 0.99
    with open(path, "w") as handle:
        json.dump(document, handle)
    assert "checksum" in CalibrationFile(path).problem


def test_a_truncated_file_is_noticed_wherever_it_ends(path, tmp_path):
    fill(CalibrationFile(path))
    whole = Path(path).read_bytes()
    for end in range(0, len(whole) - 2, 7):
        cut = str(tmp_path / f"cut-{end}")
        with open(cut, "wb") as handle:
            handle.write(whole[:end])
        assert CalibrationFile(cut).problem


def test_a_change_of_model_keeps_the_precisions_alone_and_backs_the_old_file_up(path):
    book = CalibrationFile(path)
    fill(book)
    old = Path(path).read_bytes()
    book.update(lambda held: held.for_model("m2", 8, "1-fusion"))
    assert Path(book.backup_path).read_bytes() == old and stat.S_IMODE(os.stat(book.backup_path).st_mode) == 0o600
    assert book.beta("kit") == 2.0 and book.threshold("kit") is None and book.gate("kit", "rrf", "cosine", "m2") is None


def test_a_change_within_one_model_makes_no_backup(path):
    book = CalibrationFile(path)
    fill(book)
    fill(book)
    assert not os.path.exists(book.backup_path)


@pytest.mark.parametrize(
    ("model", "dimension", "version", "stale"),
    [
        ("m1", 8, "1-fusion", False),
        ("", None, "1-fusion", False),
        ("", 8, "1-fusion", False),
        ("m1", None, "1-fusion", False),
        ("m2", 8, "1-fusion", True),
        ("m1", 9, "1-fusion", True),
        ("m1", 8, "1-confidence", True),
    ],
)
def test_another_model_dimension_or_scoring_version_is_stale_and_an_unknown_one_is_not(
    path, model, dimension, version, stale
):
    book = CalibrationFile(path)
    assert book.stale(model, dimension, version)
    fill(book)
    assert book.stale(model, dimension, version) is stale


def test_the_scoring_version_changes_when_confidence_starts_to_order(make_settings):
    plain, shown = make_settings(), make_settings(confidence_enabled=True)
    legacy = make_settings(confidence_enabled=True, confidence_ordering="legacy")
    assert scoring_version(plain) == scoring_version(shown) != scoring_version(legacy)


def test_a_forgotten_agent_leaves_nothing_behind(path):
    book = CalibrationFile(path)
    fill(book)
    book.forget("kit")
    again = CalibrationFile(path)
    assert "kit" not in Path(path).read_text()
    assert again.threshold("kit") is None and again.beta("kit") == 1.0


def test_a_file_that_cannot_be_written_changes_nothing(path):
    book = CalibrationFile(path)
    fill(book)
    before, beside = Path(path).read_bytes(), os.listdir(os.path.dirname(path))
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5, limit[1]))  # as a full disk: nothing larger can be written
    try:
        with pytest.raises(StorageFailure):
            book.update(lambda held: held.with_beta("kit", 0.5))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert book.beta("kit") == 2.0 and Path(path).read_bytes() == before and os.listdir(os.path.dirname(path)) == beside


def test_what_stands_in_a_files_place_is_moved_aside(path):
    for suffix in ("", ".previous", ".bak", ".damaged"):
        os.mkfifo(path + suffix)
    book = CalibrationFile(path)
    assert "a named pipe" in book.problem and ".aside-1" in book.problem
    fill(book)
    book.update(lambda held: held.for_model("m2", 8, "1-fusion"))
    assert book.problem is None and all(os.path.isfile(path + suffix) for suffix in ("", ".previous", ".bak"))
    with open(path, "wb") as handle:
        handle.write(b"damaged")
    assert CalibrationFile(path).problem and os.path.isfile(path + ".damaged")


def test_a_reader_keeps_its_snapshot_while_the_file_changes(path):
    book = CalibrationFile(path)
    fill(book)
    snapshot = book.current
    book.update(lambda held: held.with_beta("kit", 0.5))
    assert snapshot.beta("kit") == 2.0 and book.beta("kit") == 0.5


def test_rolling_back_returns_one_agent_to_what_was_in_force_before_and_a_second_time_forward_again(path):
    book = CalibrationFile(path)

    def value(agent, number):
        return book.update(
            lambda held: held.for_model("m1", 8, "1").with_threshold(
                agent, Threshold(number, "separation", 200, 0.95, 1.0)
            )
        )

    value("a", 0.2)
    value("b", 0.5)
    value("a", 0.3)
    assert book.roll_back("a")[1].threshold("a") == 0.2 and book.threshold("b") == 0.5
    assert CalibrationFile(path).threshold("a") == 0.2
    assert CalibrationFile(path).roll_back("a")[1].threshold("a") == 0.3
    assert book.roll_back("b")[1].threshold("b") is None


def test_rolling_back_is_refused_where_nothing_earlier_is_known_or_fits_the_model(path):
    book = CalibrationFile(path)
    with pytest.raises(Refused, match="no earlier calibration"):
        book.roll_back("a")
    for model in ("m1", "m2"):
        book.update(
            lambda held, model=model: held.for_model(model, 8, "1").with_threshold(
                "a", Threshold(0.2, "separation", 200, 0.95, 1.0)
            )
        )
    with pytest.raises(Refused, match="another model"):
        book.roll_back("a")
    assert book.threshold("a") == 0.2


def test_a_damaged_file_of_the_previous_one_only_costs_the_way_back(path):
    book = CalibrationFile(path)
    fill(book)
    with open(path + ".previous", "r+b") as handle:
        handle.write(b"{")
    again = CalibrationFile(path)
    with pytest.raises(Refused):
        again.roll_back("kit")
    assert again.threshold("kit", "m1") == book.threshold("kit", "m1")
