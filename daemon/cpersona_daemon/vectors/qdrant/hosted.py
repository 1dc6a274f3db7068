"""Qdrant's engine in a process of its own, as a Client.

The process is started when it is needed, and again when it has ended; what it had taken stands in its log.

Contract: qdrant.embedded, qdrant.faults.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import IO, Any

import numpy as np

from . import host
from .client import TIMEOUT_SECONDS, Failed, Point, Search
from .filters import Filter

UPDATE_SECONDS = 600.0  # a write may wait for the disk, or for a shard to be opened; nothing waits for it
LEAVE_SECONDS = 10.0  # ended by force it loses nothing, and takes longer to open the next time
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "TMPDIR")


class Hosted:
    """A Client over the shards of a folder. One call at a time; the others wait for their turn."""

    def __init__(self, folder: str) -> None:
        self.place, self._folder = f"the Qdrant in {folder}", folder
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False
        self._owed = 0  # answers to calls that nobody waits for any more

    @property
    def pid(self) -> int | None:
        """The process, None where none runs."""
        process = self._process
        return None if process is None or process.poll() is not None else process.pid

    def _call(self, method: str, *given: Any, seconds: float = UPDATE_SECONDS) -> Any:
        end = time.monotonic() + seconds
        if not self._turn.acquire(timeout=max(0.0, seconds)):
            raise self._late()
        try:
            process = self._running()
            assert process.stdin is not None and process.stdout is not None
            try:
                while self._owed:
                    self._answer(process.stdout, end)
                    self._owed -= 1
                host.write(process.stdin, (method, given))
                self._owed += 1
                answer = self._answer(process.stdout, end)
                self._owed -= 1
            except (OSError, ValueError, EOFError):
                self._end()
                raise Failed(f"{self.place} has ended") from None
        finally:
            self._turn.release()
        value, failure = answer
        if failure is not None:
            raise Failed(*failure)
        return value

    def _answer(self, source: IO[bytes], end: float) -> host.Answer:
        """Return the next answer. One that is late is not waited for, and read before the next: a shard of a million
        rows may take a minute to open.
        """
        ready, _, _ = select.select([source], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            raise self._late()
        answer: host.Answer | None = host.read(source)
        if answer is None:
            raise EOFError
        return answer

    def _late(self) -> Failed:
        return Failed(f"{self.place} did not answer in time")

    def _running(self) -> subprocess.Popen[bytes]:
        if self._closed:
            raise Failed(f"{self.place} is closed")
        if self._process is None or self._process.poll() is not None:
            environ = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", host.__name__, self._folder],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env=environ,
                    start_new_session=True,
                )
            except OSError as error:
                raise Failed(f"{self.place} cannot be started: {error.strerror}") from None
        return self._process

    def _end(self) -> None:
        process, self._process, self._owed = self._process, None, 0
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError, ValueError):
                    if pipe is not None:
                        pipe.close()

    def collections(self) -> list[str]:
        found: list[str] = self._call("collections")
        return found

    def create(self, name: str, width: int) -> None:
        self._call("create", name, width)

    def drop(self, name: str) -> None:
        self._call("drop", name)

    def upsert(self, name: str, points: Sequence[Point]) -> None:
        self._call("upsert", name, [(point.id, host.packed(point.vector), point.payload) for point in points])

    def delete(self, name: str, ids: Sequence[int]) -> None:
        self._call("delete", name, list(ids))

    def delete_all(self, name: str, matching: Filter) -> None:
        self._call("delete_all", name, matching)

    def search(self, name: str, asked: Sequence[Search], deadline: float) -> list[list[tuple[int, float]]]:
        said = [(host.packed(one.vector), one.filter, one.limit, one.floor, one.exact) for one in asked]
        seconds = min(TIMEOUT_SECONDS, deadline - time.monotonic())
        return [[(row, score) for row, score in hits] for hits in self._call("search", name, said, seconds=seconds)]

    def count(self, name: str) -> int:
        return int(self._call("count", name))

    def payload(self, name: str, point: int) -> dict[str, Any] | None:
        found: dict[str, Any] | None = self._call("payload", name, point)
        return found

    def set_payload(self, name: str, point: int, payload: dict[str, Any]) -> None:
        self.upsert(name, [Point(point, np.ones(1, np.float32), payload)])

    def close(self) -> None:
        """End the process once it has written what it has; by force where that takes long."""
        self._closed = True
        process = self._process
        if process is not None and not self._turn.acquire(timeout=LEAVE_SECONDS):
            process.kill()  # who waits for an answer learns that there is none
            self._turn.acquire()
        try:
            if process is not None and process.stdin is not None:
                with contextlib.suppress(OSError, ValueError, subprocess.TimeoutExpired):
                    process.stdin.close()
                    process.wait(LEAVE_SECONDS)
            self._end()
        finally:
            if process is not None:
                self._turn.release()
