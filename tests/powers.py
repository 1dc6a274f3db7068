"""Processes without root's power over the modes of files, so that what may not be written cannot be written in a
container either.
"""

from __future__ import annotations

import ctypes
import os
import sys

import pytest

_PR_CAPBSET_DROP = 24
_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 1, 2


def heed_modes() -> None:
    """Be the ``preexec_fn`` of a process that modes bind, whoever runs it."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for power in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
            if libc.prctl(_PR_CAPBSET_DROP, power, 0, 0, 0):
                os._exit(99)


def needs_modes() -> None:
    """Skip a test where a process cannot be bound by modes."""
    if sys.platform != "linux" and os.geteuid() == 0:
        pytest.skip("root heeds no modes here")
