"""Opening, reading and replacing files of our own, whatever else was put in their place.

A link is not followed: what it leads to is somebody else's. A named pipe or a device is not waited for, and nothing but
a regular file is read or written. What is replaced is replaced whole and durably, or not at all. Standard library only:
the client reads this module too.

Contract: files.durable.
"""

import errno
import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

    Path = str | bytes | os.PathLike[str]

_GUARDED = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_FIRST, _LAST = ".cpersona-", ".tmp"  # what the name of a temporary file begins and ends with
_STALE_SECONDS = 3600
_BUFFER = 1 << 17
_NAMES = {
    stat.S_IFDIR: "a directory",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
}


class InTheWay(OSError):
    """Something that is no regular file stands where one belongs; ``strerror`` says what it is and what to do."""


def opened(
    path: "Path", flags: int = os.O_RDONLY, mode: int = 0o600, follow: bool = False, directory: int | None = None
) -> int:
    """Return a descriptor of a regular file; O_CREAT in ``flags`` makes it with ``mode``. Raises InTheWay, OSError.

    ``follow`` is for a file that a person named, who may name a link. ``path`` is relative to the descriptor
    ``directory``, where there is one.
    """
    flags |= _GUARDED if follow else _GUARDED | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags, mode, dir_fd=directory)
    except OSError as error:
        other = kind(path, follow, directory)
        if other is None:
            raise
        raise _in_the_way(error.errno, other, path) from None
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise _in_the_way(errno.EINVAL, _named(mode), path)
    return descriptor


def read(path: "Path", most: int, follow: bool = False, directory: int | None = None) -> bytes:
    """Return at most ``most`` bytes of a regular file. Raises InTheWay, OSError."""
    with open(opened(path, follow=follow, directory=directory), "rb") as handle:
        return handle.read(most)


class Replacing:
    """A file that takes its name when the ``with`` block ends: whole, on disk, its name durable; or nothing changes.

    The block is given a binary handle; ``draft`` is the path that the file has meanwhile. Whatever ends it early, a
    full disk too, leaves neither a change nor a temporary file. ``mode`` holds from the first byte on. Raises InTheWay
    where a directory stands, OSError.
    """

    def __init__(self, path: str, mode: int = 0o600, directory: int | None = None) -> None:
        self._path, self._mode, self._given = path, mode, directory
        self._temporary = _FIRST + os.urandom(8).hex() + _LAST

    def __enter__(self) -> "BinaryIO":
        above, self._name = os.path.split(self._path)
        self.draft = os.path.join(above, self._temporary)
        self._folder = os.open(above or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._given)
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self._temporary, flags, self._mode & 0o600, dir_fd=self._folder)
            try:
                os.fchmod(descriptor, self._mode)  # whatever the umask takes away
                self._handle = open(descriptor, "w+b", buffering=_BUFFER)
            except BaseException:
                os.close(descriptor)
                os.unlink(self._temporary, dir_fd=self._folder)
                raise
        except BaseException:
            os.close(self._folder)
            raise
        return self._handle

    def __exit__(self, thrown: "type[BaseException] | None", error: object, trace: object) -> None:
        try:
            if thrown is None:
                self._place()
            else:
                self._give_up()
        finally:
            os.close(self._folder)

    def _place(self) -> None:
        try:
            self._handle.flush()
            os.fsync(self._handle.fileno())
            self._handle.close()
            os.replace(self._temporary, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except IsADirectoryError as error:
            self._give_up()
            other = kind(self._name, directory=self._folder)
            if other is None:
                raise
            raise _in_the_way(error.errno, other, self._path) from None
        except BaseException:
            self._give_up()
            raise
        os.fsync(self._folder)

    def _give_up(self) -> None:
        try:
            self._handle.close()
        except OSError:
            pass  # the disk is as full as it was; the failure that is told came before
        finally:
            os.unlink(self._temporary, dir_fd=self._folder)


def replace(path: str, data: bytes, mode: int = 0o600, directory: int | None = None) -> None:
    """Put a file in place whole and durably, or change nothing; it is private unless ``mode`` says otherwise.

    Raises InTheWay, OSError.
    """
    with Replacing(path, mode, directory) as handle:
        handle.write(data)


def put(path: str, data: bytes) -> str | None:
    """Put a private file in place like ``replace``; what stands there and is no regular file gets another name.

    Returns that name, None where nothing was in the way. Raises OSError.
    """
    aside = make_way(path)
    replace(path, data)
    return aside


def sync(directory: str) -> None:
    """Make durable what was made, renamed or removed in a directory. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_way(path: str) -> str | None:
    """Give what is no regular file at a path another name, and return that; None where nothing is in the way.

    Raises OSError.
    """
    return None if kind(path) is None else set_aside(path)


def set_aside(path: str) -> str:
    """Give what stands at a path another name beside it, and return that. Raises OSError."""
    number = 1
    while os.path.lexists(aside := f"{path}.aside-{number}"):
        number += 1
    os.rename(path, aside)
    return aside


def tidy(directory: str) -> None:
    """Remove the temporary files that killed processes left in a directory an hour ago or longer. Raises OSError."""
    with os.scandir(directory) as entries:
        for entry in entries:
            if not (entry.name.startswith(_FIRST) and entry.name.endswith(_LAST)):
                continue
            try:
                info = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(info.st_mode) and time.time() - info.st_mtime > _STALE_SECONDS:
                    os.unlink(entry.path)
            except OSError:
                pass  # gone by itself, or another user's


def kind(path: "Path", follow: bool = False, directory: int | None = None) -> str | None:
    """Return what stands at a path when that is no regular file ("a directory", "a named pipe" …), else None."""
    try:
        mode = os.stat(path, dir_fd=directory, follow_symlinks=follow).st_mode
    except OSError:
        return None
    return None if stat.S_ISREG(mode) else _named(mode)


def _named(mode: int) -> str:
    return _NAMES.get(stat.S_IFMT(mode), "a device")


def _in_the_way(number: int | None, what: str, path: "Path") -> InTheWay:
    return InTheWay(number, f"{what} stands there, where a file belongs; move it away", path)
