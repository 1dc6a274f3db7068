"""What a note of basic-memory says beside its text: the lists of observations and relations that it is known for.

An observation is `- [category] text #tag (context)`, a relation `- type [[Target]] (context)`, where a type of several
words stands in quotes; any other `[[Target]]` is a link. They stay in the text, and stand in the metadata as well.

Contract: import.formats.
"""

from __future__ import annotations

import re
from typing import Any

from .outline import without_blocks

_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+(.+)")
_CATEGORY = re.compile(r"\[([^\[\]()]+)\]\s+\S")
# A task or a time in brackets is no category.
_TASK = re.compile(r"[xX]|[^\w]")
_TIME = re.compile(r"\d{1,3}:\d{2}(?::\d{2})?(?:[.,]\d{1,3})?(?:\s+-\s+\d{1,3}:\d{2}(?::\d{2})?(?:[.,]\d{1,3})?)?")
_TAG = re.compile(r"(?:^|\s)#([^\s#]+)")
_RELATION = re.compile(r"""(?:"([^"]+)"|'([^']+)'|([^\s\["']+))\s+\[\[([^\[\]]+)\]\](?:\s+\(([^()]*)\))?""")
_LINK = re.compile(r"\[\[([^\[\]]+)\]\]")
_CODE = re.compile(r"`[^`]*`")


def said(text: str) -> dict[str, Any]:
    """Return `{tags, observations, relations}` of a text, each where there are any: the tags of its observations, their
    categories, and `{type, target, context?}` of each relation and link.
    """
    tags: dict[str, None] = {}
    categories: dict[str, None] = {}
    relations: dict[tuple[str, str], dict[str, str]] = {}
    for line in without_blocks(text.split("\n")):
        item = _ITEM.fullmatch(line)
        content = _CODE.sub(" ", item[1] if item else line).strip()
        if item and (category := _category(content)):
            categories[category] = None
            tags |= dict.fromkeys(_TAG.findall(content))
        for relation in _relations(content, bool(item)):
            relations.setdefault((relation["type"], relation["target"]), relation)
    found = {"tags": list(tags), "observations": list(categories), "relations": list(relations.values())}
    return {name: values for name, values in found.items() if values}


def _category(content: str) -> str:
    """Return the category of an observation, '' of what is none."""
    found = _CATEGORY.match(content)
    category = found[1].strip() if found else ""
    return "" if _TASK.fullmatch(category) or _TIME.fullmatch(category) else category


def _relations(content: str, is_item: bool) -> list[dict[str, str]]:
    if is_item and (found := _RELATION.fullmatch(content)):
        relation = {"type": found[1] or found[2] or found[3], "target": found[4].strip()}
        return [relation | {"context": found[5].strip()} if found[5] else relation]
    return [{"type": "links_to", "target": target.strip()} for target in _LINK.findall(content)]
