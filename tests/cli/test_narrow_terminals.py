"""What a person reads on a terminal of any width: whole numbers, whole refs, whole flags, and no control sequences of a
memory.

Contract: output.streams.
"""

from __future__ import annotations

import json
import re

import pytest

from cpersona_cli.terminal.output import folded

# Each with words of its own: rows that differ by a number alone are shown as one.
THINGS = "gates locks owners tags rules checks hooks names signs dates costs risks moods ends".split()
NOTES = [
    f"note {number} about the deploy branch: {thing} that {other} need, long enough for more than one line"
    for number, (thing, other) in enumerate(zip(THINGS, THINGS[::-1], strict=True))
]
NUMBER = re.compile(r"\d+\.\d{4}")


@pytest.fixture(scope="module")
def notes(shared_cli):
    assert (
        shared_cli(["store", "--jsonl", "-"], input="".join(json.dumps(text) + "\n" for text in NOTES)).returncode == 0
    )


def lines(shown):
    return [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", shown).replace("\r\n", "\n").split("\n")]


def test_an_account_fits_eighty_columns_with_whole_numbers_and_says_how_many_rows_are_left(shared_terminal, notes):
    shown, status = shared_terminal(["recall", "deploy branch", "-n", "3", "--explain"], 80)
    text = lines(shown)
    assert status == 0 and max(map(len, text)) <= 80
    ranked = [line.split() for line in text if re.match(r" +\d+ +mem:", line) and "returned" in line]
    assert [row[0] for row in ranked] == ["1", "2", "3"] and all(
        len(NUMBER.findall(" ".join(row))) >= 2 for row in ranked
    )
    assert any("more rows" in line and "--explain=all" in line for line in text)
    whole, _ = shared_terminal(["recall", "deploy branch", "-n", "3", "--explain=all"], 80)
    assert whole.count("mem:") > shown.count("mem:")


def test_ranks_count_from_one_on_every_list(shared_cli, notes):
    account = shared_cli(["recall", "deploy branch", "-n", "3", "--explain"]).stdout
    places = [int(rank) for rank in re.findall(r"^mem:\d+ +(\d+) ", account, re.MULTILINE)]
    assert places and min(places) == 1


def test_why_not_prints_its_few_lines_and_nothing_else(shared_cli, shared_terminal, notes):
    for shown in (
        shared_cli(["recall", "deploy branch", "-n", "3", "--why-not", "mem:999"]).stdout,
        shared_cli(["recall", "deploy branch", "-n", "3", "--why-not", "mem:1"]).stdout,
    ):
        assert shown.startswith("why not mem:") and shown.count("\n") == 1
    last = shared_cli(["recall", "deploy branch", "-n", "1"]).stdout.split("\t")[1]
    assert (
        shared_cli(["recall", "deploy branch", "-n", "1", "--why-not", last]).stdout
        == f"why not {last}: it was returned, at rank 1\n"
    )


@pytest.mark.parametrize("columns", [40, 50, 60, 80])
def test_a_narrow_table_keeps_rank_ref_and_text(shared_terminal, notes, columns):
    for command in (["recall", "deploy branch", "-n", "3"], ["list"]):
        text = lines(shared_terminal(command, columns)[0])
        assert max(map(len, text)) <= columns
        assert not [line for line in text if "…" in line.split()], text
        assert sum(bool(re.search(r"mem:\d+ .*note", line)) for line in text) >= 3


@pytest.mark.parametrize("columns", [40, 60])
def test_notes_wrap_between_words(shared_terminal, notes, columns):
    shown, _ = shared_terminal(["recall", "quantum chromodynamics", "--set", "fused_gate_enabled=true"], columns)
    text = lines(shown)
    assert max(map(len, text)) <= columns
    assert "nothing found" in " ".join(text)


def test_folding_keeps_words_whole_and_the_beginning_in_its_place():
    said = (
        "  nothing found: 12 rows came into question; --deep lets weaker matches pass, `cpersona get "
        "mem:123456` shows one"
    )
    for width in range(20, 90):
        out = folded(said, width)
        assert " ".join(" ".join(out).split()) == said.strip() and out[0].startswith("  nothing")
        assert all(len(line) <= width or " " not in line.strip() for line in out)


def test_a_setting_is_explained_whole_at_any_width(on_terminal, run_cli):
    meaning = run_cli(["config", "show", "vector_reach"]).stdout.rstrip("\n").split("\t")[-1]
    for columns in (40, 80):
        shown = " ".join(" ".join(lines(on_terminal(["config", "show", "vector_reach"], columns)[0])).split())
        assert meaning in shown and "…" not in shown


def test_control_sequences_of_a_memory_reach_a_pipe_as_they_are_and_a_terminal_never(run_cli, on_terminal):
    evil = "look \x1b]0;owned\x07\x1b[31mred\x9b2Jgone"
    assert run_cli(["store", "-"], input=evil).returncode == 0
    for command in (
        ["recall", "look gone", "--deep", "--top"],
        ["get", "mem:1", "--raw"],
        ["recall", "look gone", "--deep", "--format", "{content}", "-0"],
    ):
        assert evil in run_cli(command).stdout.replace("\0", "")
        shown, _ = on_terminal(command, NO_COLOR="1")
        assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", shown.replace("\r\n", "\n")), shown
    assert run_cli(["get", "mem:1", "--raw"]).stdout.rstrip("\n") == evil
