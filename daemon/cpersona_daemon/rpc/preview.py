"""The preview tier: what of each row's text leaves the daemon.

Contract: preview.prefix, preview.budget, passages.best.
"""

from __future__ import annotations

from ..recall.display import PROFILE_SOURCE

FULL_CONTENT_BUDGET = 200_000


def trim(messages: list[dict], preview_chars: int, full_content: bool, passages: bool = False) -> bool:
    """Cut texts to a pure prefix in place, and tell whether the full-content budget ran out.

    With ``full_content`` the budget is spent from the last (best) row backwards; the last row is always whole,
    and once a row does not fit, it and all before it are previews. The profile row is never cut. With ``passages`` the
    text of a passage that the preview does not hold stands beside it.
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
            _preview(message, preview_chars, passages)
    return ran_out


def _is_profile(message: dict) -> bool:
    return "ref" not in message and message["source"] == PROFILE_SOURCE


def _preview(message: dict, chars: int, passages: bool) -> None:
    content, passage = message["content"], message.get("passage")
    if len(content) > chars:
        if passages and passage and passage["end"] > chars:
            passage["text"] = content[passage["start"] : passage["end"]]
        message["content"] = content[:chars]
        message["content_truncated"] = True
        message["content_len"] = len(content)
