"""One daemon for the users of a machine: its unit, and who may not even read the database. Contract: daemon.shared."""

from __future__ import annotations

import os
import re
import shlex

import pytest

from cpersona_cli.wire import client, control, launch, presence  # all that a child of another user would load later
from cpersona_daemon.shared.settings import load
from cpersona_daemon.shared.settings_table import TABLE

_ = launch, presence
OTHER = 65_533


def test_the_unit_names_settings_that_there_are_and_a_program_that_there_is(run_cli):
    done = run_cli(["daemon", "unit", "--group", "staff"])
    lines = done.stdout.splitlines()
    given = dict(
        pair.split("=", 1) for line in lines if line.startswith("Environment=") for pair in shlex.split(line[12:])
    )
    assert {name for name in given if name.startswith("CPERSONA_")} <= {setting.variable for setting in TABLE}
    assert given["CPERSONA_SOCKET_GROUP"] == "staff" and "SupplementaryGroups=staff" in lines
    (program,) = re.findall(r"^ExecStart=(\S+) --foreground$", done.stdout, re.MULTILINE)
    assert os.access(program, os.X_OK)
    assert {"Type=notify", "User=cpersona", "UMask=0077", "[Install]"} <= set(lines)
    assert run_cli(["daemon", "unit", "--group", "a b"]).returncode == 2


def _as_another_user(ask) -> str:
    """Return what a process of another user is told: the text of ``ask()``, or of its failure."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(OTHER)
            os.setuid(OTHER)
            told = str(ask())
        except client.CallFailed as error:
            told = f"{error.message}; {error.hint}"
        except BaseException as error:
            told = repr(error)
        os.write(writer, told.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as handle:
        told = handle.read()
    os.waitpid(child, 0)
    return told


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_who_may_not_read_the_database_asks_its_daemon_and_never_starts_one(home, connect, tmp_path):
    os.chmod(home["HOME"], 0o755)
    access = tmp_path / "access.json"
    access.write_text(
        '{"clients": [{"client_id": "own", "grants": {"*": "read-write"}},'
        f'{{"client_id": "guest", "uid": {OTHER}, "grants": {{"*": "read"}}}}]}}'
    )
    more = {"CPERSONA_SOCKET": home["HOME"] + "/team.sock", "CPERSONA_ACL_FILE": str(access)}
    connect(**more, CPERSONA_SOCKET_GROUP=str(OTHER)).close()
    environ = home | more
    settings = load(environ)

    def asked() -> object:
        with client.connect(settings, environ) as connection:
            return connection.call("list_axes", {})[1]

    assert _as_another_user(asked) == "None"
    assert "'answers': True" in _as_another_user(lambda: control.find_daemon(settings, environ))
    assert "permission denied" in _as_another_user(lambda: control.stop_daemon(settings, 5, environ))
    assert control.stop_daemon(settings, 15, environ)
    told = _as_another_user(asked)
    assert "belongs to the user root" in told and "systemctl start cpersonad" in told
    assert _as_another_user(lambda: control.find_daemon(settings, environ)) == "None"
