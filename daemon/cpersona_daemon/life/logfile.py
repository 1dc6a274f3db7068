"""The daemon's log: a file of a bounded size that only its owner can read, or standard error.

A signal that ends the process at once, such as SIGBUS when somebody cuts a file short that SQLite has mapped (its
-shm), is told there too, with what each thread was doing.

It is rotated, and never holds memory content at the default level.
"""

from __future__ import annotations

import faulthandler
import logging
import logging.handlers
import os
import time
from io import TextIOWrapper

from ..shared import files
from ..shared.paths import make_private_directory

BYTES, KEPT = 2_000_000, 3


class _File(logging.handlers.RotatingFileHandler):
    """A rotated file, opened like every file of ours: what stands in its place is neither followed nor waited for."""

    def __init__(self, path: str) -> None:
        super().__init__(path, maxBytes=BYTES, backupCount=KEPT, encoding="utf-8")

    def _open(self) -> TextIOWrapper:
        descriptor = files.opened(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        stream = open(descriptor, "a", encoding=self.encoding)  # noqa: SIM115 - the handler closes it
        faulthandler.enable(stream)
        return stream

    def doRollover(self) -> None:
        """Begin anew; where the old one cannot be put away, go on in it rather than lose what is to be said."""
        faulthandler.disable()  # it knows the file by a number, which is another file's once this one is closed
        try:
            for number in range(1, KEPT + 1):
                files.make_way(f"{self.baseFilename}.{number}")
            super().doRollover()
        except OSError:
            if self.stream is None:
                self.stream = self._open()
            else:
                faulthandler.enable(self.stream)


def start(level: str, path: str | None) -> str | None:
    """Send the log to a file, or to standard error without one; return why it goes nowhere, None when it is written."""
    faulthandler.enable()
    problem, handler = None, logging.StreamHandler()  # type: tuple[str | None, logging.Handler]
    if path is not None:
        try:
            make_private_directory(os.path.dirname(path))
            handler = _File(path)
        except OSError as error:
            problem = f"no log is written to {path}: {error.strerror}"
    line = "%(asctime)s.%(msecs)03dZ %(process)d %(levelname)s %(name)s: %(message)s"
    formatter = logging.Formatter(line, "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(level.upper())
    # asyncio's own debug lines would quote frames.
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    return problem
