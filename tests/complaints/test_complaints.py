"""What users of neighbouring tools complain of must not happen here: what is written, asked and printed.

One test for each complaint, named after it and as short as it can be through the command line; the rooms' own tests go
deeper. The daemon's life stands in test_complaints_of_daemons.py, vectors and the model in
test_complaints_of_vectors.py.

Contract: dedup.skip, store.lines, output.streams.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import stat
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from cpersona_cli.declare import catalogue
from cpersona_cli.wire import client
from cpersona_daemon.model.clock import SystemClock
from cpersona_daemon.shared.paths import places
from cpersona_daemon.shared.settings import load
from cpersona_daemon.storage.database import Database

ROOT = Path(__file__).parents[2]
CPERSONA = [sys.executable, "-m", "cpersona_cli"]
HEADER = '{"_type": "header", "version": "cpersona-export/1.1"}\n'


@pytest.fixture
def cli(shared_daemon, module_home, request) -> Callable[..., subprocess.CompletedProcess]:
    """Run `cpersona` against the daemon of the module, as an agent that is this test's alone."""
    environ = module_home | {"CPERSONA_AGENT": request.node.name[:250]}

    def run(*words: str, input: str | None = None, **env: str) -> subprocess.CompletedProcess:
        stdin = {"stdin": subprocess.DEVNULL} if input is None else {"input": input}
        return subprocess.run(
            [*CPERSONA, *words],
            env=environ | env,
            cwd=environ["HOME"],
            capture_output=True,
            text=True,
            timeout=60,
            **stdin,
        )

    run.environ = environ
    return run


def lines(done: subprocess.CompletedProcess) -> list[str]:
    """The texts of the rows that were printed, one a line, the text last."""
    return [line.split("\t")[-1] for line in done.stdout.splitlines()]


# the same text twice makes two rows; one bad row aborts a whole batch; ignored rows are not counted; an interrupted
# import looks finished


def test_the_same_text_twice_makes_one_row(cli):
    first, second = cli("store", "deploys run at noon"), cli("store", "deploys run at noon")
    assert first.stdout == second.stdout and second.returncode == 0 and "skipped" in second.stderr
    assert lines(cli("list")) == ["deploys run at noon"]


def test_one_bad_row_does_not_abort_a_batch(cli):
    done = cli("store", "--jsonl", "-", input='"one"\n{"content": 5}\nno json\n"two"\n')
    assert [json.loads(line)["result"] for line in done.stdout.splitlines()] == [
        "stored",
        "rejected",
        "rejected",
        "stored",
    ]
    assert done.returncode == 1 and sorted(lines(cli("list"))) == ["one", "two"]


def test_ignored_rows_are_counted(cli):
    done = cli("store", "--jsonl", "-", input='"one"\n"one"\n""\n"two"\n')
    assert done.stderr == "2 stored, 1 skipped, 1 rejected of 4 lines\n"
    _, *known = cli("export", "-", "-q").stdout.splitlines(keepends=True)
    again = cli("import", "-", "--json", input=HEADER + "".join(known) + '{"_type": "memory"}\n')
    told = json.loads(again.stdout)
    assert (told["imported_memories"], told["skipped_memories"], len(told["errors"])) == (
        0,
        2,
        1,
    ) and again.returncode == 1


def test_an_interrupted_import_does_not_look_finished(cli):
    cli("store", "--jsonl", "-", input='"one"\n"two"\n"three"\n')
    whole = cli("export", "-", "-q").stdout
    done = cli("import", "-", "--to-agent", "elsewhere", input="".join(whole.splitlines(keepends=True)[:2]))
    assert done.returncode == 1 and "not whole" in done.stderr
    cut = cli("import", "-", "--to-agent", "elsewhere", input=whole[:-20])
    assert cut.returncode == 1 and cut.stderr
    assert cli("import", "-", "--to-agent", "elsewhere", input=whole).returncode == 0
    assert sorted(lines(cli("list", "--agent", "elsewhere"))) == ["one", "three", "two"]


# "database is locked" with a second client; reads that need the write lock; schema statements on every open; a WAL that
# grows while a reader is parked


def test_a_second_client_never_meets_a_locked_database(cli):
    asked = [
        subprocess.Popen(
            [*CPERSONA, "store", f"client {n}"],
            env=cli.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in range(6)
    ]
    said = [process.communicate(timeout=120) for process in asked]
    assert [process.returncode for process in asked] == [0] * 6, said
    assert not any(err for _, err in said) and len(lines(cli("list"))) == 6


def test_reads_do_not_need_the_write_lock(cli, shared_daemon):
    ref = cli("store", "what is read meanwhile").stdout.strip()
    agent = cli.environ["CPERSONA_AGENT"]
    with (
        client.connect(load(cli.environ), cli.environ) as writer,
        closing(sqlite3.connect(cli.environ["CPERSONA_DB_PATH"], isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        writer.send("store", {"agent_id": agent, "content": "waits for the other program"})
        assert lines(cli("recall", "meanwhile")) == ["what is read meanwhile"]
        assert lines(cli("get", ref)) == lines(cli("list")) == ["what is read meanwhile"]
        other.execute("ROLLBACK")
        assert writer.receive()[1]["result"] == "stored"


def test_an_open_of_a_store_that_is_there_runs_no_schema_statement(tmp_path, monkeypatch):
    path = str(tmp_path / "t.db")
    seen: list[str] = []

    def listen(connection: apsw.Connection) -> None:
        connection.exec_trace = lambda cursor, sql, bindings: bool(seen.append(sql)) or True

    monkeypatch.setattr(apsw, "connection_hooks", [*apsw.connection_hooks, listen])
    for first in (True, False):
        seen.clear()
        database = Database(path, SystemClock())
        database.open()
        database.read_now(lambda conn: conn.execute("SELECT count(*) FROM memories").fetchall())
        database.close()
        assert any(re.match(r"\s*(CREATE|ALTER|DROP)\b", sql) for sql in seen) == first
    assert seen and not any(re.match(r"\s*(INSERT|UPDATE|DELETE|REINDEX|VACUUM)\b", sql) for sql in seen)


def test_a_wal_that_grew_while_a_reader_was_parked_grows_no_further(cli, shared_daemon):
    def store(count: int, name: str) -> int:
        for number in range(count):
            shared_daemon.send("store", {"agent_id": "wal", "content": f"{name} {number} " + "word" * 3000})
        assert {shared_daemon.receive()[1]["result"] for _ in range(count)} == {"stored"}
        return os.path.getsize(cli.environ["CPERSONA_DB_PATH"] + "-wal")

    with closing(sqlite3.connect(cli.environ["CPERSONA_DB_PATH"], isolation_level=None)) as parked:
        parked.execute("BEGIN")
        parked.execute("SELECT count(*) FROM memories").fetchone()
        before = store(100, "parked")
        grown = store(100, "still parked")
        assert grown > before
    store(20, "the reader has gone, this folds the log")
    assert store(100, "into a log begun anew") <= grown + 1000 * 4096


# every call pays a second of imports; --help starts a server


def test_a_call_does_not_pay_for_imports(cli):
    count = "import sys; print(len(sys.modules), *sys.modules)"
    bare = int(
        subprocess.run([sys.executable, "-c", count], capture_output=True, text=True, check=True).stdout.split()[0]
    )
    for words in (["store", "x"], ["recall", "x"], ["get", "mem:1"]):
        code = f"from cpersona_cli.main import main\nmain({words!r})\n{count}"
        done = subprocess.run([sys.executable, "-c", code], env=cli.environ, capture_output=True, text=True, check=True)
        total, *names = done.stdout.splitlines()[-1].split()
        assert int(total) - bare < 40, sorted(names)
        assert not {"typer", "rich", "numpy", "apsw", "msgspec", "asyncio", "json", "dataclasses", "typing"} & set(
            names
        )


def test_help_starts_no_server(home, run_cli):
    before = sorted(Path(home["HOME"]).rglob("*"))
    for words in (["--help"], ["recall", "--help"], ["daemon", "start", "--help"], ["--version"], ["help", "gate"]):
        assert run_cli(words).returncode == 0
    assert sorted(Path(home["HOME"]).rglob("*")) == before


# nothing found though a row sits just under a threshold; because of punctuation; two-character CJK words; NFC against
# NFD


def test_a_row_just_under_a_threshold_is_said_to_have_been_cut(cli):
    cli("store", "deploys run at noon")
    done = cli("recall", "noon", "--set", "recall_mode=cascade")
    assert (
        done.stdout == ""
        and "1 row came into question, 1 did not pass the gate" in done.stderr
        and "--deep" in done.stderr
    )
    told = json.loads(cli("recall", "noon", "--set", "recall_mode=cascade", "--json").stdout)
    assert (told["messages"], told["considered"], told["gated"]) == ([], 1, 1)


@pytest.mark.parametrize(
    "text, query",
    [
        ("run it with --no-cache today", "--no-cache"),
        ("the build-farm is slow", "build-farm"),
        ("see http://ci:8080/x", "ci:8080"),
        ("don't push on friday", "don't"),
        ("look in src/app/main.py", "src/app/main.py"),
        ("grep for foo* there", "foo*"),
        ("do NOT restart it", "NOT restart"),
        ('he said "later" twice', 'said "later'),
        ("a AND b OR c NEAR d", "NEAR(d"),
        ("price (net) ^2 {x}", "(net) ^2"),
        ("alpha: beta", "alpha:"),
        ("set content:column first", "content:column"),
    ],
    ids=str,
)
def test_a_query_with_punctuation_finds_what_it_says(cli, text, query):
    cli("store", text)
    done = cli("recall", "--", query)
    assert done.returncode == 0 and lines(done) == [text], done.stderr


@pytest.mark.parametrize(
    "text, query",
    [("明日は東京に行く", "東京"), ("部署在上海的服务器", "上海"), ("서울에서 만나요", "서울"), ("会議は三時", "会議")],
)
def test_a_word_of_two_cjk_characters_is_found(cli, text, query):
    cli("store", text)
    assert lines(cli("recall", query)) == [text]


@pytest.mark.parametrize("stored, asked", [("NFC", "NFD"), ("NFD", "NFC")])
def test_composed_and_decomposed_letters_are_the_same_word(cli, stored, asked):
    text = "Žofie má klíč k šatně"
    cli("store", unicodedata.normalize(stored, text))
    (found,) = lines(cli("recall", unicodedata.normalize(asked, "klíč")))
    assert unicodedata.normalize("NFC", found) == text


# dates in the local zone; naive and offset stamps sorted as text; --since meaning different instants in different
# commands


def test_a_date_is_a_utc_day_wherever_the_machine_is(cli):
    done = cli("store", "at the day's begin", "--at", "2026-03-01", TZ="Asia/Tokyo")
    assert "UTC" in done.stderr
    (row,) = json.loads(cli("list", "--json", TZ="America/New_York").stdout)["memories"]
    assert row["timestamp"].startswith("2026-03-01T00:00:00") and row["timestamp"].endswith(("+00:00", "Z"))
    with_now = json.loads(cli("store", "now", "--json", TZ="Asia/Tokyo").stdout)["ref"]
    newest = json.loads(cli("list", "--json", "-n", "1").stdout)["memories"][0]
    assert newest["ref"] == with_now and newest["timestamp"].endswith("+00:00")


def test_naive_and_offset_stamps_are_sorted_as_instants(cli):
    # As text the two stand the other way round.
    cli(
        "store",
        "--jsonl",
        "-",
        input='{"content": "meeting late", "timestamp": "2025-12-31T23:00:00"}\n'
        '{"content": "meeting early", "timestamp": "2026-01-01T00:30:00+02:00"}\n',
    )
    assert lines(cli("context", "meeting", "--deep", "--history", "-", input="[]")) == ["meeting early", "meeting late"]


def test_since_means_the_same_instant_in_every_command(cli):
    rows = [
        {"_type": "memory", "agent_id": "a", "content": f"row of {day}", "created_at": f"2026-03-0{day} 12:00:00"}
        for day in (1, 2, 3)
    ]
    done = cli(
        "import",
        "-",
        "--to-agent",
        cli.environ["CPERSONA_AGENT"],
        input=HEADER + "".join(json.dumps(row) + "\n" for row in rows),
    )
    assert done.returncode == 0, done.stderr
    noon = ("2026-03-02T12:00Z", "2026-03-02T21:00+09:00", "2026-03-02T12:00:00")
    for zone in ("UTC", "Asia/Tokyo"):
        for spelled in noon:
            assert lines(cli("list", "--since", spelled, TZ=zone)) == ["row of 3", "row of 2"]
            assert (
                lines(cli("list", "--until", spelled, TZ=zone))
                == lines(cli("list", "--as-of", spelled, TZ=zone))
                == ["row of 2", "row of 1"]
            )
            assert sorted(lines(cli("recall", "row", "--deep", "--as-of", spelled, TZ=zone))) == [
                "row of 1",
                "row of 2",
            ]
        assert lines(cli("list", "--until", "2026-03-02", TZ=zone)) == ["row of 2", "row of 1"]
    # Whatever takes a time reads it with the one parser: anything else would take this one.
    taking = [
        (name, command, parameter)
        for name in catalogue.ENTRIES
        for command in catalogue.declared(name)
        for parameter in command.parameters
        if parameter.metavar == "TIME"
    ]
    assert len(taking) >= 6
    for _, command, parameter in taking:
        done = cli(
            *command.path,
            parameter.flags[0],
            "next tuesday",
            *["x" for p in command.parameters if not p.flags],
            input="",
        )
        assert done.returncode == 2 and "is not a time" in done.stderr, (command.path, done.stderr)


# files readable by others; secrets in logs; a socket any user can write to


def test_no_file_is_readable_by_others_whatever_the_umask(home):
    for words in (["store", "x", "--queue"], ["store", "y"], ["export", "e.jsonl"], ["backup", "b.tar"]):
        done = subprocess.run(
            [*CPERSONA, *words],
            env=home,
            cwd=home["HOME"],
            umask=0,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
    made = [Path(base) / name for base, directories, files in os.walk(home["HOME"]) for name in directories + files]
    assert (
        len(made) > 8
        and {
            str(p): oct(stat.S_IMODE(p.lstat().st_mode)) for p in made if p.name != "tmp" and p.lstat().st_mode & 0o077
        }
        == {}
    )


def test_no_secret_stands_in_the_log(cli, module_home):
    secret = "AKIAIOSFODNN7EXAMPLE"
    cli("store", f"the key is {secret}", "--metadata", json.dumps({"k": secret}), CPERSONA_TOKEN="tok-" + secret)
    cli("recall", secret, CPERSONA_TOKEN="tok-" + secret)
    cli("store", "--jsonl", "-", input=json.dumps({"content": secret, "on_conflict": secret}) + "\n")
    cli("call", "store", json.dumps({"agent_id": 5, "content": secret}))
    cli("call", secret, "{}")
    log = Path(places(load(module_home), module_home).log)
    assert "serving" in log.read_text() and all(secret not in path.read_text() for path in log.parent.iterdir())


def test_the_socket_is_the_owners_alone(shared_daemon):
    path = Path(shared_daemon.places.socket)
    assert (
        stat.S_ISSOCK(path.stat().st_mode)
        and stat.S_IMODE(path.stat().st_mode) == 0o600
        and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    )


# ANSI codes in a file, a spinner in a pipe, exit 0 with an error, broken pipe tracebacks, no completion, no man page


def test_no_ansi_code_and_no_spinner_reach_a_file_or_a_pipe(cli):
    exported = (
        HEADER
        + json.dumps({"_type": "memory", "agent_id": cli.environ["CPERSONA_AGENT"], "content": "red \x1b[31m row"})
        + "\n"
    )
    shown = [cli("import", "-", input=exported, TERM="xterm-256color")]
    plain = (
        ["recall", "row"],
        ["recall", "row", "--explain"],
        ["list"],
        ["get", "mem:1"],
        ["health"],
        ["daemon", "status"],
        ["--help"],
        ["recall", "--help"],
        ["reindex"],
    )
    shown += [cli(*words, TERM="xterm-256color", COLUMNS="30") for words in plain]
    for done in shown:
        assert "\x1b" not in done.stdout + done.stderr and "\r" not in done.stdout + done.stderr, done.args


@pytest.mark.parametrize(
    "words",
    [
        ["get", "mem:999999"],
        ["update", "mem:999999", "x"],
        ["delete", "mem:999999"],
        ["lock", "mem:999999"],
        ["store", ""],
        ["import", "no-such-file"],
        ["call", "recall", '{"agent_id": 5}'],
        ["call", "nothing", "{}"],
        ["store", "x", "--metadata", "[]"],
        ["restore", "no-such-file"],
        ["git", "status"],
        ["canary", "remove", "999999"],
        ["recall", "x", "--set", "recall_mode=best"],
        ["list", "--since", "soon"],
        ["store", "--jsonl", "no-such-file"],
    ],
    ids=" ".join,
)
def test_an_error_never_exits_0(cli, words):
    done = cli(*words)
    assert done.returncode in (1, 2) and "Traceback" not in done.stderr
    if words[0] == "call":
        assert {"ok", "error"} & set(json.loads(done.stdout))
    else:
        assert done.stderr.startswith("cpersona") and done.stderr.count("\n") == 1


def test_a_broken_pipe_makes_no_traceback(cli):
    cli("store", "--jsonl", "-", input="".join(json.dumps(f"{n} " + "x" * 9000) + "\n" for n in range(40)))
    done = subprocess.run(
        ["/bin/sh", "-c", f"{' '.join(CPERSONA)} list -n 40 -q | head -c 100"],
        env=cli.environ,
        capture_output=True,
        text=True,
    )
    assert len(done.stdout) == 100 and done.stderr == ""


def test_completion_and_man_pages_come_with_the_install():
    shared = (ROOT / "pyproject.toml").read_text("utf-8")
    for shell in ("cpersona.bash", "_cpersona", "cpersona.fish"):
        assert (ROOT / "completions" / shell).stat().st_size and f"completions/{shell}" in shared
    for page in ("man1/cpersona.1", "man8/cpersonad.8", "man5/cpersona-config.5"):
        assert (ROOT / "man" / page).stat().st_size and f"man/{page.split('/')[0]}" in shared
