"""Sentences that only their author understood, in words that everybody does. Contract: exit.status."""

from __future__ import annotations

import json

import pytest

from cpersona_cli.terminal import panel
from cpersona_cli.terminal.output import counted
from cpersona_cli.terminal.times import parse, zone_warning


@pytest.mark.parametrize(
    "count, things, said",
    [
        (1, "memories", "1 memory"),
        (0, "episodes", "0 episodes"),
        (1, "entities", "1 entity"),
        (1204, "rows", "1,204 rows"),
    ],
)
def test_one_of_a_kind_is_no_plural(count, things, said):
    assert counted(count, things) == said


def test_a_reconstruct_says_in_words_why_there_is_little(run_cli):
    run_cli(["store", "the pump is in the cellar"])
    done = run_cli(["reconstruct", "the pump"])
    assert done.returncode == 0 and "1 item: nothing else came into question" in done.stderr
    assert "0 items: nothing in the store came into question" in run_cli(["reconstruct", "chromodynamics"]).stderr


def test_what_was_left_out_of_a_declaration_is_named_by_its_option(run_cli):
    done = run_cli(["associate", "declare", "--entity", "pump", "--anchor", "mem:99"])
    assert done.returncode == 1 and "the --anchor was left out" in done.stderr


def test_a_reindex_prints_names_and_numbers(run_cli):
    run_cli(["store", "the pump is in the cellar"])
    rows = dict(line.split("\t") for line in run_cli(["reindex"]).stdout.splitlines())
    assert (
        rows["memories in the word index"] == "1"
        and rows["memories with a vector"] == "0"
        and not any("{" in value for value in rows.values())
    )


def test_a_naive_time_is_told_with_what_to_write_for_local_time(monkeypatch):
    import time

    monkeypatch.setenv("TZ", "XST-9")
    time.tzset()
    try:
        for text, local in (("2026-03-01T10:00", "2026-03-01T10:00+09:00"), ("2026-03-01", "2026-03-01T00:00+09:00")):
            assert f"write {local} to mean local time" in zone_warning(text, parse(text))
            assert zone_warning(local, parse(local)) is None
    finally:
        monkeypatch.undo()
        time.tzset()


def test_status_counts_one_threshold_as_one():
    said = panel._calibration({"measured": True, "thresholds": 1, "gates": 2, "model": "m"})
    assert said == "1 threshold, 2 gates, model m"


def test_status_counts_one_memory_as_one(run_cli):
    run_cli(["store", "the pump is in the cellar"])
    assert "1 memory" in run_cli(["daemon", "status"]).stdout
    assert json.loads(run_cli(["daemon", "status", "--json"]).stdout)["rows"]["memories"] == 1
