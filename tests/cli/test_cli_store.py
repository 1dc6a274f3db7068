"""`cpersona store`. Contract: store.answer, dedup.skip, store.lines."""

import json
import os
import subprocess
import sys

import pytest


def lines(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_store_prints_the_ref_and_nothing_else(run_cli):
    done = run_cli(["store", "hello"])
    assert (done.returncode, done.stdout, done.stderr) == (0, "mem:1\n", "")


def test_the_name_of_a_file_is_kept_as_words_and_it_is_said_how_to_keep_the_file(run_cli, tmp_path):
    path = tmp_path / "my notes.txt"
    path.write_text("what it says")
    done = run_cli(["store", str(path)])
    assert (done.returncode, done.stdout) == (0, "mem:1\n")
    assert done.stderr.count("\n") == 1 and f"cpersona store < '{path}'" in done.stderr
    assert run_cli(["store", f"{path} says more"]).stderr == ""
    assert run_cli(["store", str(path), "-q", "--id", "k"]).stderr == ""
    assert run_cli(["store", str(tmp_path)]).stderr == "", "a directory is a thing to remember"


def test_a_skip_is_success_and_says_so_on_stderr(run_cli):
    run_cli(["store", "hello"])
    done = run_cli(["store", "hello"])
    assert (done.returncode, done.stdout) == (0, "mem:1\n")
    assert done.stderr == "skipped (duplicate content)\n"
    assert run_cli(["store", "hello", "-q"]).stderr == ""
    assert run_cli(["store", "hello", "--fail-if-skipped"]).returncode == 3


def test_a_key_with_another_text_is_skipped_updated_or_refused_as_asked(run_cli, daemon):
    run_cli(["store", "first", "--id", "k"])
    skipped = run_cli(["store", "second", "--id", "k"])
    assert skipped.returncode == 0 and "update mem:1" in skipped.stderr
    failed = run_cli(["store", "second", "--id", "k", "--on-conflict", "fail"])
    assert failed.returncode == 1 and failed.stderr.count("\n") == 1
    updated = run_cli(["store", "second", "--id", "k", "--on-conflict", "update"])
    assert (updated.returncode, updated.stdout, updated.stderr) == (0, "mem:1\n", "updated\n")
    assert daemon.call("get_contents", {"agent_id": "default", "refs": ["mem:1"]})[0]["items"][0]["content"] == "second"


def test_options_become_parameters_and_axes_come_from_options_environment_and_config(run_cli, home, daemon):
    config = os.path.join(home["XDG_CONFIG_HOME"], "cpersona")
    os.makedirs(config)
    with open(os.path.join(config, "config.toml"), "w", encoding="utf-8") as handle:
        handle.write('agent = "a"\nproject = "from-config"\n')
    done = run_cli(
        [
            "--channel",
            "c1",
            "store",
            "text",
            "--id",
            "k",
            "--source",
            "assistant",
            "--at",
            "2026-03-01",
            "--metadata",
            '{"n": 1}',
            "--lock",
        ],
        env={"CPERSONA_PROJECT": "p1"},
    )
    assert done.returncode == 0, done.stderr
    row = daemon.call("list_memories", {"agent_id": "a"})[0]["memories"][0]
    assert (row["project_id"], row["channel"], row["msg_id"], row["locked"], row["metadata"]) == (
        "p1",
        "c1",
        "k",
        True,
        {"n": 1},
    )
    assert row["source"]["type"] == "Agent" and row["timestamp"] == "2026-03-01T00:00:00+00:00"


def test_an_empty_axis_option_wins_over_the_environment(run_cli, daemon):
    assert (
        run_cli(
            ["store", "x", "--project", "", "--channel", ""], env={"CPERSONA_PROJECT": "p", "CPERSONA_CHANNEL": "c"}
        ).returncode
        == 0
    )
    row = daemon.call("list_memories", {"agent_id": "default"})[0]["memories"][0]
    assert (row["project_id"], row["channel"]) == ("", "")


@pytest.mark.parametrize("arguments", [["store", "-"], ["store"]])
def test_text_comes_from_standard_input_with_its_inner_line_breaks(run_cli, daemon, arguments):
    assert run_cli(arguments, input="one\ntwo\n").returncode == 0
    assert (
        daemon.call("get_contents", {"agent_id": "default", "refs": ["mem:1"]})[0]["items"][0]["content"] == "one\ntwo"
    )


@pytest.mark.parametrize(
    "data, said",
    [
        (b"caf\xe9", "not valid UTF-8 (byte 4 is 0xe9)"),
        (b"a\0b", "NUL"),
        (b"", "empty"),
        (b" \n ", "empty"),
        (b"x" * (32 * 1024 * 1024 + 1), "larger than 32 MB"),
    ],
)
def test_input_that_cannot_be_a_memory_is_one_clear_line_and_exit_1(run_cli, data, said):
    done = run_cli(["store", "-"], input=data)
    assert done.returncode == 1 and done.stdout == b""
    assert said in done.stderr.decode() and done.stderr.count(b"\n") == 1


def test_an_argument_that_is_not_utf8_is_refused(home):
    done = subprocess.run([sys.executable, "-m", "cpersona_cli", "store", b"caf\xe9"], env=home, capture_output=True)
    assert done.returncode == 2 and b"not valid UTF-8" in done.stderr


def test_a_naive_time_is_utc_and_a_warning_says_so_where_the_zone_is_another(run_cli, daemon):
    done = run_cli(["store", "x", "--at", "2026-03-01T10:00"], env={"TZ": "XST-9"})
    assert done.returncode == 0 and "read as UTC" in done.stderr and "+09:00" in done.stderr
    assert (
        daemon.call("list_memories", {"agent_id": "default"})[0]["memories"][0]["timestamp"]
        == "2026-03-01T10:00:00+00:00"
    )


def test_a_text_that_is_cut_is_said_to_be(run_cli):
    done = run_cli(["store", "-"], input="x" * 20_000)
    assert done.returncode == 0 and "cut" in done.stderr


def test_json_prints_the_whole_answer_with_the_row_as_its_ref(run_cli):
    done = run_cli(["store", "x", "--json"])
    assert json.loads(done.stdout) == {"ok": True, "result": "stored", "ref": "mem:1", "embedded": False}
    rejected = run_cli(["store", "", "--json"])
    assert (
        rejected.returncode == 1
        and json.loads(rejected.stdout)["result"] == "rejected"
        and rejected.stderr.count("\n") == 1
    )


def test_a_batch_gives_each_line_its_outcome_in_order_and_totals_on_stderr(run_cli):
    batch = [
        '{"content": "a", "id": "k1"}',
        '"bare"',
        "",
        "nope",
        '{"content": "x", "colour": 1}',
        '{"content": "a"}',
        "[1]",
        '{"content": ""}',
        '{"content": "b", "id": "k1", "on_conflict": "update"}',
        '{"content": NaN}',
    ]
    done = run_cli(["store", "--jsonl", "-"], input="\n".join(batch))
    assert done.returncode == 1
    assert [(o["line"], o["result"]) for o in lines(done)] == [
        (1, "stored"),
        (2, "stored"),
        (4, "rejected"),
        (5, "rejected"),
        (6, "skipped"),
        (7, "rejected"),
        (8, "rejected"),
        (9, "updated"),
        (10, "rejected"),
    ]
    assert all(o["reason"] for o in lines(done) if o["result"] in ("rejected", "skipped"))
    assert "'colour'" in lines(done)[3]["reason"]
    assert done.stderr == "2 stored, 1 skipped, 1 updated, 5 rejected of 9 lines\n"


def test_lines_with_one_key_take_effect_in_the_order_of_the_file(run_cli, daemon):
    batch = [json.dumps({"id": "k", "content": f"version {n}", "on_conflict": "update"}) for n in range(100)]
    done = run_cli(["store", "--jsonl", "-"], input="\n".join(batch))
    assert [o["result"] for o in lines(done)] == ["stored", *["updated"] * 99]
    assert (
        daemon.call("get_contents", {"agent_id": "default", "refs": ["mem:1"]})[0]["items"][0]["content"]
        == "version 99"
    )


def test_a_batch_takes_its_defaults_from_the_options_and_a_line_may_differ(run_cli, daemon, home):
    path = os.path.join(home["HOME"], "notes.jsonl")
    with open(path, "w", encoding="utf-8") as handle:
        handle.write('"one"\r\n{"content": "two", "agent_id": "b", "channel": "c2"}\r\n')
    assert run_cli(["store", "--jsonl", path, "--agent", "a", "--channel", "c1"]).returncode == 0
    assert daemon.call("list_memories", {"agent_id": "a"})[0]["memories"][0]["channel"] == "c1"
    assert daemon.call("list_memories", {"agent_id": "b"})[0]["memories"][0]["channel"] == "c2"


def test_a_bad_line_of_any_kind_does_not_stop_the_others(run_cli):
    good = b'"good"\n'
    huge, deep = b'"' + b"x" * (33 * 1024 * 1024) + b'"', b"[" * 100_000
    done = run_cli(["store", "--jsonl", "-"], input=b"\n".join([b"\xff", deep, huge, b'{"content": "\\ud800"}', good]))
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    assert [o["result"] for o in outcomes] == ["rejected"] * 4 + ["stored"] and outcomes[-1]["line"] == 5
    assert done.returncode == 1


def test_an_outcome_comes_before_the_next_line_is_there(home, daemon):
    process = subprocess.Popen(
        [sys.executable, "-m", "cpersona_cli", "store", "--jsonl", "-"],
        env=home,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        for text in ("one", "two"):
            process.stdin.write(json.dumps(text).encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["result"] == "stored"
        process.stdin.close()
        assert process.stdout.read() == b""
    assert process.returncode == 0


def test_a_batch_to_a_denied_agent_exits_5(run_cli, home):
    access = os.path.join(home["HOME"], "acl.json")
    with open(access, "w", encoding="utf-8") as handle:
        json.dump({"clients": [{"client_id": "me", "grants": {"open": "read-write"}}]}, handle)
    os.chmod(access, 0o600)
    env = {"CPERSONA_ACL_FILE": access}
    assert run_cli(["store", "--jsonl", "-", "--agent", "open"], input='"x"\n', env=env).returncode == 0
    done = run_cli(["store", "--jsonl", "-", "--agent", "closed"], input='"x"\n', env=env)
    assert done.returncode == 5 and "permission denied" in json.loads(done.stdout)["reason"]
    one = run_cli(["store", "x", "--agent", "closed"], env=env)
    assert one.returncode == 5 and one.stdout == "" and "me" in one.stderr
