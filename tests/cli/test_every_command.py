"""Every command of the catalogue: its plain output, its JSON, and each exit code that it can give.

A command without a row in the table fails the first test. Contract: commands.same, output.streams, exit.status.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest
from cli_kit import runner

from cpersona_cli.declare import catalogue
from cpersona_cli.wire import client
from cpersona_daemon.shared import fields
from cpersona_daemon.shared.paths import places
from cpersona_daemon.shared.settings import load


class Case(NamedTuple):
    """``plain``: words and what all of stdout matches. ``json``: words and keys of the object printed. ``more``:
    further exit codes and the words that give them.

    ``asks``: it talks to a daemon, so it can find none (4), be denied (5), told to come back (6) and be interrupted
    while it waits (130).
    """

    plain: tuple[str, str]
    json: tuple[str, str] | None
    more: dict[int, str] = {}
    asks: bool = True


# Words are split at blanks. `@DIRECTORY` is where a command runs; those of git run in ./repo otherwise.
CASES = {
    "store": Case(
        ("store new", r"mem:\d+\n"),
        ("store other --json", "ok result ref"),
        {1: 'store x --metadata {"a":"' + "y" * 9000 + '"}', 3: "store row-1 --fail-if-skipped"},
    ),
    "update": Case(
        ("update mem:2 changed", "mem:2\tupdated\n"), ("update 3 altered --json", "ok"), {1: "update mem:999 x"}
    ),
    "edit": Case(("edit mem:9", ""), ("edit 9 --json", "ok ref changed"), {1: "edit mem:999"}),
    "delete": Case(("delete mem:4", "mem:4\tdeleted\n"), ("delete 5 --json", "ok"), {1: "delete mem:999"}),
    "lock": Case(("lock mem:6", "mem:6\tlocked\n"), ("lock 6 --json", "ok"), {1: "lock mem:999"}),
    "unlock": Case(("unlock mem:7", "mem:7\tunlocked\n"), ("unlock 7 --json", "ok"), {1: "unlock mem:999"}),
    "episode archive": Case(
        ("episode archive session", r"ep:\d+\n"),
        ("episode archive again --json", "ok episode_id"),
        {1: "episode archive x --history no-such-file"},
    ),
    "episode list": Case(
        ("episode list --fields ref,summary", "ep:\\d+\t[^\n]*\n(.*\n)*ep:3\tepisode 3\n(.*\n)*"),
        ("episode list --json", "episodes count"),
    ),
    "episode delete": Case(
        ("episode delete 1", "ep:1\tdeleted\n"), ("episode delete ep:2 --json", "ok"), {1: "episode delete 999"}
    ),
    "profile show": Case(("profile show --agent x", "who x is\n"), ("profile show --agent x --json", "profile")),
    "profile set": Case(
        ("profile set text", ""), ("profile set text --json", "ok"), {1: "profile set - --agent " + "a" * 300}
    ),
    "undo": Case(
        ("undo one", "deleted_memories\t2\ndeleted_episodes\t0\nkept_locked\t0\n"),
        ("undo two --json", "ok deleted_memories"),
        {1: "undo " + "b" * 300, 3: "undo none"},
    ),
    "batches": Case(("batches --agent r", "run\t1\t0\t[^\t]*\t[^\t\n]*\n"), ("batches --json", "batches count more")),
    "history": Case(
        ("history mem:13", "now\t-\t-\tnew text\n1\t[^\t]*\tupdated\trow-13\n"),
        ("history mem:13 --json", "ref now entries days"),
        {1: "history mem:999"},
    ),
    "restore-memory": Case(
        ("restore-memory mem:14", "mem:14\tbrought back\n"),
        ("restore-memory mem:15 --json", "ok ref result"),
        {1: "restore-memory mem:999", 3: "restore-memory mem:15"},
    ),
    "recall": Case(
        ("recall row-9 --deep -n 1", "1\tmem:9\t[^\n]*\trow-9\n"),
        ("recall row-9 --json", "messages order"),
        {1: "recall x --set recall_mode=best", 3: "recall nothing-like-it --fail-empty"},
    ),
    "get": Case(
        ("get mem:8", "mem:8\t[^\t]*\t-\trow-8\n"), ("get mem:8 --json", "items missing count"), {1: "get mem:999"}
    ),
    "list": Case(("list -n 1 --agent x", "mem:\\d+\t[^\n]*\tof x\n"), ("list --json", "memories count")),
    "context": Case(
        ("context row-9 --deep -n 1", "memory\tmem:9\t[^\n]*\trow-9\n"),
        ("context row-9 --json", "messages order"),
        {1: "context x --history no-such-file"},
    ),
    "reconstruct": Case(
        ("reconstruct row-9 --deep --count 1", "mem:9  row-9\n.*"),
        ("reconstruct row-9 --json", "items effective_count"),
        {1: "reconstruct x --set recall_mode=best"},
    ),
    "traverse": Case(("traverse Queue", "Queue\n(\t+[^\n]*\n)+"), ("traverse Queue --json", "entities relations")),
    "associate declare": Case(
        ("associate declare --entity Cache", "entity\t\\d+\tCache\tnew\n"),
        ("associate declare --entity Cache --json", "ok entities"),
        {1: 'associate declare {"entities":[{"name":""}]}'},
    ),
    "associate retract": Case(
        ("associate retract --relation 1", "[^\n]*relations[^\n]*\n(.*\n)*"),
        ("associate retract --relation 2 --json", "ok retracted"),
        {1: "associate retract --relation 999"},
    ),
    "associate list": Case(
        ("associate list", "entities of default\n.*"), ("associate list --json", "entities relations")
    ),
    "exists": Case(
        ("exists row-9", "mem:9\n"),
        ("exists row-9 --json", "exists ref"),
        {1: "exists " + "z" * 9000, 3: "exists nothing-like-it"},
    ),
    "grep": Case(
        ("grep row-9", "mem:9\t1\trow-9\n"),
        ("grep row-9 --json", "matches rows more order"),
        {2: "grep -E (", 3: "grep nothing-like-it"},
    ),
    "calibrate": Case(
        ("calibrate --agent v --dry-run", "threshold\t[^\n]*\n(.*\n)*"),
        ("calibrate --agent v --dry-run --json", "ok old_threshold new_threshold"),
        {1: "calibrate --agent nobody"},
    ),
    "precision get": Case(
        ("precision get", "(strict|balanced|lenient)\n"), ("precision get --json", "precision overridden")
    ),
    "precision set": Case(
        ("precision set strict --agent v", "strict\n"),
        ("precision set lenient --agent v --json", "ok precision"),
        {1: "precision set sharp"},
    ),
    "precision clear": Case(
        ("precision clear --agent v", "(default|strict|balanced|lenient)\n"),
        ("precision clear --agent v --json", "ok precision"),
    ),
    "export": Case(
        ("export out.jsonl", "[^\n]*/out.jsonl\n"),
        ("export out.jsonl --json", "ok path memories"),
        {1: "export no-such-directory/out.jsonl"},
    ),
    "import": Case(
        ("import in.jsonl --to-agent w", "imported_memories\t1\nskipped_memories\t0\n(.*\n)*"),
        ("import in.jsonl --to-agent w --json", "ok imported_memories skipped_memories"),
        {1: "import no-such-file"},
    ),
    "backup": Case(
        ("backup c.tar", "[^\n]*/c.tar\n"),
        ("backup c.tar --json", "ok path memories bytes"),
        {1: "backup no-such-directory/c.tar"},
    ),
    "restore": Case(
        ("restore b.tar --db new/t.db", "[^\n]*/new/t.db\n"),
        ("restore b.tar --check --json", "ok memories version"),
        {1: "restore in.jsonl --db new/t.db", 6: "restore b.tar"},
        asks=False,
    ),
    "merge": Case(
        ("merge x z", "merged_memories\t1\n(.*\n)*"),
        ("merge x z --json", "ok merged_memories skipped_memories"),
        {1: "merge x x"},
    ),
    "forget-agent": Case(
        ("forget-agent y --yes", "deleted_memories\t1\n(.*\n)*"),
        ("forget-agent w --yes --json", "ok deleted_memories"),
        {1: "forget-agent nobody --yes", 2: "forget-agent y"},
    ),
    "health": Case(
        ("health --check schema", "status\thealthy\nmemories\t\\d+\n(history\t[^\n]+\n)?"),
        ("health --json --check schema", "status issues checks_run"),
        {1: "health --check nothing", 7: "health --db damaged/t.db"},
    ),
    "reindex": Case(
        ("reindex", "memories in the word index\t\\d+\nepisodes in the word index\t\\d+\n(.*\n)*"),
        ("reindex --json", "ok memories episodes"),
    ),
    "canary add": Case(
        ("canary add row-9 mem:9", "\\d+\n"),
        ("canary add row-10 mem:10 --json", "id state"),
        {1: "canary add x mem:999"},
    ),
    "canary list": Case(
        ("canary list --agent x", "\\d+\t[^\n]*\tmem:\\d+\tof x\n"), ("canary list --json", "canaries count")
    ),
    "canary run": Case(
        ("canary run --agent x", "\\d+\tfound\t[^\n]*\n"),
        ("canary run --agent x --json", "total found lost"),
        {1: "canary run --agent lost"},
    ),
    "canary remove": Case(
        ("canary remove 3 --agent c", "removed\t3\n"),
        ("canary remove 4 --agent d --json", "ok removed_id"),
        {1: "canary remove 999"},
    ),
    "doctor": Case(
        ("doctor", "(ok|warn)\t[^\n]*\n(.*\n)*"),
        ("doctor --json", "ok checks"),
        {1: "doctor --db in.jsonl/t.db"},
        asks=False,
    ),
    "pause": Case(
        ("pause --for 1m --session k", "paused\tuntil [^\n]*\n"),
        ("pause --for 1m --session k --json", "paused expires_at ttl_seconds"),
        {2: "pause --for soon"},
    ),
    "resume": Case(("resume --session k", "keeping\n"), ("resume --session k --json", "paused was_active")),
    "stats": Case(
        ("stats", "memories\t\\d+\n(.*\n)*"),
        ("stats --json", "memories episodes days agents projects channels sources lengths recalls backlog sizes"),
        {1: "stats --days 1000"},
    ),
    "daemon start": Case(
        ("daemon start", "running\tpid \\d+\n"), ("daemon start --json", "running pid version db socket")
    ),
    "daemon stop": Case(
        ("daemon stop --db new/t.db", "(not running|stopped)\n"),
        ("daemon stop --db new/t.db --json", "running was_running"),
        asks=False,
    ),
    "daemon restart": Case(
        ("daemon restart --db other/t.db", "running\tpid \\d+\n"),
        ("daemon restart --db other/t.db --json", "running pid"),
        {4: "daemon restart --db in.jsonl/t.db"},
        asks=False,
    ),
    "daemon status": Case(
        ("daemon status", "state\trunning\npid\t\\d+\n(.*\n)*"),
        ("daemon status --json", "running pid version rows vectors methods last_errors"),
        {4: "daemon status --db nowhere/t.db"},
        asks=False,
    ),
    "status": Case(
        ("status", "state\trunning\npid\t\\d+\n(.*\n)*"),
        ("status --json", "running pid backlog"),
        {4: "status --db nowhere/t.db"},
        asks=False,
    ),
    "daemon logs": Case(("daemon logs -n 1", "[^\n]+\n"), None, {}, asks=False),
    "daemon socket": Case(("daemon socket", "[^\n]*t.db.sock\n"), None, {}, asks=False),
    "daemon unit": Case(
        ("daemon unit", "# cpersonad.service(.*\n)*"), None, {2: "daemon unit --group a/b"}, asks=False
    ),
    "config show": Case(
        ("config show recall_mode", "recall_mode\t[^\n]*\n"),
        ("config show --json", "settings warnings conflicts"),
        {},
        asks=False,
    ),
    "config set": Case(
        ("config set log_level info", "log_level\tinfo\n"),
        ("config set log_level info --json", "ok name value path"),
        {1: "config set recall_mode best", 2: "config set nothing 1"},
        asks=False,
    ),
    "config edit": Case(("config edit", ""), ("config edit --json", "ok path changed"), {}, asks=False),
    "config path": Case(
        ("config path db", "[^\n]*/t.db\n"), ("config path --json", "config db socket log"), {}, asks=False
    ),
    "call": Case(
        ('call get_profile {"agent_id":"x"}', '{"profile".*}\n'),
        ('call get_profile {"agent_id":"x"}', "profile"),
        {1: "call nothing"},
    ),
    "git install": Case(
        ("git install", "post-commit\t[^\n]*\n(post-[a-z]+\t[^\n]*\n)*"),
        ("git install --json", "ok hooks hooks_directory"),
        {1: "@. git install"},
        asks=False,
    ),
    "git status": Case(
        ("git status", "state\tinstalled\n(.*\n)*"),
        ("git status --json", "state hooks queued"),
        {1: "@. git status", 3: "@bare git status"},
        asks=False,
    ),
    "git note": Case(
        ("git note", "[0-9a-f]{40}\tstored\tmem:\\d+\n"),
        ("git note --json", "ok result id"),
        {1: "git note no-such-revision"},
    ),
    "git backfill": Case(
        ("git backfill", "stored\t\\d\nskipped\t\\d\nrejected\t0\n"),
        ("git backfill --json", "ok commits stored skipped"),
        {1: "git backfill no-such-range"},
    ),
    "git blame-note": Case(
        ("git blame-note file", "[0-9a-f]{12}\t[^\n]*\tmem:\\d+\tfirst[^\n]*\n"),
        ("git blame-note file:1 --json", "ok file line commits notes without_note order"),
        {1: "git blame-note no-such-file", 3: "@bare git blame-note file"},
    ),
    "git uninstall": Case(
        ("git uninstall", "post-commit\tremoved\t[^\n]*\n(.*\n)*"),
        ("git uninstall --json", "ok hooks"),
        {1: "@. git uninstall"},
        asks=False,
    ),
    "mcp": Case(("mcp --print-config", "# Claude (.*\n)*"), None, {2: "mcp --tools some"}, asks=False),
    "help": Case(("help gate", "gate: (.*\n)*"), None, {}, asks=False),
}
# Commands whose tests need more than one line, and where those stand.
ELSEWHERE = {
    "explore": ("tests/explore/test_explore_on_a_terminal.py", '"explore"'),
    "daemon run": ("tests/cli/test_cli_daemon.py", '"daemon", "run"'),
    "daemon pipe": ("tests/cli/test_cli_host.py", '"cpersona daemon pipe --create"'),
}
PATHS = [" ".join(command.path) for name in catalogue.ENTRIES for command in catalogue.declared(name)]
COMMANDS = {" ".join(command.path): command for name in catalogue.ENTRIES for command in catalogue.declared(name)}
ASKING = [name for name, case in CASES.items() if case.asks]


def test_every_command_has_its_row():
    assert set(PATHS) == set(CASES) | set(ELSEWHERE)
    for file, word in ELSEWHERE.values():
        assert word in (Path(__file__).parents[2] / file).read_text("utf-8")
    assert {name for name in CASES if CASES[name].json is None} == {
        name for name in CASES if "json" not in COMMANDS[name].common
    }


@pytest.fixture(scope="module")
def run(shared_daemon, module_home):
    """Run one line of the table in a home where everything that the table names is there."""
    module_home["EDITOR"] = "true"
    home, here, ask = module_home, Path(module_home["HOME"]), shared_daemon.call
    cli = runner(home)

    def run(line: str, env: dict[str, str] | None = None, **more) -> subprocess.CompletedProcess:
        words = line.split()
        cwd = words.pop(0)[1:] if words[0].startswith("@") else "repo" if words[0] == "git" else "."
        return subprocess.run(
            [sys.executable, "-m", "cpersona_cli", *words],
            env=home | (env or {}),
            cwd=here / cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            **more,
        )

    for number in range(1, 31):
        ask("store", {"agent_id": "default", "content": f"row-{number}"})
        ask("archive_episode", {"agent_id": "default", "summary": f"episode {number}"}) if number < 5 else None
    for agent in ("x", "y", "c", "d", "lost"):
        row = ask("store", {"agent_id": agent, "content": f"of {agent}"})[0]["id"]
        ask("add_canary", {"agent_id": agent, "query": f"of {agent}", "ref": f"mem:{row}"})
    ask("delete_memory", {"agent_id": "lost", "memory_id": row})
    ask("store", {"agent_id": "w", "content": "of w"})
    ask("store", {"agent_id": "r", "content": "of r", "batch": "run"})
    ask("update_profile", {"agent_id": "x", "profile": "who x is"})
    ask(
        "declare_associations",
        {
            "agent_id": "default",
            "associations": {
                "entities": [{"name": "Queue"}],
                "relations": [
                    {"subject": "Queue", "predicate": word, "object": "Disk"} for word in ("runs on", "fills")
                ],
            },
        },
    )
    for batch in ("one", "two"):
        for number in range(2):
            ask("store", {"agent_id": "default", "content": f"{batch} {number}", "batch": batch})
    ask("update_memory", {"agent_id": "default", "memory_id": 13, "content": "new text"})
    for row in (14, 15):
        ask("delete_memory", {"agent_id": "default", "memory_id": row})
    vectors = [[0.03 * n + (n % 4 == at) for at in range(4)] for n in range(16)]
    lines = [
        json.dumps(
            {
                "_type": "memory",
                "agent_id": "v",
                "content": f"topic {n % 4} number {n}",
                "embedding_b64": base64.b64encode(struct.pack("<4f", *vector)).decode(),
            }
        )
        for n, vector in enumerate(vectors)
    ]
    (here / "vectors.jsonl").write_text("\n".join(lines) + "\n")
    (here / "in.jsonl").write_text(lines[0] + "\n")
    assert cli(["import", "vectors.jsonl"]).returncode == 0 and cli(["backup", "b.tar"]).returncode == 0
    # A store whose vector index and rows do not agree.
    assert cli(["import", "vectors.jsonl", "--db", "damaged/t.db"]).returncode == 0
    with closing(apsw.Connection(str(here / "damaged" / "t.db"))) as conn:
        conn.execute("DELETE FROM memory_vectors WHERE id = 1")
    if shutil.which("git"):
        for name in ("repo", "bare"):
            git = ["git", "-C", str(here / name), "-c", "user.name=A", "-c", "user.email=a@example.org"]
            subprocess.run(["git", "init", "-q", name], cwd=here, env=home, check=True)
            (here / name / "file").write_text("a line\n")
            subprocess.run([*git, "add", "file"], env=home, check=True)
            subprocess.run([*git, "commit", "-q", "-m", f"first of {name}"], env=home, check=True)
            subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "second"], env=home, check=True)
        assert run("git note HEAD~1").returncode == 0
    return run


def possible(name: str) -> None:
    if name.startswith("git ") and shutil.which("git") is None:
        pytest.skip("git is not installed")


@pytest.mark.parametrize("name", CASES)
def test_the_plain_output_is_data_on_stdout_and_nothing_else(run, name):
    possible(name)
    words, pattern = CASES[name].plain
    done = run(words)
    assert done.returncode == 0 and re.fullmatch(pattern, done.stdout, re.DOTALL), (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr and "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name].json])
def test_json_is_one_line_that_holds_the_whole_answer(run, name):
    possible(name)
    words, keys = CASES[name].json
    done = run(words)
    assert done.returncode == 0 and done.stdout.count("\n") == 1, (done.stdout, done.stderr)
    assert set(keys.split()) <= set(json.loads(done.stdout))


@pytest.mark.parametrize("name, status", [(name, status) for name in CASES for status in CASES[name].more])
def test_each_further_exit_code_comes_with_one_line_that_says_why(run, name, status):
    possible(name)
    done = run(CASES[name].more[status])
    assert done.returncode == status, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    if status not in (3, 7):
        assert (
            done.stderr.startswith("cpersona")
            and done.stderr.count("\n") == 1
            or name in ("canary run", "daemon status", "status", "doctor")
        ), done.stderr


@pytest.mark.parametrize("name", PATHS)
def test_a_wrong_command_line_is_one_line_and_exit_2(run, name):
    done = run(f"@. {name} --no-such-option")
    assert (
        done.returncode == 2
        and done.stdout == ""
        and done.stderr.count("\n") == 1
        and f"`cpersona {name} --help`" in done.stderr
    )


@pytest.mark.parametrize("name", ASKING)
def test_without_a_daemon_that_can_start_it_exits_4(run, name):
    possible(name)
    done = run(CASES[name].plain[0], {"CPERSONA_DB_PATH": "/dev/null/t.db", "CPERSONA_COSINE_FLOOR": "0.9"})
    assert (done.returncode, done.stderr.count("\n")) == (4, 1) and done.stderr.startswith("cpersona"), done.stderr


@pytest.fixture(scope="module")
def strict(module_home):
    """A daemon whose access file grants this client nothing."""
    access = Path(module_home["HOME"]) / "access.json"
    access.write_text('{"clients": [{"client_id": "nobody", "grants": {}}]}')
    access.chmod(0o600)
    environ = {"CPERSONA_DB_PATH": f"{module_home['HOME']}/strict/t.db", "CPERSONA_ACL_FILE": str(access)}
    with client.connect(load(module_home | environ), module_home | environ):
        yield environ


@pytest.mark.parametrize("name", [name for name in ASKING if name != "daemon start"])
def test_without_a_grant_it_exits_5(run, strict, name):
    possible(name)
    done = run(CASES[name].plain[0], strict)
    assert (done.returncode, done.stderr.count("\n")) == (5, 1) and "permission denied" in done.stderr, (
        done.stdout,
        done.stderr,
    )


@pytest.fixture(scope="module")
def crowded(run, shared_daemon, module_home):
    """As many connections as the daemon takes."""
    settings, held = load(module_home), ExitStack()
    with held:
        for _ in range(fields.MAX_CONNECTIONS - 1):
            held.enter_context(client.connect(settings, module_home, start=False))
        yield


@pytest.mark.parametrize("name", ASKING)
def test_with_a_daemon_that_takes_no_more_it_exits_6(run, crowded, name):
    possible(name)
    done = run(CASES[name].plain[0])
    assert (done.returncode, done.stderr.count("\n")) == (6, 1) and "try again" in done.stderr, (
        done.stdout,
        done.stderr,
    )


@pytest.fixture(scope="module")
def silent(run, module_home):
    """A socket that takes connections and never answers, in the place of a daemon's."""
    environ = module_home | {"CPERSONA_DB_PATH": f"{module_home['HOME']}/silent/t.db"}
    os.mkdir(Path(environ["CPERSONA_DB_PATH"]).parent, 0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(places(load(environ), environ).socket)
        listener.listen()
        yield environ, listener


@pytest.mark.parametrize("name", ASKING)
def test_an_interrupt_while_it_waits_exits_130_without_a_word(silent, name):
    possible(name)
    environ, listener = silent
    words = CASES[name].plain[0].split()
    process = subprocess.Popen(
        [sys.executable, "-m", "cpersona_cli", *words],
        env=environ,
        cwd=Path(environ["HOME"]) / ("repo" if words[0] == "git" else "."),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    peer, _ = listener.accept()
    with peer:
        assert peer.recv(4)  # it has said hello and waits for the answer
        out, err = interrupted(process)
    assert (process.returncode, out) == (130, "") and "Traceback" not in err


def interrupted(process: subprocess.Popen) -> tuple[str, str]:
    """Interrupt a process until it ends: one signal may come just before it begins to wait, as every Python program's
    may.
    """
    for _ in range(30):
        process.send_signal(signal.SIGINT)
        try:
            return process.communicate(timeout=1)
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError("it does not end")
