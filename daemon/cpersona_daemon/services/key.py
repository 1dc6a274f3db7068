"""The key that opens a service: from the environment or a file, sent as a bearer and shown to nobody.

Contract: services.keys.
"""

from __future__ import annotations

import os
import stat

from ..shared import files

_MOST_BYTES = 8192


class KeyFailure(Exception):
    """Why there is no key to send; the message names where it was looked for, and nothing of what stands there."""


class Key:
    """A service's key. ``variable`` is the setting that holds it, the one with _FILE behind names a file with it.

    A file is read when the key is needed for the first time, and again after ``refused``: a key may be renewed while
    the daemon runs.
    """

    def __init__(self, variable: str, value: str = "", path: str = "") -> None:
        self.variable, self._value, self._path = variable, value, os.path.expanduser(path)
        self._read: str | None = None

    def __repr__(self) -> str:
        return f"Key({self.variable})"  # what a traceback may show

    @property
    def given(self) -> bool:
        """Whether there is any."""
        return bool(self._value or self._path)

    def bearer(self) -> str | None:
        """Return what the header says, None without a key. Raises KeyFailure where it cannot be read or sent."""
        if not self.given:
            return None
        if self._read is None:
            self._read = self._sendable(self._value) if self._value else self._sendable(self._from_file())
        return "Bearer " + self._read

    def refused(self) -> None:
        """Learn that the service did not take the key."""
        self._read = None

    def exposed(self) -> str | None:
        """Return what is wrong with the rights of the file that holds the key, None where nothing is."""
        try:
            mode = os.stat(self._path).st_mode if self._path and not self._value else 0
        except OSError:
            return None  # to read it says more
        if not mode & (stat.S_IRWXG | stat.S_IRWXO):
            return None
        return (
            f"others can use {self._path}, which holds a key (mode {stat.S_IMODE(mode):04o}); `chmod go= {self._path}`"
        )

    def _from_file(self) -> str:
        try:
            return files.read(self._path, _MOST_BYTES, follow=True).decode("utf-8").strip()
        except OSError as error:
            raise KeyFailure(f"{self.variable}_FILE={self._path} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise KeyFailure(f"{self.variable}_FILE={self._path} holds no text") from None

    def _sendable(self, key: str) -> str:
        where = self.variable if self._value else f"{self.variable}_FILE={self._path}"
        if not key:
            raise KeyFailure(f"{where} is empty; put the key into it")
        # A line end would begin a header of its own.
        if not key.isascii() or not key.isprintable() or " " in key:
            raise KeyFailure(f"{where} holds what cannot be a key: blanks, line ends or letters beyond ASCII")
        return key
