"""A person who has only the README, at a terminal: store, hook a repository, note its history, find commits, keep notes
in Markdown, back up, restore, leave.

The short form notes 100 commits and finds three by their words; the long one notes 1,000 and finds three by paraphrase,
with the built-in model. A blame of a file names its commits' notes, and a directory of 50 or 1,000 files of notes is
kept up to date. `-s` shows the screens.

Contract: commands.same, git.notes, git.blame, import.markdown.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import shlex
import shutil
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from stress_kit import FULL

pytestmark = pytest.mark.stress

ROOT = Path(__file__).parents[2]
BENCH = ROOT.parent / "shared" / "bench"
README = (ROOT / "README.md").read_text("utf-8")
COMMITS = 1000 if FULL else 100
FILES = 1000 if FULL else 50
BEST = 3 if FULL else 1  # a later commit about the same thing may stand before the one that a paraphrase means
COLUMNS = 100
# What was asked, and the beginning of the commit that answers it.
WANTED = (
    {
        "smoke test without the default dependency groups": "Run no-default-groups smoke test",
        "views keep working after changing a table": "transform() now works for tables referenced",
        "detecting column types is now the default": "Detect CSV/TSV column types by default",
    }
    if FULL
    else {
        "isolated smoke test from the justfile": "Run no-default-groups smoke test",
        "transform tables referenced views": "transform() now works for tables referenced by views",
        "should codespell look at sqlite_utils": "codespell should check sqlite_utils as well",
    }
)
PROMPT = re.compile(r"<(\d+)>> ")


class Terminal:
    """A shell on a terminal of its own. ``type`` a line and get the screen's new lines, without colours; it must
    succeed.
    """

    def __init__(self, environ: dict[str, str]):
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
        self._shell = subprocess.Popen(
            ["/bin/sh", "-i"],
            env=environ | {"PS1": "<$?>> ", "ENV": ""},
            cwd=environ["HOME"],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self._read()

    def type(self, line: str) -> list[str]:
        os.write(self._master, line.encode() + b"\n")
        screen, status = self._read()
        shown = [text.rpartition("\r")[2] for text in screen.split("\r\n")[1:]]
        print(f"$ {line}", *shown, sep="\n")  # what a failure shows
        assert status == 0 and "Traceback" not in screen, screen
        return [text for text in shown if text]

    def close(self) -> None:
        os.write(self._master, b"exit\n")
        self._shell.wait(30)
        os.close(self._master)

    def _read(self, seconds: float = 300) -> tuple[str, int]:
        """Return what came until the next prompt, and the status that the prompt shows."""
        data, end = b"", time.monotonic() + seconds
        while True:
            ready, _, _ = select.select([self._master], [], [], max(end - time.monotonic(), 0))
            assert ready, data
            data += os.read(self._master, 65_536)
            text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", data.decode("utf-8", "replace"))
            prompt = PROMPT.search(text)
            if prompt and prompt.end() == len(text):
                return text[: prompt.start()], int(prompt[1])


def readme(begin: str) -> str:
    """Return the command of the README that begins like this, without its comment."""
    blocks = "\n".join(re.findall(r"```(?:sh|console)\n(.*?)```", README, re.DOTALL)).replace(" && ", "\n")
    commands = re.findall(r"^(?:\$ )?(cpersona .+?)(?:\s+#.*)?$", blocks, re.MULTILINE)
    commands += re.findall(r"`(cpersona [^`]+)`", README.replace("\n", " "))
    return next(command for command in commands if command.startswith(begin))


def files(directory: Path) -> dict[str, tuple]:
    """Everything below a directory with its mode and its bytes."""
    return {
        str(path.relative_to(directory)): (path.lstat().st_mode, path.read_bytes() if path.is_file() else None)
        for path in directory.rglob("*")
    }


@pytest.fixture
def person(home: dict[str, str]) -> Iterator[Callable[[str], Terminal]]:
    """Give a person a home of this name and a terminal in it."""
    opened: list[Terminal] = []
    program = Path(home["HOME"]) / "bin" / "cpersona"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m cpersona_cli "$@"\n')
    program.chmod(0o755)

    def make(name: str) -> Terminal:
        directory = Path(home["HOME"]) / name
        directory.mkdir(exist_ok=True)
        environ = {key: home[key] for key in ("PYTHONPATH", "LANG", "TZ", "TMPDIR") if key in home}
        environ |= {
            "HOME": str(directory),
            "PATH": f"{program.parent}:{home['PATH']}",
            "TERM": "xterm-256color",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_PAGER": "cat",
        }
        if not FULL:
            environ["CPERSONA_EMBEDDING_MODE"] = "none"
        (directory / ".gitconfig").write_text("[user]\n name = A. Person\n email = person@example.org\n")
        opened.append(Terminal(environ))
        return opened[-1]

    yield make
    for terminal in opened:
        terminal.close()


def older(count: int) -> Iterator[str]:
    """So many commits before the real ones, newest first, about other parts of a program."""
    parts = (
        "scheduler",
        "mail gateway",
        "payment form",
        "image cropper",
        "session cookie",
        "map tiles",
        "audit log",
        "printer queue",
        "thumbnail cache",
        "translation files",
    )
    deeds = (
        "Fix a race in the {}",
        "Speed up the {}",
        "Document the {}",
        "Remove dead code from the {}",
        "Retry when the {} times out",
        "Add a metric to the {}",
        "Test the {}",
    )
    for n in range(count):
        part = parts[n % len(parts)]
        message = deeds[n % len(deeds)].format(part) + f"\n\nTicket {4000 - n}."
        yield (
            json.dumps(
                {
                    "commit": f"{n:040x}",
                    "date": f"20{9 - n // 100:02d}-03-{28 - n % 28:02d}T12:00:00+00:00",
                    "message": message,
                    "paths": [f"{part.split()[0]}/{n % 7}.py"],
                }
            )
            + "\n"
        )


@pytest.fixture
def repository(home: dict[str, str]) -> Path:
    """A repository with the history of a real project, and a hook that somebody wrote before."""
    if shutil.which("git") is None or not (BENCH / "mkrepo.py").exists():
        pytest.skip("needs git, and ../shared/bench beside the project for a real history")
    history, path = Path(home["HOME"]) / "history.jsonl", Path(home["HOME"]) / "project"
    real = (BENCH / "history.jsonl").read_text("utf-8").splitlines(keepends=True)[:COMMITS]
    history.write_text("".join([*real, *older(COMMITS - len(real))]), "utf-8")
    subprocess.run(
        [sys.executable, str(BENCH / "mkrepo.py"), str(history), str(path)], env=home, check=True, capture_output=True
    )
    subprocess.run(["git", "-C", str(path), "checkout", "-qf", "main"], env=home, check=True)
    hook = path / ".git" / "hooks" / "post-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\necho "their own hook"\nexit 0\n')
    hook.chmod(0o755)
    return path


def table(screen: list[str]) -> list[str]:
    """The rows of a recall's table, which fits the terminal; the best is the last."""
    assert screen[0].split() == ["rank", "ref", "age", "match", "preview"] and max(map(len, screen[:2])) <= COLUMNS
    return [line for line in screen[1:] if re.match(r" *\d+  (mem|ep):\d+ ", line)]


@pytest.fixture
def vault(home: dict[str, str]) -> None:
    """A directory of notes in a person's home, one of them longer than a window."""
    notes = Path(home["HOME"]) / "home" / "notes"
    (notes / "trips").mkdir(parents=True)
    for n in range(FILES - 1):
        (notes / f"note{n}.md").write_text(f"---\ntags: [diary]\n---\nDay {n}: it rained for {n} minutes\n")
    (notes / "trips" / "rome.md").write_text(
        f"# Rome\n\n## Food\n\nThe bakery on the square opens at six.\n\n## Walks\n\n{'Along the river. ' * 80}\n"
    )


def totals_of(screen: list[str]) -> dict[str, int]:
    """The totals that an import ends with."""
    return {line.split()[0]: int(line.split()[1]) for line in screen if re.fullmatch(r"\w+ +\d+", line)}


def test_a_person_with_only_the_readme_lives_with_it_and_leaves_without_residue(home, person, repository, vault):
    at = person("home")
    first = at.type(readme('cpersona store "Deploys go out from the release branch'))
    assert first == ["mem:1"]
    screen = at.type('cpersona recall "which branch do deploys use?"')
    assert "Deploys go out" in table(screen)[-1] and "best is last (rank 1), nearest the prompt" in screen

    # A repository: the hooks beside the one that is there, a commit, an amended one, and history.
    git = repository / ".git"
    hooks, names = files(git / "hooks"), set(os.listdir(git))
    at.type(f"cd {shlex.quote(str(repository))}")
    installed = at.type(readme("cpersona git install"))[:4]
    assert [line.split()[:2] for line in installed] == [
        [f"post-{name}", "added"] for name in ("commit", "merge", "applypatch", "rewrite")
    ]
    assert len({line.index("added") for line in installed}) == 1
    assert "their own hook" in at.type("echo x > coffee; git add coffee; git commit -q -m 'Mention the coffee machine'")
    at.type("git commit -q --amend -m 'Mention the espresso machine'")
    rows = table(at.type('cpersona recall "espresso machine"'))
    assert len(rows) == 1 and "Mention the espresso machine" in rows[0]
    assert at.type("cpersona git status")[0].split() == ["state", "installed"]
    totals = dict(line.split() for line in at.type(readme("cpersona git backfill"))[-3:])
    assert totals == {"stored": str(COMMITS), "skipped": "1", "rejected": "0"}
    assert dict(line.split() for line in at.type(readme("cpersona git backfill"))[-3:]) == {
        "stored": "0",
        "skipped": str(COMMITS + 1),
        "rejected": "0",
    }
    # Notes are embedded after they are stored; until the last one is, a recall says how many are not.
    while not any(line.split()[:3] == ["to", "embed", "0"] for line in at.type("cpersona daemon status")):
        pass
    for question, beginning in WANTED.items():
        assert any(beginning in row for row in table(at.type(f"cpersona recall {shlex.quote(question)}"))[-BEST:])

    blamed = at.type("cpersona git blame-note coffee")
    assert len(blamed) == 2 and "Mention the espresso machine" in blamed[-1]

    # Notes in Markdown, changed, renamed and brought up to date.
    first = totals_of(at.type(readme("cpersona import --markdown ~/notes")))
    assert first == {"files": FILES, "stored": FILES + 1, "updated": 0, "skipped": 0, "rejected": 0, "deleted": 0}
    again = totals_of(at.type(readme("cpersona import --markdown ~/notes")))
    assert again == first | {"stored": 0, "skipped": FILES + 1}
    at.type("cd ~/notes && echo 'The dentist moved to Harbour Street' > note7.md && mv note8.md note-eight.md")
    changed = totals_of(at.type("cpersona import --markdown ~/notes --prune --yes"))
    assert changed == first | {"stored": 1, "updated": 1, "skipped": FILES - 1, "deleted": 1}
    assert "Harbour Street" in table(at.type("cpersona recall 'where is the dentist now'"))[-1]
    assert "bakery" in table(at.type("cpersona recall 'bakery on the square in Rome'"))[-1]
    at.type(f"cd {shlex.quote(str(repository))}")

    # Away and back, into a home that has never seen it.
    at.type("cpersona backup ~/cpersona.tar")
    elsewhere = person("elsewhere")
    elsewhere.type("cp ../home/cpersona.tar .")
    restored = elsewhere.type(readme("cpersona restore"))
    assert restored[0].endswith("/elsewhere/.local/share/cpersona/cpersona.db") and restored[1].startswith(
        f"{COMMITS + FILES + 3} memories"
    )
    count = "cpersona list -n 500 | wc -l"
    assert elsewhere.type(count) == at.type(count) == [str(min(COMMITS + FILES + 3, 500))]
    for question, beginning in WANTED.items():
        found = table(elsewhere.type(f"cpersona recall {shlex.quote(question)}"))
        assert any(beginning in row for row in found[-BEST:])

    # And gone.
    assert [line.split()[1] for line in at.type(readme("cpersona git uninstall"))] == ["removed"] * 4
    assert files(git / "hooks") == hooks and set(os.listdir(git)) - names <= {
        "COMMIT_EDITMSG",
        "ORIG_HEAD",
        "logs",
        "index",
    }
    for terminal in (at, elsewhere):
        terminal.type("cpersona daemon stop")
    assert sorted(os.listdir(home["TMPDIR"])) == []
    for name in ("home", "elsewhere"):
        left = {path for path in files(Path(home["HOME"]) / name) if (Path(home["HOME"]) / name / path).is_file()}
        documented = re.compile(
            r"\.local/share/cpersona/cpersona\.db"
            r"(\.lock|\.start\.lock|\.calibration\.json(\.previous)?|\.(memories|episodes)(\.passages)?\.vec[\w.]*)?"
            r"|\.local/state/cpersona/cpersona\.db-[0-9a-f]+\.log|cpersona\.tar|\.gitconfig|notes/.*"
        )
        assert {path for path in left if not documented.fullmatch(path)} == set()
