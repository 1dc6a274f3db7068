"""Cleaning what is about to be stored.

Contract: contracts.md §2 "Sanitising", §13 (NUL).
"""

from __future__ import annotations

import re

from ..errors import Refused

_MARK = "[Memory from "
_ANNOTATION = re.compile(re.escape(_MARK) + r"[^\]]*\] ")


def check_text(value: str, what: str) -> str:
    """Return a text that can be stored as it is. Raises Refused for NUL, which would end it early in other programs."""
    if "\0" in value:
        raise Refused(f"{what} holds a NUL character; remove it")
    return value


def sanitise(content: str, cap: int) -> tuple[str, bool]:
    """Return the content without memory annotations and outer blanks, and whether it was cut at ``cap`` characters.

    Removing one annotation may form another, so it repeats until nothing changes.
    """
    while _MARK in content:
        cleaned = _ANNOTATION.sub("", content)
        if cleaned == content:
            break
        content = cleaned
    content = content.strip()
    return (content[:cap].rstrip(), True) if len(content) > cap else (content, False)
