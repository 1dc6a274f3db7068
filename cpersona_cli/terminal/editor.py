"""A text in the caller's editor, $VISUAL or $EDITOR: in a private file, which is kept where its text would be lost.

Contract: edit.kept.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile

from ..exits import Stop
from . import reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from .output import Output

_NOT_RUN = (126, 127)  # how a shell says that a program cannot be run


class Draft:
    """A text to be edited in a file of its own, 0600 in a directory of mode 0700; ``name`` is the file's.

    With the block the file ends, but where that ends in a failure and the text was changed, or ``keep`` was called:
    then it is said where it is.
    """

    def __init__(self, out: Output, doing: str, name: str, text: str) -> None:
        self._out, self._doing, self._name, self._text = out, doing, name, text
        self._kept = False

    def __enter__(self) -> Self:
        self._directory = tempfile.mkdtemp(prefix="cpersona-")
        self.path = os.path.join(self._directory, self._name)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as handle:
            ended = self._text if self._text.endswith("\n") or not self._text else self._text + "\n"
            handle.write(ended.encode("utf-8", "surrogatepass"))
        return self

    def __exit__(self, thrown: type[BaseException] | None, *_: object) -> None:
        if (self._kept or thrown is not None) and self._is_worth_keeping():
            self._out.warn(f"cpersona {self._doing}: your text is kept in {self.path}")
        else:
            shutil.rmtree(self._directory, ignore_errors=True)

    def keep(self) -> None:
        """Leave the file where it is: not all of its text is in the store."""
        self._kept = True

    def edited(self) -> str | None:
        """Run the editor and return its text, None where it is as it was. Raises Stop where the editor fails.

        The end of the last line is there for the editor, and no change.
        """
        command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        self._out.flush()
        status = _run(command, self.path)
        if status:
            what = "cannot be run" if status in _NOT_RUN else f"ended with status {status}"
            raise Stop(
                f"{self._doing}: the editor {command!r} {what}; nothing was changed, VISUAL or EDITOR names another one"
            )
        try:
            with open(self.path, "rb") as handle:
                data = handle.read()
        except OSError as error:
            raise Stop(f"{self._doing}: the editor left no text ({error.strerror}); nothing was changed") from None
        text = reading.decode(data, "the edited text")
        if not self._text.endswith("\n"):
            text = text.removesuffix("\n")
        return None if text.rstrip("\n") == self._text.rstrip("\n") else text

    def _is_worth_keeping(self) -> bool:
        try:
            with open(self.path, "rb") as handle:
                data = handle.read()
        except OSError:
            return False
        return bool(data.strip()) and data.rstrip(b"\n") != self._text.encode("utf-8", "surrogatepass").rstrip(b"\n")


def _run(command: str, path: str) -> int:
    """Run an editor, which may be a command line, on a file, and return its exit status.

    A Ctrl-C is the editor's while it runs.
    """
    before = signal.signal(signal.SIGINT, lambda *_: None)  # not ignored: that the editor would inherit
    try:
        return subprocess.call(["/bin/sh", "-c", f'{command} "$@"', command, path])
    finally:
        signal.signal(signal.SIGINT, before)
