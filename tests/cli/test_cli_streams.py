"""Streams, signals and terminals. Contract: output.streams, exit.status."""

import os
import re
import signal
import subprocess
import sys

import pytest

CPERSONA = [sys.executable, "-m", "cpersona_cli"]


def plain(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text).replace("\r\n", "\n")


def test_on_a_terminal_a_recall_is_a_table_within_the_width_with_a_legend(on_terminal, daemon):
    daemon.call("store", {"agent_id": "default", "content": "deploy " + "word " * 200})
    for columns in (60, 120):
        out, status = on_terminal(["recall", "deploy", "-q"], columns)
        rows = plain(out).splitlines()
        assert status == 0 and rows[0].split() == ["rank", "ref", "age", "match", "preview"]
        assert max(map(len, rows)) <= columns and rows[3].rstrip().endswith("…") and len(rows) == 4
    assert "best is last" in on_terminal(["recall", "deploy"])[0]
    assert "relative to this question" in on_terminal(["recall", "deploy", "--set", "recall_mode=rsf"], 120)[0]


def test_the_words_of_the_question_stand_out_and_what_lies_far_back_is_shown(on_terminal, daemon):
    daemon.call(
        "store",
        {
            "agent_id": "default",
            "content": "Déploys go out. " + "word " * 60 + "The lease of the exporter ran out, 東京.",
        },
    )
    for question, marked in (("when do deploys go?", ["Déploys", "go"]), ("lease", ["lease"]), ("東京", ["東京"])):
        for options in ([], ["--full"]):
            out, _ = on_terminal(["recall", question, "-q", *options])
            assert re.findall("\x1b\\[1;33m(.*?)\x1b", out) == marked, out
    assert len(plain(on_terminal(["recall", "lease", "-q"], LINES="5")[0]).splitlines()) <= 3
    rows = plain(on_terminal(["recall", "lease", "-q"])[0]).splitlines()
    assert len(rows) <= 4 and "…" in rows[1] and "lease of the exporter" in " ".join(" ".join(rows).split())


def test_a_legend_explains_on_demand_what_the_rows_carry(on_terminal, daemon, run_cli):
    daemon.call("store", {"agent_id": "default", "content": "deploy"})
    out, status = on_terminal(["recall", "deploy", "--legend"], 120)
    assert (
        status == 0
        and re.search("^blend +meaning above", plain(out), re.MULTILINE)
        and "relative to this question" not in out
    )
    piped = run_cli(["recall", "deploy", "-q", "--legend"])
    assert piped.stdout.count("\n") == 1 and "meaning above" in piped.stderr


def test_colours_stay_away_when_asked(on_terminal, daemon):
    daemon.call("store", {"agent_id": "default", "content": "deploy"})
    assert "\x1b[" in on_terminal(["recall", "deploy"])[0]
    assert "\x1b" not in on_terminal(["recall", "deploy"], NO_COLOR="1")[0]
    assert "\x1b" not in on_terminal(["recall", "deploy"], TERM="dumb")[0]
    assert "\x1b" not in on_terminal(["recall", "deploy", "--json"])[0]


def test_columns_wins_over_the_terminal(on_terminal, daemon):
    daemon.call("store", {"agent_id": "default", "content": "deploy " + "word " * 200})
    rows = plain(on_terminal(["recall", "deploy", "-q"], 120, COLUMNS="60")[0]).splitlines()
    assert max(map(len, rows)) <= 60


def test_stored_control_codes_do_not_reach_the_terminal(on_terminal, daemon):
    daemon.call("store", {"agent_id": "default", "content": "deploy \x1b]0;title\x07"})
    for arguments in (["recall", "deploy"], ["recall", "deploy", "--full"], ["get", "mem:1"], ["list"]):
        out, _ = on_terminal(arguments, NO_COLOR="1")
        assert "\x1b" not in out and "\x07" not in out and "\\x1b]0;title\\x07" in out


def test_store_without_a_text_on_a_terminal_is_a_usage_error_and_does_not_wait(on_terminal):
    out, status = on_terminal(["store"])
    assert status == 2 and "- to read it from standard input" in out


@pytest.mark.parametrize("typed, status, left", [(b"scratch\n", 0, ""), (b"no\n", 1, "one")])
def test_forget_agent_asks_for_the_name_on_a_terminal(on_terminal, run_cli, typed, status, left):
    run_cli(["store", "one", "--agent", "scratch"])
    out, exit_status = on_terminal(["forget-agent", "scratch"], typed=typed)
    assert exit_status == status and "Type its name" in out
    assert run_cli(["list", "--agent", "scratch"]).stdout.rstrip("\n").endswith(left)


def test_a_reader_that_leaves_early_makes_no_noise(home, daemon):
    for n in range(30):
        daemon.call("store", {"agent_id": "default", "content": f"{n} " + "x" * 15_000})
    process = subprocess.Popen(CPERSONA + ["list", "-q"], env=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b"" and process.wait() == 141
    process.stderr.close()


def test_a_stdout_that_takes_nothing_is_a_failure(home, daemon):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(CPERSONA + ["store", "x"], env=home, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and done.stderr.startswith("cpersona: standard output") and done.stderr.count("\n") == 1
    closed = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -m cpersona_cli store y >&-"], env=home, stderr=subprocess.PIPE, text=True
    )
    assert closed.returncode == 1 and "standard output" in closed.stderr


def test_an_interrupt_exits_130_and_prints_no_traceback(home, daemon):
    process = subprocess.Popen(
        CPERSONA + ["store", "--jsonl", "-"],
        env=home,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdin.write(b'"one"\n')
    process.stdin.flush()
    assert process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130 and b"Traceback" not in err


def test_a_command_substitution_returns_while_the_daemon_it_started_lives_on(home, run_cli):
    done = subprocess.run(
        ["sh", "-c", f'x=$({sys.executable} -m cpersona_cli store hi); echo "got $x"'],
        env=home,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "got mem:1\n" and run_cli(["daemon", "status"]).returncode == 0


def test_an_unexpected_failure_of_the_daemon_is_one_line_and_exit_4(home, run_cli):
    os.makedirs(os.path.dirname(home["CPERSONA_DB_PATH"]))
    with open(home["CPERSONA_DB_PATH"], "wb") as handle:
        handle.write(b"this is no database" * 1000)
    done = run_cli(["store", "x"])
    assert done.returncode in (1, 4) and done.stdout == "" and done.stderr.count("\n") == 1
