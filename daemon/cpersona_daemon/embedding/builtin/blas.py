"""One BLAS thread while a small model runs, and the process's own number again afterwards.

Matrices of a few tokens gain little from a second thread and lose everything on a busy machine, where the
threads spin for each other: 17 ms became 190, with peaks near a second. One thread also gives the same bits
on every machine.

Contract: embedding.builtin.
"""

from __future__ import annotations

import threading
from typing import Any


class OneThread:
    """A context manager for any number of threads at once: the first in sets the limit, the last out lifts it.

    The number belongs to the whole process, so that saving and restoring it per call would let two calls
    that overlap leave it at one for good. A vector scan in such a moment has one thread, and is as right.
    """

    def __init__(self, libraries: list[Any]) -> None:
        self._libraries = libraries
        self._guard = threading.Lock()
        self._inside = 0
        self._before: list[int] = []

    @classmethod
    def of_this_process(cls) -> OneThread:
        """Return the limiter of the BLAS that numpy has loaded. Raises ImportError without threadpoolctl."""
        from threadpoolctl import ThreadpoolController

        return cls(ThreadpoolController().select(user_api="blas").lib_controllers)

    def __enter__(self) -> None:
        with self._guard:
            if not self._inside:
                self._before = [library.get_num_threads() for library in self._libraries]
                for library in self._libraries:
                    library.set_num_threads(1)
            self._inside += 1

    def __exit__(self, *failure: object) -> None:
        with self._guard:
            self._inside -= 1
            if not self._inside:
                for library, number in zip(self._libraries, self._before, strict=True):
                    library.set_num_threads(number)
