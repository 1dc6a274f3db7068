"""`cpersona` as a process of its own, for the fixtures of any room."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable


def runner(home: dict[str, str], first: Callable[[], None] | None = None) -> Callable[..., subprocess.CompletedProcess]:
    """Return what runs `cpersona` with an environment: ``run(["store", "hi"])`` is a finished process with text output.

    ``first`` is what each process does before it becomes `cpersona`.
    """

    def run(
        args: list[str], input: str | bytes | None = None, env: dict[str, str] | None = None, timeout: float = 60
    ) -> subprocess.CompletedProcess:
        text = not isinstance(input, bytes)
        stdin = {"stdin": subprocess.DEVNULL} if input is None else {"input": input}
        return subprocess.run(
            [sys.executable, "-m", "cpersona_cli", *args],
            env=home | (env or {}),
            capture_output=True,
            text=text,
            encoding="utf-8" if text else None,
            timeout=timeout,
            cwd=home["HOME"],
            preexec_fn=first,
            **stdin,
        )

    return run
