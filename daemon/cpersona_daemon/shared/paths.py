"""Where everything of one database lives; the same answer in a login shell, under cron and in a hook.

Standard library only: the client reads this module too.

Contract: paths.places, files.private.
"""

import os
import stat
from errno import ENOTDIR

# The C half of hashlib alone, where the interpreter has it: hashlib itself loads OpenSSL, half the cost of a client's
# start.
try:
    from _sha2 import sha256  # type: ignore[import-not-found,unused-ignore]  # in some interpreters
except ImportError:
    try:
        from _sha256 import sha256  # type: ignore[import-not-found,unused-ignore]  # in others
    except ImportError:
        from hashlib import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .settings import Settings

MAX_SOCKET_PATH = 100
SPOOL = ".spool"  # what the name of the directory of queued writes adds to the database's
# The directory of a database: the socket may be there, only files may, or nothing can be written.
_OWN, _NOT_FOR_SOCKETS, _READ_ONLY = "own", "not for sockets", "read-only"


class Places:
    """The files that belong to one database. All paths are absolute.

    ``run`` begins the names of what a running daemon needs: the database's own name, or one in the user's directory in
    /tmp for a database beside which nothing can be written.
    """

    __slots__ = (
        "db",
        "lock",
        "start_lock",
        "daemon_json",
        "calibration",
        "memory_vectors",
        "episode_vectors",
        "memory_passages",
        "episode_passages",
        "spool",
        "socket",
        "log",
    )

    def __init__(self, db: str, socket: str, log: str, run: str | None = None) -> None:
        self.db, self.socket, self.log = db, socket, log
        run = run or db
        self.lock, self.start_lock = run + ".lock", run + ".start.lock"
        self.daemon_json = run + ".daemon.json"
        self.calibration = db + ".calibration.json"
        self.memory_vectors, self.episode_vectors = db + ".memories.vec", db + ".episodes.vec"
        self.memory_passages, self.episode_passages = db + ".memories.passages.vec", db + ".episodes.passages.vec"
        self.spool = db + SPOOL


def places(settings: "Settings", environ: "Mapping[str, str] | None" = None) -> Places:
    """Resolve the database and all that stands beside it, from settings and environment; touches nothing."""
    environ = os.environ if environ is None else environ
    home = environ.get("HOME") or os.path.expanduser("~")
    named = settings.db_path
    if named:
        named = os.path.expanduser(named)
    else:
        named = os.path.join(
            environ.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share"), "cpersona", "cpersona.db"
        )
    db = os.path.realpath(named)
    digest = sha256(os.fsencode(db)).hexdigest()[:16]
    state = environ.get("XDG_STATE_HOME") or os.path.join(home, ".local", "state")
    log = os.path.join(state, "cpersona", f"{os.path.basename(db)}-{digest}.log")
    apart = f"/tmp/cpersona-{os.getuid()}/{digest}"
    folder = _folder_of(db)
    socket = os.path.expanduser(settings.socket) if settings.socket else (db if folder == _OWN else apart) + ".sock"
    if settings.socket or os.path.islink(socket):
        socket = os.path.realpath(socket)  # where it leads to is checked like the place itself
    return Places(db, socket, log, apart if folder == _READ_ONLY else db)


def _folder_of(db: str) -> str:
    """Tell what the database's directory is good for; one that is missing will be made ours."""
    directory = os.path.dirname(db)
    try:
        info = os.stat(directory)
    except (FileNotFoundError, NotADirectoryError):
        private = True
    except OSError:
        return _READ_ONLY  # we may not even look at it
    else:
        if not os.access(directory, os.W_OK | os.X_OK):
            return _READ_ONLY
        private = info.st_uid == os.getuid() and not info.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return _OWN if private and len(os.fsencode(db)) + len(".sock") <= MAX_SOCKET_PATH else _NOT_FOR_SOCKETS


def make_private_directory(directory: str) -> None:
    """Make a directory 0700 where it is missing; one that exists is never changed. Raises OSError."""
    if os.path.isdir(directory):
        return
    try:
        os.makedirs(os.path.dirname(directory) or "/", mode=0o700, exist_ok=True)
        os.makedirs(directory, mode=0o700, exist_ok=True)
    except FileExistsError as error:  # not said of a directory that another process made just now
        raise NotADirectoryError(ENOTDIR, os.strerror(ENOTDIR), error.filename) from None


def check_socket_directory(directory: str) -> str | None:
    """Return why a directory must not hold the socket, or None when it may.

    It may when it is a directory, ours, closed to other writers, and no link.
    """
    info = os.lstat(directory)
    if stat.S_ISLNK(info.st_mode) or not stat.S_ISDIR(info.st_mode):
        return f"{directory} is not a directory"
    if info.st_uid != os.getuid():
        return f"{directory} belongs to another user"
    shared = stat.S_IWGRP | stat.S_IWOTH
    if directory.startswith("/tmp/cpersona-"):
        shared |= stat.S_IRWXG | stat.S_IRWXO
    if info.st_mode & shared:
        return f"others can enter or write to {directory}"
    return None
