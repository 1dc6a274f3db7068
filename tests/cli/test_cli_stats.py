"""`stats`, and the pictures of `calibrate` and `canary run`.

Contract: stats.bounded, scores.drawn, pictures.drawn.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from xml.dom import minidom

import pytest

TOPICS = "rivers trains bread clouds violins tides bees glass maps salt ropes lamps".split()


@pytest.fixture(scope="module")
def stored(shared_cli):
    """A store of two agents without an embedder: words alone are compared."""
    lines = [
        {
            "content": f"{topic} were seen on day {number}, note {number} about {topic}",
            "source": {"type": "User", "id": f"user:{number % 3}"},
        }
        for number, topic in enumerate(TOPICS)
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    done = shared_cli(["store", "--jsonl", "-", "--agent", "a", "--project", "p", "--channel", "c"], input=text)
    assert done.returncode == 0, done.stderr
    shared_cli(["store", "one of the other agent", "--agent", "b"])
    shared_cli(["recall", "violins seen", "--agent", "a"])


def test_off_a_terminal_a_line_is_a_name_and_its_numbers(stored, shared_cli):
    lines = shared_cli(["stats", "--days", "2"]).stdout.splitlines()
    today = datetime.now(UTC).date()
    assert {"memories\t13", "agent\ta\t12", "agent\tb\t1", "project\tp\t12", "project\t(none)\t1"} <= set(lines)
    assert {f"day\t{today}\t13", "channel\tc\t12", "source\tuser:0\t4", "looked_at\t13"} <= set(lines)
    assert sum(line.startswith("day\t") for line in lines) == 2
    told = dict(line.split("\t", 1) for line in lines)
    assert told["recall_calls"].startswith("1\t") and told["recalled"] == "0"
    assert int(told["database_bytes"]) > 100_000 and told["to_embed"] == "0" and "wal_bytes" in told


def test_of_one_agent_nothing_is_told_of_others_or_of_the_files(stored, shared_cli):
    told = json.loads(shared_cli(["stats", "--agent", "b", "--json"]).stdout)
    assert told["memories"] == 1 and told["agents"]["most"] == [{"name": "b", "memories": 1}]
    assert (
        "sizes" not in told and "asked" not in told and set(told["backlog"]) == {"pending"} and len(told["days"]) == 30
    )
    assert shared_cli(["stats", "--days", "367"]).returncode == 1


def test_a_terminal_is_drawn_to_and_a_picture_written(stored, shared_terminal, tmp_path):
    path = tmp_path / "s.svg"
    for environ, drawn in (({"LANG": "C.UTF-8"}, "█"), ({"LANG": "C", "LC_ALL": "C"}, "#")):
        out, status = shared_terminal(["stats", "--svg", str(path)], columns=60, **environ)
        assert status == 0 and drawn in out and "13 memories" in out and "\x1b" not in out
        assert max(len(line) for line in out.splitlines() if str(path) not in line) <= 60
    assert "by source" in minidom.parse(str(path)).toxml()


@pytest.mark.parametrize("mode", ["blend", "rrf"])
def test_saved_questions_are_drawn_against_what_is_unrelated(stored, shared_cli, shared_terminal, mode):
    added = json.loads(shared_cli(["canary", "add", "violins day 4", "mem:5", "--agent", "a", "--json"]).stdout)
    environ = {"CPERSONA_RECALL_MODE": mode}
    told = json.loads(shared_cli(["canary", "run", "--plot", "--agent", "a", "--json"], env=environ).stdout)["scores"]
    assert added["state"] == "found" and told["signal"] in ("blend", "cosine")
    assert len(told["known"]) + told["known_missing"] == 1 == len(told["unrelated"]) + told["unrelated_missing"]
    if mode == "blend":
        assert told["gate"] == pytest.approx(0.11) and told["known"][0] > told["gate"]
        printed = shared_cli(["canary", "run", "--plot", "--agent", "a"]).stdout.splitlines()
        assert printed[:2] == ["signal\tblend", "gate\t0.11"] and any(line.startswith("scores\t") for line in printed)
        out, status = shared_terminal(["canary", "run", "--plot", "--agent", "a"], LANG="C.UTF-8")
        assert status == 0 and "── gate 0.110 " in out
    assert shared_cli(["canary", "run", "--plot", "--all-agents"]).returncode == 2


def test_a_calibration_draws_what_it_measured(run_cli, tmp_path):
    environ = {"CPERSONA_EMBEDDING_MODE": "builtin"}
    text = "".join(json.dumps(f"{topic} were seen near the old mill by the coast") + "\n" for topic in TOPICS)
    assert run_cli(["store", "--jsonl", "-", "--wait"], input=text, env=environ).returncode == 0
    path = tmp_path / "c.svg"
    done = run_cli(["calibrate", "--dry-run", "--plot", "--svg", str(path)], env=environ)
    assert done.returncode == 0, done.stderr
    told = dict(line.split("\t", 1) for line in done.stdout.splitlines())
    assert told["signal"] == "blend" and told["gate blend"].endswith(f"-> {float(told['gate']):.4f}")
    assert "of 12 known questions" in done.stderr and minidom.parse(str(path)).getElementsByTagName("rect")
    for words in (["--rollback"], ["--all-agents"]):
        assert run_cli(["calibrate", "--plot", *words], env=environ).returncode == 2
