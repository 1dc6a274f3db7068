"""Options that contradict each other are a usage error that names both, and nothing is asked or started.

Contract: commands.same, exit.status.
"""

from __future__ import annotations

import os

import pytest

from cpersona_cli.declare import catalogue

SHOWING = [["recall", "q"], ["context", "q"], ["get", "mem:1"], ["list"], ["episode", "list"]]
OF_ALL = [
    ["list"],
    ["episode", "list"],
    ["canary", "list"],
    ["canary", "run"],
    ["batches"],
    ["undo", "monday"],
    ["calibrate"],
    ["export", "x"],
    ["associate", "list"],
]
OF_ALL = [
    words
    for words in OF_ALL
    if any(
        p.name == "all_agents"
        for c in catalogue.declared(words[0])
        if list(c.path) == words[: len(c.path)]
        for p in c.parameters
    )
]
PAIRS = [
    *(
        [*words, "--json", *shape]
        for words in SHOWING
        for shape in (["--format", "{ref}"], ["--fields", "ref"], ["-0"])
    ),
    *([*words, "--fields", "ref", "--format", "{ref}"] for words in SHOWING),
    *([*words, "--all-agents", "--agent", "x"] for words in OF_ALL),
    ["get", "1", "--raw", "--json"],
    ["get", "1", "--raw", "--fields", "ref"],
    ["list", "--since", "2026-03-02", "--until", "2026-03-01"],
    ["list", "--since", "1h", "--as-of", "2h"],
    ["calibrate", "--percentile", "0.9"],
    ["calibrate", "--method", "zscore", "--percentile", "0.9"],
    ["calibrate", "--method", "percentile", "--z-factor", "1"],
    ["calibrate", "--rollback", "--method", "zscore"],
    ["calibrate", "--rollback", "--sample-size", "20"],
    ["pause", "--status", "--for", "1h"],
    ["restore", __file__, "--check", "--force"],
    ["call", "recall", "--stdin"],
    ["export", "-", "--json"],
    ["store", "a text", "--jsonl", "x"],
    ["store", "--jsonl", "x", "--id", "k"],
    ["store", "--jsonl", "x", "--associations", "{}"],
    ["context", "-", "--history", "-"],
    ["episode", "archive", "--history", "-"],
    ["episode", "archive", "-", "--history", "-"],
]


@pytest.mark.parametrize("words", PAIRS, ids=" ".join)
def test_what_contradicts_itself_is_refused_before_anything_is_done(run_cli, home, words):
    done = run_cli(words)
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.count("\n") == 1, done.stderr
    named = [word for word in words if word.startswith("--")]
    assert any(word in done.stderr for word in [*named, "standard input"]), done.stderr
    assert not os.path.exists(home["CPERSONA_DB_PATH"])


def test_every_command_that_can_mean_every_agent_is_among_them():
    with_it = {
        " ".join(command.path)
        for name in catalogue.ENTRIES
        for command in catalogue.declared(name)
        if any(p.name == "all_agents" for p in command.parameters)
    }
    assert with_it == {" ".join(word for word in words if word not in ("monday", "x")) for words in OF_ALL}


def test_an_agent_from_the_environment_contradicts_nothing(shared_cli, shared_daemon):
    shared_daemon.call("store", {"agent_id": "b", "content": "of b"})
    assert "of b" in shared_cli(["list", "--all-agents"], env={"CPERSONA_AGENT": "x"}).stdout
    assert shared_cli(["list", "--since", "2026-03-01", "--until", "2026-03-01"]).returncode == 0


def test_json_goes_with_what_limits_the_rows(shared_cli, shared_daemon):
    for words in (["list", "--max-chars", "3"], ["recall", "of", "--top"], ["recall", "of", "--best-first"]):
        assert shared_cli([*words, "--json"]).returncode == 0
