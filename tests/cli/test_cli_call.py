"""`cpersona call`, the interface for programs. Contract: call.lines."""

import json
import subprocess
import sys

import pytest


def answers(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_call_sends_the_parameters_as_they_are_and_prints_the_answer(run_cli):
    assert json.loads(run_cli(["call", "store", '{"agent_id": "a", "content": "x"}']).stdout)["id"] == 1
    assert json.loads(run_cli(["call", "list_memories", "-"], input='{"agent_id": "a"}').stdout)["count"] == 1
    nothing_filled_in = run_cli(["call", "recall"], env={"CPERSONA_AGENT": "a"})
    assert (
        nothing_filled_in.returncode == 1
        and json.loads(nothing_filled_in.stdout)["ok"] is False
        and nothing_filled_in.stderr.count("\n") == 1
    )


def test_an_unknown_method_is_an_answer_and_exit_1(shared_cli):
    done = shared_cli(["call", "bogus"])
    assert done.returncode == 1 and set(json.loads(done.stdout)) == {"error"}


def test_call_help_names_every_method(run_cli):
    from cpersona_daemon.shared import methods

    said = run_cli(["call", "--help"]).stdout.replace(",", " ").replace(".", " ").split()
    assert set(methods.METHODS) <= set(said)


def test_each_line_is_answered_in_order_under_its_own_id(run_cli):
    requests = [
        {"id": 1, "method": "store", "params": {"agent_id": "a", "content": "one"}},
        {"id": "two", "method": "store", "params": {"agent_id": "a", "content": "one"}},
        {"id": None, "method": "get_profile", "params": {"agent_id": "a"}},
        {"id": [4], "method": "bogus"},
        {"id": 5, "method": "list_memories", "params": {"agent_id": "a"}, "jsonrpc": "2.0"},
    ]
    done = run_cli(["call", "--stdin"], input="".join(json.dumps(r) + "\n" for r in requests))
    assert done.returncode == 0 and [a["id"] for a in answers(done)] == [1, "two", None, [4], 5]
    assert all(set(a) == {"id", "response"} for a in answers(done))
    assert [a["response"].get("result") for a in answers(done)[:2]] == ["stored", "skipped"]
    assert answers(done)[4]["response"]["count"] == 1


@pytest.mark.parametrize(
    "line",
    [
        "nope",
        "[]",
        "42",
        '"x"',
        '{"id": 1}',
        '{"method": "recall", "params": {}}',
        '{"id": 1, "method": 3, "params": {}}',
        '{"id": 1, "method": "recall", "params": []}',
        '{"id": 1, "method": "store", "params": {"content": NaN}}',
        "[" * 50_000,
        *(
            f'{{"id": 1, "method": "recall", "params": {{}}, {more}}}'
            for more in (
                '"deadline_ms": "5"',
                '"deadline_ms": true',
                '"deadline_ms": -1',
                '"deadline_ms": 1e400',
                '"overrides": 1',
                '"overrides": []',
            )
        ),
    ],
)
def test_a_line_that_is_no_request_is_answered_with_a_null_id_and_the_next_is_read(shared_cli, line):
    done = shared_cli(
        ["call", "--stdin"], input=line + '\n\n{"id": 2, "method": "get_profile", "params": {"agent_id": "a"}}'
    )
    bad, good = answers(done)
    assert done.returncode == 0 and bad["id"] is None and bad["response"]["ok"] is False and bad["response"]["error"]
    assert good["id"] == 2 and "profile" in good["response"]


def test_bytes_that_are_not_utf8_and_lines_beyond_a_frame_are_answered_too(shared_cli):
    good = b'{"id": 1, "method": "get_profile", "params": {"agent_id": "a"}}\n'
    done = shared_cli(["call", "--stdin"], input=b"\xff\xfe\n" + b"x" * (33 * 1024 * 1024) + b"\n" + good)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [a["id"] for a in found] == [None, None, 1] and done.returncode == 0


@pytest.mark.parametrize("value", ["123456789012345678901234567890", '"\\ud800"', "[" * 80 + "]" * 80])
def test_a_value_that_the_wire_cannot_carry_is_an_answer_under_its_id(shared_cli, value):
    good = '{"id": 8, "method": "get_profile", "params": {"agent_id": "a"}}'
    done = shared_cli(
        ["call", "--stdin"],
        input=f'{{"id": 7, "method": "store", "params": {{"agent_id": "a", "content": {value}}}}}\n{good}\n',
    )
    first, second = answers(done)
    assert first["id"] == 7 and first["response"]["ok"] is False and second["id"] == 8 and done.returncode == 0


def test_an_answer_comes_before_the_input_ends(home, daemon):
    process = subprocess.Popen(
        [sys.executable, "-m", "cpersona_cli", "call", "--stdin"],
        env=home,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        for n in range(3):
            process.stdin.write(
                json.dumps({"id": n, "method": "get_profile", "params": {"agent_id": "a"}}).encode() + b"\n"
            )
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == n
        process.stdin.close()
    assert process.returncode == 0


def test_a_daemon_that_cannot_start_is_said_in_the_stream_and_exits_4(run_cli):
    done = run_cli(
        ["call", "--stdin"],
        input='{"id": 1, "method": "get_profile", "params": {"agent_id": "a"}}\n',
        env={"CPERSONA_COSINE_FLOOR": "0.9"},
    )
    assert done.returncode == 4 and answers(done)[0]["id"] == 1 and answers(done)[0]["response"]["ok"] is False
    assert "CPERSONA_COSINE_FLOOR" in done.stderr


def test_no_request_at_all_starts_no_daemon(run_cli, home):
    assert run_cli(["call", "--stdin"], input="").returncode == 0
    assert run_cli(["daemon", "status"]).returncode == 4
