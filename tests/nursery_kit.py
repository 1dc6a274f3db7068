"""Daemons that begin as forks of one process, for tests that are not about a daemon's start.

A start takes half a second of a processor, nearly all of it numpy and the reading of the same modules; a birth takes
a tenth. It is a daemon of its own all the same: own process, session, environment, settings, files and socket.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_FOLDER = Path(__file__).parent / "nursery"


class Nursery:
    """One process that has read the daemon's modules; it begins when first asked for and ends with this one."""

    def __init__(self, directory: Path) -> None:
        self._place = directory / "nursery"
        self._process: subprocess.Popen | None = None

    def births(self, environ: dict[str, str]) -> dict[str, str]:
        """Return an environment's variables with which the daemons that clients start in it are born here."""
        if sys.platform != "linux":
            return {}  # elsewhere a system's own libraries bear no fork
        found = {"PYTHONPATH": os.pathsep.join(filter(None, (str(_FOLDER), environ.get("PYTHONPATH"))))}
        if self._process is None:
            self._begin(environ | found)
        return found | {"DAEMON_NURSERY": str(self._place)}

    def close(self) -> None:
        if self._process is not None:
            self._process.communicate()

    def _begin(self, environ: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(_FOLDER / "serve.py"), str(self._place)],
            env={name: value for name, value in environ.items() if not name.startswith("CPERSONA_")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout.readline() == b"ready\n"
