"""What users of neighbouring tools complain of must not happen here: daemons, git hooks, backups, memory over days.

See test_complaints.py. Most tests here need a daemon of their own, since they harm it.

Contract: daemon.starts, git.notes, backup.file.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cpersona_cli.wire import client, control
from cpersona_daemon.shared.paths import places
from cpersona_daemon.shared.settings import load

CPERSONA = [sys.executable, "-m", "cpersona_cli"]
# The program with one of its numbers changed, for limits that a test would otherwise wait out.
CHANGED = (
    "import sys; from cpersona_daemon.shared import fields; fields.{0} = {1};"
    " from cpersona_cli.main import main; sys.exit(main())"
)
HELD = (
    "import sys, json; from cpersona_cli.githook import main; main(['post-commit']); "
    "print(json.dumps(sorted(sys.modules)))"
)


def pid_of(environ: dict[str, str]) -> int:
    return control.find_daemon(load(environ), environ)["pid"]


# 50 first calls at once start two daemons or fail (whole: tests/stress/test_crowd.py)


def test_first_calls_at_once_start_one_daemon_and_none_fails(home):
    asked = [
        subprocess.Popen(
            [*CPERSONA, "store", f"first {n}"],
            env=home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in range(8)
    ]
    said = [process.communicate(timeout=120) for process in asked]
    assert [process.returncode for process in asked] == [0] * 8, said
    assert sorted(out for out, _ in said) == [f"mem:{n}\n" for n in range(1, 9)]
    assert len(re.findall("serving", Path(places(load(home), home).log).read_text())) == 1


# restored backup is empty because only the .db was copied


def test_a_restored_backup_is_not_empty(home, run_cli):
    run_cli(["store", "--jsonl", "-"], input='"one"\n"two"\n')
    assert os.path.getsize(home["CPERSONA_DB_PATH"] + "-wal") > 0  # where both still are
    assert run_cli(["backup", "b.tar"]).returncode == 0
    other = {"CPERSONA_DB_PATH": home["HOME"] + "/elsewhere/t.db"}
    assert run_cli(["restore", "b.tar"], env=other).returncode == 0
    assert run_cli(["list"], env=other).stdout.count("\n") == 2
    # And the .db alone is the whole store once the daemon has left.
    assert run_cli(["daemon", "stop"]).returncode == 0
    copied = {"CPERSONA_DB_PATH": home["HOME"] + "/copied.db"}
    shutil.copy(home["CPERSONA_DB_PATH"], copied["CPERSONA_DB_PATH"])
    assert run_cli(["list"], env=copied).stdout.count("\n") == 2


# stale socket for ever after a crash; a recycled pid; alive but not answering; the pipe; cron; old daemon and new
# client


def test_a_stale_socket_after_a_crash_is_no_hindrance(home, run_cli):
    run_cli(["store", "kept"])
    first = pid_of(home)
    os.kill(first, signal.SIGKILL)
    assert os.path.exists(places(load(home), home).socket)
    done = run_cli(["list"])
    assert done.returncode == 0 and done.stdout.endswith("\tkept\n") and done.stderr == "" and pid_of(home) != first


def test_a_recycled_pid_is_not_taken_for_the_daemon(home, run_cli):
    where = places(load(home), home)
    os.makedirs(os.path.dirname(where.db), mode=0o700)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as bystander:
        Path(where.daemon_json).write_text(json.dumps({"pid": bystander.pid, "socket": where.socket}))
        assert run_cli(["daemon", "status"]).returncode == 4
        assert run_cli(["store", "x"]).returncode == 0 and pid_of(home) != bystander.pid
        assert run_cli(["daemon", "stop"]).returncode == 0 and bystander.poll() is None
        bystander.communicate(b"\n")


def test_a_daemon_that_is_alive_but_does_not_answer_stalls_no_call(home, run_cli):
    """Every call ends by the client's own limit, with the status that says: try again."""
    run_cli(["store", "x"])
    pid = pid_of(home)
    os.kill(pid, signal.SIGSTOP)
    try:
        for words in (
            ["store", "y"],
            ["recall", "x"],
            ["get", "mem:1"],
            ["list"],
            ["call", "daemon_status"],
            ["daemon", "status"],
            ["health"],
        ):
            done = subprocess.run(
                [sys.executable, "-c", CHANGED.format("HELLO_SECONDS", 0.2), *words],
                env=home,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=30,
            )
            assert done.returncode == 6, (words, done.stderr)
            assert str(pid) in done.stderr + done.stdout and "Traceback" not in done.stderr
        queued = subprocess.run(
            [sys.executable, "-c", CHANGED.format("HELLO_SECONDS", 0.2), "store", "z", "--queue"],
            env=home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert queued.returncode == 0 and "queued" in queued.stderr
    finally:
        os.kill(pid, signal.SIGCONT)
    assert run_cli(["list"]).returncode == 0


def test_the_daemon_does_not_hold_the_callers_pipe(home):
    # subprocess.run returns only when the last copy of either pipe is closed.
    script = f'x=$({" ".join(CPERSONA)} store hi); echo "<$x>"; {" ".join(CPERSONA)} daemon restart | cat'
    done = subprocess.run(["/bin/sh", "-c", script], env=home, capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("<mem:1>\n") and pid_of(home)


def test_a_cron_job_finds_the_daemon_that_a_login_shell_started(home):
    shell = {name: value for name, value in home.items() if name != "CPERSONA_DB_PATH" and not name.startswith("XDG")}
    shell |= {"XDG_RUNTIME_DIR": home["TMPDIR"], "SHELL": "/bin/zsh", "TERM": "xterm", "LANG": "de_DE.UTF-8"}
    cron = {name: shell[name] for name in ("HOME", "PATH", "PYTHONPATH") if name in shell} | {
        "SHELL": "/bin/sh",
        "LOGNAME": "x",
    }
    pids = []
    for environ in (shell, cron):
        done = subprocess.run(
            [*CPERSONA, "store", "same text"],
            env=environ,
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stdout) == (0, "mem:1\n"), done.stderr
        pids.append(pid_of(environ))
    assert pids[0] == pids[1]


def test_an_old_daemon_does_not_serve_a_new_client(home, connect):
    newer = [sys.executable, "-c", CHANGED.format("PROTOCOL", "fields.PROTOCOL + 1"), "store", "x"]
    at_work = connect()
    done = subprocess.run(newer, env=home, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert (
        done.returncode == 4
        and done.stdout == ""
        and "protocol" in done.stderr
        and "cpersona daemon restart" in done.stderr
    )
    assert at_work.call("list_memories", {"agent_id": "default"})[0]["memories"] == []


# a commit hook that takes a second, fails the commit when the store is down, or stores a rebase ten times


class Repository:
    def __init__(self, home: dict[str, str]):
        self.path, self.environ = Path(home["HOME"]) / "work", home | {"GIT_CONFIG_NOSYSTEM": "1"}
        (Path(home["HOME"]) / ".gitconfig").write_text(
            "[user]\n name = A\n email = a@example.org\n[init]\n defaultBranch = main\n"
        )
        self.path.mkdir()
        self.git("init", "-q")
        self.commit("root")
        self.run(*CPERSONA, "git", "install")

    def run(self, *words: str) -> str:
        done = subprocess.run(
            words, cwd=self.path, env=self.environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def git(self, *words: str) -> str:
        return self.run("git", *words)

    def commit(self, message: str) -> None:
        (self.path / message).write_text(message)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)


@pytest.fixture
def repository(home) -> Repository:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    return Repository(home)


def test_a_commit_hook_starts_nothing_and_loads_next_to_nothing(home, repository):
    """What makes a hook slow is what it loads and whom it waits for; it does neither, whatever the clock says."""
    repository.commit("one")
    assert (
        not os.path.exists(home["CPERSONA_DB_PATH"] + ".lock")
        and len(os.listdir(home["CPERSONA_DB_PATH"] + ".spool")) == 1
    )
    hook = (repository.path / ".git" / "hooks" / "post-commit").read_text()
    assert " -I -S -c " in hook  # neither site-packages nor the user's environment
    loaded = set(
        json.loads(
            repository.run(
                sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {[p for p in sys.path if p]!r}\n{HELD}"
            ).splitlines()[-1]
        )
    )
    assert not loaded & {
        "apsw",
        "numpy",
        "msgspec",
        "typer",
        "rich",
        "asyncio",
        "cpersona_cli.wire.client",
        "cpersona_cli.wire.launch",
    }


def test_a_commit_goes_through_when_the_store_is_down(home, repository):
    os.makedirs(os.path.dirname(home["CPERSONA_DB_PATH"]), exist_ok=True)
    Path(home["CPERSONA_DB_PATH"] + ".spool").write_text("a file in the place of the queue")
    repository.commit("goes through")
    assert repository.git("log", "-1", "--format=%s") == "goes through\n"


def test_a_rebase_is_stored_once(home, repository):
    repository.git("checkout", "-q", "-b", "side")
    for n in range(5):
        repository.commit(f"step {n}")
    repository.git("checkout", "-q", "main")
    for turn in range(2):
        repository.commit(f"main {turn}")
        repository.git("rebase", "-q", "main", "side")
        repository.git("checkout", "-q", "main")
    with client.connect(load(home), home) as connection:
        while connection.call("daemon_status", {})[0]["spool"]["waiting"]:
            time.sleep(0.01)
        notes = [
            row["metadata"]["commit"]
            for row in connection.call("list_memories", {"agent_id": "default", "limit": 100})[0]["memories"]
        ]
    assert sorted(notes) == sorted(repository.git("rev-list", "main", "side", "^HEAD~2").split())


# memory that climbs over days


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc")
def test_memory_does_not_climb_with_requests(shared_daemon):
    def held() -> int:
        status = Path(f"/proc/{shared_daemon.hello['pid']}/status").read_text()
        return int(re.search(r"RssAnon:\s+(\d+) kB", status)[1])

    def ask(count: int) -> None:
        for turn in range(count // 4):
            for method, params in (
                ("store", {"content": f"the same note {turn % 50}"}),
                ("recall", {"query": f"note {turn}"}),
                ("list_memories", {"limit": 20}),
                ("exists", {"text": f"nothing {turn}"}),
            ):
                shared_daemon.send(method, {"agent_id": "climb", **params})
            for _ in range(4):
                assert shared_daemon.receive()[2] is None

    ask(500)
    before = held()
    ask(2000)
    assert held() - before < 4_096, "kB more after 2,000 requests that leave nothing behind"
