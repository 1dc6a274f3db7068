"""Cleaning what is about to be stored.

Contract: store.cleaned.
"""

from __future__ import annotations

import re

from ..errors import Refused

_MARK = "[Memory from "
_ANNOTATION = re.compile(re.escape(_MARK) + r"[^\]]*\] ")
MAX_AXIS_LENGTH = 256
MAX_TIMESTAMP_LENGTH = 64


def check_axes(**values: str) -> None:
    """Raise Refused for the name of an agent, project or channel that is too long to be one, or holds NUL."""
    for name, value in values.items():
        check_short(value, name)


def check_short(value: str, what: str, most: int = MAX_AXIS_LENGTH) -> str:
    """Return a text of at most ``most`` characters that can be stored as it is. Raises Refused."""
    if len(value) > most:
        raise Refused(f"{what} has {len(value)} characters, at most {most} are kept")
    return check_text(value, what)


def check_text(value: str, what: str) -> str:
    """Return a text that can be stored as it is. Raises Refused for NUL, which would end it early in other programs."""
    if "\0" in value:
        raise Refused(f"{what} holds a NUL character; remove it")
    return value


def sanitise(content: str) -> str:
    """Return the content without memory annotations and outer blanks.

    Removing one annotation may form another, so it repeats until nothing changes.
    """
    while _MARK in content:
        cleaned = _ANNOTATION.sub("", content)
        if cleaned == content:
            break
        content = cleaned
    return content.strip()


def fit(whole: str, cap: int, what: str, fail_if_cut: bool = False) -> tuple[str, dict | None]:
    """Return what is kept of a text and, where that is not all, how much of how much: `{kept, of}` in characters.

    Raises Refused instead of cutting where the caller wants that.
    """
    if len(whole) <= cap:
        return whole, None
    if fail_if_cut:
        raise Refused(
            f"{what} has {len(whole):,} characters and would be cut at {cap:,}; "
            "split it, or let it be cut (without fail_if_cut, `--fail-if-cut` on the command line)"
        )
    kept = whole[:cap].rstrip()
    return kept, {"kept": len(kept), "of": len(whole)}


def remarks(cut: dict | None) -> dict:
    """Return what an answer carries about a text that was cut; nothing about one that was not."""
    return {} if cut is None else {"truncated": True, "cut": cut}
