"""Looking at the installation itself, when perhaps no daemon can start: one finding a check, with what to do about it.

Every check stands alone and imports what it needs by itself, so that a missing package is a finding and not a
traceback. Nothing is written, started or repaired.

Contract: health.doctor, paths.places.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from ..shared import files, header
from ..shared.paths import MAX_SOCKET_PATH, Places, check_socket_directory, places
from ..shared.settings import Settings, load
from .findings import FAIL, OK, WARN, Finding

PACKAGE = "cpersona-cli"
LEAST_PYTHON, LEAST_SQLITE = (3, 11), (3, 43)
LEAST_FREE_BYTES = 200 * 1024 * 1024
LONGEST_SOCKET = 103  # what the narrowest system (macOS) takes
REINSTALL = f"reinstall {PACKAGE}"


def python(settings: Settings, where: Places) -> Iterator[Finding]:
    """The interpreter is new enough."""
    version = ".".join(map(str, sys.version_info[:3]))
    fine = sys.version_info[:2] >= LEAST_PYTHON
    yield (
        OK if fine else FAIL,
        f"Python {version} at {sys.executable}",
        "" if fine else "install Python 3.11 or later and cpersona-cli with it",
    )


def packages(settings: Settings, where: Places) -> Iterator[Finding]:
    """Every package that the installation asks for is there in a version that it takes."""
    from importlib import metadata

    try:
        asked = metadata.requires(PACKAGE) or []
        yield OK, f"{PACKAGE} {metadata.version(PACKAGE)}", ""
    except metadata.PackageNotFoundError:
        yield FAIL, f"the package {PACKAGE} is not installed in {sys.prefix}", REINSTALL
        return
    for line in asked:
        rule, _, marker = line.partition(";")
        if "extra" in marker:
            continue
        name = re.split(r"[^A-Za-z0-9._-]", rule.strip())[0]
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            if not marker:
                yield FAIL, f"the package {name} is missing", f"{REINSTALL}, or `python -m pip install {name}`"
            continue
        wrong = next(
            (spec for spec in re.findall(r"(?:[<>=!]=|[<>])\s*[0-9][0-9.]*", rule) if not _fits(version, spec)), None
        )
        if wrong:
            yield (
                FAIL,
                f"{name} {version} is installed, {rule.strip()} is asked for",
                f"`python -m pip install '{rule.strip()}'`",
            )
        else:
            yield OK, f"{name} {version}", ""


def _fits(version: str, spec: str) -> bool:
    asked = spec.lstrip("<>=!")
    operator = spec[: len(spec) - len(asked)]
    numbers = [[int(part) for part in re.findall(r"\d+", text)[:4]] for text in (version.split("+")[0], asked)]
    width = max(map(len, numbers))
    have, want = (list_ + [0] * (width - len(list_)) for list_ in numbers)
    return {
        ">=": have >= want,
        "<=": have <= want,
        "==": have == want,
        "!=": have != want,
        "<": have < want,
        ">": have > want,
    }[operator]


def sqlite(settings: Settings, where: Places) -> Iterator[Finding]:
    """SQLite is new enough and has the full-text search that the word index needs."""
    import apsw

    version = apsw.sqlite_lib_version()
    if tuple(int(part) for part in version.split(".")[:2]) < LEAST_SQLITE:
        yield FAIL, f"SQLite {version} is too old, 3.43 is the least", "upgrade apsw, which brings its own"
        return
    try:
        apsw.Connection(":memory:").execute(
            "CREATE VIRTUAL TABLE t USING fts5"
            " (body, content = '', contentless_delete = 1, tokenize = 'porter unicode61')"
        )
    except apsw.Error as error:
        yield FAIL, f"SQLite {version} has no usable FTS5 ({error})", "upgrade apsw, which brings its own"
        return
    yield OK, f"SQLite {version} with FTS5", ""


def model(settings: Settings, where: Places) -> Iterator[Finding]:
    """The embedder that the settings name can work: the model's files are the right ones, or the service answers."""
    if settings.embedding_mode == "none":
        yield OK, "no embedder is asked for; recall is by words alone", ""
    elif settings.embedding_mode == "http":
        from .service_checks import embedding_service

        yield from embedding_service(settings, _vectors_of(where.db))
    else:
        from ..embedding.builtin import parts
        from ..errors import EmbeddingFailure

        try:
            installed = parts.installed()
            sums = (parts.MINILM_SHA256, parts.VOCABULARY_SHA256, parts.WEIGHTS_SHA256, parts.PIECES_SHA256)
            for path, checksum in zip(
                (installed.minilm, installed.vocabulary, installed.weights, installed.pieces), sums, strict=True
            ):
                parts.read_verified(path, checksum)
        except EmbeddingFailure as error:
            yield FAIL, str(error), REINSTALL
        else:
            yield OK, f"the builtin model's {len(sums)} files have the right checksums", ""


def reranker(settings: Settings, where: Places) -> Iterator[Finding]:
    """The reranker that the settings name, if any, answers."""
    from .service_checks import reranker

    yield from reranker(settings)


def vectors(settings: Settings, where: Places) -> Iterator[Finding]:
    """The service that searches vectors, if the settings name one, answers."""
    from .service_checks import vector_service

    yield from vector_service(settings)


def settings_(settings: Settings, where: Places) -> Iterator[Finding]:
    """No setting is malformed, and none contradicts another."""
    for text in settings.warnings:
        yield WARN, text, "correct it; `cpersona config show` names every value and where it came from"
    problems = settings.conflicts()
    for text in problems:
        yield FAIL, text, "correct one of them; the daemon refuses to start"
    if not settings.warnings and not problems:
        yield OK, "the settings are sound", ""


def directories(settings: Settings, where: Places) -> Iterator[Finding]:
    """The directories of database and log can be written to, and there is room."""
    for what, path in (("database", where.db), ("log", where.log)):
        directory = os.path.dirname(path)
        there = directory
        while not os.path.lexists(there):
            there = os.path.dirname(there)
        if not os.path.isdir(there) or not os.access(there, os.W_OK | os.X_OK):
            yield (
                FAIL,
                f"the directory of the {what}, {directory}, cannot be {'written to' if there == directory else 'made'}",
                f"look at the owner and mode of {there}",
            )
        else:
            yield OK, f"the {what} lies in {directory}" + ("" if there == directory else ", which will be made"), ""
    free = shutil.disk_usage(_existing(os.path.dirname(where.db))).free
    if free < LEAST_FREE_BYTES:
        yield (
            WARN,
            f"{free // 1_000_000} MB are free beside the database",
            "make room; writes are refused once there is none",
        )


def _existing(directory: str) -> str:
    while not os.path.isdir(directory):
        directory = os.path.dirname(directory)
    return directory


def permissions(settings: Settings, where: Places) -> Iterator[Finding]:
    """The store's files are ours and closed to others."""
    from ..vectors.choice import files_of

    found = False
    for path in (
        where.db,
        where.db + "-wal",
        where.lock,
        where.daemon_json,
        where.calibration,
        *files_of(where),
        where.spool,
        where.log,
    ):
        try:
            info = os.lstat(path)
        except OSError:
            continue
        if info.st_uid != os.getuid():
            found = True
            yield (
                FAIL,
                f"{path} belongs to another user (uid {info.st_uid})",
                f"`chown` it, or name another database with CPERSONA_DB_PATH (we are uid {os.getuid()})",
            )
        elif info.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            found = True
            yield (
                WARN,
                f"others can use {path} (mode {stat.S_IMODE(info.st_mode):04o})",
                f"`cpersona health --fix`, or `chmod go= {path}`",
            )
    if not found:
        yield OK, "the store's files are closed to others", ""


def socket(settings: Settings, where: Places) -> Iterator[Finding]:
    """The socket can be made where it belongs, and nobody else can put one there."""
    directory = os.path.dirname(where.socket)
    length = len(os.fsencode(where.socket))
    if length > LONGEST_SOCKET:
        yield (
            FAIL,
            f"the socket's path has {length} bytes, systems take about {MAX_SOCKET_PATH}: {where.socket}",
            "set CPERSONA_SOCKET to a shorter path",
        )
    try:
        problem = check_socket_directory(directory)
    except FileNotFoundError:
        problem = None
    except OSError as error:
        problem = f"{directory}: {error.strerror}"
    if problem:
        yield (
            FAIL,
            f"the socket cannot be in {directory}: {problem}",
            "close the directory to others, or set CPERSONA_SOCKET",
        )
    elif length <= LONGEST_SOCKET:
        yield OK, f"the socket is {where.socket}", ""


def database(settings: Settings, where: Places) -> Iterator[Finding]:
    """What stands at the database's path is ours and of a schema that this version knows."""
    from ..storage.migrations import SCHEMA_VERSION

    try:
        head = files.read(where.db, header.BYTES)
    except FileNotFoundError:
        yield OK, f"there is no database yet at {where.db}; the first command makes it", ""
        return
    except OSError as error:
        yield FAIL, f"{where.db} cannot be read: {error.strerror}", "look at its owner and mode"
        return
    if not head:
        yield OK, f"the database at {where.db} is empty", ""
    elif not head.startswith(header.MAGIC):
        yield (
            FAIL,
            f"{where.db} is no SQLite database",
            "restore a backup with `cpersona restore`, or name another file with CPERSONA_DB_PATH",
        )
    elif header.application(head) not in (0, header.APPLICATION_ID):
        yield FAIL, f"{where.db} is the database of another program", "name another file with CPERSONA_DB_PATH"
    else:
        version = _schema(where.db)
        if version > SCHEMA_VERSION:
            yield (
                FAIL,
                f"the database has schema {version}, this version knows {SCHEMA_VERSION}",
                "upgrade cpersona-cli",
            )
        else:
            told = (
                f"schema {version}, {os.path.getsize(where.db)} bytes"
                if version
                else f"{os.path.getsize(where.db)} bytes; everything else still stands in its log"
            )
            yield OK, f"the database at {where.db} has {told}", ""


def _schema(path: str) -> int:
    """Return the recorded schema, else 0."""
    found: int = _read(path, "SELECT max(version) FROM schema_migrations") or 0
    return found


def _vectors_of(path: str) -> tuple[str, int] | None:
    """Return the identity and the width of the database's vectors, None where none are known."""
    model = _read(path, "SELECT value FROM meta WHERE key = 'embedding_model'")
    width = _read(path, "SELECT value FROM meta WHERE key = 'embedding_dimension'")
    return None if model is None or width is None else (model, width)


def _read(path: str, statement: str) -> Any:
    """Return one value of a database, read without a lock and without the log, so that a look changes nothing; None
    where it cannot be read.
    """
    from urllib.parse import quote

    import apsw

    try:
        conn = apsw.Connection(
            f"file:{quote(path)}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        )
        try:
            return conn.execute(statement).get
        finally:
            conn.close()
    except apsw.Error:
        return None


def clock(settings: Settings, where: Places) -> Iterator[Finding]:
    """The clock is plausible and the time zone is known."""
    now = time.time()
    if now < 1_735_689_600:
        yield (
            FAIL,
            f"the clock says {time.strftime('%Y-%m-%d', time.gmtime(now))}",
            "set it; stamps and ages follow from it",
        )
    zone = os.environ.get("TZ", "")
    if zone and "/" in zone and not os.path.exists(os.path.join("/usr/share/zoneinfo", zone.lstrip(":"))):
        yield WARN, f"TZ={zone} names no time zone that this machine knows", "correct TZ, or install tzdata"
    else:
        yield OK, f"the time zone is {time.tzname[0]}; times without a zone are read as UTC", ""


def programs(settings: Settings, where: Places) -> Iterator[Finding]:
    """The `cpersona` that a shell or a hook finds is this installation's."""
    own = os.path.join(os.path.dirname(sys.executable), "cpersona")
    found = shutil.which("cpersona")
    if found is None:
        yield (
            WARN,
            "`cpersona` is not on the PATH",
            f"add {os.path.dirname(own)} to it, so that hooks and cron find the program",
        )
    elif os.path.exists(own) and os.path.realpath(found) != os.path.realpath(own):
        yield (
            WARN,
            f"`cpersona` on the PATH is {found}, this one is {own}",
            "remove the other one, or put this one first",
        )
    else:
        yield OK, f"`cpersona` is {found}", ""


CHECKS: dict[str, Callable[[Settings, Places], Iterator[Finding]]] = {
    "python": python,
    "packages": packages,
    "programs": programs,
    "sqlite": sqlite,
    "model": model,
    "reranker": reranker,
    "vectors": vectors,
    "settings": settings_,
    "directories": directories,
    "permissions": permissions,
    "socket": socket,
    "database": database,
    "clock": clock,
}


def examine(settings: Settings, where: Places) -> Iterator[dict]:
    """Yield `{check, level, message, do?}` of every check; one that fails by itself is a finding too."""
    for name, look in CHECKS.items():
        try:
            for level, message, do in look(settings, where):
                yield {"check": name, "level": level, "message": message, **({"do": do} if do else {})}
        except Exception as error:  # whatever is wrong with the installation is what is looked for
            yield {"check": name, "level": FAIL, "message": f"{type(error).__name__}: {error}", "do": REINSTALL}


def main() -> int:
    """Print one line of JSON a finding; 1 when one is a failure."""
    settings, failed = load(), False
    for finding in examine(settings, places(settings)):
        failed = failed or finding["level"] == FAIL
        sys.stdout.write(json.dumps(finding) + "\n")
    return 1 if failed else 0
