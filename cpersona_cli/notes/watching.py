"""Waiting until something changes in directories of notes: told by the system where `watchfiles` is installed, else by
looking.

Contract: import.watch.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .walking import is_note, walk

LOOK_SECONDS = 2.0  # between two looks
SETTLE_SECONDS = 0.2  # without a change, before a burst of them counts as one
LONGEST_BURST = 2.0  # what goes on changing is not waited for any longer
_TICK_MS = 500  # how soon it is seen that a directory was put in another's place
_LOOK_TICKS = 120

Picture = dict[str, tuple[int, ...]]


def told() -> bool:
    """Tell whether the system can be asked to say what changes."""
    try:
        import watchfiles  # noqa: F401
    except ImportError:
        return False
    return True


def by_looking(directories: Sequence[str], seconds: float) -> Iterator[bool]:
    """Yield True once there may be something new, and False where a look found nothing; at once the first time."""
    seen = picture(directories)
    yield True
    while True:
        time.sleep(seconds)
        now = picture(directories)
        if now == seen:
            yield False
            continue
        until = time.monotonic() + LONGEST_BURST
        while now != seen and time.monotonic() < until:
            seen = now
            time.sleep(min(seconds, SETTLE_SECONDS))
            now = picture(directories)
        seen = now
        yield True


def by_being_told(directories: Sequence[str], lost: Callable[[], bool]) -> Iterator[bool]:
    """Yield the same as the system tells it; directories that are not there are looked for.

    ``lost()`` tells whether whoever was told found one of them gone. One that was renamed and came back before anybody
    looked is watched no longer, and nothing says so: once a minute there may always be something new.
    """
    while True:
        places = _places(directories)
        watched = [os.path.abspath(directory) for directory in directories if os.path.isdir(directory)]
        yield True
        try:
            # What happens until it watches is seen by the look after its first answer.
            for tick, changes in enumerate(_changes(watched)):
                yield bool(changes) or tick % _LOOK_TICKS == 0
                if lost() or _places(directories) != places or any(path in watched for _, path in changes):
                    break
        except (FileNotFoundError, NotADirectoryError):
            pass  # it went between two looks


def _changes(directories: Sequence[str]) -> Iterator[set[tuple[Any, str]]]:
    """Yield what changed, nothing every second in which nothing did."""
    import watchfiles

    if directories:
        yield from watchfiles.watch(
            *directories,
            watch_filter=lambda change, path: path in directories or _matters(path),
            debounce=int(LONGEST_BURST * 1000),
            step=int(SETTLE_SECONDS * 1000),
            rust_timeout=_TICK_MS,
            yield_on_timeout=True,
            ignore_permission_denied=True,
        )
    while True:  # there is none to watch
        time.sleep(_TICK_MS / 1000)
        yield set()


def _matters(path: str) -> bool:
    """Tell whether a change may be one of notes: of one, of what git ignores, or of a directory."""
    name = os.path.basename(path)
    return is_note(name) or name == ".gitignore" or "." not in name or os.path.isdir(path)


def _places(directories: Sequence[str]) -> list[tuple[int, int] | None]:
    """Return which directories stand there, by number: another of the same name has another one."""
    found: list[tuple[int, int] | None] = []
    for directory in directories:
        try:
            stat = os.stat(directory)
        except OSError:
            found.append(None)
        else:
            found.append((stat.st_dev, stat.st_ino))
    return found


def picture(directories: Sequence[str]) -> Picture:
    """Return what notes there are, and of each what changes with it."""
    seen: Picture = {}
    for directory in directories:
        try:
            found = walk(directory)
        except OSError:
            continue
        for path in found.files:
            whole = os.path.join(directory, path)
            try:
                stat = os.stat(whole, follow_symlinks=False)
            except OSError:
                continue
            seen[whole] = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
    return seen
