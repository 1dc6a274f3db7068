"""A private directory for drafts beside where they are needed.

One that a killed process left is removed by the next.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile

LOCK = "lock"


class Workspace:
    """A directory ``<parent>/<prefix>…`` as long as the ``with`` block lasts.

    Whoever makes one removes those that nobody holds any more. Raises OSError.
    """

    def __init__(self, parent: str, prefix: str) -> None:
        self._parent, self._prefix = parent, prefix

    def __enter__(self) -> str:
        self._remove_abandoned()
        self._path = tempfile.mkdtemp(prefix=self._prefix, dir=self._parent)  # 0700
        try:
            self._held = os.open(
                os.path.join(self._path, LOCK), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
            )
            fcntl.flock(self._held, fcntl.LOCK_EX)
        except BaseException:
            shutil.rmtree(self._path, ignore_errors=True)
            raise
        return self._path

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._path, ignore_errors=True)
        os.close(self._held)

    def _remove_abandoned(self) -> None:
        try:
            with os.scandir(self._parent) as entries:
                found = [
                    entry.path
                    for entry in entries
                    if entry.name.startswith(self._prefix) and entry.is_dir(follow_symlinks=False)
                ]
        except OSError:
            return  # a directory that may be written to and not be listed
        for path in found:
            try:
                if os.lstat(path).st_uid != os.getuid():
                    continue
                held = os.open(os.path.join(path, LOCK), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            except OSError:
                continue  # somebody makes it just now, or it is none of these
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)  # it falls with the process that took it
                shutil.rmtree(path, ignore_errors=True)
            except BlockingIOError:
                pass
            finally:
                os.close(held)
