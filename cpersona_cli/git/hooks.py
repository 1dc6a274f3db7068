"""Git's hook files: a marked block in a script that is there already, and everything as it was when the block goes.

A hook that is a shell script gets the block after its first line, so that neither an `exit` nor an `exec`
of its own keeps ours from running. One that is anything else (a program, a link, a script that is not
executable) is moved aside whole and run by ours.

Contract: git.hooks.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import sys

from cpersona_daemon.shared import files

from ..exits import Stop
from .commits import Repository

# git commit, cherry-pick and revert run the first; git merge and a pull that merges, git am, and what rewrites run one
# of their own each. A branch that a fast-forward moves on brings no commit that was made here.
NAMES = ("post-commit", "post-merge", "post-applypatch", "post-rewrite")
_LARGEST_HOOK = 1 << 20
ASIDE = "cpersona-aside"  # where hooks stand that ours runs; their names stay what they were
_BEGIN, _END = "# >>> cpersona git hook; `cpersona git uninstall` removes it >>>\n", "# <<< cpersona git hook <<<\n"
_FOR = "# for "
_FIRST = "#!/bin/sh\n"
_SHELL = re.compile(r"#!\s*\S*(?:/|/env\s+(?:-S\s+)?)(?:sh|bash|dash|ksh|zsh)(?:\s|$)")
_BLOCK = re.compile(re.escape(_BEGIN) + ".*?" + re.escape(_END), re.DOTALL)


def directory(repository: Repository) -> str:
    """Return where git looks for this repository's hooks: core.hooksPath, else in the common git directory."""
    git = repository.git
    inside = git.line("rev-parse", "--is-inside-work-tree") == "true"
    base = git.line("rev-parse", "--show-toplevel") if inside else repository.git_dir
    # A relative core.hooksPath is meant from where hooks run, which is the top of the work tree.
    return os.path.realpath(os.path.join(base, type(git)(base).line("rev-parse", "--git-path", "hooks")))


def command(then: str = "main(sys.argv[1:])") -> list[str]:
    """Return the words that run our hook, by absolute paths: no PATH, no environment and no site-packages are needed.

    ``then`` is what is done once it is loaded.
    """
    import cpersona_daemon

    roots: list[str] = []
    for module in (sys.modules["cpersona_cli"], cpersona_daemon):
        root = os.path.dirname(os.path.dirname(os.path.abspath(str(module.__file__))))
        if root not in roots:
            roots.append(root)
    # Where the package has moved (an upgrade of Python), the interpreter's own way to find it is the second try.
    code = (
        f"import sys; sys.path[:0] = {roots!r}\ntry:\n try: from cpersona_cli.githook import main\n"
        " except ImportError:\n  import site; site.main()\n  try: from cpersona_cli.githook import main\n"
        "  except ImportError: sys.exit('cpersona: this commit is not noted: the program is gone; `cpersona git "
        "install` renews the hook')\n"
        f" {then}\n"
        "except KeyboardInterrupt: sys.exit('cpersona: this commit is not noted (interrupted); `cpersona git "
        "backfill` catches up')"
    )
    return [sys.executable, "-I", "-S", "-c", code]


def install(repository: Repository) -> tuple[str, dict[str, str]]:
    """Put the block into every hook and return (directory, what was done to each: added, renewed, unchanged)."""
    where = directory(repository)
    os.makedirs(where, exist_ok=True)
    return where, {name: _install(where, name, repository.common) for name in NAMES}


def uninstall(repository: Repository) -> tuple[str, dict[str, str]]:
    """Take the block out of every hook; return (directory, what was done to each: removed, kept for others, absent)."""
    where = directory(repository)
    return where, {name: _uninstall(where, name, repository.common) for name in NAMES}


def state(repository: Repository) -> tuple[str, dict[str, str]]:
    """Return (directory, the state of each hook: installed, outdated, not executable, absent)."""
    where = directory(repository)
    return where, {name: _state(where, name, repository.common) for name in NAMES}


def _state(where: str, name: str, common: str) -> str:
    path = os.path.join(where, name)
    block = _BLOCK.search(_text(path) or "")
    if block is None or common not in _users(block.group()):
        return "absent"
    if not os.access(path, os.X_OK):
        return "not executable"
    return "installed" if _program(block.group()) == _program(_block(name, [], True, False)) else "outdated"


def _install(where: str, name: str, common: str) -> str:
    path, aside = os.path.join(where, name), os.path.join(where, ASIDE, name)
    text = _text(path)
    found = _BLOCK.search(text or "")
    if text is not None and found is not None:
        users = _users(found.group())
        follows = text.replace(found.group(), "").strip() not in ("", _FIRST.strip())
        fresh = _block(name, sorted({*users, common}), follows, os.path.lexists(aside))
        if fresh == found.group() and os.access(path, os.X_OK):
            return "unchanged"
        _write(path, text.replace(found.group(), fresh), os.stat(path).st_mode)
        return "renewed"
    if os.path.lexists(path) and not _is_script(path, text):
        _move_aside(path, aside)
        text = None
    if text is None:
        _write(path, _FIRST + _block(name, [common], False, os.path.lexists(aside)), 0o755)
    else:
        first, end, rest = text.partition("\n")
        _write(path, first + "\n" + _block(name, [common], True, False) + rest, os.stat(path).st_mode)
    return "added"


def _uninstall(where: str, name: str, common: str) -> str:
    path, aside = os.path.join(where, name), os.path.join(where, ASIDE, name)
    text = _text(path)
    found = _BLOCK.search(text or "")
    if text is None or found is None:
        return "absent"
    others = [user for user in _users(found.group()) if user != common and os.path.isdir(user)]
    follows = text.replace(found.group(), "")
    if others:
        bare = follows.strip() in ("", _FIRST.strip())
        _write(
            path,
            text.replace(found.group(), _block(name, others, not bare, os.path.lexists(aside))),
            os.stat(path).st_mode,
        )
        return "kept for others"
    if follows.strip() not in ("", _FIRST.strip()):
        if os.path.lexists(aside):
            raise Stop(
                f"git uninstall: {path} was changed by another program; merge it with {aside} by hand, then uninstall "
                "again"
            )
        _write(path, follows, os.stat(path).st_mode)
        return "removed"
    if os.path.lexists(aside):
        _move_back(aside, path)
    else:
        os.unlink(path)
    return "removed"


def _block(name: str, users: list[str], follows: bool, aside: bool) -> str:
    """Return the block of one hook.

    ``follows``: a script comes behind it; ``aside``: the hook that stood here is run at its end.
    """
    program, *arguments = command()
    run = " ".join(shlex.quote(word) for word in (program, *arguments, name))
    gone = "echo 'cpersona: this commit is not noted: its program is gone; run `cpersona git install` again' >&2"
    lines = [_FOR + user for user in users]
    behind = f'"${{0%/*}}/{ASIDE}/{name}"'
    if name != "post-rewrite":
        told = ' "$1"' if name == "post-merge" else ""
        lines.append(f"if [ -x {shlex.quote(program)} ]; then\n{run}{told} </dev/null || :\nelse {gone}; fi")
    else:
        # Both need to read what git tells on standard input.
        lines.append(
            f"cpersona_lines=$(cat)\nif [ -x {shlex.quote(program)} ]; then\nprintf '%s\\n' \"$cpersona_lines\" | "
            f'{run} "$1" || :\nelse {gone}; fi'
        )
        if follows or aside:
            lines.append("exec <<CPERSONA_LINES\n$cpersona_lines\nCPERSONA_LINES")
    if aside:
        lines.append(f'if [ -x {behind} ]; then exec {behind} "$@"; fi')
    return _BEGIN + "\n".join(lines) + "\n" + _END


def _program(block: str) -> str:
    """Return what a block runs, without whom it is for and what comes behind it."""
    start = block.find("if [ -x ")
    return block[start : block.find("\nelse ", start)]


def _users(block: str) -> list[str]:
    return [line[len(_FOR) :] for line in block.splitlines() if line.startswith(_FOR)]


def _is_script(path: str, text: str | None) -> bool:
    return text is not None and not os.path.islink(path) and os.access(path, os.X_OK) and _SHELL.match(text) is not None


def _text(path: str) -> str | None:
    """Return a hook's text, None where there is none that is text."""
    try:
        return files.read(path, _LARGEST_HOOK, follow=True).decode("utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        return None


def _write(path: str, text: str, mode: int) -> None:
    files.replace(path, text.encode(), stat.S_IMODE(mode) | stat.S_IXUSR)


def _move_aside(path: str, aside: str) -> None:
    if os.path.lexists(aside):
        raise Stop(f"git install: {aside} is in the way of {path}; move one of them away")
    os.makedirs(os.path.dirname(aside), exist_ok=True)
    if os.path.islink(path):
        # A relative link is meant from where it stands, which is now one directory deeper.
        target = os.readlink(path)
        os.symlink(target if os.path.isabs(target) else os.path.join("..", target), aside)
        os.unlink(path)
    else:
        os.rename(path, aside)


def _move_back(aside: str, path: str) -> None:
    if os.path.islink(aside):
        target = os.readlink(aside)
        os.unlink(path)
        os.symlink(target.removeprefix("../"), path)
        os.unlink(aside)
    else:
        os.replace(aside, path)
    try:
        os.rmdir(os.path.dirname(aside))
    except OSError:
        pass  # another hook still stands there
