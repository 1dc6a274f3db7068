"""What a command reads from standard input: an empty question is an error, and a person is told that it reads.

Contract: output.streams, exit.status.
"""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

QUESTIONS = [["recall", "-"], ["context", "-"], ["reconstruct", "-"]]


@pytest.mark.parametrize("given", ["", "\n", "  \n\n"], ids=ascii)
@pytest.mark.parametrize("words", QUESTIONS, ids=" ".join)
def test_an_empty_pipe_is_no_question(shared_cli, shared_daemon, words, given):
    shared_daemon.call("store", {"agent_id": "default", "content": "walnut"})
    done = shared_cli(words, input=given)
    assert (
        (done.returncode, done.stdout) == (1, "")
        and "standard input holds no question" in done.stderr
        and done.stderr.count("\n") == 1
    )


def test_a_question_that_is_given_empty_still_lists_the_newest(shared_cli, shared_daemon):
    shared_daemon.call("store", {"agent_id": "default", "content": "walnut"})
    assert (
        "walnut" in shared_cli(["recall", ""]).stdout
        and "walnut" in shared_cli(["recall", "-", "--deep"], input="walnut\n").stdout
    )


READING = [
    (["recall", "-"], b"walnut\n"),
    (["context", "-"], b"walnut\n"),
    (["reconstruct", "-"], b"walnut\n"),
    (["exists", "-"], b"walnut\n"),
    (["store", "-"], b"a memory\n"),
    (["update", "mem:1", "-"], b"another\n"),
    (["episode", "archive", "-"], b"a summary\n"),
    (["profile", "set", "-"], b"a profile\n"),
    (["associate", "declare", "-"], b'{"entities": [{"name": "x"}]}\n'),
    (["call", "get_profile", "-"], b'{"agent_id": "x"}\n'),
    (["call", "--stdin"], b'{"id": 1, "method": "persistence_status"}\n'),
    (["store", "--jsonl", "-"], b'"a line"\n'),
    (["import", "-"], b'{"_type": "memory", "agent_id": "x", "content": "y"}\n'),
    (["context", "q", "--history", "-"], b'{"role": "user", "content": "hello"}\n'),
    (["episode", "archive", "s", "--history", "-"], b'{"timestamp": "2026-01-01"}\n'),
]


@pytest.mark.parametrize("words, typed", READING, ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_on_a_terminal_it_says_that_it_reads(shared_terminal, shared_daemon, words, typed):
    shared_daemon.call("store", {"agent_id": "default", "content": "walnut"})
    out, _ = shared_terminal(words, typed=typed + b"\x04")
    assert out.count("reading from this terminal until Ctrl-D") == 1 and "Traceback" not in out
    out, _ = shared_terminal([*words, "-q"], typed=typed + b"\x04")
    assert "reading from this terminal" not in out


def test_an_import_reads_a_pipe_that_a_shell_names(shared_cli, shared_daemon, tmp_path):
    """As `cpersona import <(zcat export.jsonl.gz)` has it."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    line = json.dumps({"_type": "memory", "agent_id": "piped", "content": "a walnut"}) + "\n"
    with ThreadPoolExecutor() as pool:
        done = pool.submit(shared_cli, ["import", str(pipe)])
        pipe.write_text(line)
        assert "imported_memories\t1" in done.result().stdout
    assert shared_daemon.call("list_memories", {"agent_id": "piped"})[0]["memories"][0]["content"] == "a walnut"
    device = shared_cli(["import", "/dev/null"])
    assert device.returncode == 1 and "there is no file" in device.stderr
