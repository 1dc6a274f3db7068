"""Giving memory back to the system once it is not needed any more."""

from __future__ import annotations


def give_back() -> None:
    """Have the C library return the pages that it keeps for later; does nothing where it knows no such call.

    It keeps what large requests took, up to hundreds of megabytes, and would for the rest of the process's life. It may
    take some hundredths of a second, so call it on a thread of its own.
    """
    import ctypes  # only here: few daemons ever see a large request

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
