"""The daemons of the tests: most are forks of a process that has read the modules, some begin by themselves."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

import pytest
from cli_kit import runner

from cpersona_cli.wire import client
from cpersona_daemon.shared.settings import load

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every daemon begins by itself")


def is_born(connection: client.Connection) -> bool:
    pid = connection.call("daemon_status", {})[0]["pid"]
    return b"serve.py" in Path(f"/proc/{pid}/cmdline").read_bytes()


def started(environ: dict[str, str]) -> bool:
    """Start a daemon and tell whether it was born."""
    with client.connect(load(environ), environ) as connection:
        return is_born(connection)


def test_a_daemon_that_a_client_or_a_command_starts_is_born(home):
    assert started(home)
    other = home | {"CPERSONA_DB_PATH": f"{home['HOME']}/db/other.db"}
    assert runner(other)(["store", "hello"]).returncode == 0
    assert started(other)


def test_a_born_daemon_has_the_environment_the_session_and_the_descriptors_that_it_would_have_had(home, connect):
    marks = {}
    for who in ("born", "by itself"):
        environ = home | {"CPERSONA_DB_PATH": f"{home['HOME']}/{who}/t.db", "CPERSONA_AGENT_ID": who}
        if who == "by itself":
            del environ["DAEMON_NURSERY"]
        with client.connect(load(environ), environ) as connection:
            assert is_born(connection) == (who == "born")
            pid = connection.call("daemon_status", {})[0]["pid"]
            status = Path(f"/proc/{pid}/status").read_text().splitlines()
            assert os.getsid(pid) == os.getpgid(pid) != pid
            marks[who] = [
                os.readlink(f"/proc/{pid}/cwd"),
                [os.readlink(f"/proc/{pid}/fd/{number}") for number in range(3)],
                [line for line in status if line.startswith(("Umask", "Cap", "SigBlk", "SigIgn", "SigCgt"))],
                sorted(kinds_of_descriptors(pid)),
            ]
    assert marks["born"] == marks["by itself"]


def kinds_of_descriptors(pid: int) -> list[str]:
    """Return what a process has open beside the database and its log, without numbers and places.

    Folders and compiled modules are left out: an import reads them in passing.
    """
    kinds = []
    for entry in os.listdir(f"/proc/{pid}/fd"):
        try:
            open_file = os.readlink(f"/proc/{pid}/fd/{entry}")
        except FileNotFoundError:
            continue
        if open_file.endswith((".pyc", ".py")):
            continue
        if not os.path.isdir(open_file):
            kinds.append(os.path.basename(open_file).split("[")[0].split(":")[0])
    return [kind for kind in kinds if not kind.startswith("t.db")]


def test_a_daemon_of_another_nature_begins_by_itself(home):
    folder, paths = Path(home["HOME"]) / "more", home["PYTHONPATH"]
    folder.mkdir()
    assert not started(home | {"PYTHONPATH": f"{paths}{os.pathsep}{folder}"})


def test_a_daemon_under_other_limits_begins_by_itself(home):
    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, 512))

    assert runner(home, bounded)(["store", "hello"]).returncode == 0
    assert not started(home)


def test_a_daemon_begins_by_itself_where_no_nursery_answers(home):
    assert not started(home | {"DAEMON_NURSERY": f"{home['HOME']}/nobody"})
