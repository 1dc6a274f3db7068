"""What makes a process the one daemon of a database: its lock, its socket, and the note beside the database.

Contract: daemon.starts, paths.places.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import grp
import json
import os
import socket
import stat
import time
from collections.abc import Iterator

from ..errors import Busy, SettingsConflict, StorageFailure, of_file
from ..shared import files
from ..shared.holders import holders
from ..shared.paths import Places, check_socket_directory, make_private_directory

LOCK_WAIT_SECONDS = 20.0  # what a leaving daemon may need to fold its WAL
_RETRY_SECONDS = 0.02
_PROBE_SECONDS = 2.0
_NOTE_BYTES = 65_536


def make_directories(places: Places) -> None:
    """Make the directories of database, log and socket, 0700 where they are missing.

    Raises StorageFailure, SettingsConflict.
    """
    for path in (places.db, places.log, places.socket, places.lock):
        try:
            make_private_directory(os.path.dirname(path))
        except OSError as error:
            raise StorageFailure(f"the directory {os.path.dirname(path)} cannot be made: {error.strerror}") from None
    try:
        problem = check_socket_directory(os.path.dirname(places.socket))
        if not problem and os.path.dirname(places.lock) != os.path.dirname(places.db):
            problem = check_socket_directory(os.path.dirname(places.lock))
    except OSError as error:
        problem = f"{os.path.dirname(places.socket)}: {error.strerror}"
    if problem:
        raise SettingsConflict(f"the socket cannot be there: {problem}")


def take_lock(places: Places, wait_seconds: float = LOCK_WAIT_SECONDS) -> int:
    """Return a descriptor that holds the database's lock for as long as it is open.

    A daemon that is leaving is waited for; one that serves makes this raise Busy, or SettingsConflict
    when it serves at another socket than ours. Raises StorageFailure where no lock file can be made.
    """
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            held = files.opened(places.lock, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise of_file(error, f"the lock file {places.lock} cannot be opened") from None
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(held)
        except OSError as error:
            os.close(held)
            raise StorageFailure(f"{places.lock} cannot be locked: {error.strerror}") from None
        else:
            if same_file(places.lock, held):
                return held
            os.close(held)  # somebody removed the file between opening and locking it
            continue
        _raise_if_served(places)
        if time.monotonic() > deadline:
            raise Busy(f"process {_holder(places)} holds {places.lock} and does not answer; end it and try again")
        time.sleep(_RETRY_SECONDS)


@contextlib.contextmanager
def held(places: Places) -> Iterator[str]:
    """Hold the place of a database that nobody serves; the block is given what the names of its drafts begin with.

    What a killed process left of its drafts is removed first. Raises what ``take_lock`` raises.
    """
    lock = take_lock(places)
    try:
        remove_drafts(places)
        yield f"{draft_of(places)}{os.getpid()}-"
    finally:
        os.close(lock)


def draft_of(places: Places) -> str:
    """Return what the names of a restore's drafts beside a database begin with."""
    return places.db + ".restoring-"


def remove_drafts(places: Places) -> None:
    """Remove the drafts of a restore that was killed. Raises nothing.

    The caller holds the database's lock, so that no other is at work.
    """
    directory, first = os.path.split(draft_of(places))
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith(first):
                with contextlib.suppress(OSError):  # a directory is none of ours
                    os.unlink(entry.path)


def _raise_if_served(places: Places) -> None:
    note = read_note(places) or {}
    if note.get("activated") or _passed_by_systemd():
        return  # systemd's socket accepts even while the daemon behind it leaves, so it proves nothing
    there = note.get("socket")
    if isinstance(there, str) and there != places.socket and answers(there):
        raise SettingsConflict(
            f"a daemon (pid {_holder(places)}) serves this database at {there}; "
            "stop it, or set CPERSONA_SOCKET to that path"
        )
    if answers(places.socket):
        raise Busy(f"a daemon (pid {_holder(places)}) serves this database already")


def _holder(places: Places) -> str:
    """Return the id of the process that holds the lock, as far as the note and the system tell."""
    others = [pid for pid, _ in holders(places.lock)]
    noted = (read_note(places) or {}).get("pid")
    return str(noted if noted in others or not others and noted else others[0] if len(others) == 1 else "unknown")


def _passed_by_systemd() -> bool:
    return os.environ.get("LISTEN_PID") == str(os.getpid()) and os.environ.get("LISTEN_FDS", "0") not in ("", "0")


def same_file(path: str, descriptor: int) -> bool:
    """Tell whether a path still names the file that a descriptor has open."""
    try:
        there, here = os.stat(path), os.fstat(descriptor)
    except OSError:
        return False
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


def answers(path: str) -> bool:
    """Tell whether somebody accepts connections at a socket path."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PROBE_SECONDS)
        try:
            probe.connect(path)
        except OSError as error:
            # A full queue, or one that we may not enter, has somebody behind it.
            return error.errno not in (
                errno.ECONNREFUSED,
                errno.ENOENT,
                errno.ENOTSOCK,
                errno.EPROTOTYPE,
                errno.ENOTDIR,
            )
    return True


def check_place(path: str) -> bool:
    """Tell whether a socket stands at a path.

    Raises SettingsConflict where something else does, StorageFailure where that cannot be told.
    """
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StorageFailure(f"the socket {path} cannot be looked at: {error.strerror}") from None
    if not stat.S_ISSOCK(mode):
        what = files.kind(path) or "a file"
        raise SettingsConflict(
            f"{what} stands at {path}, where the daemon's socket belongs; "
            "move it, or set CPERSONA_SOCKET to another path"
        )
    return True


class OwnSocket:
    """A listening socket's file: who made it, whether it is still ours, and its removal."""

    def __init__(self, path: str, sock: socket.socket, activated: bool) -> None:
        self.path, self.sock, self.activated = path, sock, activated
        self._identity = self._look()

    @classmethod
    def bind(cls, path: str, mode: int, group: str = "") -> OwnSocket:
        """Bind at ``path`` without listening yet; call only under the database's lock.

        What stands there is removed only if it is a socket that refuses connections. With a ``group``, by name or
        number, the file is that group's. Raises SettingsConflict, Busy, StorageFailure.
        """
        gid = _group_id(group) if group else -1
        there = check_place(path)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            if there:
                if answers(path):
                    raise Busy(f"another program answers at {path}")
                os.unlink(path)
            sock.bind(path)
            if group:
                _give(path, gid, group)
            os.chmod(path, mode)
        except OSError as error:
            sock.close()
            reason = error.strerror or str(error)
            raise (SettingsConflict if "too long" in reason else StorageFailure)(
                f"the socket {path} cannot be made: {reason}"
            ) from None
        except BaseException:
            sock.close()
            raise
        return cls(path, sock, activated=False)

    @classmethod
    def from_systemd(cls) -> OwnSocket | None:
        """Return the socket that systemd passed to this process, or None. Its file is systemd's to remove."""
        if not _passed_by_systemd():
            return None
        for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"):
            os.environ.pop(name, None)
        sock = socket.socket(fileno=3)
        if sock.family != socket.AF_UNIX or sock.type != socket.SOCK_STREAM:
            raise SettingsConflict("systemd passed a socket that is no unix stream socket")
        os.set_inheritable(3, False)
        return cls(sock.getsockname(), sock, activated=True)

    def state(self) -> str:
        """Return "ours", "gone" when nothing stands at the path, or "taken" when somebody else's file does."""
        there = self._look()
        if self._identity is None:
            return "ours"  # systemd's, in a place that cannot be looked at
        return "gone" if there is None else "ours" if there == self._identity else "taken"

    def remove(self) -> None:
        """Remove the file if it is still ours, wherever a link leads to it; the link stays."""
        if not self.activated and self.state() == "ours":
            os.unlink(os.path.realpath(self.path))

    def _look(self) -> tuple[int, int] | None:
        try:
            info = os.lstat(self.path)
            if stat.S_ISLNK(info.st_mode):
                with contextlib.suppress(OSError):
                    info = os.stat(self.path)  # moved, and a link left: whoever follows it finds us
        except (OSError, ValueError):  # ValueError: a name of the kernel's, and no path
            return None
        return info.st_dev, info.st_ino


def _group_id(group: str) -> int:
    """Return the id of a group that a setting names. Raises SettingsConflict."""
    if group.isascii() and group.isdigit():
        return int(group)
    try:
        return grp.getgrnam(group).gr_gid
    except (KeyError, ValueError):
        raise SettingsConflict(f"CPERSONA_SOCKET_GROUP={group}: this machine knows no such group") from None


def _give(path: str, gid: int, group: str) -> None:
    try:
        os.chown(path, -1, gid)
    except (OSError, OverflowError) as error:
        os.unlink(path)
        reason = getattr(error, "strerror", None) or str(error)
        raise SettingsConflict(
            f"CPERSONA_SOCKET_GROUP={group}: the socket cannot be given to it ({reason}); the daemon's user must be a "
            "member of that group"
        ) from None


def read_note(places: Places) -> dict | None:
    """Return what `<db>.daemon.json` says, or None; what it says is a hint, never proof that a daemon lives."""
    try:
        note = json.loads(files.read(places.daemon_json, _NOTE_BYTES))
    except (OSError, ValueError):
        return None
    return note if isinstance(note, dict) else None


def write_note(places: Places, note: dict) -> str | None:
    """Write `<db>.daemon.json`, 0600, whole or not at all, and return None, or what went wrong.

    It only helps others to find us, so nothing that is wrong with it is a failure. What stands in its place and is no
    file gets another name, and a note that cannot be replaced goes: it would speak of a daemon that is gone.
    """
    try:
        aside = files.put(places.daemon_json, json.dumps(note).encode() + b"\n")
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(places.daemon_json)
        return f"{places.daemon_json}, which says where this daemon is, cannot be written: {error.strerror}"
    if aside is None:
        return None
    stood = f"{files.kind(aside)} stood at {places.daemon_json}"
    return f"{stood}, where this daemon writes where it is; it was moved to {aside}"


def remove_note(places: Places) -> None:
    """Remove `<db>.daemon.json` if this process wrote it."""
    if (read_note(places) or {}).get("pid") == os.getpid():
        try:
            os.unlink(places.daemon_json)
        except OSError:
            pass  # a note that stays misleads nobody: it is never trusted alone
