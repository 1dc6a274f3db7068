"""The screen on a real terminal: a pseudo-terminal of our own, and tmux where it is installed.

Contract: explore.screen, explore.edits, edit.kept, exit.status.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from contextlib import contextmanager

import pytest
from cli_kit import runner

IN, OUT = b"\x1b[?1049h", b"\x1b[?1049l"  # of the other screen of a terminal
EXPLORE = [sys.executable, "-m", "cpersona_cli", "explore"]
_CONTROL = re.compile(r"\x1b(?:\[[0-9;?<>=]*[ -/]*[@-~]|[\]P][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|.)")


class Pty:
    """What a terminal of 80 x 24 is sent. Of what it shows only the words are known, in the order they were drawn."""

    def __init__(self, words, env, directory):
        self._parent, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self._process = subprocess.Popen(
            words, env=env, stdin=child, stdout=child, stderr=child, start_new_session=True, cwd=directory
        )
        os.close(child)
        self.sent = b""

    def press(self, keys):
        os.write(self._parent, keys.encode())

    def shown(self):
        while select.select([self._parent], [], [], 0.02)[0]:
            try:
                data = os.read(self._parent, 65_536)
            except OSError:  # how Linux says that the other end is closed
                break
            if not data:
                break
            self.sent += data
        return _CONTROL.sub(" ", self.sent.decode("utf-8", "replace"))

    def ended(self):
        """Return the exit status, once the program has left the terminal as it was."""
        threading.Thread(target=lambda: self._process.wait(20)).start()
        until(lambda: self.shown() is not None and self._process.poll() is not None)
        text = self.sent.decode("utf-8", "replace")
        assert text.rindex("\x1b[?1049l") > text.rindex("\x1b[?1049h") and "\x1b[?25h" in text
        return self._process.returncode

    def tell(self, signal_number):
        self._process.send_signal(signal_number)

    def stopped(self):
        """Tell whether the process is stopped, as a shell would learn it; the news comes once."""
        return os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOHANG) is not None

    def hang_up(self):
        os.close(self._parent)
        self._parent = -1
        self.tell(signal.SIGHUP)  # as the system does where the terminal is the process's own

    def wait(self):
        return self._process.wait(20)

    def close(self):
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        if self._parent >= 0:
            os.close(self._parent)


class Tmux:
    """The same, as tmux shows it."""

    def __init__(self, words, env, directory):
        self._tmux = ["tmux", "-f", "/dev/null", "-S", os.path.join(directory, "tmux")]
        self._env = env
        line = f"{shlex.join(words)}; echo status $?; sleep 60"
        self._do("new-session", "-d", "-x", "80", "-y", "24", "-c", directory, line)

    def _do(self, *words):
        return subprocess.run([*self._tmux, *words], env=self._env, check=True, capture_output=True, text=True).stdout

    def press(self, keys):
        for key in re.findall(r"\x1b\[.|\r|.", keys):
            self._do("send-keys", *{"\r": ["Enter"], "\x1b[B": ["Down"]}.get(key, ["-l", "--", key]))

    def shown(self):
        return self._do("capture-pane", "-p")

    def ended(self):
        until(lambda: "status" in self.shown())
        assert "best first" not in self.shown()
        return int(re.search(r"status (\d+)", self.shown())[1])

    def close(self):
        self._do("kill-server")


def until(check, seconds=20):
    """Wait until something is to be seen."""
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@contextmanager
def seen(kind, home, words=(), **env):
    if kind is Tmux and shutil.which("tmux") is None:
        pytest.skip("tmux is not installed; the same was looked at on a pseudo-terminal")
    terminal = kind([*EXPLORE, *words], home | {"TERM": "xterm-256color"} | env, home["HOME"])
    try:
        yield terminal
    finally:
        terminal.close()


@pytest.fixture
def cli(module_home):
    return runner(module_home)


@pytest.mark.parametrize("kind", [Pty, Tmux])
def test_a_question_is_typed_a_row_edited_and_the_terminal_left_as_it_was(kind, module_home, refs, cli, tmp_path):
    ref = cli(["store", f"the {kind.__name__} walnut tree"]).stdout.strip()
    editor = tmp_path / "editor"
    edited = f"its {kind.__name__} walnuts are ripe"
    editor.write_text(f'#!/bin/sh\necho "{edited}" > "$1"\n')
    editor.chmod(0o700)
    with seen(kind, module_home, EDITOR=str(editor), NO_COLOR="1") as terminal:
        until(lambda: "best first" in terminal.shown() and "F1" in terminal.shown().upper())
        terminal.press(f"{kind.__name__} walnut")
        until(lambda: ref in terminal.shown() and "gate asked" in terminal.shown())
        terminal.press("\r")
        until(lambda: "canary" in terminal.shown())
        terminal.press("e")
        until(lambda: "is updated" in terminal.shown())
        terminal.press("q")
        assert terminal.ended() == 0
        if kind is Pty:  # NO_COLOR: no sequence names a colour, the default ones apart
            asked = re.findall(r"\x1b\[([0-9;]*)m", terminal.sent.decode())
            assert {n for sequence in asked for n in sequence.split(";")} <= {
                "",
                *"0123457",
                "22",
                "24",
                "27",
                "39",
                "49",
            }
    assert cli(["get", ref, "--raw"]).stdout == f"{edited}\n"


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGHUP])
def test_whoever_ends_it_gets_the_terminal_back(module_home, refs, told):
    with seen(Pty, module_home) as terminal:
        until(lambda: "best first" in terminal.shown())
        terminal.tell(told)
        assert terminal.ended() == 128 + told


def test_a_terminal_that_goes_away_takes_it_along(module_home, refs):
    with seen(Pty, module_home) as terminal:
        until(lambda: "best first" in terminal.shown())
        terminal.hang_up()
        assert terminal.wait() != 0


def test_ctrl_z_gives_the_terminal_back_until_it_goes_on(module_home, refs):
    with seen(Pty, module_home) as terminal:
        until(lambda: "best first" in terminal.shown())
        terminal.press("\x1a")
        until(lambda: terminal.shown() and terminal.sent.rfind(OUT) > terminal.sent.rfind(IN) and terminal.stopped())
        drawn = len(terminal.sent)
        terminal.tell(signal.SIGCONT)
        until(lambda: terminal.shown() and b"best first" in terminal.sent[drawn:])
        terminal.press("\x03")
        assert terminal.ended() == 0


@pytest.mark.parametrize(
    "script, changed, said",
    [
        ("true", False, "as it was"),
        (': > "$1"', False, "is empty"),
        ('echo more >> "$1"; cpersona update {ref} other', False, "changed meanwhile"),
        ('echo more >> "$1"; cpersona lock {ref}', False, "your text is kept in"),
        ('echo more >> "$1"; exit 3', False, "ended with status 3"),
    ],
)
def test_an_edit_that_means_nothing_or_comes_too_late_changes_nothing(
    module_home, shared_daemon, cli, monkeypatch, script, changed, said
):
    from cpersona_cli.explore import away
    from cpersona_cli.explore.asking import Outcome
    from cpersona_cli.terminal.failure import failure_line

    ref = cli(["store", f"a text {script}"]).stdout.strip()
    for name, value in module_home.items():
        monkeypatch.setenv(name, value)
    program = script.format(ref=ref).replace("cpersona", f"{sys.executable} -m cpersona_cli")
    monkeypatch.setenv("EDITOR", f"sh -c {shlex.quote(program)} editor")
    monkeypatch.delenv("VISUAL", raising=False)

    def ask(method, params):
        response, code = shared_daemon.call(method, params)
        return Outcome(response, failure_line("", response, code, "") if response.get("ok") is False else "")

    was = cli(["get", ref, "--raw"]).stdout.removesuffix("\n")
    done, told = away.edit(ask, ref, was, {"agent_id": "default"})
    assert (done, said in told) == (changed, True), told
    assert cli(["get", ref, "--raw"]).stdout.removesuffix("\n") in (was, "other")
    held = {"agent_id": "default", "refs": [ref], "placed": True}
    found = Outcome(shared_daemon.call("get_contents", held)[0])
    assert bool(away.refused(ref, found)) == ("lock" in script)


def test_without_a_terminal_it_says_so_and_what_prints(cli):
    done = cli(["explore", "words"], env={"TERM": "xterm"})
    assert (done.returncode, done.stdout) == (1, "") and "no" not in done.stdout
    assert "there is none here" in done.stderr and "--explain" in done.stderr


@pytest.mark.parametrize(
    "words, env, status, said",
    [
        (["--since", "soon"], {}, 2, "is not a time"),
        (["--db", "nowhere.db"], {}, 4, "no database"),
        ([], {"TERM": "dumb"}, 1, "there is none here"),
        ([], {"WITHOUT": "textual"}, 1, "cpersona-cli[explore]"),
    ],
)
def test_what_keeps_it_from_being_drawn_is_one_line_and_a_status(module_home, refs, tmp_path, words, env, status, said):
    if env.pop("WITHOUT", None):
        (tmp_path / "textual.py").write_text("raise ModuleNotFoundError('no', name='textual')\n")
        env = {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    with seen(Pty, module_home, words, **env) as terminal:
        until(lambda: terminal._process.poll() is not None)
        assert said in " ".join(terminal.shown().split()) and "\x1b[?1049h" not in terminal.sent.decode()
        assert terminal._process.wait() == status
