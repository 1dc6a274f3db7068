"""`config`: every setting, its value and where it came from. Asks no daemon.

Contract: settings.order, paths.places.
"""

from __future__ import annotations

from .. import exits
from ..declare.spec import PLAIN, argument, command
from ..session import Session
from ..terminal import render
from ..terminal.output import Output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cpersona_daemon.shared.settings import Settings
    from cpersona_daemon.shared.settings_table import Setting


@command(
    "config show",
    argument(
        "names",
        "Only these settings; all of them without.",
        many=True,
        required=False,
        metavar="NAME…",
        values="settings",
    ),
    common=PLAIN,
)
def show(session: Session, names: list[str]) -> None:
    """Show every setting, its value and where it came from: option, environment, config file or default.

    A running daemon keeps the values it was started with; `cpersona daemon restart` applies new ones.
    Values that contradict each other are named on stderr: the daemon would refuse to start. Secrets are
    masked: the token, and the user name, password and query of the embedding service's address.

    Example:
      cpersona config show
      CPERSONA_RECALL_MODE=rsf cpersona config show recall_mode
    """
    from cpersona_daemon.shared import settings_table as table

    wanted = [name.strip().lower().removeprefix("cpersona_") for name in names]
    for name in wanted:
        if name not in table.BY_NAME:
            raise exits.Usage(f"there is no setting {name!r}; `cpersona config show` lists them")
    current, out = session.settings, session.out
    rows = [_row(current, setting) for setting in table.TABLE if not wanted or setting.name in wanted]
    if out.as_json:
        out.json({"settings": rows, "warnings": list(current.warnings), "conflicts": current.conflicts()})
    elif out.draws:
        for row in rows:
            _draw(out, row)
    else:
        lines = [[row["name"], _text(row["value"]), row["origin"], _explained(row)] for row in rows]
        render.table(out, ("setting", "value", "origin", "meaning"), lines)
    for conflict in current.conflicts():
        out.warn(f"cpersona: {conflict}; the daemon refuses to start with this")


def _row(current: Settings, setting: Setting) -> dict:
    """Return what is shown of one setting."""
    return {
        "name": setting.name,
        "value": setting.shown(getattr(current, setting.name)),
        "origin": current.origin(setting.name),
        "default": setting.default_in(current.recall_mode),
        "default_text": setting.default_text,
        "range": setting.range_text,
        "meaning": setting.meaning,
        "variable": setting.variable,
    }


def _draw(out: Output, row: dict) -> None:
    default = "" if row["origin"] == "default" or _is_by_mode(row) else f", default {row['default_text']}"
    out.wrapped(f"{row['name']} = {_text(row['value']) or '(empty)'}  ({row['origin']})")
    out.wrapped(f"    {_explained(row)}; {row['range']}{default}", "    ")


def _explained(row: dict) -> str:
    """Return what a setting means, and where its default hangs on the recall mode, what that is."""
    return f"{row['meaning']}; default {row['default_text']}" if _is_by_mode(row) else row["meaning"]


def _is_by_mode(row: dict) -> bool:
    from cpersona_daemon.shared import settings_table as table

    return bool(table.BY_NAME[row["name"]].by_mode)


@command(
    "config path",
    argument(
        "which",
        "config, db, socket, log, calibration or spool.",
        required=False,
        metavar="NAME",
        values=("config", "db", "socket", "log", "calibration", "spool"),
    ),
    common=PLAIN,
)
def path(session: Session, which: str | None) -> None:
    """Print where something lives: the config file, or the database and what belongs to it.

    Example:
      cpersona config path
    """
    from cpersona_daemon.shared import paths, settings

    places = paths.places(session.settings)
    known = {
        "config": settings.config_path(),
        "db": places.db,
        "socket": places.socket,
        "log": places.log,
        "calibration": places.calibration,
        "spool": places.spool,
    }
    if which is not None and which not in known:
        raise exits.Usage(f"config path knows no {which!r}; it takes {', '.join(known)}")
    if session.out.as_json:
        session.out.json(known if which is None else {which: known[which]})
    else:
        session.out.line(known[which or "config"])


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return "" if value is None else str(value)


COMMANDS = (show, path)
