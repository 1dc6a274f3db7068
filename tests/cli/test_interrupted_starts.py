"""Ctrl-C in the first milliseconds, at any import of ours: nothing is printed, and the exit status says it.

Contract: exit.status.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import cpersona_cli
from cpersona_cli.git import hooks

SCRIPT = str(Path(cpersona_cli.__file__).parent / "script" / "cpersona")
# What the interpreter runs before anything of ours: it interrupts itself where a module is to be imported, or notes
# all.
CUSTOMIZE = """
import os, sys
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == os.environ.get("INTERRUPT_AT"):
            os.kill(os.getpid(), 2)
        if "NOTE_IMPORTS" in os.environ and name.startswith("cpersona"):
            with open(os.environ["NOTE_IMPORTS"], "a") as handle:
                handle.write(name + "\\n")
class First(list):
    # What the client puts first comes behind the finder above, which is asked for every module.
    def insert(self, at, finder):
        super().insert(at + 1, finder)
sys.meta_path = First([Finder, *sys.meta_path])
"""


@pytest.fixture
def interrupted(shared_daemon, module_home, tmp_path) -> Callable[..., dict[str, subprocess.CompletedProcess]]:
    """Run a program once for each ``step``-th module of ours that it imports, interrupted there: outcomes by module."""
    (tmp_path / "sitecustomize.py").write_text(CUSTOMIZE)

    def run(
        command: list[str],
        expected: int = 0,
        env: dict[str, str] | None = None,
        but: tuple[str, ...] = (),
        step: int = 1,
    ) -> dict[str, subprocess.CompletedProcess]:
        path = os.pathsep.join(filter(None, (str(tmp_path), module_home.get("PYTHONPATH"))))
        environ = module_home | {"PYTHONPATH": path} | (env or {})
        more = {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL, "timeout": 60}
        noted = tmp_path / "imports"
        noted.write_text("")
        assert subprocess.run(command, env=environ | {"NOTE_IMPORTS": str(noted)}, **more).returncode == expected
        names = list(dict.fromkeys(name for name in noted.read_text().split() if name not in but))
        assert len(names) > 5, names
        return {name: subprocess.run(command, env=environ | {"INTERRUPT_AT": name}, **more) for name in names[::step]}

    return run


def all_are_quiet(outcomes: dict[str, subprocess.CompletedProcess]) -> bool:
    """Tell whether every outcome is the status of an interrupt with nothing said."""
    said = {name: (done.returncode, done.stderr) for name, done in outcomes.items()}
    assert said == dict.fromkeys(outcomes, (130, ""))
    return True


@pytest.mark.parametrize(
    ("words", "status", "step"),
    [(["store", "hello"], 0, 1), (["get", "mem:99"], 1, 5), (["doctor", "--help"], 0, 5)],
    ids=str,
)
def test_the_client_is_quiet_wherever_it_is_interrupted(interrupted, words, status, step):
    outcomes = interrupted([sys.executable, SCRIPT, *words], status, step=step)
    assert step > 1 or {"cpersona_cli", "cpersona_cli.main", "cpersona_daemon.shared.fields"} < set(outcomes)
    assert all_are_quiet(outcomes)


def test_the_module_is_as_quiet_as_the_script(interrupted):
    # Python itself imports the package before it runs the module.
    outcomes = interrupted(
        [sys.executable, "-m", "cpersona_cli", "store", "hello"], but=("cpersona_cli", "cpersona_cli.__main__"), step=4
    )
    assert all_are_quiet(outcomes)


def test_the_daemons_program_is_quiet_too(interrupted, tmp_path):
    """It fails in the end, for want of a setting, after everything was imported that a start needs."""
    entry = "import sys; from cpersona_daemon.main import main; sys.exit(main())"
    outcomes = interrupted(
        [sys.executable, "-c", entry, "--foreground"],
        4,
        {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_DB_PATH": str(tmp_path / "d" / "x.db")},
        but=("cpersona_daemon", "cpersona_daemon.main"),
        step=9,
    )
    assert all_are_quiet(outcomes)


def test_a_hook_that_is_interrupted_says_that_the_commit_is_not_noted(module_home, tmp_path):
    *interpreter, code = hooks.command()
    program = CUSTOMIZE + code
    for name in ("cpersona_cli", "cpersona_cli.git.commits", "cpersona_daemon.shared.files"):
        done = subprocess.run(
            [*interpreter, program, "post-commit"],
            env=module_home | {"INTERRUPT_AT": name},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.stderr.count("\n") == 1, done
        assert "this commit is not noted" in done.stderr and "git backfill" in done.stderr


def test_one_that_is_told_to_ignore_it_goes_on(shared_daemon, module_home, tmp_path):
    """As `nohup` and a script's background have it."""
    (tmp_path / "sitecustomize.py").write_text(CUSTOMIZE)
    path = os.pathsep.join(filter(None, (str(tmp_path), module_home.get("PYTHONPATH"))))
    environ = module_home | {"PYTHONPATH": path, "INTERRUPT_AT": "cpersona_cli.main"}
    done = subprocess.run(
        [sys.executable, SCRIPT, "call", "persistence_status"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert done.returncode == 0 and done.stderr == "" and done.stdout
