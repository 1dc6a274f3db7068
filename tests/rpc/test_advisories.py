"""What an answer says of its own weakness, and how a person reads it. Contract: advisory.says."""

from __future__ import annotations

from cpersona_cli.terminal import render
from cpersona_cli.terminal.output import Output
from cpersona_daemon.rpc import advisories


def told(*severities: str) -> dict:
    answer: dict = {"messages": []}
    for place, severity in enumerate(severities):
        advisories.add(answer, severity, f"reason {place}", f"evidence {place}", f"do {place}")
    return answer["advisory"]


def test_one_advisory_stands_alone():
    assert told("hint") == {
        "degraded": True,
        "severity": "hint",
        "reason": "reason 0",
        "evidence": "evidence 0",
        "runbook": "do 0",
    }


def test_the_most_severe_is_the_advisory_and_the_others_stand_in_it_in_the_order_said():
    said = told("hint", "hint", "fault", "hint", "fault")
    assert said["degraded"] is True and (said["severity"], said["reason"]) == ("fault", "reason 2")
    assert [other["reason"] for other in said["also"]] == ["reason 0", "reason 1", "reason 3", "reason 4"]
    assert all(set(other) == {"severity", "reason", "evidence", "runbook"} for other in said["also"])


def test_of_equal_ones_the_first_is_the_advisory():
    assert told("hint", "hint")["reason"] == "reason 0"


def test_a_person_reads_each_of_them_and_quiet_leaves_the_faults(capsys):
    answer = {"advisory": told("hint", "fault", "hint")}
    render.warnings(Output(), answer)
    assert capsys.readouterr().err.splitlines() == [
        "cpersona: reason 1; do 1",
        "cpersona: reason 0; do 0",
        "cpersona: reason 2; do 2",
    ]
    render.warnings(Output(quiet=True), answer)
    assert capsys.readouterr().err.splitlines() == ["cpersona: reason 1; do 1"]
