"""What the commands that look at a part of the time share: their options, and the instants that become of them.

Contract: time.typed, time.between, time.asof.
"""

from .. import exits
from ..declare.spec import option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..session import Session

SINCE = option(
    "--since",
    "Stored at this time or later: an instant, a date, an age like 3h, or a name like monday or 'last week'.",
    metavar="TIME",
)

UNTIL = option("--until", "Stored at this time or before; a day or a week is meant whole.", metavar="TIME")

_LATEST = (("until", "--until"), ("as_of", "--as-of"))


def between(session: "Session", given: "Mapping[str, Any]") -> dict:
    """Return the instants of since, until and as_of that were given, as parameters.

    Raises Usage, also where nothing can lie between two of them.
    """
    params: dict[str, str] = {}
    for name in ("since", "until", "as_of"):
        if given.get(name) is not None:
            params[name] = session.instant(given[name], end=name != "since", name=name)
    for name, word in _LATEST:
        if params.get("since", "") > params.get(name, "9"):
            raise exits.Usage(
                f"{session.name}: --since {given['since']} lies after {word} {given[name]}; nothing can be between them"
            )
    return params
