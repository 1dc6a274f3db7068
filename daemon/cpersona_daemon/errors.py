"""Every failure cpersona can report, each with a stable code.

::

    CPersonaError
     ├─ Refused            the contract says no: wrong value, locked row, missing row
     ├─ InvalidParams      the request's shape is wrong
     ├─ UnknownMethod      no such method
     ├─ PermissionDenied   the access file grants this client too little
     ├─ TimedOut           the request's deadline passed
     ├─ KeyUsed            the idempotency key belongs to another request; nothing was done
     ├─ Busy               a bound was reached; nothing was done
     ├─ ShuttingDown       the daemon is leaving; nothing was done
     ├─ StorageFailure     a file could not be written or read; nothing was done
     │   └─ DiskFull       there is no room left for it
     ├─ ReadOnly           the database, or a file it needs beside it, may not be written to
     ├─ CorruptDatabase    SQLite found damage
     ├─ NewerSchema        the database belongs to a later version
     ├─ SettingsConflict   settings contradict each other
     ├─ EmbeddingFailure   the embedding backend failed or answered nonsense
     ├─ RerankFailure      the reranker failed or answered nonsense; no answer fails for it
     └─ VectorServiceFailure  so did a service that searches vectors; no answer fails for it

Exit status, whether to retry and the hint stand in ``shared.fields.ERRORS`` under the same code, where
the client reads them without importing this module. Foreign exceptions become ours in ``translate``
and nowhere else.
"""

from __future__ import annotations

import errno

import apsw

from .shared import fields


class CPersonaError(Exception):
    """A failure that the caller is told about: ``code`` is stable, the message says what and why."""

    code = "internal"

    @property
    def exit_status(self) -> int:
        return fields.ERRORS[self.code][0]

    @property
    def hint(self) -> str:
        return fields.ERRORS[self.code][2]


class Refused(CPersonaError):
    code = "refused"


class InvalidParams(CPersonaError):
    code = "invalid_params"


class UnknownMethod(CPersonaError):
    code = "unknown_method"


class PermissionDenied(CPersonaError):
    code = "permission_denied"


class KeyUsed(CPersonaError):
    code = "key_used"


class TimedOut(CPersonaError):
    code = "timed_out"


class Busy(CPersonaError):
    code = "busy"


class ShuttingDown(CPersonaError):
    code = "shutting_down"


class StorageFailure(CPersonaError):
    code = "storage"


class DiskFull(StorageFailure):
    code = "full"


class ReadOnly(CPersonaError):
    code = "read_only"


class CorruptDatabase(CPersonaError):
    code = "corrupt"


class NewerSchema(CPersonaError):
    code = "newer_schema"


class SettingsConflict(CPersonaError):
    code = "settings"


class EmbeddingFailure(CPersonaError):
    code = "embedding"


class RerankFailure(CPersonaError):
    code = "rerank"


class VectorServiceFailure(CPersonaError):
    """``refused``: the service will not take the same request another time either."""

    code = "vectors"
    refused = False


_SQLITE = (
    (apsw.FullError, DiskFull, "the disk is full, nothing was written"),
    (apsw.IOError, StorageFailure, "the disk reported an I/O error, nothing was written"),
    (apsw.ReadOnlyError, ReadOnly, "the database cannot be written to"),
    (apsw.CantOpenError, StorageFailure, "a database file cannot be opened"),
    (apsw.CorruptError, CorruptDatabase, "the database is damaged"),
    (apsw.NotADBError, CorruptDatabase, "the file is not a SQLite database"),
    (apsw.BusyError, Busy, "another program holds the database"),
    (apsw.LockedError, Busy, "another program holds the database"),
    (apsw.InterruptError, TimedOut, "the request was interrupted at its deadline"),
    (apsw.ExecTraceAbort, TimedOut, "the request was given up at its deadline"),
)


def translate(error: BaseException) -> BaseException:
    """Return our error for one of SQLite's, or the error itself when it is not one of SQLite's."""
    for foreign, ours, text in _SQLITE:
        if isinstance(error, foreign):
            return ours(f"{text} ({error})")
    return error


def of_file(error: OSError, text: str) -> CPersonaError:
    """Return our error for one of the system's about a file; ``text`` says what could not be done."""
    kind = (
        DiskFull
        if error.errno in (errno.ENOSPC, errno.EDQUOT)
        else ReadOnly
        if error.errno == errno.EROFS
        else StorageFailure
    )
    return kind(f"{text}: {error.strerror or error}")
