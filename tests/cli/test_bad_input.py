"""Whatever a person or a script gives that cannot be: one line with what, why and what to do, the right exit code,
never a traceback.

Contract: exit.status.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_kit import runner


@pytest.fixture(scope="module")
def at(shared_daemon, module_home):
    """Run `cpersona` where `d` is a directory, `bad` is not UTF-8, `nan` holds lines that are no JSON, and one row is
    stored.
    """
    here = Path(module_home["HOME"])
    (here / "d").mkdir()
    (here / "bad").write_bytes(b"\xff\xfe bad")
    (here / "nan").write_text('{"content": NaN}\n')
    shared_daemon.call("store", {"agent_id": "default", "content": "a row"})
    return runner(module_home)


@pytest.mark.parametrize(
    "words, status, said",
    [
        (["store", "--jsonl", "d"], 1, "d: Is a directory; name a file"),
        (["store", "--jsonl", "none"], 1, "none: No such file"),
        (["import", "d"], 1, "is a directory"),
        (["restore", "d"], 1, "there is no file"),
        (["restore", "bad"], 1, "no backup"),
        (["backup", "d"], 1, "not a regular file"),
        (["export", "d"], 1, "not a regular file"),
        (["export", "/dev/full"], 1, "not a regular file"),
        (["backup", "none/x.tar"], 1, "does not exist"),
        (["context", "q", "--history", "d"], 1, "d: Is a directory"),
        (["context", "q", "--history", "bad"], 1, "not valid UTF-8 (byte 1 is 0xff)"),
        (["context", "q", "--history", "nan"], 1, "no JSON value"),
        (["store", "\udcff"], 2, "'\\xff' is not valid UTF-8"),
        (["store", "x", "--id", "\udcff"], 2, "iconv"),
        (["store", "x", "--id", "k" * 300], 1, "at most 256"),
        (["store", "x", "--at", "2026-02-30"], 2, "is not a time"),
        (["store", "x", "--at", "99999999999d"], 2, "is not a time"),
        (["list", "--since", "some day"], 2, "is not a time"),
        (["store", "x", "--metadata", '{"a": NaN}'], 2, "NaN is no JSON value"),
        (["store", "x", "--metadata", '{"a": 1e999}'], 1, "must be finite"),
        (["store", "x", "--metadata", "{"], 2, "not JSON"),
        (["store", "x", "--source", '{"a": Infinity}'], 2, "no JSON value"),
        (["store", "x", "--associations", "[1]"], 2, "not a JSON object"),
        (["recall", "x", "-n", "-5"], 2, "-5 is not in the range"),
        (["recall", "x", "-n", "many"], 2, "'many' is not a valid int;"),
        (["list", "-n", "-1"], 2, "not in the range"),
        (["recall", "x", "--max-chars", "0"], 2, "not in the range"),
        (["daemon", "logs", "-n", "-1"], 2, "not in the range"),
        (["calibrate", "--sample-size", "0"], 2, "not in the range"),
        (["recall", "x", "--set", "nothing=1"], 1, "`cpersona config show` lists them"),
        (["recall", "x", "--set", "rrf_k=nan"], 1, "`cpersona recall --help`"),
        (["recall", "x", "--why-not", "mem:" + "9" * 20], 2, "is no ref"),
        (["get", "mem:0"], 2, "is no ref"),
        (["get", "mem:" + "9" * 18], 1, "no such row"),
        (["pause", "--for", "-1h"], 2, "not a length of time"),
        (["pause", "--for", "0s"], 1, "1 at least"),
        (["daemon", "stop", "--timeout", "nan"], 2, "--timeout takes seconds"),
        (["call", "recall", "{}", "--deadline", "nan"], 2, "--deadline takes seconds"),
        (["call", "recall", "[1]"], 2, "not a JSON object"),
        (["associate", "retract", "--mention", "x"], 2, "ENTITY=REF"),
        (["git", "backfill"], 1, "run it inside a repository"),
        (["config", "path", "nothing"], 2, "it takes config, db"),
        (["list", "--db", "d"], 4, "no regular file"),
        (["list", "--db", "/dev/null"], 4, "no regular file"),
        (["list", "--db", "bad"], 4, "no SQLite database"),
        (["store", "x", "--db", "bad/t.db"], 4, "Not a directory"),
        (["store", "x", "--queue", "--db", "bad/t.db"], 1, "cannot be"),
        (["undo", ""], 1, "name the run"),
        (["exists", ""], 1, "`cpersona exists --help`"),
    ],
    ids=lambda value: (
        " ".join(value)[:60].encode("ascii", "backslashreplace").decode() if isinstance(value, list) else ""
    ),
)
def test_what_cannot_be_is_one_line_with_a_reason_and_the_right_exit_code(at, words, status, said):
    done = at(words)
    assert (done.returncode, done.stdout) == (status, "") and done.stderr.startswith("cpersona"), (
        done.stdout,
        done.stderr,
    )
    assert said in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "config, said",
    [
        (b'recall_mod = "rrf"', "'recall_mod', which is no setting"),
        (b'max_memories = "many"', "is not a whole number"),
        (b"recall_mode = [", "is not valid TOML"),
        (b"\xff\xfe", "is not valid TOML"),
    ],
)
def test_a_config_file_that_says_nonsense_is_named_and_the_rest_goes_on(at, module_home, config, said):
    path = Path(module_home["XDG_CONFIG_HOME"], "cpersona", "config.toml")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(config)
    try:
        done = at(["list"])
    finally:
        path.unlink()
    assert (
        done.returncode == 0
        and done.stdout.endswith("a row\n")
        and said in done.stderr
        and done.stderr.count("\n") == 1
    )


@pytest.mark.parametrize(
    "environ, said",
    [
        ({"CPERSONA_SOCKET": "/tmp/" + "x" * 120}, "name a shorter one with CPERSONA_SOCKET"),
        ({"CPERSONA_EMBEDDING_MODE": "http"}, "needs CPERSONA_EMBEDDING_URL"),
        ({"CPERSONA_ACL_FILE": "bad"}, "access file"),
        ({"XDG_STATE_HOME": "/dev/null"}, "cannot be made"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_settings_that_no_daemon_can_start_with_exit_4(at, environ, said):
    done = at(["store", "x", "--db", "other/t.db"], env=environ)
    assert (done.returncode, done.stdout) == (4, "") and said in done.stderr and done.stderr.count("\n") == 1, (
        done.stderr
    )


@pytest.mark.parametrize(
    "given, said",
    [
        (b"a\0b", "NUL"),
        (b"\xff", "not valid UTF-8"),
        (b"", "empty"),
        (b" \n", "empty"),
        (b"x" * (33 << 20), "larger than 32 MB"),
    ],
    ids=["nul", "bytes", "nothing", "blank", "huge"],
)
def test_a_pipe_that_holds_no_memory_is_refused(at, given, said):
    done = at(["store"], input=given)
    assert (
        done.returncode == 1 and done.stdout == b"" and said in done.stderr.decode() and done.stderr.count(b"\n") == 1
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written_is_said(at, module_home):
    closed = Path(module_home["HOME"], "closed")
    closed.mkdir(mode=0o500)
    for words, status in (
        (["store", "x", "--db", "closed/t.db"], 4),
        (["store", "x", "--queue", "--db", "closed/t.db"], 1),
        (["export", "closed/x"], 1),
    ):
        done = at(words)
        assert done.returncode == status and "closed" in done.stderr and done.stderr.count("\n") == 1, done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_a_closed_stream_makes_no_traceback(at, module_home, closed):
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m cpersona_cli recall row {closed}"],
        env=module_home,
        cwd=module_home["HOME"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == (1 if closed == ">&-" else 0) and "Traceback" not in done.stderr


def test_a_list_of_nothing_does_not_say_that_there_is_nothing(at):
    assert at(["list", "-n", "0"]).stderr == "" and at(["recall", "row", "-n", "0", "-q"]).stderr == ""
    assert "no memories like that of agent 'default'" in at(["list", "--until", "2020-01-01"]).stderr
    assert "recall gives 100 rows at most" in at(["recall", "row", "-n", "101"]).stderr


def test_more_refs_than_one_request_names_are_answered_too(at, shared_daemon):
    for number in range(45):
        shared_daemon.call("store", {"agent_id": "many", "content": f"number {number}"})
    refs = at(["list", "--agent", "many", "--fields", "ref"]).stdout.split()
    done = at(["get", "--agent", "many", *refs, "mem:999999", "--fields", "ref"])
    assert done.stdout.split() == refs and done.returncode == 1 and "mem:999999" in done.stderr
