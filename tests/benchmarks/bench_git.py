"""`git backfill` of a whole history, the run after it, and whether a commit is found by a path that it changed.

    python tests/benchmarks/bench_git.py                       3,000 commits made from a seed
    python tests/benchmarks/bench_git.py --repository .        a history that is there
    python tests/benchmarks/bench_git.py --mode builtin        with the model: asked by meaning too

``plain`` of the first run is what git itself takes to print the same commits with their paths. A question counts where
the best row is a commit that changed the file, or the one whose message the words are from.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from common import Report, once, parser
from stores import ask, environment, serving, workplace

from cpersona_cli.wire import client

RATE, AGAIN_MS = 300, 1_000
_FOLDERS = "api auth billing cache client config core db docs events export forms graph http jobs mail".split()
_INNER = "handlers models queries views tasks tests util wire".split()
_NAMES = "accounts batches cursors drafts entries fields groups hooks invoices keys limits members notes orders".split()
_VERBS = "Keep Cut Show Ask Say Name Bound Close Check Count Drop Move Split Join Read Write Let Give".split()
_THINGS = (
    "retry deadline header lock session token page window report filter socket buffer charge address reminder digest"
    " schedule quota label stamp draft attachment signature webhook snapshot replica shard index column trigger"
).split()
_WHYS = "once twice late early again whole empty broken slow twofold unread stale foreign double".split()


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--commits", type=int, default=3_000)
    arguments.add_argument("--repository", help="a history that is there, in place of one that is made")
    arguments.add_argument("--mode", choices=("builtin", "none"), default="none")
    arguments.add_argument("--questions", type=int, default=40, help="of each kind")
    given = arguments.parse_args()
    report = Report("git", given.json)
    with workplace(None) as place:
        repository = given.repository or made(place / "repository", given.commits)
        commits = list(history(repository))
        environ = environment(place, CPERSONA_EMBEDDING_MODE=given.mode)
        with serving(environ) as connection:
            measured(report, repository, environ, len(commits))
            settled(connection, report)
            asked(report, connection, commits, given.questions)
    report.finish()


def made(directory: Path, commits: int) -> str:
    """Make a repository of so many commits: short messages, one to twelve paths, now and then hundreds."""
    chance, stream = random.Random(14), []
    files = chance.sample(
        [f"{a}/{b}/{c}_{d}.py" for a in _FOLDERS for b in _INNER for c in _THINGS for d in _NAMES], 5_000
    )
    for number in range(commits):
        lines = [f"{chance.choice(_VERBS)} {said(chance, 3)}", ""][: 2 if chance.random() < 0.6 else 1]
        lines += [f"The {said(chance, 6)}." for _ in range(chance.randrange(1, 4) if len(lines) > 1 else 0)]
        message = "\n".join(lines)
        many = 500 if number % 400 == 399 else min(12, 1 + int(chance.expovariate(0.4)))
        stamp = f"A <a@example.org> {1_600_000_000 + number * 9_000} +0000"
        stream.append(
            f"commit refs/heads/main\nauthor {stamp}\ncommitter {stamp}\ndata {len(message)}\n{message}\n"
            + "".join(
                f"M 100644 inline {path}\ndata {len(str(number))}\n{number}\n" for path in chance.sample(files, many)
            )
        )
    subprocess.run(["git", "init", "-q", "-b", "main", str(directory)], check=True)
    subprocess.run(["git", "-C", str(directory), "fast-import", "--quiet"], input="".join(stream).encode(), check=True)
    return str(directory)


def said(chance: random.Random, words: int) -> str:
    return " ".join(chance.choice(_THINGS) if n % 2 else chance.choice(_WHYS) for n in range(words))


def history(repository: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the commits of a history as (id, message, paths)."""
    command = ["git", "-C", repository, "log", "-z", "--no-renames", "--name-only", "--format=%x01%H%x02%B%x02"]
    for entry in subprocess.run(command, check=True, capture_output=True).stdout.decode().split("\x01")[1:]:
        id, message, paths = entry.split("\x02")
        yield id, message.strip(), [path.strip("\n") for path in paths.split("\0") if path.strip("\n")]


def measured(report: Report, repository: str, environ: dict[str, str], commits: int) -> None:
    def backfill() -> dict:
        command = [sys.executable, "-m", "cpersona_cli", "git", "backfill", "--json"]
        # Not in its directory, where a history of our own would bring its own code along.
        place = environ | {"GIT_DIR": str(Path(repository, ".git").resolve())}
        return json.loads(subprocess.run(command, env=place, check=True, capture_output=True).stdout)

    _, plain = once(lambda: list(history(repository)))
    first, spent = once(backfill)
    report.add("backfill", spent, reference=plain, target=commits / RATE * 1e3, said=first)
    report.add("commits acknowledged a second", commits / spent * 1e3, "1/s")
    again, spent = once(backfill)
    report.add("again, nothing new", spent, target=AGAIN_MS, said=again)


def settled(connection: client.Connection, report: Report) -> None:
    """Wait for the vectors."""
    started = time.perf_counter()
    while ask(connection, "daemon_status")["backlog"]["pending"]:
        time.sleep(0.2)
    report.add("vectors after that", (time.perf_counter() - started) * 1e3)


def asked(
    report: Report, connection: client.Connection, commits: list[tuple[str, str, list[str]]], questions: int
) -> None:
    chance = random.Random(41)
    holders: dict[str, set[str]] = {}
    for id, _, paths in commits:
        for path in paths:
            holders.setdefault(path, set()).add(id)
    telling = [(id, rare) for id, _, paths in commits if (rare := [path for path in paths if len(holders[path]) <= 3])]
    picked = [(id, chance.choice(paths)) for id, paths in chance.sample(telling, min(questions, len(telling)))]
    forms: dict[str, Callable[[str], str]] = {
        "file name": lambda path: path.rpartition("/")[2],
        "folder/name": lambda path: "/".join(path.split("/")[-2:]),
        "whole path": lambda path: path,
        "sentence with folder/name": lambda path: f"what did we change in {'/'.join(path.split('/')[-2:])} and why",
    }
    for name, form in forms.items():
        # A name alone may be that of other files too.
        found = [
            first(connection, text)
            in {c for other, by in holders.items() if f"/{other}".endswith(f"/{tail}") for c in by}
            for _, path in picked
            if (text := form(path)) and (tail := "/".join(path.split("/")[-1 if name == "file name" else -2 :]))
        ]
        report.add(f"first by {name}", float(sum(found)), f"of {len(found)}")
    said = [(id, message) for id, message, _ in commits if len(words(message)) >= 5]
    picked_messages = chance.sample(said, min(questions, len(said)))
    found = [first(connection, " ".join(chance.sample(words(m), 5))) == id for id, m in picked_messages]
    report.add("first by five words of its message", float(sum(found)), f"of {len(found)}")
    found = [first(connection, m.split("\n")[0]) == id for id, m in picked_messages]
    report.add("first by its subject", float(sum(found)), f"of {len(found)}")


def words(message: str) -> list[str]:
    return list(dict.fromkeys(re.findall("[A-Za-z]{4,}", message)))


def first(connection: client.Connection, question: str) -> str:
    """Return the commit of the best row, '' where nothing comes."""
    rows = ask(connection, "recall", agent_id="default", query=question, limit=10)["messages"]
    return rows[-1]["id"].rpartition(":")[2] if rows else ""


if __name__ == "__main__":
    main()
