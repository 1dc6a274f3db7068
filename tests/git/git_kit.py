"""A real repository in a test's home, and what became of its commits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from cpersona_cli.wire import client
from cpersona_daemon.shared.settings import load


class Repo:
    """One work tree. ``git`` and ``cpersona`` run in it with the test's environment; ``commit`` makes a commit and
    returns its id.
    """

    def __init__(self, path: Path, environ: dict[str, str]):
        self.path, self.environ = path, environ

    @classmethod
    def new(cls, home: dict[str, str], name: str = "work") -> Repo:
        environ = home | {"GIT_CONFIG_NOSYSTEM": "1", "GIT_EDITOR": "true"}
        (Path(home["HOME"]) / ".gitconfig").write_text(
            "[user]\n name = A. U. Thor\n email = author@example.org\n[init]\n defaultBranch = main\n[log]\n "
            "showSignature = true\n[gc]\n auto = 0\n[maintenance]\n auto = false\n[core]\n fsync = none\n"
        )
        path = Path(home["HOME"]) / name
        repo = cls(path, environ)
        subprocess.run(["git", "init", "-q", str(path)], env=environ, check=True)
        return repo

    def run(
        self, *words: str, env: dict[str, str] | None = None, check: bool = True, input: str | None = None
    ) -> subprocess.CompletedProcess:
        stdin = {"input": input} if input is not None else {"stdin": subprocess.DEVNULL}
        done = subprocess.run(
            words, cwd=self.path, env=self.environ | (env or {}), capture_output=True, text=True, timeout=120, **stdin
        )
        assert not check or done.returncode == 0, f"{words} -> {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def git(self, *words: str, **more) -> str:
        return self.run("git", *words, **more).stdout.strip()

    def cpersona(self, *words: str, **more) -> subprocess.CompletedProcess:
        return self.run(sys.executable, "-m", "cpersona_cli", *words, **more)

    def commit(self, message: str, path: str | None = None, *more: str) -> str:
        path = path or message.replace(" ", "-")
        (self.path / path).parent.mkdir(parents=True, exist_ok=True)
        with open(self.path / path, "a", encoding="utf-8") as handle:
            handle.write(message + "\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message, *more)
        return self.git("rev-parse", "HEAD")

    def ids(self, *range: str) -> list[str]:
        """The commits of history, oldest first."""
        return self.git("rev-list", "--reverse", "--topo-order", *(range or ("HEAD",))).split()

    @property
    def spool(self) -> Path:
        return Path(self.environ["CPERSONA_DB_PATH"] + ".spool")

    def hook(self, name: str) -> Path:
        return self.path / ".git" / "hooks" / name

    def write_hook(self, name: str, text: str, mode: int = 0o755) -> Path:
        path = self.hook(name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def notes(self, agent: str = "default") -> list[dict]:
        """The notes that the store holds, as they were stored; the daemon is started for it, and what was queued is
        drained.
        """
        with client.connect(load(self.environ), self.environ) as connection:
            while True:
                rows = connection.call("list_memories", {"agent_id": agent, "limit": 500})[0]["memories"]
                spool = connection.call("daemon_status", {})[0]["spool"]
                if not spool["waiting"]:
                    assert not spool["failed"], [path.read_text() for path in (self.spool / "failed").iterdir()]
                    return [row for row in rows[::-1] if row["channel"] == "git"]

    def noted(self, agent: str = "default") -> list[str]:
        """The ids of the commits that have a note, in the order they were stored."""
        return [row["metadata"]["commit"] for row in self.notes(agent)]


def mode(path: Path) -> int:
    return os.stat(path).st_mode & 0o777
