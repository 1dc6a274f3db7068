"""A store of the reference implementation goes in, out, into the reference and back: a table of every field.

    python tests/portability/round_trip.py                 5,000 rows of every kind, as Markdown
    python tests/portability/round_trip.py --rows 500

Both ways in are gone, its database and its export 1.2, each through the command line and a daemon of its own; then
`export --for reference`, taken in by a new store of the reference. The database of that goes into a second store of
ours, which has to export what the first did, to the letter; and the first has to know every row of it. Ids are compared
by what they name. The reference itself is not at hand: `reference_kit` and `reference_files` stand for it. The exit
status is 1 where a field differs.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import reference_files as files
import reference_kit as kit

NUMBERED = "why not: numbered anew; what names it follows (compared by what it names)"
DERIVED = "no field of a row: made of the rows, and made anew by each program"
NOT_HERE = {
    "folders": "no folders here: counted and said",
    "folder_members": "no folders here: counted and said",
    "pending_memory_tasks": "work that the reference had yet to do: counted and said",
    "record_blocks, record_nodes, *_fts, clocks, change logs": DERIVED,
}
ODD = {
    "source": "compared as JSON; one in 50 is none, and compared letter by letter",
    "metadata": "likewise; one in 12 is none or no object (broken, NaN, a list), one in 50 has over 9,500 characters",
    "embedding": "one in 9 has none",
    "embedding_model": "two models, one of them unnamed",
    "timestamp": "microseconds with offset, naive, words, empty",
    "created_at": "microseconds with offset where it is an association's",
    "declared_at": "microseconds with offset",
    "user_id": "'' and two other users",
    "content": "line breaks, tabs, CJK, umlauts",
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rows", type=int, default=5_000)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="cp-") as directory:
        root = Path(directory)
        peer = kit.made(root / "peer.db", given.rows)
        before = peer.read_bytes()
        conn = sqlite3.connect(f"file:{peer}?immutable=1", uri=True)
        lines = root / "peer.jsonl"
        lines.write_text("".join(json.dumps(line) + "\n" for line in files.export(conn)), encoding="utf-8")
        found = {"database": there_and_back(root, "a", peer), "export 1.2": there_and_back(root, "b", lines)}
        tables = {way: files.compared(conn, after) for way, after in found.items()}
        untouched = peer.read_bytes() == before and sorted(p.name for p in root.glob("peer.db*")) == ["peer.db"]
    sys.exit(0 if printed(tables) and untouched else 1)


def there_and_back(root: Path, name: str, file: Path) -> sqlite3.Connection:
    """Import a file into a new store, export that for the reference, and return the reference's store of it."""
    home = root / name
    home.mkdir()
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "CPERSONA_DB_PATH": str(home / "t.db"),
        "CPERSONA_EMBEDDING_MODE": "none",
    }

    def run(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "cpersona_cli", *words], env=environ, cwd=home, capture_output=True, text=True
        )
        if done.returncode:
            raise SystemExit(f"{words}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def export(file: Path) -> None:
        run("export", str(file), "--all-agents", "--embeddings", "--for", "reference")

    target = home / "back.jsonl"
    began = time.monotonic()
    try:
        said = run("import", str(file))
        export(target)
        spent = time.monotonic() - began
        after = taken(home / "back.db", target)
        again = json.loads(run("import", str(home / "back.db"), "--json").splitlines()[0])
        if any(again[name] for name in ("imported_memories", "imported_episodes")):
            raise SystemExit(f"rows that came back are taken for new ones: {again}")
        run("daemon", "stop")
        environ["CPERSONA_DB_PATH"] = str(home / "second.db")
        run("import", str(home / "back.db"))
        export(home / "second.jsonl")
    finally:
        run("daemon", "stop")
    if _without_header(target) != _without_header(home / "second.jsonl"):
        raise SystemExit("what came back is exported otherwise than what went out")
    print(
        f"`cpersona import {file.name}`, and out again in {spent:.1f} s:\n\n    " + said.strip().replace("\n", "\n    ")
    )
    print()
    return after


def taken(path: Path, file: Path) -> sqlite3.Connection:
    """Return a new store of the reference that took a file in."""
    after = kit.create(path)
    with open(file, encoding="utf-8") as handle:
        refused = files.take(after, [json.loads(line) for line in handle])
    if refused:
        raise SystemExit(f"the reference refuses {len(refused)} lines: {refused[0]}")
    return after


def _without_header(file: Path) -> list[bytes]:
    return file.read_bytes().splitlines()[1:]


def printed(tables: dict[str, list[tuple[str, str, int, int, str]]]) -> bool:
    """Print the table of fields and tell whether all are equal."""
    print(f"| table | field | rows | {' | '.join(f'equal, by its {way}' for way in tables)} | |")
    print(f"|---|---|---|{'---|' * len(tables)}---|")
    sound, last = True, ""
    for rows in zip(*tables.values(), strict=True):
        table, field, count, *_ = rows[0]
        if table != last and table in ("memories", "episodes", "profiles", "entities", "relations"):
            print(f"| {table} | id | {count} | {' | '.join('new' for _ in rows)} | {NUMBERED} |")
        last = table
        differs = next((row[4] for row in rows if row[2] != row[3]), "")
        sound = sound and not differs
        equal = " | ".join("all" if row[2] == row[3] else str(row[3]) for row in rows)
        word = f"differs: {differs}" if differs else ODD.get(field, "")
        print(f"| {table} | {field} | {count} | {equal} | {word} |")
    for table, why in NOT_HERE.items():
        print(f"| {table} | | | {' | '.join('left out' for _ in tables)} | why not: {why} |")
    return sound


if __name__ == "__main__":
    main()
