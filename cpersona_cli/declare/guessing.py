"""What a command line that cannot be read was probably meant to be.

The words of other programs, texts without quotes, texts that begin with a dash.

Asked only once a command line has failed; imports what it needs then.
"""

from __future__ import annotations

from . import catalogue, spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .spec import Command


# A word that is no command here -> what does that here, in words behind `cpersona`.
MEANT = {
    **dict.fromkeys(("search", "find", "query", "ask", "lookup"), ("recall",)),
    **dict.fromkeys(
        ("add", "save", "put", "remember", "memorize", "note", "write", "new", "create", "insert"), ("store",)
    ),
    **dict.fromkeys(("show", "cat", "view", "read", "fetch", "print", "open"), ("get",)),
    **dict.fromkeys(("rm", "remove", "del", "erase", "drop"), ("delete",)),
    **dict.fromkeys(("ls", "log", "recent", "latest", "newest"), ("list",)),
    **dict.fromkeys(("change", "modify", "set", "replace"), ("update",)),
    **dict.fromkeys(("ps", "info", "top"), ("status",)),
    **dict.fromkeys(("stop", "quit", "shutdown", "kill"), ("daemon stop",)),
    **dict.fromkeys(("serve", "up"), ("daemon start",)),
    **dict.fromkeys(("settings", "options", "env"), ("config show",)),
    **dict.fromkeys(("check", "fsck", "repair", "fix", "verify"), ("health", "doctor")),
    **dict.fromkeys(("forget", "purge"), ("delete", "forget-agent")),
    **dict.fromkeys(("init", "hook", "hooks"), ("git install",)),
    **dict.fromkeys(("commit", "commits"), ("git note", "git backfill")),
    **dict.fromkeys(("rebuild", "index"), ("reindex",)),
    **dict.fromkeys(("revert", "rollback"), ("undo",)),
    **dict.fromkeys(("relate", "link", "entity", "relation"), ("associate declare",)),
    **dict.fromkeys(("entities", "relations"), ("associate list",)),
    **dict.fromkeys(("man", "topics", "topic", "docs"), ("help",)),
    **dict.fromkeys(("completion", "completions"), ("--install-completion",)),
    "dump": ("export",),
    "load": ("import",),
    "version": ("--version",),
    "episodes": ("episode list",),
    "exist": ("exists",),
}
# Words that mean the same below a family: whichever of a row the family has.
_ALIKE = (
    ("delete", "remove", "rm", "del", "uninstall", "retract", "clear", "drop"),
    ("list", "ls", "show", "get", "view", "status", "cat"),
    ("set", "update", "edit", "change", "replace"),
    ("add", "archive", "declare", "store", "new", "create", "save", "install", "set"),
    ("start", "begin", "up", "run", "launch"),
    ("stop", "end", "quit", "kill", "down"),
)
# The parameters that hold a text of a person's own, which often has spaces.
_TEXTS = ("query", "text", "summary", "entity")
_SHOWN = 60


def unknown(family: str, words: list[str]) -> str:
    """Return what is wrong with ``words`` where a command of ``family`` was looked for, and what was meant.

    ``family`` is '' at the top.
    """
    word = words[0]
    meant = _below(family, word) if family else _at_the_top(word)
    name = f"{family} {word}".strip()
    if meant:
        commands = " or ".join(f"`cpersona {command}`" for command in meant)
        return f"there is no command {_cut(name)!r}; did you mean {commands}?"
    if not family and (len(words) > 1 or " " in word):
        question = " ".join(word for word in words if not word.startswith("-"))
        asked = f"cpersona recall {_quoted(question)}"
        return f"there is no command {_cut(word)!r}; a question goes in quotes behind recall: {asked}"
    return f"there is no command {_cut(name)!r}; `cpersona {f'{family} ' if family else ''}--help` lists them"


def _at_the_top(word: str) -> Sequence[str]:
    if word.lower() in MEANT:
        return MEANT[word.lower()]
    if word.lower() in catalogue.ENTRIES:
        return (word.lower(),)
    inner = [
        " ".join(command.path)
        for family in catalogue.FAMILIES
        for command in catalogue.declared(family)
        if command.path[1] == word.lower()
    ]
    return inner or _near(word, catalogue.ENTRIES)


def _below(family: str, word: str) -> list[str]:
    known = [command.path[1] for command in catalogue.declared(family)]
    alike = [name for row in _ALIKE if word.lower() in row for name in row if name in known]
    return [f"{family} {name}" for name in alike[:1] or _near(word, known)]


def _near(word: str, known: Iterable[str]) -> list[str]:
    from difflib import get_close_matches

    return get_close_matches(word.lower(), known, 2, 0.7)


def unreadable(command: Command, words: list[str], message: str) -> str | None:
    """Return a better message for the words behind a command that could not be read, None where there is none."""
    places = [parameter.name for parameter in command.parameters if not parameter.flags]
    texts = [name for name in places if name in _TEXTS]
    if not texts:
        return None
    name = " ".join(command.path)
    given, options = _apart(command, words)
    dashed = next((word for word in options if _is_text(word)), None)
    if dashed is not None:
        at = words.index(dashed)
        before = [word if word.isprintable() else "…" for word in words[:at] + words[at + 1 :]]
        shown = " ".join([name, *map(_quoted, before)])
        return f"{name}: a text that begins with a dash goes behind --: cpersona {shown} -- {_quoted(dashed)}"
    if message.startswith("no such option"):
        return f"{name}: {message}; see `cpersona {name} --help`; a text that begins with a dash goes behind --"
    if message.startswith("got unexpected extra argument"):
        at = places.index(texts[0])
        end = len(given) - (len(places) - at - 1)
        shown = " ".join([name, *_joined(given, at, end)])
        return f"{name}: a text with spaces goes in quotes: cpersona {shown}"
    return None


def _is_text(word: str) -> bool:
    """Tell whether a word that begins with a dash was hardly meant as an option."""
    return (" " in word and "=" not in word.split(" ")[0]) or word[1].isdigit()


def _joined(given: list[str], at: int, end: int) -> list[str]:
    """Return words as they are typed, those from ``at`` to ``end`` as one text."""
    return [*map(_quoted, given[:at]), _quoted(" ".join(given[at:end])), *map(_quoted, given[end:])]


def _apart(command: Command, words: list[str]) -> tuple[list[str], list[str]]:
    """Return the words behind a command that are neither options nor values, and the options without their values."""
    flags = {
        flag: parameter
        for parameter in (*command.parameters, *(spec.COMMON[key] for key in command.common))
        for flag in parameter.flags
    }
    given: list[str] = []
    options: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return given + rest, options
        if word[:1] != "-" or word == "-":
            given.append(word)
            continue
        options.append(word)
        if word in flags and flags[word].kind != "flag":
            rest[:1] = []
    return given, options


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1].rstrip() + "…"


def _quoted(text: str) -> str:
    from shlex import quote

    return quote(_cut(text))
