"""What is asked of a database that is not there, and what may be its first command.

Contract: commands.same, exit.status.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cpersona_cli.declare import catalogue
from cpersona_cli.session import FOUNDING

# A command line of each command that asks the daemon of what is stored.
ASKS = {
    "update": "update mem:1 text",
    "edit": "edit mem:1",
    "delete": "delete mem:1",
    "lock": "lock mem:1",
    "unlock": "unlock mem:1",
    "episode list": "episode list",
    "episode delete": "episode delete ep:1",
    "profile show": "profile show",
    "undo": "undo run --yes",
    "batches": "batches",
    "history": "history mem:1",
    "restore-memory": "restore-memory mem:1",
    "recall": "recall words",
    "get": "get mem:1",
    "list": "list",
    "context": "context words --history h.json",
    "reconstruct": "reconstruct words",
    "traverse": "traverse Name",
    "associate retract": "associate retract --relation 1",
    "associate list": "associate list",
    "exists": "exists words",
    "grep": "grep words",
    "calibrate": "calibrate",
    "precision get": "precision get",
    "precision set": "precision set strict",
    "precision clear": "precision clear",
    "export": "export out.jsonl --all-agents",
    "backup": "backup out.tar",
    "merge": "merge a b",
    "forget-agent": "forget-agent a --yes",
    "health": "health",
    "stats": "stats",
    "reindex": "reindex",
    "canary add": "canary add words mem:1",
    "canary list": "canary list",
    "canary run": "canary run",
    "canary remove": "canary remove 1",
    "resume": "resume",
    "git blame-note": "git blame-note h.json",
}
# What does not ask the daemon, or only one that runs.
APART = {
    "restore",
    "doctor",
    "daemon stop",
    "daemon unit",
    "daemon pipe",
    "daemon status",
    "status",
    "daemon run",
    "daemon logs",
    "daemon socket",
    "config show",
    "config path",
    "config set",
    "config edit",
    "git install",
    "git uninstall",
    "git status",
    "help",
    "mcp",
    "explore",  # without a terminal; with one tests/explore asks it
}


def test_each_command_is_known_to_ask_or_to_found():
    paths = {" ".join(command.path) for name in catalogue.ENTRIES for command in catalogue.declared(name)}
    told = set(ASKS) | APART | FOUNDING
    assert paths == told, "say in ASKS or APART here, or in FOUNDING of session.py, what it does without a database"
    assert not set(ASKS) & FOUNDING


@pytest.fixture(scope="module")
def run(module_home):
    from cli_kit import runner

    with open(os.path.join(module_home["HOME"], "h.json"), "w") as handle:
        handle.write("[]")
    if shutil.which("git"):
        git = ["git", "-C", module_home["HOME"], "-c", "user.name=A", "-c", "user.email=a@example.org"]
        for words in (["init", "-q"], ["add", "h.json"], ["commit", "-q", "-m", "first"]):
            subprocess.run([*git, *words], env=module_home, check=True)
    return runner(module_home)


@pytest.mark.parametrize("name", ASKS)
def test_what_asks_of_a_database_that_is_not_there_says_so_and_makes_none(run, module_home, name):
    if name.startswith("git ") and shutil.which("git") is None:
        pytest.skip("git is not installed")
    done = run(ASKS[name].split())
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (4, "", 1), done
    assert (
        f"no database at {module_home['CPERSONA_DB_PATH']}" in done.stderr
        and "--db FILE" in done.stderr
        and "cpersona store" in done.stderr
    )
    assert not os.path.exists(os.path.dirname(module_home["CPERSONA_DB_PATH"])) and not os.path.exists(
        os.path.join(module_home["HOME"], "out.tar")
    )


def test_a_cron_job_without_the_shells_variables_backs_up_no_empty_store(run_cli, home):
    run_cli(["store", "one"])
    lost = {name: value for name, value in home.items() if name != "CPERSONA_DB_PATH"}
    done = run_cli(["backup", "b.tar"], env=lost | {"CPERSONA_DB_PATH": ""})
    assert done.returncode == 4 and os.path.join("data", "cpersona", "cpersona.db") in done.stderr
    assert not os.path.exists(os.path.join(home["XDG_DATA_HOME"], "cpersona", "cpersona.db")) and not os.path.exists(
        os.path.join(home["HOME"], "b.tar")
    )
    named = run_cli(["--db", home["CPERSONA_DB_PATH"], "backup", "b.tar"], env=lost | {"CPERSONA_DB_PATH": ""})
    assert named.returncode == 0 and "1 memories" in named.stderr


def test_writes_that_wait_in_the_queue_are_a_database_to_be(run_cli):
    assert run_cli(["store", "--queue", "one"]).returncode == 0
    assert run_cli(["list"]).stdout.endswith("\tone\n")


def test_a_database_that_was_there_and_is_gone_is_not_made_anew_by_a_look(run_cli, home):
    run_cli(["store", "one"])
    run_cli(["daemon", "stop"])
    os.unlink(home["CPERSONA_DB_PATH"])
    assert run_cli(["list"]).returncode == 4 and not os.path.exists(home["CPERSONA_DB_PATH"])


@pytest.mark.parametrize(
    "command", [["store", "x"], ["import", "in.jsonl"], ["profile", "set", "x"], ["call", "daemon_status"], ["pause"]]
)
def test_the_first_command_makes_the_database(run_cli, home, command):
    with open(os.path.join(home["HOME"], "in.jsonl"), "w") as handle:
        handle.write('{"_type": "memory", "agent_id": "a", "content": "x"}\n')
    assert run_cli(command).returncode == 0 and os.path.exists(home["CPERSONA_DB_PATH"])


def test_a_backup_says_what_it_saved_and_an_empty_one_says_that_it_is(run_cli, home):
    db = home["CPERSONA_DB_PATH"]
    run_cli(["pause"])  # makes the database
    done = run_cli(["--quiet", "backup", "b.tar"])
    assert done.returncode == 0 and done.stderr.count("\n") == 1 and "is empty" in done.stderr and db in done.stderr
    run_cli(["resume"])
    run_cli(["store", "one"])
    done = run_cli(["backup", "b.tar"])
    assert (
        f"saved {db}: 1 " in done.stderr
        and "is empty" not in done.stderr
        and run_cli(["--quiet", "backup", "b.tar"]).stderr == ""
    )
    assert json.loads(run_cli(["backup", "b.tar", "--json"]).stdout)["database"] == db


def test_an_export_without_a_record_says_so(run_cli, home):
    run_cli(["store", "one"])
    for command in (["export", "out.jsonl", "--agent", "defualt"], ["export", "-", "--agent", "defualt"]):
        done = run_cli(command)
        assert done.returncode == 0 and "'defualt'" in done.stderr and home["CPERSONA_DB_PATH"] in done.stderr
    assert "empty" not in run_cli(["export", "out.jsonl"]).stderr


def test_the_line_for_cron_names_the_database(run_cli, home):
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    script = next(block for block in re.findall("```sh\n(.*?)```", readme, re.DOTALL) if "crontab" in block)
    bin = Path(home["HOME"]) / "bin"
    bin.mkdir()
    for name, body in (
        ("cpersona", f'exec {sys.executable} -m cpersona_cli "$@"'),
        ("crontab", '[ "$1" = - ] && cat > "$HOME/tab" || true'),
    ):
        (bin / name).write_text(f"#!/bin/sh\n{body}\n")
        (bin / name).chmod(0o700)
    run_cli(["store", "one"])
    subprocess.run(["sh", "-ec", script], env=home | {"PATH": f"{bin}:{home['PATH']}"}, check=True)
    line = (Path(home["HOME"]) / "tab").read_text()
    bare = {name: home[name] for name in home if not name.startswith("CPERSONA_")} | {"PATH": f"{bin}:{home['PATH']}"}
    done = subprocess.run(["sh", "-c", line.split("* * * ")[1]], env=bare, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done
    assert (
        json.loads(run_cli(["restore", os.path.join(home["HOME"], "cpersona.tar"), "--check", "--json"]).stdout)[
            "memories"
        ]
        == 1
    )
