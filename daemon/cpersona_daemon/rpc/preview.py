"""The preview tier: what of each row's text leaves the daemon.

Contract: preview.prefix, preview.budget.
"""

from __future__ import annotations

from ..recall.display import PROFILE_SOURCE

FULL_CONTENT_BUDGET = 200_000


def trim(messages: list[dict], preview_chars: int, full_content: bool) -> bool:
    """Cut texts to a pure prefix in place, and tell whether the full-content budget ran out.

    With ``full_content`` the budget is spent from the last (best) row backwards; the last row is always whole,
    and once a row does not fit, it and all before it are previews. The profile row is never cut.
    """
    if preview_chars <= 0:
        return False
    whole, spent, ran_out = set(), 0, False
    if full_content:
        for index in range(len(messages) - 1, -1, -1):
            spent += len(messages[index]["content"])
            if spent > FULL_CONTENT_BUDGET and index != len(messages) - 1:
                ran_out = True
                break
            whole.add(index)
    for index, message in enumerate(messages):
        if index not in whole and not _is_profile(message):
            _preview(message, preview_chars)
    return ran_out


def _is_profile(message: dict) -> bool:
    return "ref" not in message and message["source"] == PROFILE_SOURCE


def _preview(message: dict, chars: int) -> None:
    content = message["content"]
    if len(content) > chars:
        message["content"] = content[:chars]
        message["content_truncated"] = True
        message["content_len"] = len(content)
