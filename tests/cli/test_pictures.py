"""Numbers as pictures: pure functions from values to lines and to SVG. Contract: pictures.drawn."""

from __future__ import annotations

import os
import random
from xml.dom import minidom

import pytest

from cpersona_cli.commands import _plots
from cpersona_cli.terminal import pictures, svg
from cpersona_cli.terminal.output import Output
from cpersona_cli.terminal.pictures import Bins, Scores


def scores(known=(), unrelated=(), gate=None, **more) -> Scores:
    return Scores({"signal": "blend", "known": known, "unrelated": unrelated, "gate": gate} | more)


DRAWN = random.Random(7)
CASES = [
    scores([0.9, 1.1, 1.4], [0.01, 0.02, 0.1, 0.3], 0.19),
    scores([DRAWN.gauss(1, 0.2) for _ in range(300)], [DRAWN.gauss(0.1, 0.1) for _ in range(300)], 0.2873),
    scores([0.0331, 0.0402], [0.0123, 0.0164], 0.016393),
    scores([0.5], [0.5], 0.5),
    scores([0.5], [0.5]),
    scores([], [], 0.11),
    scores(),
    scores([1e-9], [], 900.0),
]


@pytest.mark.parametrize("case", CASES)
def test_no_bin_lies_on_both_sides_of_the_gate_and_every_score_lies_in_one(case):
    bins = Bins(case)
    assert len(bins.edges) == len(bins.known) + 1 <= 24 and bins.edges == sorted(bins.edges)
    assert (sum(bins.known), sum(bins.unrelated)) == (len(case.known), len(case.unrelated))
    if case.gate is None:
        assert bins.gate is None
    else:
        assert bins.edges[bins.gate] == pytest.approx(case.gate)
        assert (sum(bins.known[bins.gate :]), sum(bins.unrelated[bins.gate :])) == case.kept


@pytest.mark.parametrize("utf8", [True, False])
@pytest.mark.parametrize("columns", [20, 60, 80, 300])
@pytest.mark.parametrize("case", CASES)
def test_a_histogram_fits_from_sixty_columns_on_and_is_ascii_where_it_must(case, columns, utf8):
    lines = pictures.histograms(case, columns, utf8)
    assert max(map(len, lines)) <= min(max(columns, 60), 100)
    assert utf8 or "".join(lines).isascii()
    assert sum(" gate " in line for line in lines) == (case.gate is not None)


def test_a_histogram_draws_low_scores_first_and_the_gate_between():
    assert pictures.histograms(scores([0.9, 0.95], [0.05, 0.1, 0.3], 0.2), 60, False) == [
        "blend  known (2)                 unrelated (3)",
        " 0.05                            ###################### 1",
        " 0.10                            ###################### 1",
        " 0.15",
        "-- gate 0.200 ----------------------------------------------",
        " 0.20",
        " 0.25",
        " 0.30                            ###################### 1",
        *(f" {number / 100:.2f}" for number in range(35, 90, 5)),
        " 0.90  ###################### 1",
        " 0.95  ###################### 1",
    ]


@pytest.mark.parametrize(
    ("values", "utf8", "drawn"),
    [
        ([0, 1, 4, 8], True, "▁▂▅█"),
        ([0, 1, 4, 8], False, "_.+@"),
        ([0, 0], True, "▁▁"),
        ([], True, ""),
        ([1, 10**9], True, "▂█"),
    ],
)
def test_a_line_of_heights_shows_what_is_more_than_nothing(values, utf8, drawn):
    assert pictures.sparkline(values, utf8) == drawn


def test_days_that_have_no_room_are_drawn_together_the_last_ones_whole():
    assert pictures.grouped([1] * 30, 56) == ([1] * 30, 1)
    assert pictures.grouped([1, 2, 3, 4, 5], 2) == ([3, 12], 3)
    assert pictures.grouped([1] * 366, 60)[0] == [2, *[7] * 52]
    assert pictures.grouped([], 10) == ([], 1)


def test_bars_are_cut_to_the_width_with_their_names():
    lines = pictures.bars([("a" * 90, 10), ("short", 1), ("none", 0)], 60, False)
    assert [len(line) for line in lines] == [60] * 3 and all(line.isascii() for line in lines)
    assert lines[0].startswith("  " + "a" * 19 + "~  #") and lines[1].count("#") == 3 and "#" not in lines[2]
    assert pictures.bars([], 60, True) == []


@pytest.mark.parametrize(
    ("environ", "utf8"),
    [
        ({"LANG": "de_DE.UTF-8"}, True),
        ({"LANG": "C.utf8"}, True),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, False),  # what Python puts there for a locale without
        ({"LANG": "en_US.UTF-8", "LC_ALL": "C"}, False),
        ({"LANG": "C", "LC_CTYPE": "en_US.UTF-8"}, True),
        ({}, False),
    ],
)
def test_the_locale_says_whether_there_is_utf8(environ, utf8):
    assert pictures.has_utf8(environ) is utf8


@pytest.mark.parametrize("case", CASES)
def test_the_svg_is_xml_that_holds_every_count_and_the_gate(case):
    document = minidom.parseString(svg.histograms(case))
    told = [int(node.firstChild.data.rpartition(": ")[2]) for node in document.getElementsByTagName("title")]
    assert sum(told) == len(case.known) + len(case.unrelated)
    dashed = [line for line in document.getElementsByTagName("line") if line.hasAttribute("stroke-dasharray")]
    assert len(dashed) == (case.gate is not None)


def test_names_of_any_kind_are_text_in_the_svg():
    names = ['<&">', "tab\there", "\x00\x1b[31m", "\ud800", "日本語", "😀"]
    document = minidom.parseString(svg.panels("a & b", [("by agent", [(name, 1) for name in names])]).encode("utf-8"))
    told = "".join(node.firstChild.data for node in document.getElementsByTagName("text"))
    assert '<&">' in told and "日本語" in told and "😀" in told and "\x1b" not in told


def test_a_picture_that_cannot_be_written_leaves_the_old_one(tmp_path):
    path = tmp_path / "p.svg"
    path.write_text("old")
    with pytest.raises(OSError):
        _plots.write(Output(quiet=True), str(tmp_path / "none" / "p.svg"), "new")
    _plots.write(Output(quiet=True), str(path), "new")
    assert path.read_text() == "new" and os.listdir(tmp_path) == ["p.svg"]
