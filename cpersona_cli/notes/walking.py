"""Which files of a directory are notes: Markdown, as git or a look at the names says what belongs there.

Contract: import.walk.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from ..git.commits import Git, GitFailed

SUFFIXES = (".md", ".markdown", ".mdx")
# What git would be told to ignore, where no git is asked: packages of others, and what is made.
_OF_OTHERS = frozenset({"node_modules", "bower_components", "jspm_packages", "site-packages", "__pycache__"})
_ENVIRONMENT = "pyvenv.cfg"
# A hook's git is told by these which repository is meant; the directory says it here.
_OF_A_HOOK = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY")


@dataclass
class Found:
    """The notes of a directory, as paths below it between slashes, sorted; what could not be looked into, with why; and
    how many links lead somewhere and were not followed.
    """

    files: list[str] = field(default_factory=list)
    unread: dict[str, str] = field(default_factory=dict)
    links: int = 0


def is_note(name: str) -> bool:
    """Tell whether a file's name says that it is Markdown."""
    return name.lower().endswith(SUFFIXES)


def walk(root: str) -> Found:
    """Return the notes below a directory. Raises OSError where that cannot be read itself.

    In a git work tree git says which files are there and not ignored, those that it does not know yet included; a
    directory that it ignores as a whole was named by whoever asks, and is read. Elsewhere hidden files and directories,
    virtual environments and other people's packages are passed over. No link is followed: what it leads to in the
    directory is read there.
    """
    found = Found()
    os.scandir(root).close()
    if not (_in_work_tree(root) and _listed_by_git(root, "", found)):
        _listed(root, "", found)
    found.files = sorted(set(found.files))
    return found


def _in_work_tree(path: str) -> bool:
    path = os.path.realpath(path)
    while not os.path.exists(os.path.join(path, ".git")):
        path, below = os.path.dirname(path), path
        if path == below:
            return False
    return True


def _listed_by_git(root: str, below: str, found: Found) -> bool:
    """Add what git lists of a directory; false where it ignores all of it, or cannot say."""
    where = os.path.realpath(os.path.join(root, below))
    try:
        listed = b"".join(_git(where).output("ls-files", "-co", "--exclude-standard", "-z")).split(b"\0")
    except GitFailed:
        return False
    if listed == [b""] and _ignored(where):
        return False
    for name in map(os.fsdecode, listed):
        path = below + name.rstrip("/")
        whole = os.path.join(root, path)
        if is_note(path):
            _add(whole, path, found)
        elif name and os.path.isdir(whole) and not os.path.islink(whole):
            _repository(root, f"{path}/", found)
    return True


def _repository(root: str, below: str, found: Found) -> None:
    """Add the notes of a repository that lies in another one's work tree."""
    if not _listed_by_git(root, below, found):
        _listed(root, below, found)


def _git(where: str) -> Git:
    return Git(where, {name: value for name, value in os.environ.items() if name not in _OF_A_HOOK})


def _ignored(where: str) -> bool:
    """Tell whether git ignores a directory itself, and not just what is in it."""
    above, name = os.path.split(where)
    try:
        _git(above).line("check-ignore", "--", name)
    except GitFailed:
        return False
    return True


def _add(whole: str, path: str, found: Found) -> None:
    """Add a file that was listed, unless it is a link or is not there any more."""
    if os.path.islink(whole):
        found.links += 1
    elif os.path.lexists(whole) and not os.path.isdir(whole):
        found.files.append(path)


def _listed(root: str, below: str, found: Found) -> None:
    """Add what the names say of a directory and what is below it."""
    waiting = [below]
    while waiting:
        below = waiting.pop()
        try:
            with os.scandir(os.path.join(root, below)) as entries:
                inside = {entry.name: entry for entry in sorted(entries, key=lambda entry: entry.name)}
        except OSError as error:
            found.unread[below] = error.strerror or str(error)
            continue
        if below and (_ENVIRONMENT in inside or (".git" in inside and _listed_by_git(root, below, found))):
            continue
        for name, entry in inside.items():
            if not (name.startswith(".") or name in _OF_OTHERS):
                waiting += _entry(entry, below + name, found)


def _entry(entry: os.DirEntry[str], path: str, found: Found) -> list[str]:
    """Add what an entry is, and return the directory that it is, if it is one."""
    if entry.is_symlink():
        found.links += is_note(entry.name) or os.path.isdir(entry.path)  # false where links lead in a circle
    elif entry.is_dir(follow_symlinks=False):
        return [f"{path}/"]
    elif is_note(entry.name):
        found.files.append(path)
    return []
