"""`cpersona daemon` and `config`. Contract: daemon.starts, daemon.tells, paths.places."""

import json
import os
import signal
import subprocess
import sys


def test_the_exit_status_of_status_is_the_state(run_cli):
    before = run_cli(["daemon", "status", "--json"])
    assert before.returncode == 4 and json.loads(before.stdout)["running"] is False
    assert run_cli(["daemon", "start"]).stdout.startswith("running\tpid ")
    running = run_cli(["daemon", "status", "--json"])
    told = json.loads(running.stdout)
    assert running.returncode == 0 and told["running"] is True and told["rows"]["memories"] == 0
    assert run_cli(["daemon"]).stdout.splitlines()[0] == "state\trunning"
    assert run_cli(["daemon", "stop"]).stdout == "stopped\n"
    assert run_cli(["daemon", "stop"]).stdout == "not running\n"
    assert run_cli(["daemon", "status"]).returncode == 4


def test_run_serves_in_the_foreground_with_its_log_on_stderr_until_it_is_told_to_leave(run_cli, home):
    with subprocess.Popen(
        [sys.executable, "-m", "cpersona_cli", "daemon", "run"],
        env=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert "serving" in process.stderr.readline()
        assert run_cli(["daemon", "status"]).stdout.splitlines()[1] == f"pid\t{process.pid}"
        second = run_cli(["daemon", "run"])
        assert second.returncode == 6 and f"pid {process.pid}" in second.stderr
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, "") and "leaving" in err
    assert run_cli(["daemon", "run"], env={"CPERSONA_COSINE_FLOOR": "0.9"}).returncode == 4


def test_restart_brings_another_process_with_the_settings_of_now(run_cli):
    first = json.loads(run_cli(["daemon", "start", "--json"]).stdout)
    other = run_cli(["store", "x"], env={"CPERSONA_MAX_CONTENT_LENGTH": "5"})
    assert "CPERSONA_MAX_CONTENT_LENGTH" in other.stderr and "daemon restart" in other.stderr
    second = json.loads(run_cli(["daemon", "restart", "--json"], env={"CPERSONA_MAX_CONTENT_LENGTH": "5"}).stdout)
    assert second["pid"] != first["pid"]
    assert "cut" in run_cli(["store", "longer than five"], env={"CPERSONA_MAX_CONTENT_LENGTH": "5"}).stderr


def test_the_socket_and_the_log_are_named_before_there_is_a_daemon(run_cli, home):
    assert run_cli(["daemon", "socket"]).stdout == home["CPERSONA_DB_PATH"] + ".sock\n"
    assert "no log yet" in run_cli(["daemon", "logs"]).stderr
    assert not os.path.exists(home["CPERSONA_DB_PATH"])


def test_logs_print_the_end_of_the_log_and_never_what_was_stored(run_cli):
    run_cli(["store", "a secret recipe"])
    done = run_cli(["daemon", "logs", "-n", "1"])
    assert done.returncode == 0 and done.stdout.count("\n") == 1 and "secret" not in run_cli(["daemon", "logs"]).stdout


def test_a_database_of_the_command_line_is_another_daemon(run_cli, home):
    other = os.path.join(home["HOME"], "db", "other.db")
    assert run_cli(["--db", other, "store", "x"]).stdout == "mem:1\n"
    assert run_cli(["store", "y"]).stdout == "mem:1\n"
    assert run_cli(["list", "--db", other]).stdout.endswith("\tx\n")


def test_config_show_has_a_line_for_every_setting_with_value_and_origin(run_cli, home):
    from cpersona_daemon.shared import settings_table

    os.makedirs(os.path.join(home["XDG_CONFIG_HOME"], "cpersona"))
    with open(os.path.join(home["XDG_CONFIG_HOME"], "cpersona", "config.toml"), "w", encoding="utf-8") as handle:
        handle.write('recall_mode = "rsf"\nmax_memories = 0\n')
    done = run_cli(["config", "show"], env={"CPERSONA_TOKEN": "hidden", "CPERSONA_RRF_K": "61"})
    rows = {line.split("\t")[0]: line.split("\t")[1:3] for line in done.stdout.splitlines()}
    assert set(rows) == set(settings_table.BY_NAME)
    assert (
        rows["recall_mode"] == ["rsf", "config"]
        and rows["rrf_k"] == ["61", "environment"]
        and rows["max_memories"] == ["10000", "default"]
    )
    assert "hidden" not in done.stdout and "CPERSONA_MAX_MEMORIES" in done.stderr
    assert json.loads(run_cli(["config", "show", "rrf_k", "--json"]).stdout)["settings"][0]["origin"] == "default"
    assert not os.path.exists(home["CPERSONA_DB_PATH"])


def test_values_that_contradict_each_other_are_named_and_keep_the_daemon_from_starting(run_cli):
    env = {"CPERSONA_COSINE_FLOOR": "0.9"}
    assert "CPERSONA_COSINE_FLOOR" in run_cli(["config"], env=env).stderr
    done = run_cli(["store", "x"], env=env)
    assert (
        done.returncode == 4
        and done.stdout == ""
        and done.stderr.count("\n") == 1
        and "CPERSONA_COSINE_FLOOR" in done.stderr
    )


def test_config_path_prints_one_place(run_cli, home):
    assert run_cli(["config", "path"]).stdout == os.path.join(home["XDG_CONFIG_HOME"], "cpersona", "config.toml") + "\n"
    assert run_cli(["config", "path", "db"]).stdout == home["CPERSONA_DB_PATH"] + "\n"
