"""What stands before a Markdown text between `---` (YAML) or `+++` (TOML), as a map.

Of YAML it is the part that front matter is written in: a key a line, its value a text, a number, true, false or null, a
list of these on one line or on several, or a text over several lines. Whatever else a value is stays as its text, so
that nothing is guessed and nothing is lost; which library is installed makes no difference to what is stored.

Contract: import.matter.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time
from typing import Any

_KEY = re.compile(r"""("[^"]+"|'[^']+'|[^\s:#"'\[\]{}&*!|>%@`,?-][^:#]*?)[ \t]*:(?:[ \t]+(.*))?""")
_ITEM = re.compile(r"[ \t]*-(?:[ \t]+(.*))?")
_COMMENT = re.compile(r"(?:^|[ \t]+)#.*$")
_BLOCK = re.compile(r"([|>])[0-9]?[+-]?(?:[ \t]+#.*)?")
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"(?:[ \t]+#.*)?')
_SINGLE = re.compile(r"'((?:[^']|'')*)'(?:[ \t]+#.*)?")
_FLOW_ITEM = re.compile(r"""[ \t]*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,\[\]{}"'][^,\[\]{}]*|)[ \t]*(?:,|$)""")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/", "0": "", "r": "", " ": " "}
_WHOLE = re.compile(r"-?(?:0|[1-9]\d{0,17})")
_OFFSET = re.compile(r"[ \t]+([+-]\d\d:?\d\d|Z)$")
_NAMED_DAY = re.compile(r"(\d{4}-\d\d-\d\d)(?!\d)")
# Which key says when a note is from, the first that does.
TIMES = ("date", "created", "created_at", "published")


def split(text: str) -> tuple[dict[str, Any], str]:
    """Return a text's front matter as a map, empty where there is none, and the text behind it."""
    for mark, read in (("---", _yaml), ("+++", _toml)):
        first, _, rest = text.partition("\n")
        if first.rstrip() != mark:
            continue
        end = re.search(r"^(?:---|\.\.\.)[ \t]*$" if mark == "---" else r"^\+\+\+[ \t]*$", rest, re.MULTILINE)
        found = None if end is None else read(rest[: end.start()])
        if end is not None and found is not None:
            return found, rest[end.end() :].lstrip("\n")
    return {}, text


def instant(front: dict[str, Any], name: str = "") -> str:
    """Return when a note is from, as ISO text with its offset; '' where neither a key nor the name of its file says so.

    A time without an offset is UTC, a day its beginning.
    """
    day = _NAMED_DAY.match(name)
    for value in (*(front[key] for key in TIMES if key in front), *([day[1]] if day else [])):
        if not isinstance(value, str | int) or isinstance(value, bool):
            continue
        try:
            moment = datetime.fromisoformat(_OFFSET.sub(r"\1", str(value).strip()))
        except ValueError:
            continue
        return moment.isoformat() if moment.tzinfo is not None else f"{moment.isoformat()}+00:00"
    return ""


def tags(front: dict[str, Any]) -> list[str]:
    """Return the tags that front matter names: a list, or words between commas or spaces."""
    value = front.get("tags")
    if isinstance(value, str):
        value = value.split(",") if "," in value else value.split()
    if not isinstance(value, list):
        return []
    return [tag for item in value if isinstance(item, str | int) and (tag := str(item).strip().lstrip("#"))]


def _toml(text: str) -> dict[str, Any] | None:
    import tomllib

    try:
        return {key: _as_json(value) for key, value in tomllib.loads(text).items()}
    except (tomllib.TOMLDecodeError, RecursionError):
        return {"front_matter": text.strip()} if text.strip() else {}


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    if isinstance(value, dict):
        return {key: _as_json(item) for key, item in value.items()}
    return value


def _yaml(text: str) -> dict[str, Any] | None:
    """Return the map that a block of YAML is, None where it does not begin like one: a rule, not front matter."""
    front: dict[str, Any] = {}
    blocks: list[tuple[str, str, list[str]]] = []
    for line in text.split("\n"):
        found = _KEY.fullmatch(line.rstrip())
        if found:
            blocks.append((found[1].strip("\"'"), (found[2] or "").strip(), []))
        elif blocks:
            blocks[-1][2].append(line.rstrip())
        elif line.strip() and not line.lstrip().startswith("#"):
            return None
    for key, rest, lines in blocks:
        front[key] = _value(rest, lines)
    return front


def _value(rest: str, lines: list[str]) -> Any:
    """Return what stands behind a key: ``rest`` on its line, ``lines`` up to the next key."""
    if block := _BLOCK.fullmatch(rest):
        return _long_text(lines, folded=block[1] == ">")
    kept = [line for line in lines if line.strip() and line.lstrip()[0] != "#"]
    bare = rest if rest.startswith(("'", '"')) else _COMMENT.sub("", rest)
    if kept and not bare:
        done, value = _items(kept)
    else:
        done, value = _one(" ".join([bare, *map(str.strip, kept)]))
    return value if done else "\n".join([rest, *lines]).strip()


def _items(lines: list[str]) -> tuple[bool, Any]:
    """Return whether lines are a list of plain values, and that list."""
    found = [_ITEM.fullmatch(line) for line in lines]
    values = [_scalar(item[1] or "") if item else (False, None) for item in found]
    return all(done for done, _ in values), [value for _, value in values]


def _one(text: str) -> tuple[bool, Any]:
    """Return whether a text is a list between brackets or a value, and that."""
    if not (text.startswith("[") and text.endswith("]")):
        return _scalar(text)
    items = _flow(text[1:-1])
    return items is not None, items


def _flow(inside: str) -> list[Any] | None:
    """Return the items between brackets, None where there is more than plain values between them."""
    items, at = [], 0
    while inside[at:].strip():
        found = _FLOW_ITEM.match(inside, at)
        if found is None or found.end() == at:
            return None
        at = found.end()
        done, value = _scalar(found[1])
        if not done:
            return None
        items.append(value)
    return items


def _scalar(text: str) -> tuple[bool, Any]:
    """Return whether a text is a plain or quoted value, and that value.

    A whole number that is written as one is a number; 1.10 and 007 stay what they are.
    """
    text = text.strip()
    if quoted := _DOUBLE.fullmatch(text):
        return True, re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), quoted[1])
    if quoted := _SINGLE.fullmatch(text):
        return True, quoted[1].replace("''", "'")
    if text[:1] in ('"', "'", "[", "{", "&", "*", "!", "|", ">", "%", "@", "`"):
        return False, text
    text = _COMMENT.sub("", text)
    if text.lower() in _WORDS and (text.islower() or text in ("", "~") or text.istitle()):
        return True, _WORDS[text.lower()]
    return True, int(text) if _WHOLE.fullmatch(text) and text != "-0" else text


def _long_text(lines: list[str], folded: bool) -> str:
    """Return the text of indented lines, their line ends kept or, folded, as spaces between paragraphs."""
    said = [line for line in lines if line.strip()]
    if not said:
        return ""
    indent = min(len(line) - len(line.lstrip()) for line in said)
    text = "\n".join(line[indent:] for line in lines).strip("\n")
    return re.sub(r"(?<!\n)\n(?!\n)", " ", text) if folded else text
