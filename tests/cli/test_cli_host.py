"""`--host`: the memory of another machine, through ssh.

A fake `ssh` stands on the PATH: it notes the words that it is given and runs the last of them in a home of its own, as
the shell of another machine would.

Contract: host.ssh.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_kit import runner

from cpersona_cli.wire import client, ssh
from cpersona_daemon.shared import fields
from cpersona_daemon.shared.settings import load

HOST = "ada@far"
FAKE = """#!/bin/sh
printf '%s\\n' "$@" >"{root}/words"
{before}
shift 4
cd "{there}" && exec env -i {environ} sh -c "exec $2"
"""


class Far:
    """Two machines: ``run`` runs `cpersona` here, ``there`` is the environment of the other one."""

    def __init__(self, here: dict[str, str], there: dict[str, str]) -> None:
        self.root, self.there = Path(here["HOME"]) / "fake", there
        self.root.mkdir()
        far = Path(there["HOME"])
        (far / "bin").mkdir()
        self._script(far / "bin" / "cpersona", f'#!/bin/sh\nexec {sys.executable} -m cpersona_cli "$@"\n')
        self.there["PATH"] = f"{far}/bin:{there['PATH']}"
        self.here = here | {"PATH": f"{self.root}:{here['PATH']}", "CPERSONA_DB_PATH": here["HOME"] + "/mine.db"}
        self.run = runner(self.here)
        self.fake()

    def _script(self, path: Path, text: str) -> None:
        path.write_text(text)
        path.chmod(0o755)

    def fake(self, before: str = "", **there: str) -> None:
        """Put the `ssh` in place that does ``before`` first, and gives the other machine more variables."""
        environ = " ".join(f"'{name}={value}'" for name, value in (self.there | there).items())
        self._script(
            self.root / "ssh", FAKE.format(root=self.root, before=before, there=self.there["HOME"], environ=environ)
        )

    @property
    def words(self) -> list[str]:
        """What ssh was given last."""
        return (self.root / "words").read_text().splitlines()

    def ask(self, *words: str, **more) -> subprocess.CompletedProcess:
        return self.run(["--host", HOST, *words], **more)


@pytest.fixture(scope="module")
def far(module_home, other_home):
    return Far(module_home, other_home)


@pytest.fixture(autouse=True)
def plain(far):
    yield
    far.fake()


def test_what_is_stored_there_is_found_there_and_nothing_is_begun_here(far):
    stored = far.ask("store", "the far machine keeps this", "--agent", "a b")
    assert (stored.returncode, stored.stderr) == (0, "") and stored.stdout == "mem:1\n"
    assert far.words[:5] == ["-T", "-o", "ConnectTimeout=30", "--", HOST]
    assert far.words[5:] == ["cpersona daemon pipe --create"]
    found = far.run(["recall", "far machine", "--agent", "a b"], env={"CPERSONA_HOST": HOST})
    assert found.returncode == 0 and "keeps this" in found.stdout
    assert Path(far.there["CPERSONA_DB_PATH"]).exists() and not os.path.exists(far.here["CPERSONA_DB_PATH"])


def test_a_file_that_is_named_is_one_of_that_machine_and_no_word_of_it_is_the_shells(far):
    name = "it's $(touch x) here.db"
    assert far.ask("store", "x", "--db", name).returncode == 0
    assert (Path(far.there["HOME"]) / name).exists() and not (Path(far.there["HOME"]) / "x").exists()
    missing = far.ask("recall", "x", "--db", "none.db")
    assert missing.returncode == 4 and "on ada@far: there is no database at" in missing.stderr


def test_many_requests_travel_over_one_connection(far):
    lines = "".join(json.dumps(f"line {number}") + "\n" for number in range(200))
    far.fake(before=f'echo . >>"{far.root}/starts"')
    done = far.ask("store", "--jsonl", "-", "--agent", "many", input=lines)
    assert done.returncode == 0 and done.stdout.count("stored") == 200
    assert (far.root / "starts").read_text() == ".\n"


@pytest.mark.parametrize("host", ["-oProxyCommand=x", "a@-oX", "two words", "x;y", "$(x)", "a\nb", "`x`", "@", "x|y"])
def test_what_names_no_machine_never_reaches_ssh(far, host):
    (far.root / "words").unlink(missing_ok=True)
    done = far.run([f"--host={host}", "recall", "x"])
    assert done.returncode == 2 and "names no machine" in done.stderr and not (far.root / "words").exists()


@pytest.mark.parametrize("host", ["far", "ada@far.example.org", "ssh://ada@far:2222", "fe80::1%eth0", "[::1]", "a_b"])
def test_what_ssh_takes_is_a_machine(host):
    assert ssh.machine(host) == host


@pytest.mark.parametrize(
    ("before", "status", "told"),
    [
        ("echo 'ssh: no route' >&2; exit 255", 4, "could not reach ada@far"),
        ("exit 127", 4, "knows no `cpersona`"),
        ("echo usage >&2; exit 2", 4, "too old for --host"),
        ("exit 0", 4, "before it was connected"),
        ("kill -9 $$", 4, "before it was connected"),
        ('echo \'cpersona-pipe {"protocol": 99, "version": "9"}\'; exit 0', 4, "speaks protocol 99"),
        ("echo 'cpersona-pipe nonsense'; exit 0", 4, "is no cpersona"),
        ("yes noise 2>/dev/null; exit 0", 4, "is no cpersona"),
    ],
)
def test_a_machine_that_cannot_be_asked_is_one_line_and_a_status(far, before, status, told):
    far.fake(before=before)
    done = far.ask("recall", "x")
    assert done.returncode == status and done.stdout == ""
    *before_it, line = done.stderr.splitlines()
    assert told in line and line.startswith("cpersona: ") and "; " in line
    assert before_it == (["ssh: no route"] if "no route" in before else ["usage"] if "usage" in before else [])


def test_without_ssh_it_is_said_what_is_missing(far):
    done = far.ask("recall", "x", env={"PATH": "/nowhere"})
    assert done.returncode == 4 and "there is no ssh on the PATH" in done.stderr


def test_what_a_shell_prints_at_its_start_is_let_pass(far):
    far.fake(before="printf 'Welcome to far\\nno end'")
    assert far.ask("store", "after a greeting", "--agent", "noise").returncode == 0


def test_what_keeps_the_daemon_there_from_starting_is_told_as_there(far):
    far.fake(CPERSONA_COSINE_FLOOR="0.9", CPERSONA_DB_PATH=far.there["HOME"] + "/contradiction.db")
    done = far.ask("store", "x")
    assert done.returncode == 4 and "on ada@far: the daemon did not start" in done.stderr
    assert "CPERSONA_COSINE_FLOOR" in done.stderr


def _connected(far: Far) -> client.Connection:
    environ = dict(far.here) | {"CPERSONA_HOST": HOST}
    before = os.environ["PATH"]
    os.environ["PATH"] = far.here["PATH"]
    try:
        return client.connect(load(environ), environ)
    finally:
        os.environ["PATH"] = before


def test_a_connection_that_is_dropped_is_made_again_or_ends_in_an_error_and_never_hangs(far, monkeypatch):
    monkeypatch.setenv("PATH", far.here["PATH"])
    with _connected(far) as connection:
        for process in ssh._running:
            os.kill(process.pid, signal.SIGKILL)
        assert connection.call("list_axes", {})[1] is None
        far.fake(before="exit 255")
        for process in ssh._running:
            os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(client.CallFailed, match="could not reach"):
            connection.call("list_axes", {})


def test_ctrl_c_ends_it_with_the_ssh_that_still_waits(far):
    far.fake(before=f'echo $$ >"{far.root}/pid"; mkfifo "{far.root}/ready" 2>/dev/null; exec sleep 60')
    process = subprocess.Popen(
        [sys.executable, "-m", "cpersona_cli", "--host", HOST, "recall", "x"], env=far.here, stdin=subprocess.DEVNULL
    )
    pid = _appears(far.root / "pid")
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == fields.EXIT_INTERRUPTED
    deadline = time.monotonic() + 10
    while os.path.exists(f"/proc/{pid}") and "sleep" in Path(f"/proc/{pid}/cmdline").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _appears(path: Path) -> int:
    deadline = time.monotonic() + 20
    while not (path.exists() and path.read_text().strip()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return int(path.read_text())


def test_export_and_import_stream_files_of_this_machine(far, tmp_path):
    far.ask("store", "to be carried over", "--agent", "carried")
    out = tmp_path / "out.jsonl"
    done = far.ask("export", str(out), "--agent", "carried")
    assert (done.returncode, done.stdout) == (0, f"{out}\n") and "to be carried over" in out.read_text()
    assert far.ask("export", "-", "--agent", "carried").stdout.splitlines()[1:] == out.read_text().splitlines()[1:]
    assert out.stat().st_mode & 0o777 == 0o600
    back = far.ask("import", str(out), "--to-agent", "back again")
    assert back.returncode == 0 and "imported_memories\t1" in back.stdout
    assert "to be carried over" in far.ask("list", "--agent", "back again").stdout
    assert far.ask("import", str(tmp_path / "none")).returncode == 1
    far.fake(before="echo half; exit 255")
    assert far.ask("export", str(out), "--agent", "carried").returncode == 4
    assert "to be carried over" in out.read_text() and [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["daemon", "stop"], "is about the machine that it runs on"),
        (["restore", sys.executable], "is about the machine that it runs on"),
        (["daemon", "logs"], "is about the machine that it runs on"),
        (["backup", "x.tar"], "ssh ada@far cpersona backup FILE"),
        (["store", "x", "--queue"], "--queue keeps writes on this machine"),
    ],
)
def test_what_is_about_one_machine_is_never_done_on_the_other(far, words, told):
    done = far.run(words, env={"CPERSONA_HOST": HOST})
    assert done.returncode in (1, 2) and told in done.stderr
    assert far.run(["--host", HOST, "daemon", "stop"]).returncode == 2


def test_the_daemon_there_tells_how_it_is(far):
    assert far.ask("daemon", "start").stdout.startswith("running\tpid ")
    told = json.loads(far.ask("daemon", "status", "--json").stdout)
    assert told["running"] is True and told["db"] == far.there["CPERSONA_DB_PATH"]
    nobody = far.ask("daemon", "status", "--db", "nobody.db")
    assert nobody.returncode == 4 and "on ada@far: no daemon serves" in nobody.stderr


def test_completion_asks_no_other_machine(far):
    (far.root / "words").unlink(missing_ok=True)
    assert far.run(["__complete", "--host", HOST, "get", ""]).stdout == ""
    assert not (far.root / "words").exists()


def test_a_clients_configuration_names_the_machine_and_no_file_of_this_one(far):
    printed = far.ask("mcp", "--agent", "coder", "--print-config").stdout
    entry = json.loads(printed.partition("\n")[2].partition("\n# ")[0])["mcpServers"]["cpersona"]
    assert entry["args"][-5:] == ["mcp", "--host", HOST, "--agent", "coder"]
