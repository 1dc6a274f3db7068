"""Which files export and import may touch.

Contract: paths.confined.
"""

from __future__ import annotations

import os
from typing import BinaryIO

from ..errors import Refused
from ..shared import files
from ..shared.paths import Places
from ..shared.settings import Settings


def output_file(path: object, settings: Settings, places: Places) -> str:
    """Return the real path that an export may write, links followed. Raises Refused."""
    real = _resolved(path, "output_path", settings)
    if not os.path.isdir(os.path.dirname(real)):
        raise Refused(f"output_path: the directory {os.path.dirname(real)} does not exist; make it first")
    if files.kind(real) is not None:
        raise Refused(f"output_path: {real} is not a regular file")
    if real.startswith(places.db) and (real == places.db or real[len(places.db)] in ".-"):
        raise Refused(f"output_path: {real} belongs to the database; name another file")
    return real


def open_input(path: object, settings: Settings, places: Places) -> BinaryIO:
    """Open a file for import. Raises Refused where it is missing, not a regular file, too large or out of bounds.

    Two passes need a file that can be read twice, so a pipe is refused, and opening one must not wait for its writer.
    The own database is refused unopened: whoever closes a file gives up every lock that its process has on it.
    """
    real = _resolved(path, "input_path", settings)
    try:
        if os.path.samefile(real, places.db):
            raise Refused(
                f"input_path: {real} is the database that this daemon serves; its rows are in it already, and"
                " `cpersona backup` copies it"
            )
    except OSError:
        pass
    try:
        descriptor = files.opened(real)
    except files.InTheWay:
        raise Refused(f"input_path: {real} is not a regular file") from None
    except OSError as error:
        raise Refused(f"input_path: {real} cannot be read ({error.strerror})") from None
    info = os.fstat(descriptor)
    if settings.max_import_bytes and info.st_size > settings.max_import_bytes:
        os.close(descriptor)
        raise Refused(
            f"input_path: {real} has {info.st_size} bytes, at most {settings.max_import_bytes} are read"
            " (CPERSONA_MAX_IMPORT_BYTES)"
        )
    return open(real, "rb", buffering=1 << 20, opener=lambda *_: descriptor)


def _resolved(path: object, name: str, settings: Settings) -> str:
    if not isinstance(path, str) or not path or "\0" in path:
        raise Refused(f"{name} names no file")
    if ".." in path.split("/"):
        raise Refused(f"{name} holds '..'; write the path without it")
    if not os.path.isabs(path):
        raise Refused(
            f"{name} is relative, and the daemon has no working directory to read it from; send an absolute path"
        )
    real = os.path.realpath(path)
    if settings.export_dir:
        root = os.path.realpath(os.path.expanduser(settings.export_dir))
        if os.path.commonpath((root, real)) != root or real == root:
            raise Refused(f"{name} lies outside {root} (CPERSONA_EXPORT_DIR)")
    return real
