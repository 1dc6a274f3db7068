"""What service managers are given says what the daemon understands. (Socket activation itself: test_start_and_stop.py.)

Contract: daemon.starts.
"""

from __future__ import annotations

import configparser
import plistlib
import shlex
import signal
import stat
import subprocess
import sys
from pathlib import Path

from cpersona_cli.wire import client
from cpersona_daemon.shared.paths import places
from cpersona_daemon.shared.settings import load

UNITS = Path(__file__).parents[2] / "daemon"


def agent() -> dict:
    return plistlib.loads((UNITS / "launchd" / "org.cpersona.daemon.plist").read_bytes())


def test_the_launchd_agent_restarts_after_a_crash_alone_and_keeps_files_private():
    job = agent()
    assert job["Label"] == "org.cpersona.daemon" and job["RunAtLoad"] is True
    assert job["KeepAlive"] == {"SuccessfulExit": False} and job["Umask"] == stat.S_IRWXG | stat.S_IRWXO
    assert all(isinstance(word, str) for word in job["ProgramArguments"]) and job["EnvironmentVariables"] == {
        "CPERSONA_IDLE_TIMEOUT": "0"
    }


def test_the_launchd_agents_command_becomes_a_daemon_of_the_default_database(home):
    """Run as launchd does.

    The words as they are, HOME and PATH and what the file adds, and a path in HOME where the program lies.
    """
    job, root = agent(), Path(home["HOME"])
    program = root / ".local" / "bin" / "cpersonad"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m cpersona_daemon.main "$@"\n')
    program.chmod(0o755)
    bare = {name: home[name] for name in ("HOME", "PATH", "PYTHONPATH") if name in home} | {
        "CPERSONA_EMBEDDING_MODE": "none"
    }
    process = subprocess.Popen(
        job["ProgramArguments"],
        env=bare | job["EnvironmentVariables"] | {"CPERSONA_DB_PATH": str(root / "elsewhere.db")},
        umask=job["Umask"],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert any("serving" in line for line in process.stderr)
        with client.connect(load(bare), bare, start=False) as connection:
            assert connection.hello["pid"] == process.pid and connection.hello["settings"]["idle_timeout"] == 0
    finally:
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
        process.stderr.close()
    assert process.wait(30) == 0 and Path(places(load(bare), bare).db).exists() and not (root / "elsewhere.db").exists()


def test_the_systemd_units_name_the_socket_where_every_client_looks(home):
    units = {}
    for name in ("service", "socket"):
        units[name] = configparser.ConfigParser(interpolation=None, strict=True)
        units[name].optionxform = str
        units[name].read(UNITS / "systemd" / f"cpersonad.{name}")
    bare = {"HOME": home["HOME"], "PATH": home["PATH"]}
    assert units["socket"]["Socket"]["ListenStream"].replace("%h", home["HOME"]) == places(load(bare), bare).socket
    assert units["socket"]["Socket"]["SocketMode"] == "0600" and units["socket"]["Socket"]["DirectoryMode"] == "0700"
    service = units["service"]["Service"]
    assert (
        service["Type"] == "notify"
        and service["UMask"] == "0077"
        and service["ExecStart"].endswith("/cpersonad --foreground")
    )
