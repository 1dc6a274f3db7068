"""Which commits touched a file, or a line of it: what git says, newest first.

Contract: git.blame.
"""

from __future__ import annotations

import os

from .commits import Git, GitFailed, Repository

_ONLY_IDS = ("--format=%H", "--no-color", "--no-show-signature", "--no-patch")
_DIGITS = 9  # of a line; no file has more


def place_of(text: str) -> tuple[str, int | None]:
    """Return the file and the line that FILE, FILE:LINE or FILE:LINE:COLUMN names; the line is None where none is.

    A file whose name ends so is the file.
    """
    path, line = text, None
    while not os.path.lexists(path):
        before, _, number = path.rpartition(":")
        if not before or not _is_number(number):
            break
        path, line = before, int(number)
    return path, line


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS


def commits_of(repository: Repository, path: str, line: int | None) -> list[str]:
    """Return the ids of the commits that touched a file or a line of it, through its renames.

    The line is counted in the file as it lies here, changed or not. A directory is all that is in it. Raises GitFailed,
    which says what is wrong with the place.
    """
    found = _of_file(repository.git, path) if line is None else _of_line(repository.git, path, line)
    if not found:
        where = "is not committed yet" if os.path.lexists(path) else "was touched by no commit that led to HEAD"
        raise GitFailed(f"{path} {where}; give a file as its path from here")
    return found


def _of_file(git: Git, path: str) -> list[str]:
    follow = () if os.path.isdir(path) else ("--follow",)
    return git.line("--literal-pathspecs", "log", *_ONLY_IDS, *follow, "HEAD", "--", path).split()


def _of_line(git: Git, path: str, line: int) -> list[str]:
    if not os.path.isfile(path):
        raise GitFailed(f"{path} is no file here, so it has no line {line}; without the line its history may be found")
    if line < 1:
        raise GitFailed(f"{path} has no line {line}; lines count from 1")
    # Where the line stood in the commit that it is from: history knows it by that, and not by where it stands now.
    said = git.line("-c", "core.quotePath=false", "blame", "--porcelain", f"-L{line},{line}", "--", path).split("\n")
    commit, there = said[0].split()[:2]
    if not commit.strip("0"):
        raise GitFailed(f"line {line} of {path} is not committed yet")
    then = _plain(next(row for row in said if row.startswith("filename ")).removeprefix("filename "))
    top = Git(git.line("rev-parse", "--show-toplevel"))
    return top.line("log", *_ONLY_IDS, f"-L{there},{there}:{then}", commit).split()


def _plain(name: str) -> str:
    """Return a name as it is that git quotes as C does, for a quote, a backslash or a control character in it."""
    if not name.startswith('"'):
        return name
    escaped = name[1:-1].encode("utf-8", "surrogateescape")
    return escaped.decode("unicode_escape").encode("latin-1").decode("utf-8", "surrogateescape")
