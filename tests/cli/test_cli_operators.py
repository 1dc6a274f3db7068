"""`doctor`, `canary`, `exists`, `calibrate`, `daemon status`, `store --check-secrets`: plain and JSON output and each
exit code.

Contract: canary.run, health.doctor, exit.status.
"""

import base64
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

TOKEN = "ghp_" + "aB3dE5gH7jK9mN1pQ2sT4vW6xY8zA0cDabcd"


def levels(done):
    return {(line.split("\t")[1], line.split("\t")[0]) for line in done.stdout.splitlines()}


# -- doctor


def test_doctor_finds_a_sound_installation_sound_starts_nothing_and_makes_no_file(run_cli, home):
    before = sorted(Path(home["HOME"]).rglob("*"))
    done = run_cli(["doctor"])
    assert done.returncode == 0, done.stdout
    assert {
        ("python", "ok"),
        ("sqlite", "ok"),
        ("model", "ok"),
        ("settings", "ok"),
        ("socket", "ok"),
        ("database", "ok"),
        ("clock", "ok"),
        ("daemon", "ok"),
    } <= levels(done)
    assert done.stderr.endswith("0 fail\n") and sorted(Path(home["HOME"]).rglob("*")) == before
    told = json.loads(run_cli(["doctor", "--json"]).stdout)
    assert told["ok"] is True and {"check", "level", "message"} <= set(told["checks"][0])


def test_doctor_works_where_the_daemon_cannot_start_and_says_what_to_do(run_cli, home):
    Path(home["CPERSONA_DB_PATH"]).parent.mkdir()
    Path(home["CPERSONA_DB_PATH"]).write_bytes(b"a text file, and no database at all" * 9)
    os.chmod(home["CPERSONA_DB_PATH"], 0o644)
    env = {"CPERSONA_COSINE_FLOOR": "0.9", "CPERSONA_RRF_K": "many", "TZ": "Nowhere/Land"}
    done = run_cli(["doctor"], env=env)
    assert done.returncode == 1
    assert {
        ("settings", "fail"),
        ("settings", "warn"),
        ("database", "fail"),
        ("permissions", "warn"),
        ("clock", "warn"),
    } <= levels(done)
    findings = json.loads(run_cli(["doctor", "--json"], env=env).stdout)["checks"]
    assert all(finding.get("do") for finding in findings if finding["level"] != "ok")
    assert run_cli(["store", "x"], env=env).returncode == 4


def test_doctor_sees_the_daemon_and_a_newer_schema(run_cli, home):
    run_cli(["store", "x"])
    assert any("answers" in line for line in run_cli(["doctor"]).stdout.splitlines() if "\tdaemon\t" in line)
    run_cli(["daemon", "stop"])
    import apsw

    conn = apsw.Connection(home["CPERSONA_DB_PATH"])
    conn.execute("INSERT INTO schema_migrations VALUES (999, 'from the future', '2030-01-01 00:00:00')")
    conn.close()
    assert ("database", "fail") in levels(run_cli(["doctor"]))


# -- canary and exists


def test_canaries_are_added_listed_run_and_removed(run_cli):
    run_cli(["store", "deploys run from the release branch"])
    added = run_cli(["canary", "add", "deploys branch", "mem:1"])
    assert (added.returncode, added.stdout) == (0, "1\n") and "rank 1" in added.stderr
    lost = run_cli(["canary", "add", "bananas", "mem:1"])
    assert (lost.returncode, lost.stdout) == (1, "2\n")
    assert run_cli(["canary"]).stdout == "1\tfound\t1\tmem:1\tdeploys branch\n2\tlost\t-\tmem:1\tbananas\n"
    ran = run_cli(["canary", "run"])
    assert ran.returncode == 1 and ran.stdout.count("\n") == 2 and "1 of 2 are lost" in ran.stderr
    assert json.loads(run_cli(["canary", "run", "--json"]).stdout)["lost"] == 1
    health = run_cli(["health", "--check", "canaries"])
    assert health.stdout.splitlines()[0] == "status\tdegraded" and "canary 2 is lost" in health.stdout
    assert json.loads(run_cli(["daemon", "status", "--json"]).stdout)["canaries"] == {"total": 2, "lost": 1}
    assert run_cli(["canary", "remove", "2"]).stdout == "removed\t2\n"
    assert run_cli(["canary", "run"]).returncode == 0
    assert run_cli(["canary", "remove", "2"]).returncode == 1
    assert run_cli(["canary", "remove", "two"]).returncode == 2 and run_cli(["canary", "add", "x"]).returncode == 2
    assert run_cli(["canary", "add", "x", "mem:99"]).returncode == 1
    assert run_cli(["canary", "list", "--agent", "b"]).stdout == ""
    assert json.loads(run_cli(["canary", "list", "--all-agents", "--json"]).stdout)["count"] == 1


def test_exists_answers_with_its_exit_code(run_cli):
    run_cli(["store", "error E1042 means the disk is full"])
    there = run_cli(["exists", "E1042"])
    assert (there.returncode, there.stdout) == (0, "mem:1\n")
    assert "words" in run_cli(["exists", "full disk"]).stderr
    for words, status in (
        (["exists", "E1042", "-q"], 0),
        (["exists", "full disk", "-q"], 0),
        (["exists", "E1043", "--quiet"], 3),
    ):
        silent = run_cli(words)
        assert (silent.returncode, silent.stdout, silent.stderr) == (status, "", "")
    assert json.loads(run_cli(["exists", "E1042", "-q", "--json"]).stdout)["exists"] is True
    missing = run_cli(["exists", "E1043"])
    assert (missing.returncode, missing.stdout) == (3, "") and missing.stderr == "no row holds it\n"
    assert json.loads(run_cli(["exists", "E1043", "--json"]).stdout) == {"exists": False}
    assert run_cli(["exists", "-", "-q"], input="E1042\n").returncode == 0
    assert run_cli(["exists", " "]).returncode == 1 and run_cli(["exists"]).returncode == 2


# -- calibrate


def test_calibrate_shows_before_and_after_and_rolls_back(run_cli):
    lines = []
    for n in range(16):
        vector = [0.03 * n, 0.5, 0.2, 0.1]
        vector[n % 4] += 1.0
        lines.append(
            json.dumps(
                {
                    "_type": "memory",
                    "agent_id": "default",
                    "content": f"topic {n % 4} number {n}",
                    "timestamp": f"2026-01-0{n % 4 + 1}T00:{n:02}:00Z",
                    "embedding_b64": base64.b64encode(struct.pack("<4f", *vector)).decode(),
                }
            )
        )
    assert run_cli(["import", "-"], input="\n".join(lines) + "\n").returncode == 0
    run_cli(["canary", "add", "topic number", "mem:16"])
    run_cli(["recall", "topic"])
    first = run_cli(["calibrate"])
    assert first.returncode == 0, first.stderr
    shown = dict(line.split("\t") for line in first.stdout.splitlines())
    assert (
        " -> " in shown["threshold"]
        and shown["canaries"].endswith("lost")
        and shown["recent recalls"].endswith("of 1 changed")
    )
    dry = json.loads(
        run_cli(["calibrate", "--method", "percentile", "--percentile", "0.2", "--dry-run", "--json"]).stdout
    )
    assert dry["dry_run"] is True and dry["new_threshold"] != dry["old_threshold"]
    run_cli(["calibrate", "--method", "percentile", "--percentile", "0.2"])
    back = run_cli(["calibrate", "--rollback"])
    assert back.returncode == 0 and "returned to the calibration before" in back.stderr
    assert (
        json.loads(run_cli(["calibrate", "--rollback", "--dry-run", "--json"]).stdout)["old_threshold"]
        == dry["old_threshold"]
    )
    refused = run_cli(["calibrate", "--rollback", "--agent", "nobody"])
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (1, "", 1)


# -- daemon status


def test_status_is_a_panel_on_a_terminal_and_records_elsewhere(run_cli, on_terminal):
    run_cli(["store", "x"])
    facts = [line.split("\t") for line in run_cli(["daemon", "status"]).stdout.splitlines()]
    names = [name for name, _ in facts]
    assert names[0] == "state" and {
        "version",
        "rows",
        "index of memories",
        "calibration",
        "canaries",
        "embedder",
        "to embed",
        "store",
    } <= set(names)
    assert "p50" in dict(facts)["store"] and "p99" in dict(facts)["store"]
    shown, code = on_terminal(["daemon", "status"], 100, NO_COLOR="1")
    lines = [line.rstrip() for line in shown.splitlines()]
    assert code == 0 and [line for line in lines if line and not line.startswith(" ")] == [
        "daemon",
        "places",
        "store",
        "calls",
    ]
    assert (
        any(line.startswith("  method") and line.endswith("p99 ms") for line in lines) and max(map(len, lines)) <= 100
    )


# -- secrets


def test_a_secret_is_pointed_out_or_refused_and_never_printed(run_cli):
    warned = run_cli(["store", f"deploy with {TOKEN}", "--check-secrets", "warn"])
    assert (warned.returncode, warned.stdout) == (0, "mem:1\n") and "github_token at character 12" in warned.stderr
    refused = run_cli(["store", f"again {TOKEN}", "--check-secrets", "refuse"])
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (
        1,
        "",
        1,
    ) and "github_token" in refused.stderr
    assert TOKEN not in warned.stderr + refused.stderr
    told = json.loads(run_cli(["store", f"third {TOKEN}", "--check-secrets", "warn", "--json"]).stdout)
    assert told["secrets"] == [{"kind": "github_token", "at": 6}]
    assert run_cli(["store", f"unchecked {TOKEN}"]).returncode == 0
    assert run_cli(["store", "x", "--check-secrets", "perhaps"]).returncode == 2


def test_each_line_of_a_file_is_checked(run_cli):
    done = run_cli(
        ["store", "--jsonl", "-", "--check-secrets", "refuse"],
        input=json.dumps("fine") + "\n" + json.dumps(f"bad {TOKEN}") + "\n",
    )
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    assert (
        done.returncode == 1
        and [outcome["result"] for outcome in outcomes] == ["stored", "rejected"]
        and TOKEN not in done.stdout
    )
    warned = run_cli(["store", "--jsonl", "-", "--check-secrets", "warn"], input=json.dumps(f"bad {TOKEN}") + "\n")
    assert json.loads(warned.stdout)["secrets"][0]["kind"] == "github_token"


# -- health and logs


def test_health_exits_7_for_a_critical_finding_says_that_it_can_be_mended_and_mends_it(run_cli, home):
    import apsw

    row = {
        "_type": "memory",
        "agent_id": "default",
        "content": "x",
        "embedding_b64": base64.b64encode(struct.pack("<2f", 1, 0)).decode(),
    }
    run_cli(["import", "-"], input=json.dumps(row) + "\n")
    conn = apsw.Connection(home["CPERSONA_DB_PATH"])
    conn.execute("DELETE FROM memory_vectors")
    conn.close()
    done = run_cli(["health", "--check", "vector_index"])
    assert (
        done.returncode == 7
        and done.stdout.splitlines()[2].startswith("critical\tvector_index\t")
        and "health --fix` repairs 1 of 1" in done.stderr
    )
    told = json.loads(run_cli(["health", "--check", "vector_index", "--json"]).stdout)
    assert told["status"] == "unhealthy" and told["issues"][0]["fixable"] is True
    fixed = run_cli(["health", "--fix", "--deep", "--check", "vector_index"])
    assert fixed.returncode == 0 and fixed.stdout.splitlines()[-1].startswith("fixed\tvector_index")


def test_logs_follow_what_is_written_from_now_on(run_cli, home):
    run_cli(["store", "x"])
    with subprocess.Popen(
        [sys.executable, "-m", "cpersona_cli", "daemon", "logs", "-f", "-n", "1"],
        env=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert "serving" in process.stdout.readline()
            run_cli(["daemon", "stop"])
            assert "leaving" in process.stdout.readline()
        finally:
            process.kill()
