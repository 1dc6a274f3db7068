"""What a check of `doctor` says.

Contract: health.doctor.
"""

from __future__ import annotations

OK, WARN, FAIL = "ok", "warn", "fail"

Finding = tuple[str, str, str]  # level, what was found, what to do
