"""The text of a commit's note: the message, the paths that it changed, its id.

The client writes it; the daemon embeds the message alone and weighs the words of paths less.

Contract: git.notes, git.paths.
"""

FILES, COMMIT = "\n\nfiles: ", "\n\ncommit "
FILES_LENGTH = 900  # of the list, its mark included: some two dozen paths, less than most messages that say why
# A commit of more files is about none of them in particular, and its list is shorter in proportion: a long one would
# keep the note out of the few that its message is compared with.
_MANY = 50
_SHARE = 8  # of a text's whole room, where that is small
_IDS = (40, 64)  # how long an id is
_HEXADECIMAL = frozenset("0123456789abcdef")


def files_line(paths: "list[str]", total: int, room: int) -> str:
    """Return the line of the first paths that fit into it, '' where not one does; how many more there are is said.

    ``room`` is how long a text may be at all.
    """
    length = min(FILES_LENGTH * _MANY // max(_MANY, total), room // _SHARE)
    left, listed = length - len(FILES) - len(_more(total)), []
    for path in paths:
        left -= len(path) + 2
        if left < 0:
            break
        listed.append(path.replace("\n", " "))
    if not listed:
        return ""
    return FILES + ", ".join(listed) + (_more(total - len(listed)) if len(listed) < total else "")


def _more(count: int) -> str:
    return f" and {count:,} more"


def parts(content: str) -> "tuple[str, str, str]":
    """Return a text as the message, the line of paths and the id of a commit's note; the last two are '' where it is
    none, or has none.
    """
    for length in _IDS:
        if content[-length - len(COMMIT) : -length] in (COMMIT, COMMIT.lstrip()) and _is_hexadecimal(content[-length:]):
            end = max(0, len(content) - length - len(COMMIT))
            begin = 0 if content.startswith(FILES.lstrip()) else content.rfind(FILES, 0, end)
            if begin < 0 or "\n" in content[begin + len(FILES) : end]:
                begin = end
            return content[:begin], content[begin:end], content[end:]
    return content, "", ""


def _is_hexadecimal(text: str) -> bool:
    return _HEXADECIMAL.issuperset(text)
