"""What a line of `store --jsonl` may hold, under whichever names, and the request that it becomes.

Contract: store.lines.
"""

from __future__ import annotations

from ..terminal import reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session

# What one line may hold: store's parameters under their own names ...
_PARAMETERS = frozenset(
    (
        "agent_id",
        "content",
        "id",
        "source",
        "timestamp",
        "metadata",
        "channel",
        "project_id",
        "associations",
        "lock",
        "on_conflict",
        "batch",
        "check_secrets",
        "message",
        "cut",
        "fail_if_cut",
        "session_key",
    )
)
# ... and under the names that the options of `store` and the rows of `list` and `get` have.
_ALSO = {
    "agent": "agent_id",
    "project": "project_id",
    "msg_id": "id",
    "locked": "lock",
    "on-conflict": "on_conflict",
    "check-secrets": "check_secrets",
    "fail-if-cut": "fail_if_cut",
    "session": "session_key",
    "at": "timestamp",
}
# What a row that was read says of where it stood; stored anew it gets its own.
_OF_A_ROW = frozenset(("ref", "created_at", "stored", "age", "resolved"))
# The answers of `list --json` and `get --json`, and where their rows stand.
_ANSWERS = ("memories", "items")


def line_rows(line: bytes) -> list:
    """Return the rows of one line: an object, a text, or all that an answer of `list --json` or `get --json` holds.

    Raises ValueError with what is wrong with it.
    """
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"not valid UTF-8 (byte {error.start + 1})") from None
    try:
        value = reading.parse_json(text)
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
    if isinstance(value, str):
        return [{"content": value}]
    if not isinstance(value, dict):
        raise ValueError("neither an object nor a string")
    if "_type" in value:
        raise ValueError("this is a line of an export; `cpersona import` takes that file")
    for name in _ANSWERS:
        if isinstance(value.get(name), list):
            return value[name]
    return [value]


def row_params(row: object, session: Session) -> dict:
    """Return store's parameters for one object, whichever names it uses. Raises ValueError, Usage."""
    if not isinstance(row, dict):
        raise ValueError("not an object")
    _refuse_other_rows(row)
    params: dict = {}
    for key, value in row.items():
        if key in _OF_A_ROW or _is_number_of_row(key, value, row):
            continue
        name = _ALSO.get(key, key)
        if name not in _PARAMETERS:
            raise ValueError(f"unknown key {key!r}; the keys are {', '.join(sorted({*_PARAMETERS, *_ALSO}))}")
        if key == "at" and isinstance(value, str):
            value = session.instant(value)
        if params.setdefault(name, value) != value:
            raise ValueError(f"{key!r} and another key for the same thing differ; give one of them")
    return params


def _refuse_other_rows(row: dict) -> None:
    """Raise ValueError for what is a row of a store and cannot be stored as a memory as it stands."""
    ref = row.get("ref")
    if isinstance(ref, str) and ref.startswith("ep:"):
        raise ValueError(f"{ref} is an episode; `cpersona episode archive` takes its summary")
    if row.get("content_truncated") is True:
        raise ValueError("its content is a preview; `cpersona get REF --json` prints the whole row")


def _is_number_of_row(key: str, value: object, row: dict) -> bool:
    """Tell whether an `id` is the number of the row that it was, and no key of its owner's."""
    return key == "id" and type(value) is int and ("ref" in row or "msg_id" in row)
