"""What makes a process the one daemon of a database: its lock, its socket, and the note beside the database.

Contract: shared/interface.md, "Where things live" and "The daemon's life".
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import stat
import time

from .errors import Busy, SettingsConflict, StorageFailure
from .paths import Places, check_socket_directory, make_private_directory

LOCK_WAIT_SECONDS = 20.0     # what a leaving daemon may need to fold its WAL
_RETRY_SECONDS = 0.02
_PROBE_SECONDS = 2.0


def make_directories(places: Places) -> None:
    """Make the directories of database, log and socket, 0700 where they are missing. Raises StorageFailure, SettingsConflict."""
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
            held = os.open(places.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise StorageFailure(f"the lock file {places.lock} cannot be opened: {error.strerror}") from None
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
            raise Busy(f"another process holds {places.lock} and does not answer; end it and try again")
        time.sleep(_RETRY_SECONDS)


def _raise_if_served(places: Places) -> None:
    note = read_note(places) or {}
    there = note.get("socket")
    # systemd's socket accepts even while the daemon behind it leaves, so it proves nothing.
    if not isinstance(there, str) or note.get("activated") or not answers(there):
        return
    if there == places.socket:
        raise Busy(f"a daemon (pid {note.get('pid')}) serves this database already")
    raise SettingsConflict(f"a daemon (pid {note.get('pid')}) serves this database at {there}; stop it, or set CPERSONA_SOCKET to that path")


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
            return error.errno not in (errno.ECONNREFUSED, errno.ENOENT, errno.ENOTSOCK, errno.EPROTOTYPE, errno.ENOTDIR)
    return True


class OwnSocket:
    """A listening socket's file: who made it, whether it is still ours, and its removal."""

    def __init__(self, path: str, sock: socket.socket, activated: bool):
        self.path, self.sock, self.activated = path, sock, activated
        self._identity = None if activated else self._look()

    @classmethod
    def bind(cls, path: str, mode: int) -> OwnSocket:
        """Bind at ``path`` without listening yet; call only under the database's lock.

        What stands there is removed only if it is a socket that refuses connections. Raises
        SettingsConflict, Busy, StorageFailure.
        """
        try:
            info = os.lstat(path)
        except FileNotFoundError:
            info = None
        except OSError as error:
            raise StorageFailure(f"the socket {path} cannot be looked at: {error.strerror}") from None
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            if info is not None:
                if not stat.S_ISSOCK(info.st_mode):
                    raise SettingsConflict(f"{path} is in the way and is no socket; move it, or set CPERSONA_SOCKET")
                if answers(path):
                    raise Busy(f"another program answers at {path}")
                os.unlink(path)
            sock.bind(path)
            os.chmod(path, mode)
        except OSError as error:
            sock.close()
            reason = error.strerror or str(error)
            raise (SettingsConflict if "too long" in reason else StorageFailure)(f"the socket {path} cannot be made: {reason}") from None
        except BaseException:
            sock.close()
            raise
        return cls(path, sock, activated=False)

    @classmethod
    def from_systemd(cls) -> OwnSocket | None:
        """Return the socket that systemd passed to this process, or None. Its file is systemd's to remove."""
        if os.environ.get("LISTEN_PID") != str(os.getpid()) or os.environ.get("LISTEN_FDS", "0") in ("", "0"):
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
        if self.activated:
            return "ours"
        there = self._look()
        return "gone" if there is None else "ours" if there == self._identity else "taken"

    def remove(self) -> None:
        """Remove the file if it is still ours."""
        if not self.activated and self.state() == "ours":
            os.unlink(self.path)

    def _look(self) -> tuple[int, int] | None:
        try:
            info = os.lstat(self.path)
        except OSError:
            return None
        return info.st_dev, info.st_ino


def read_note(places: Places) -> dict | None:
    """Return what `<db>.daemon.json` says, or None; what it says is a hint, never proof that a daemon lives."""
    try:
        with open(places.daemon_json, "rb") as handle:
            note = json.loads(handle.read(65_536))
    except (OSError, ValueError):
        return None
    return note if isinstance(note, dict) else None


def write_note(places: Places, note: dict) -> None:
    """Write `<db>.daemon.json`, 0600, whole or not at all. Raises StorageFailure."""
    draft = f"{places.daemon_json}.{os.getpid()}.tmp"
    try:
        held = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(held, "wb") as handle:
            handle.write(json.dumps(note).encode() + b"\n")
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(draft, places.daemon_json)
        directory = os.open(os.path.dirname(places.daemon_json), os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise StorageFailure(f"{places.daemon_json} cannot be written: {error.strerror}") from None


def remove_note(places: Places) -> None:
    """Remove `<db>.daemon.json` if this process wrote it."""
    if (read_note(places) or {}).get("pid") == os.getpid():
        try:
            os.unlink(places.daemon_json)
        except OSError:
            pass  # a note that stays misleads nobody: it is never trusted alone
